"""What the demo says outside its tables: plain lines, on a terminal and in a file alike. Imports no Django."""

from __future__ import annotations

from rich.console import Console


class Voice:
    """Prints lines as they are: no wrapping, no markup."""

    def __init__(self) -> None:
        self.console = Console(highlight=False)

    def __call__(self, line: str = "", style: str | None = None) -> None:
        self.console.print(line, style=style, markup=False, soft_wrap=True)

    def step(self, what: str, said: str) -> None:
        self(f"  {what:<14}{said}")
