"""Finding wines: every word in its name, producer, region or vintage, by the filters, a page at a time. Reads only.

Stands on plain Postgres: full text over the documents of search_index.py, folded there and here alike, and their words
for what was mistyped. No extension is needed. Each function says how many queries it makes.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, replace
from decimal import Decimal
from typing import Any

from django.db import connection
from rapidfuzz import process
from rapidfuzz.distance import OSA

from pricing import search_text

PAGE_SIZE = 24
COUNTED = 1_000  # more are “more than a thousand”: nobody pages through them, and counting would cost more than finding
NEAREST = 50  # words that are compared, letter by letter, with a mistyped one
DEAREST = 10**9  # where a wine that nobody offers stands among prices
BEYOND = {"place": "%(from_place)s", "key, place": "%(from_key)s, %(from_place)s"}
BY_MATCH, BY_NAME, BY_PRICE = "match", "name", "price"

# A word that nobody has is told from one that has a beginning in common.
UNKNOWN = """
SELECT q.word FROM unnest(%s::text[]) AS q (word) WHERE NOT EXISTS (
    SELECT FROM pricing_searchword s WHERE s.word ~>=~ q.word AND s.word ~<~ (q.word || chr(1114111)))
"""
NEAR = """
SELECT word FROM pricing_searchword WHERE parts && %(parts)s AND length(word) BETWEEN %(low)s AND %(high)s
ORDER BY (SELECT count(*) FROM unnest(parts) AS p (part) WHERE p.part = ANY(%(parts)s)) DESC, word LIMIT %(most)s
"""


@dataclass(frozen=True, slots=True)
class Query:
    """What is asked for. Of a price range either end may be open; one that is given leaves out what nobody offers."""

    text: str = ""
    vintage: int | None = None
    colour: str = ""
    region: str = ""
    in_stock: bool = False
    low: Decimal | None = None
    high: Decimal | None = None
    order: str = BY_MATCH

    @property
    def is_plain(self) -> bool:
        """Whether nothing at all is asked for, so that every wine is found."""
        return self == Query(order=self.order)


@dataclass(frozen=True, slots=True)
class Found:
    """One page. `after` leads to the next one, "" on the last; `meant` is what was searched for instead of the text."""

    wine_ids: list[str]
    after: str
    count: int
    meant: str = ""

    @property
    def has_more_than_counted(self) -> bool:
        return self.count > COUNTED


def find(query: Query, *, after: str = "") -> Found:
    """A page of what is found: 2 queries. Where nothing is, and a word is mistyped: up to 12, for what was meant."""
    found = _find(query, after)
    if found.count or after or not query.text:
        return found
    typed = search_text.searched(query.text)
    meant = _meant(typed)
    if not meant:
        return found
    text = search_text.with_meant(typed, meant)
    other = _find(replace(query, text=text), "")
    return replace(other, meant=text) if other.count else found


def _find(query: Query, after: str) -> Found:
    if query.text and not search_text.searched(query.text):
        return Found([], "", 0)  # nothing but signs: no wine has them
    where, values = _conditions(query)
    key = _key(query, values)
    values |= {"counted": COUNTED + 1, "most": PAGE_SIZE + 1}
    start = _start(after)
    if start:
        values |= {"from_key": start[0], "from_place": start[1]}
    # Materialised where words choose: else the planner may walk the order in the hope of meeting enough of them.
    chosen = "MATERIALIZED" if query.text or query.region else "NOT MATERIALIZED"
    found = f"SELECT wine_id, place, {key} AS key FROM pricing_winedocument {where}"  # noqa: S608
    order = "place" if key == "0" else "key, place"
    beyond = f"WHERE ({order}) > ({BEYOND[order]})" if start else ""
    with connection.cursor() as cursor:
        cursor.execute(f"SELECT count(*) FROM ({found} LIMIT %(counted)s) AS f", values)  # noqa: S608
        (count,) = cursor.fetchone()
        page = f"WITH found AS {chosen} ({found}) SELECT * FROM found"  # noqa: S608
        cursor.execute(f"{page} {beyond} ORDER BY {order} LIMIT %(most)s", values)
        rows = cursor.fetchall()
    following = rows[PAGE_SIZE - 1] if len(rows) > PAGE_SIZE else None
    return Found([row[0] for row in rows[:PAGE_SIZE]], f"{following[2]}~{following[1]}" if following else "", count)


def _conditions(query: Query) -> tuple[str, dict[str, Any]]:
    """The WHERE; only its fixed texts are SQL, all that was typed is among the values."""
    typed, region = search_text.searched(query.text), search_text.searched(query.region)
    asked: dict[str, tuple[str, Any]] = {
        "typed": ("words @@ %(typed)s::tsquery", search_text.query(typed) or None),
        "region": ("words @@ %(region)s::tsquery", search_text.query(region, weights="C") or None),
        "vintage": ("vintage = %(vintage)s", query.vintage),
        "colour": ("colour = %(colour)s", query.colour or None),
        "in_stock": ("offers > 0", query.in_stock or None),
        "low": ("best_usd >= %(low)s", query.low),
        "high": ("best_usd <= %(high)s", query.high),
    }
    given: dict[str, tuple[str, Any]] = {
        name: (sql, value) for name, (sql, value) in asked.items() if value is not None
    }
    where = " AND ".join(sql for sql, _ in given.values())
    return f"WHERE {where}" if where else "", {name: value for name, (_, value) in given.items()}


def _key(query: Query, values: dict[str, Any]) -> str:
    """What comes before the name in the order, as SQL: a number, the lower the earlier."""
    if query.order == BY_PRICE:
        return f"coalesce(best_usd, {DEAREST})"
    typed = search_text.searched(query.text)
    if query.order == BY_NAME or not typed:
        return "0"
    values["whole"] = search_text.query(typed, weights="A", whole=True)
    values["named"] = search_text.query(typed, weights="A")
    # Those named so, then those whose name begins so, then the rest; of each what one can buy comes first.
    return (
        "CASE WHEN words @@ %(whole)s::tsquery THEN 0 WHEN words @@ %(named)s::tsquery THEN 2 ELSE 4 END"
        " + CASE WHEN offers > 0 THEN 0 ELSE 1 END"
    )


_START = re.compile(r"([0-9]{1,10}(?:\.[0-9]{1,2})?)~([^\x00]{1,400})")


def _start(after: str) -> tuple[Decimal, str] | None:
    """Where a page begins; None, the beginning, for what is none of ours."""
    read = _START.fullmatch(after)
    return (Decimal(read[1]), read[2]) if read else None


def _meant(typed: list[str]) -> dict[str, str]:
    """The likeliest spelling of each word that no wine has: 1 query, and 1 for each such word."""
    meant = {}
    with connection.cursor() as cursor:
        cursor.execute(UNKNOWN, [[word for word in typed if search_text.may_be_mistyped(word)]])
        for (word,) in cursor.fetchall():
            slips = search_text.allowed_slips(word)
            near: dict[str, Any] = {
                "parts": search_text.parts(word),
                "low": len(word) - slips,
                "high": len(word) + slips,
            }
            cursor.execute(NEAR, {**near, "most": NEAREST})
            candidates = [candidate for (candidate,) in cursor.fetchall()]
            best = process.extractOne(word, candidates, scorer=OSA.distance, score_cutoff=slips)
            if best:
                meant[word] = best[0]
    return meant
