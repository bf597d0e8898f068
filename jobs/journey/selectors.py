"""The journey of one event: every state it passed through, in each subscription, and what came of it. Reads only.

Guarantee: a fixed number of queries, each bounded, however large the log, the backlog or the fan-out. What has been
forgotten or never was recorded is said, not left out. Called by the page and the command.
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass, field
from datetime import datetime
from typing import Any

from django.conf import settings

from jobs import tracing
from jobs.dead_letters.selectors import names
from jobs.dead_letters.store import now as database_now
from jobs.journey import store
from jobs.journey.hooks import Fact, Found, Published, Section, load_journeys
from jobs.journey.lanes import Act, Facts, Lane, Letter, Past, Queued, lane
from jobs.models import AuditEntry, DeadLetter, PastDelivery, Subscription

LONGEST_SEARCH = 300
MOST_ACTS = 200
TRACE_ID = re.compile(r"(?:[0-9a-f]{2}-)?([0-9a-f]{32})(?:-[0-9a-f]{16}-[0-9a-f]{2})?")
APPLIED = ("applied", "older", "suppressed")


@dataclass(frozen=True)
class Leg:
    """One message, and what each subscription did with it. `url`-less: pages know their own addresses."""

    event_id: str
    type: str
    key: str
    published_at: datetime
    lanes: list[Lane]


@dataclass(frozen=True)
class Journey:
    """`counted`: how many messages follow from it, up to JOURNEY_COUNTED, `more` beyond; the first of them are told."""

    event_id: str
    leg: Leg | None  # None: it is in no log (any more), and only its dead letter tells of it
    lanes: list[Lane]
    origin: list[Fact]
    caused_by: str
    trace_id: str
    readapted: list[datetime]
    follow_ups: list[Leg]
    counted: int
    more: bool
    sections: list[Section]
    not_kept: list[str]
    now: datetime = field(compare=False)

    def as_dict(self) -> dict[str, Any]:
        return asdict(self)


def not_kept() -> list[str]:
    """What a journey cannot tell, so that nobody takes silence for an answer."""
    ledger = settings.LEDGER_RETENTION.days
    return [
        "When a delivery was handed out is kept only where it came again or was buried; of one that went well at once,"
        " only when it was applied.",
        f"The ledger, and the receives before the last, are kept {ledger} days;"
        f" dead letters {settings.DEAD_LETTER_RETENTION.days}; messages {settings.MESSAGE_RETENTION.days}.",
        "A receive that was given back uncharged (a worker told to stop, another side that was away) leaves no line.",
        *load_journeys().not_kept,
    ]


def journey(event_id: str) -> Journey | None:
    """All that is known of an event; None where nothing is."""
    messages = store.messages(event_id)
    followed = store.follow_ups(event_id)
    shown = followed[: settings.JOURNEY_SHOWN]
    known = _Known.about([*messages, *shown], event_id)
    if not messages and event_id not in known.events:
        return None
    hooks = load_journeys()
    first = messages[0] if messages else known.buried(event_id)
    origin = list(hooks.origin(first)) if first else []
    if first and (request := first.attributes.get("request_id")):
        origin.append(Fact("Request", request))
    return Journey(
        event_id=event_id,
        leg=Leg(event_id, first.type, first.key, first.published_at, []) if first else None,
        lanes=known.lanes(event_id, messages or ([first] if first else [])),
        origin=origin,
        caused_by=first.attributes.get("caused_by", "") if first else "",
        trace_id=tracing.trace_id(first.attributes) if first else "",
        readapted=[message.published_at for message in messages[1:]],
        follow_ups=[Leg(m.event_id, m.type, m.key, m.published_at, known.lanes(m.event_id, [m])) for m in shown],
        counted=min(len(followed), settings.JOURNEY_COUNTED),
        more=len(followed) > settings.JOURNEY_COUNTED,
        sections=list(hooks.became(first)) if first else [],
        not_kept=not_kept(),
        now=known.now,
    )


@dataclass
class _Known:
    """What the queue knows of some events, read once for all of them: 6 queries."""

    now: datetime
    subscriptions: dict[str, Subscription]
    queued: dict[tuple[str, str], list[Queued]]
    applied: dict[tuple[str, str], datetime]
    past: dict[tuple[str, str], list[Past]]
    letters: dict[tuple[str, str], list[Letter]]
    buried_messages: dict[str, Published]

    @classmethod
    def about(cls, messages: Sequence[Published], event_id: str) -> _Known:
        ids = list({event_id, *(message.event_id for message in messages)})
        subscriptions = {each.name: each for each in Subscription.objects.all()}
        queued = store.waiting(messages)
        past = defaultdict(list)
        for row in PastDelivery.objects.filter(event_id__in=ids).order_by("id")[:MOST_ACTS]:
            past[row.subscription_name, row.event_id].append(
                Past(row.settled_at, row.suppressed, row.receive_count, row.first_received_at, row.failures)
            )
        letters, buried = _letters(ids)
        consumers = {*subscriptions, *(name for name, _ in letters)}
        applied = store.applied(sorted(consumers), ids)
        return cls(database_now(), subscriptions, queued, applied, past, letters, buried)

    @property
    def events(self) -> set[str]:
        return {event_id for known in (self.applied, self.past, self.letters) for _, event_id in known}

    def buried(self, event_id: str) -> Published | None:
        return self.buried_messages.get(event_id)

    def lanes(self, event_id: str, messages: Sequence[Published]) -> list[Lane]:
        """Each subscription that the event was for, or that knows of it."""
        type_ = messages[0].type if messages else ""
        published_at = messages[0].published_at if messages else self.now
        names = {name for name, each in self.subscriptions.items() if type_ in each.message_types}
        names |= {name for known in (self.applied, self.past, self.letters) for name, id_ in known if id_ == event_id}
        found = []
        for name in sorted(names):
            place, subscription = (name, event_id), self.subscriptions.get(name)
            facts = Facts(
                published_at=published_at,
                subscribed_at=subscription.created_at if subscription else None,
                paused_at=subscription.paused_at if subscription else None,
                queued=self.queued.get(place, ()),
                applied_at=self.applied.get(place),
                past=self.past.get(place, ()),
                letters=self.letters.get(place, ()),
            )
            found.append(lane(name, facts, now=self.now, ledger=settings.LEDGER_RETENTION))
        return found


def _letters(ids: Sequence[str]) -> tuple[dict[tuple[str, str], list[Letter]], dict[str, Published]]:
    """The dead letters of these events with what people did about them, and the messages as they were buried."""
    rows = list(DeadLetter.objects.filter(event_id__in=ids).defer("traceback").order_by("id")[:MOST_ACTS])
    acts = _acts([row.pk for row in rows]) if rows else {}
    letters = defaultdict(list)
    buried = {}
    for row in rows:
        letters[row.subscription_name, row.event_id].append(
            Letter(
                id=row.pk,
                buried_at=row.dead_lettered_at,
                first_received_at=row.first_received_at if row.message_id else None,
                receive_count=row.receive_count,
                error=f"{row.error_class}: {row.reason}",
                failures=row.failures,
                decision=row.get_decision_display() if row.decision else "",
                redrive=row.redrive_id,
                sent_at=row.sent_at,
                settled_at=row.settled_at,
                outcome=row.get_outcome_display() if row.outcome else "",
                applied=row.outcome in APPLIED,
                acts=acts.get(row.pk, ()),
            )
        )
        body = row.body if isinstance(row.body, dict) else {}
        buried[row.event_id] = Published(
            row.message_id or 0, row.event_id, row.message_type, row.key, row.published_at, body, row.attributes
        )
    return letters, buried


def _acts(letter_ids: Sequence[int]) -> dict[int, list[Act]]:
    entries = list(AuditEntry.objects.filter(letter_ids__overlap=list(letter_ids)).order_by("id")[:MOST_ACTS])
    by = names([entry.by for entry in entries])
    acts = defaultdict(list)
    for entry in entries:
        for letter_id in set(entry.letter_ids) & set(letter_ids):
            acts[letter_id].append(Act(entry.at, entry.action, by[entry.by], entry.note))
    return acts


# --- Finding -----------------------------------------------------------------------------------------------------


def find(text: str) -> list[Found]:
    """Events that this text is about, those that an index knows first; up to JOURNEY_SHOWN. ValueError names what is
    wrong with the text."""
    text = text.strip()
    if not text:
        return []
    if len(text) > LONGEST_SEARCH or "\x00" in text:
        raise ValueError(f"Search for an id of at most {LONGEST_SEARCH} characters.")
    if store.messages(text) or store.buried(text):
        return [Found(text, "its id")]
    if trace := TRACE_ID.fullmatch(text.lower()):
        return _each([Found(m.event_id, f"{m.type} of that trace", m.published_at) for m in store.of_trace(trace[1])])
    hooks = load_journeys()
    return _each(hooks.find(text)) or _each(store.sought(["request_id", *hooks.sought], text))


def _each(found: Iterable[Found]) -> list[Found]:
    by_id: dict[str, Found] = {}
    for each in found:
        by_id.setdefault(each.event_id, each)
    return list(by_id.values())[: settings.JOURNEY_SHOWN]
