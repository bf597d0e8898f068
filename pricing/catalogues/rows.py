"""What a catalogue file brings, row by row, before anybody decides what it means. Pure.

Guarantee: a row's texts are as the file has them, decoded and trimmed; nothing is interpreted here, so that a million
rows that say what they said last night cost no more than reading them. Made by the readers, used by the refresh.
"""

from __future__ import annotations

from typing import NamedTuple


class Raw(NamedTuple):
    """One row of a file. Every field is the file's text, "" where it says nothing."""

    line: int  # where it begins in the file, counted from 1; of an XML file, the line of its element
    source_id: str  # the merchant's own id of the thing; unique within a file
    title: str
    size: str = ""
    vintage: str = ""
    gtin: str = ""
    lwin: str = ""
    wine_id: str = ""
    price: str = ""  # the one that counts now: a sale's price only within its dates
    currency: str = ""
    availability: str = ""
    url: str = ""


class Rejected(NamedTuple):
    """A row that cannot be taken, and why, in words for the merchant."""

    line: int
    field: str
    reason: str
