"""Letters made comparable for search: no case, no accents, “œ” as “oe”, a hyphen as a space.

`fold` (Python, pure but for the class beside it) and `Folded` (the same in SQL) come from one table, so that what is
typed and what is stored meet. Plain Postgres: no extension is needed. Used by selectors.py.
"""

import unicodedata
from typing import Any

from django.db.models import Func, TextField

# What decomposition does not take apart. One letter becomes one letter, or two.
ONE_TO_ONE = {
    "ø": "o",
    "Ø": "o",
    "ł": "l",
    "Ł": "l",
    "đ": "d",
    "Đ": "d",
    "ı": "i",
    "’": "'",
    "‘": "'",
    "-": " ",
    "–": " ",
}
ONE_TO_TWO = {"œ": "oe", "Œ": "oe", "æ": "ae", "Æ": "ae", "ß": "ss"}
_TABLE = str.maketrans(ONE_TO_ONE | ONE_TO_TWO)
FIRST_MARK, LAST_MARK = 0x300, 0x36F  # combining diacritical marks


def fold(text: str) -> str:
    """“Saint-Émilion” and “saint emilion” are the same to whoever searches."""
    if text.isascii():  # the same, ten times faster: nothing to take apart, and of the table only the hyphen
        return text.replace("-", " ").lower()
    decomposed = unicodedata.normalize("NFKD", text)
    bare = "".join(letter for letter in decomposed if not FIRST_MARK <= ord(letter) <= LAST_MARK)
    return bare.translate(_TABLE).lower()


def _quoted(text: str) -> str:
    return "'" + text.replace("'", "''") + "'"


def _folding_sql() -> str:
    sql = rf"regexp_replace(normalize(%(expressions)s, NFKD), '[\u{FIRST_MARK:04x}-\u{LAST_MARK:04x}]', '', 'g')"
    sql = f"translate({sql}, {_quoted(''.join(ONE_TO_ONE))}, {_quoted(''.join(ONE_TO_ONE.values()))})"
    for letter, two in ONE_TO_TWO.items():
        sql = f"replace({sql}, {_quoted(letter)}, {_quoted(two)})"
    return f"lower({sql})"


class Folded(Func):
    """`fold` of a text expression, computed by Postgres 13 or later in a UTF-8 database."""

    template = _folding_sql()
    arity = 1

    def __init__(self, expression: Any) -> None:
        super().__init__(expression, output_field=TextField())
