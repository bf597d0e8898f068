"""A single price, as nearly every request brings it: looked at without a lock, and written by one statement.

Guarantee: `write` writes all of it, or nothing where something is no longer as it was looked at; the statement is the
transaction. It takes its locks in the order that all others do: the key of the request, then the wine's row. Called by
intake.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from django.db import IntegrityError

from jobs import outbox, queue
from jobs.database import run
from jobs.messages import dumps
from pricing import keys, offers, raw_bodies
from pricing.feeds import answers
from pricing.feeds.answers import Answer, Unit
from pricing.feeds.glance import Glance
from pricing.models import Merchant, full_name
from pricing.raw_bodies import Received
from pricing.rules import Standing
from pricing.services import Foreseen

# Goes by its indexes, without being planned anew: see migration 0012. The versions are those of the rows (`xmin`):
# another one, and somebody has changed it since.
_LOOKED = ["used", "raw_body", "name", "vintage", "wine_version", "offer_version", *offers.COLUMNS]
LOOK = f"""
SELECT {", ".join(_LOOKED)} FROM pricing_look(%(merchant)s, %(wine)s, %(key)s)
"""  # noqa: S608 (the names are those of our own columns)
ADMIT_AND_LOOK = keys.admitting(_LOOKED, "pricing_look(found.id, %(wine)s, %(key)s)")
# What is not as it was looked at becomes NULL where the table takes none: a wine that was changed has no id, an offer
# that was changed no price. So the statement fails, as it does when the request's key has been taken meanwhile, and
# leaves nothing. Each part reads the one that must come before it.
WRITE = f"""
WITH patience AS MATERIALIZED ({answers.LIMIT}),
answer AS (
    INSERT INTO pricing_feedanswer (merchant_id, key, body_sha256, answer)
    SELECT %(merchant)s, %(key)s::text, %(digest)s, %(answer)s::jsonb FROM patience WHERE %(key)s::text IS NOT NULL
    RETURNING id
),
turn AS MATERIALIZED (SELECT limited, (SELECT count(*) FROM answer) FROM patience),
wine AS MATERIALIZED (
    SELECT wine.id FROM turn, pricing_wine AS wine
    WHERE wine.id = %(wine)s AND wine.xmin = %(wine_version)s::xid AND wine.retired_at IS NULL
    FOR NO KEY UPDATE OF wine
),
offer AS (
    INSERT INTO pricing_offer AS offer (merchant_id, wine_id, {", ".join(offers.COLUMNS)})
    VALUES (%(merchant)s, (SELECT id FROM wine), {", ".join(f"%({name})s" for name in offers.COLUMNS)})
    ON CONFLICT (wine_id, merchant_id) DO UPDATE SET
        {", ".join(f"{name} = excluded.{name}" for name in offers.COLUMNS if name != "price_usd")},
        price_usd = CASE WHEN offer.xmin = %(offer_version)s::xid THEN excluded.price_usd END
    RETURNING wine_id
),
body AS ({raw_bodies.KEEP_DRAWN}),
{queue.PUBLISHING.format(first=" FROM offer")}
{queue.REACHED}
"""  # noqa: S608 (as above)


@dataclass(frozen=True, slots=True)
class Looked:
    """What is known of a wine that is listed, and of a merchant's offer of it; and a number for the request's body."""

    raw_body: int
    wine_name: str
    standing: Standing | None
    versions: Mapping[str, str | None]


@dataclass(frozen=True, slots=True)
class Ahead:
    """What a look found that was taken for a guess, together with the sender's key: a row of LOOK."""

    glance: Glance
    row: Sequence[Any]


def along(glance: Glance | None) -> keys.Along:
    """The look that goes with the key, if there is anything to look at."""
    if glance is None:
        return keys.NOTHING
    return keys.Along(ADMIT_AND_LOOK, {"wine": glance.wine_id, "key": glance.key})


def look(*, merchant: Merchant, wine_id: str, key: str | None, ahead: Ahead | None = None) -> Looked | None:
    """None where there is no such wine, or the key has been used: both need more than a look. There is none where
    `ahead`, found for this merchant, was for this wine and this key."""
    if ahead is not None and ahead.glance == Glance(wine_id, key):
        row = ahead.row
    else:
        row = run(LOOK, {"merchant": merchant.pk, "key": key, "wine": wine_id}).fetchone()
    used, raw_body, name, vintage, wine_version, offer_version, *said = row
    if used or wine_version is None:
        return None
    return Looked(
        raw_body=raw_body,
        wine_name=full_name(name, vintage),
        standing=Standing(*said) if offer_version else None,
        versions={"wine_version": wine_version, "offer_version": offer_version},
    )


def write(
    looked: Looked,
    foreseen: Foreseen,
    *,
    merchant: Merchant,
    unit: Unit,
    answer: Answer,
    received: Received,
    now: datetime,
) -> bool:
    """Write the offer, its events, the body and the answer. False where nothing was written: look again, with locks."""
    parameters: dict[str, Any] = {
        "patience": answers.patience(),
        "key": unit.key,
        "digest": unit.digest,
        "answer": dumps(answer),
        "wine": foreseen.outcome.wine_id,
        "raw_body": looked.raw_body,
        **looked.versions,
        **raw_bodies.keeping(merchant=merchant, received=received, now=now),
        **{name: getattr(foreseen.standing, name) for name in offers.COLUMNS},
    }
    try:
        outbox.publish_along(WRITE, parameters, foreseen.messages)
    except IntegrityError:
        return False
    return True
