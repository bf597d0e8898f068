"""Reads what Postgres's own output plugin says of inserts, as a consumer of the log would. Pure.

The messages are those of https://www.postgresql.org/docs/current/protocol-logicalrep-message-formats.html.
"""

from __future__ import annotations

import struct
from collections.abc import Iterable
from dataclasses import dataclass


@dataclass(frozen=True)
class Inserted:
    """One row of one transaction, its values as text."""

    xid: int
    table: str
    row: dict[str, str | None]


class _Bytes:
    def __init__(self, data: bytes) -> None:
        self.data, self.at = data, 0

    def number(self, form: str) -> int:
        (value,) = struct.unpack_from(f">{form}", self.data, self.at)
        self.at += struct.calcsize(f">{form}")
        return int(value)

    def take(self, count: int) -> bytes:
        self.at += count
        return self.data[self.at - count : self.at]

    def text(self) -> str:
        end = self.data.index(b"\0", self.at)
        return self.take(end + 1 - self.at)[:-1].decode()


def read(messages: Iterable[bytes]) -> list[Inserted]:
    """All inserts in the order of commits. Raises ValueError for anything that changes or removes what was said."""
    tables: dict[int, tuple[str, list[str]]] = {}
    found: list[Inserted] = []
    xid = 0
    for message in messages:
        data = _Bytes(message)
        match chr(data.number("B")):
            case "B":
                data.take(16)  # where it ends in the log, and when it was committed
                xid = data.number("I")
            case "R":
                oid = data.number("I")
                data.text()
                table = data.text()
                data.take(1)
                columns = []
                for _ in range(data.number("H")):
                    data.take(1)
                    columns.append(data.text())
                    data.take(8)
                tables[oid] = (table, columns)
            case "I":
                table, columns = tables[data.number("I")]
                data.take(1)
                values: list[str | None] = []
                for _ in range(data.number("H")):
                    kind = chr(data.number("B"))
                    values.append(data.take(data.number("I")).decode() if kind == "t" else None)
                found.append(Inserted(xid, table, dict(zip(columns, values, strict=True))))
            case "U" | "D" | "T" as kind:
                raise ValueError(f"the log is append-only, and here is a {kind}")
            case _:
                pass  # commits, types, origins
    return found
