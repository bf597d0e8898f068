"""A window of a staged file against what was last taken of it: which rows say what they said, and which do not.

Guarantee: a row passes as the same only if its texts are those of the last file, read in the same way, and the offer
is what they mean at the moment when it is confirmed, under the lock of its wine, as feed intake takes it. So a price
that somebody else has sent meanwhile is never confirmed by mistake. Called by the refresh.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum

from django.db import connection
from psycopg import sql

from pricing.contract import PRICE_CURRENCY
from pricing.file_order import FileWord


class State(StrEnum):
    """What a row that says what it said is, beside unchanged."""

    DIFFERS = "differs"
    UNMATCHED = "unmatched"
    KEPT = "kept"


@dataclass(frozen=True, slots=True)
class Found:
    """A row that is not simply unchanged. `described`: it says of what it is what it said before."""

    n: int
    state: State
    described: bool
    word: FileWord


# What a row says, as two digests; `reading` is how it is understood, so that nothing is the same once that has changed.
DIGESTS = """
hashtextextended(concat_ws(E'\\x1f', s.title, s.size, s.vintage, s.gtin, s.lwin, s.wine_id), %(reading)s) AS said,
hashtextextended(concat_ws(E'\\x1f', s.price, s.currency, s.availability), %(reading)s) AS asked
"""
# What an offer asks, as its merchant says it.
OFFER = f"""
SELECT ctid, id, wine_id, seen_at, withdrawn_at, coalesce(native_price, price_usd) AS price,
       CASE native_currency WHEN '' THEN '{PRICE_CURRENCY}' ELSE native_currency END AS currency
FROM pricing_offer
"""  # noqa: S608  (constants)
# Whether the offer stands and is what the listing asks. Of several listings of a wine in the file the cheapest counts;
# of several currencies the one that was the cheapest when one of them last changed, for rates move each day.
OFFER_AGREES = """
o.withdrawn_at IS NULL AND (o.price = l.price AND o.currency = l.currency
    OR (o.price < l.price OR o.currency <> l.currency) AND EXISTS (
        SELECT FROM pricing_listing twin WHERE twin.wine_id = l.wine_id AND twin.merchant_id = l.merchant_id
           AND twin.in_file AND twin.file_asked IS NOT NULL AND twin.price = o.price AND twin.currency = o.currency))
"""
# A listing without a price, whose wine's offer stands by something else than another listing: by a price that was sent.
OFFER_IS_PAST = """
o.withdrawn_at IS NULL AND o.seen_at < %(as_of)s AND NOT EXISTS (
    SELECT FROM pricing_listing twin
    WHERE twin.wine_id = l.wine_id AND twin.merchant_id = l.merchant_id AND twin.price IS NOT NULL)
"""
# A listing that waits is worth a new look when a wine has come that it may be.
MAY_BE_MATCHED = """
l.unclear = '' AND coalesce(l.pack, 1) = 1 AND EXISTS (
    SELECT FROM pricing_wine w
    WHERE w.retired_at IS NULL AND (l.size_ml IS NULL OR w.size_ml = l.size_ml)
      AND (NOT l.non_vintage AND l.vintage IS NULL OR w.vintage IS NOT DISTINCT FROM l.vintage)
      AND w.id = ANY (ARRAY(
          SELECT id FROM pricing_wine WHERE id = l.said_wine_id
          UNION ALL SELECT id FROM pricing_wine WHERE l.said_wine_id = '' AND lwin = l.lwin AND lwin <> ''
          UNION ALL SELECT id FROM pricing_wine WHERE l.said_wine_id = '' AND gtin = l.gtin AND gtin <> ''
          UNION ALL SELECT id FROM pricing_wine WHERE l.said_wine_id = '' AND names @> ARRAY[l.name::text]
      )))
