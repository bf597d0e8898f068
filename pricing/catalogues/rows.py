"""What a catalogue file brings, row by row, before anybody decides what it means. Pure.

Guarantee: a row's texts are as the file has them, decoded and trimmed; nothing is interpreted here, so that a million
rows that say what they said last night cost no more than reading them. Made by the readers, used by the refresh.
"""

from __future__ import annotations

from hashlib import blake2b
from typing import NamedTuple

LONGEST_ID = 200  # what a listing's row holds, as is the next
LONGEST_TITLE = 500
LONGEST_TEXT = 2_000  # of any other field; an address is the longest
NO_ID = "row/"  # begins the id that we give to a row of a file without ids


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
    source_id: str = ""  # the merchant's id of it, if that can be read: what it names is in the file, not absent


def checked(raw: Raw) -> Raw | Rejected:
    """The row if it names a thing, and names it no longer than we can keep."""
    if not raw.source_id:
        return Rejected(raw.line, "source_id", "The id is empty.")
    if len(raw.source_id) > LONGEST_ID:
        return Rejected(raw.line, "source_id", f"An id has at most {LONGEST_ID} characters.")
    if not (raw.title or raw.wine_id or raw.lwin or raw.gtin):
        return Rejected(raw.line, "title", "It has no name, and no wine id, LWIN or GTIN either.", raw.source_id)
    if len(raw.title) > LONGEST_TITLE:
        return Rejected(raw.line, "title", f"A name has at most {LONGEST_TITLE} characters.", raw.source_id)
    if max(map(len, raw[3:])) > LONGEST_TEXT:
        field = next(name for name in raw._fields[3:] if len(getattr(raw, name)) > LONGEST_TEXT)
        return Rejected(raw.line, field, f"It has more than {LONGEST_TEXT:,} characters.", raw.source_id)
    return raw


def identity(title: str, *marks: str) -> str:
    """The id of a row whose file has no ids: made of all that says which thing it is, whatever its case and spaces.

    So a row keeps its id as long as it is described alike, wherever it stands in the file and whatever it costs.
    """
    words = "\x1f".join(" ".join(text.casefold().split()) for text in (title, *marks))
    return NO_ID + blake2b(words.encode(), digest_size=12).hexdigest()
