"""The documents that are searched, kept by the `search-index` subscription: what is said of wines, and their offers.

Guarantee: a document is what the wine's row and its offers say at the time, whichever message asked for it, so that
repeated and late messages do no harm; a wine is searched as soon as its first message is handled. The handler and
`rebuild` take the table's lock before they read. Called by the subscription, the command and the demo's loader.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence

from django.db import connection, transaction

from jobs.messages import Message, dumps
from pricing import search_text
from pricing.events import WINE_DESCRIBED
from pricing.models import Wine, WineDocument

WINES_AT_ONCE = 1_000

INDEXING = "LOCK TABLE pricing_winedocument IN ROW EXCLUSIVE MODE"
REBUILDING = "LOCK TABLE pricing_winedocument IN SHARE ROW EXCLUSIVE MODE"
DESCRIBE = """
INSERT INTO pricing_winedocument (wine_id, words, place, vintage, colour, offers)
SELECT wine_id, words::tsvector, place, vintage, colour, 0 FROM jsonb_to_recordset(%s::jsonb) AS d (
    wine_id text, words text, place text, vintage smallint, colour text)
ON CONFLICT (wine_id) DO UPDATE SET words = excluded.words, place = excluded.place, vintage = excluded.vintage,
    colour = excluded.colour
"""
# In order, so that two handlers never wait for each other in turns.
LEARN = """
INSERT INTO pricing_searchword (word, parts)
SELECT word, parts FROM jsonb_to_recordset(%s::jsonb) AS w (word text, parts text[]) ORDER BY word
ON CONFLICT (word) DO NOTHING
"""
PRICE = """
UPDATE pricing_winedocument d SET offers = said.offers, best_usd = said.best_usd
FROM (SELECT w.id, count(o.id) AS offers, min(o.price_usd) AS best_usd FROM unnest(%s::text[]) AS w (id)
      LEFT JOIN pricing_offer o ON o.wine_id = w.id AND o.withdrawn_at IS NULL GROUP BY w.id) AS said
WHERE d.wine_id = said.id AND (d.offers, d.best_usd) IS DISTINCT FROM (said.offers, said.best_usd)
"""
FORGET_WORDS = """
DELETE FROM pricing_searchword w
WHERE NOT EXISTS (SELECT FROM pricing_winedocument d WHERE d.words @@ quote_literal(w.word)::tsquery)
"""


def index(messages: Sequence[Message]) -> None:
    """Handle messages whose key is a wine: what is said of it changed, or what somebody asks for it."""
    wine_ids = {message.key for message in messages}
    described = {message.key for message in messages if message.type == WINE_DESCRIBED}
    with connection.cursor() as cursor:
        cursor.execute(INDEXING)
    there = WineDocument.objects.filter(pk__in=wine_ids - described).values_list("pk", flat=True)
    _describe(wine_ids - set(there))
    _price(wine_ids)


def rebuild(wine_ids: Iterable[str] | None = None, *, progress: Callable[[int, int], None] | None = None) -> int:
    """Make the documents of these wines, or of all, again; a thousand at once. Returns how many there are."""
    asked = wine_ids if wine_ids is not None else Wine.objects.values_list("pk", flat=True)
    wines, made = sorted(asked), 0
    for start in range(0, len(wines), WINES_AT_ONCE):
        some = wines[start : start + WINES_AT_ONCE]
        with transaction.atomic(), connection.cursor() as cursor:
            cursor.execute(REBUILDING)
            made += _describe(some)
            _price(some)
        if progress:
            progress(min(start + WINES_AT_ONCE, len(wines)), len(wines))
    if wine_ids is None:
        with transaction.atomic(), connection.cursor() as cursor:
            cursor.execute(REBUILDING)
            cursor.execute(FORGET_WORDS)
    return made


def _describe(wine_ids: Iterable[str]) -> int:
    """Write what is said of these wines, forget those that are retired or gone; how many are searched."""
    wanted = set(wine_ids)
    if not wanted:
        return 0
    columns = ("id", "name", "producer", "vintage", "size_ml", "colour", "country", "region")
    rows = list(Wine.objects.filter(pk__in=wanted, retired_at=None).order_by("pk").values_list(*columns))
    documents, known = [], set()
    for wine_id, name, producer, vintage, size_ml, colour, country, region in rows:
        places = f"{region} {country}"
        documents.append(
            {
                "wine_id": wine_id,
                "words": search_text.vector(name=name, producer=producer, vintage=vintage, places=places),
                "place": search_text.place(name=name, vintage=vintage, size_ml=size_ml, wine_id=wine_id),
                "vintage": vintage,
                "colour": colour,
            }
        )
        known |= set(filter(search_text.may_be_mistyped, search_text.words(f"{name} {producer} {places}")))
    with connection.cursor() as cursor:
        cursor.execute(DESCRIBE, [dumps(documents)])
        cursor.execute(LEARN, [dumps([{"word": word, "parts": search_text.parts(word)} for word in known])])
    WineDocument.objects.filter(pk__in=wanted - {row[0] for row in rows}).delete()
    return len(rows)


def _price(wine_ids: Iterable[str]) -> None:
    with connection.cursor() as cursor:
        cursor.execute(PRICE, [sorted(wine_ids)])