"""
#   chunk      the window's rows with their listings and offers, and what they are; LIMIT 1, although there is only one,
#              because a join could also be made by reading all listings, once for each window
#   locked     the wines whose offers are to be confirmed, locked in the order in which everybody locks them
#   confirmed  those offers; one that was changed while we waited for its wine is looked at again and left out
# and then all rows that are not simply unchanged, those left out among them.
COMPARE = f"""
WITH chunk AS MATERIALIZED (
    SELECT s.n, s.said, s.asked, o.id AS offer_id, o.ctid AS offer_place, o.wine_id, o.seen_at, l.price,
           l.file_said IS NOT DISTINCT FROM s.said AS described,
           CASE WHEN l.file_said IS DISTINCT FROM s.said OR l.file_asked IS DISTINCT FROM s.asked THEN 'differs'
                WHEN l.set_aside_at IS NOT NULL THEN 'kept'
                WHEN l.wine_id IS NULL THEN CASE WHEN {MAY_BE_MATCHED} THEN 'differs' ELSE 'unmatched' END
                WHEN l.price IS NULL THEN CASE WHEN {OFFER_IS_PAST} THEN 'differs' ELSE 'kept' END
                WHEN {OFFER_AGREES} THEN 'same'
                ELSE 'differs' END AS state
    FROM (SELECT s.n, s.source_id, {DIGESTS} FROM {{table}} s WHERE s.n > %(after)s AND s.n <= %(until)s) s
    LEFT JOIN LATERAL (SELECT * FROM pricing_listing l
        WHERE l.merchant_id = %(merchant)s AND l.source_id = s.source_id LIMIT 1) l ON true
    LEFT JOIN LATERAL ({OFFER}
        WHERE wine_id = l.wine_id AND merchant_id = l.merchant_id LIMIT 1) o ON true
),
locked AS MATERIALIZED (
    SELECT id FROM pricing_wine WHERE id = ANY (ARRAY(
        SELECT wine_id FROM chunk WHERE state = 'same' AND seen_at < %(as_of)s))
    ORDER BY id FOR NO KEY UPDATE
),
confirmed AS (
    UPDATE pricing_offer o SET seen_at = %(as_of)s
    FROM chunk
    WHERE o.ctid = chunk.offer_place AND chunk.state = 'same' AND o.seen_at = chunk.seen_at AND o.seen_at < %(as_of)s
      AND (SELECT count(*) FROM locked) >= 0
    RETURNING o.id
)
SELECT n, CASE state WHEN 'same' THEN 'differs' ELSE state END, described, said, asked FROM chunk
WHERE state <> 'same' OR (seen_at < %(as_of)s AND NOT EXISTS (SELECT FROM confirmed c WHERE c.id = chunk.offer_id))
ORDER BY n
"""  # noqa: S608  (constants)
# The same without confirming anything, and only counted: what a file would do.
PREVIEW = f"""
SELECT count(*) FILTER (WHERE l.file_said IS DISTINCT FROM s.said AND NOT coalesce(l.in_file, false)),
       count(*) FILTER (WHERE l.file_said IS DISTINCT FROM s.said AND l.in_file),
       count(*) FILTER (WHERE l.file_said = s.said AND l.file_asked IS DISTINCT FROM s.asked),
       count(*) FILTER (WHERE l.file_said = s.said AND l.file_asked = s.asked)
FROM (SELECT s.source_id, {DIGESTS} FROM {{table}} s WHERE s.n > 0) s
LEFT JOIN pricing_listing l ON l.merchant_id = %(merchant)s AND l.source_id = s.source_id
"""  # noqa: S608


@dataclass(frozen=True, slots=True)
class Preview:
    """How many rows are of listings that are new, are described in another way, ask something else, or are the same."""

    new: int
    described_anew: int
    asked_anew: int
    same: int


def compare(table: str, *, merchant_id: str, reading: int, as_of: datetime, after: int, until: int) -> list[Found]:
    """Compare rows after+1 … until, and confirm the offers of those that are the same, in one statement.

    Its own transaction, please: it holds the locks of the window's wines, for some hundredths of a second.
    """
    with connection.cursor() as cursor:
        cursor.execute(
            sql.SQL(COMPARE).format(table=sql.Identifier(table)),  # type: ignore[arg-type]
            {"merchant": merchant_id, "reading": reading, "as_of": as_of, "after": after, "until": until},
        )
        return [
            Found(n, State(state), described, FileWord(said, asked, n))
            for n, state, described, said, asked in cursor.fetchall()
        ]


def preview(table: str, *, merchant_id: str, reading: int) -> Preview:
    with connection.cursor() as cursor:
        cursor.execute(
            sql.SQL(PREVIEW).format(table=sql.Identifier(table)),  # type: ignore[arg-type]
            {"merchant": merchant_id, "reading": reading},
        )
        return Preview(*cursor.fetchone())
