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
BY_MATCH, BY_NAME, BY_PRICE = "match", "name", "price"

# A word that nobody has is told from one that has a beginning in common.
UNKNOWN = """
SELECT q.word FROM unnest(%s::text[]) AS q (word) WHERE NOT EXISTS (
    SELECT FROM pricing_searchword s WHERE s.word ~>=~ q.word AND s.word ~<~ (q.word || chr(1114111)))
"""
# Rows without an order of their own, so that the planner does not walk the wines by name in the hope of meeting enough
# of them (OFFSET 0); only what is on the page is carried.
ROWS = """
(SELECT * FROM (SELECT wine_id, place, {key} AS key FROM pricing_winedocument {where} OFFSET 0) f {beyond}
 ORDER BY key, place LIMIT %(most)s)
"""
# What is all in one order the planner walks, where that is the index's.
WALK = """
SELECT wine_id, place, 0 AS key FROM pricing_winedocument {where} {beyond} ORDER BY place LIMIT %(most)s
"""
NEAR = """
SELECT word FROM pricing_searchword WHERE parts && %(sought)s AND length(word) BETWEEN %(low)s AND %(high)s
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
    """A page of what is found: 2 queries. Where nothing is, and a word is mistyped: up to 21, for what was meant."""
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
    conditions, values = _conditions(query)
    values |= {"counted": COUNTED + 1, "most": PAGE_SIZE + 1}
    start = _start(after)
    if start:
        values |= {"from_key": start[0], "from_place": start[1]}
    page, more = _page(query, conditions, from_key=start[0] if start else None)
    counted = f"SELECT FROM pricing_winedocument {_where(conditions)} LIMIT %(counted)s"
    with connection.cursor() as cursor:
        cursor.execute(f"SELECT count(*) FROM ({counted}) AS f", values)  # noqa: S608
        (count,) = cursor.fetchone()
        cursor.execute(page, values | more)
        rows = cursor.fetchall()
    following = rows[PAGE_SIZE - 1] if len(rows) > PAGE_SIZE else None
    return Found([row[0] for row in rows[:PAGE_SIZE]], f"{following[2]}~{following[1]}" if following else "", count)


def _page(query: Query, conditions: dict[str, str], *, from_key: Decimal | None) -> tuple[str, dict[str, str]]:
    """The statement of one page, and its values beside the conditions'."""
    beyond = "" if from_key is None else "WHERE (key, place) > (%(from_key)s, %(from_place)s)"
    if query.order == BY_PRICE:
        return ROWS.format(key=f"coalesce(best_usd, {DEAREST})", where=_where(conditions), beyond=beyond), {}
    typed = search_text.searched(query.text)
    if query.order == BY_MATCH and typed:
        return _by_match(typed, conditions, beyond, from_key or Decimal(0))
    if typed or query.region:
        return ROWS.format(key="0", where=_where(conditions), beyond=beyond), {}
    further = conditions if from_key is None else conditions | {"place": "place > %(from_place)s"}
    return WALK.format(where=_where(further), beyond=""), {}


def _by_match(
    typed: list[str], conditions: dict[str, str], beyond: str, from_key: Decimal
) -> tuple[str, dict[str, str]]:
    """Wines named so, then those whose name begins so, then the rest; of each what one can buy comes first.

    One after the other, and none that the page does not reach: the index alone tells them apart, and a LIMIT within a
    branch of a UNION ALL keeps the branches in this order.
    """
    whole, named = (search_text.query(typed, whole=whole, in_name=True) for whole in (True, False))
    ways = (whole, f"({named}) & !({whole})", f"({search_text.query(typed)}) & !({named})")
    branches = []
    for number in range(len(ways)):
        if from_key < 2 * number + 2:
            these = _where(conditions | {"typed": f"words @@ %(way_{number})s::tsquery"})
            key = f"{2 * number} + CASE WHEN offers > 0 THEN 0 ELSE 1 END"
            branches.append(ROWS.format(key=key, where=these, beyond=beyond))
    page = f"SELECT * FROM ({' UNION ALL '.join(branches)}) AS all_ways LIMIT %(most)s"  # noqa: S608
    return page, {f"way_{number}": way for number, way in enumerate(ways)}


def _where(conditions: dict[str, str]) -> str:
    return f"WHERE {' AND '.join(conditions.values())}" if conditions else ""


def _conditions(query: Query) -> tuple[dict[str, str], dict[str, Any]]:
    """By name; only fixed texts are SQL, all that was typed is among the values."""
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
    return {name: sql for name, (sql, _) in given.items()}, {name: value for name, (_, value) in given.items()}


_START = re.compile(r"([0-9]{1,10}(?:\.[0-9]{1,2})?)~([^\x00]{1,400})")


def _start(after: str) -> tuple[Decimal, str] | None:
    """Where a page begins; None, the beginning, for what is none of ours."""
    read = _START.fullmatch(after)
    return (Decimal(read[1]), read[2]) if read else None


def _meant(typed: list[str]) -> dict[str, str]:
    """The likeliest spelling of each word that no wine has: 1 query, and 1 or 2 for each such word."""
    meant = {}
    with connection.cursor() as cursor:
        cursor.execute(UNKNOWN, [[word for word in typed if search_text.may_be_mistyped(word)]])
        for (word,) in cursor.fetchall():
            # One slip is the likelier, and few words share what is left of both; trigrams are shared by very many.
            for slips, sought in ((1, search_text.shortened(word)), (2, search_text.parts(word))):
                if slips > search_text.allowed_slips(word):
                    break
                near = {"low": len(word) - slips, "high": len(word) + slips, "most": NEAREST}
                cursor.execute(NEAR, {**near, "sought": sought, "parts": search_text.parts(word)})
                candidates = [candidate for (candidate,) in cursor.fetchall()]
                if best := process.extractOne(word, candidates, scorer=OSA.distance, score_cutoff=slips):
                    meant[word] = best[0]
                    break
    return meant
