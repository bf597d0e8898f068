"""What every client asked and was told, a line of JSON each, on disk as it happens: the checker's only witness.

    {"at": 12.345, "by": "mch_1", "what": "prices", "is": "invoke" | "ok" | "fail" | "unknown", "id": "…", …}

`ok`: it was acknowledged. `fail`: it was refused for good and must have no effect. `unknown`: no answer, or one that
says nothing; the client asks again under the same id wherever that is safe. Threads may share it.
"""

from __future__ import annotations

import json
import threading
import time
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any


class History:
    def __init__(self, path: Path) -> None:
        self.path = path
        self._file = path.open("w", encoding="utf-8")
        self._lock = threading.Lock()
        self.counts: Counter[str] = Counter()

    def note(self, by: str, what: str, how: str, id_: str = "", **facts: Any) -> None:
        line = {"at": round(time.time(), 3), "by": by, "what": what, "is": how, "id": id_, **facts}
        with self._lock:
            self._file.write(json.dumps(line, separators=(",", ":")) + "\n")
            self.counts[f"{what} {how}"] += 1
            self.counts[f"{what} {how} events"] += len(facts.get("event_ids", ()))

    def close(self) -> None:
        self._file.close()


def read(path: Path) -> Iterator[dict[str, Any]]:
    """The lines in their order."""
    with path.open(encoding="utf-8") as lines:
        yield from map(json.loads, lines)
