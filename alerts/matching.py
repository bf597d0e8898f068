"""The alert-matching subscription: which alerts an event moves. Handles whole batches with a fixed number of queries.

Guarantee: decision, notification, alert state and the `send_alert_email` command commit together with the ack. Each
event is judged by the prices as consumed up to it (scenes.py), each alert by each of its events in order (rules.py).
A wine with a hundred thousand watchers is taken in chunks of them, in the one transaction: while the server writes one
and locks the next but one, the next is judged, alerts that are alike as one. Locks the alerts it may change, in id
order; reads the offers without locking.
"""

from __future__ import annotations

from collections.abc import Hashable, Mapping, Sequence
from dataclasses import replace
from datetime import datetime
from decimal import Decimal

from django.conf import settings
from django.utils import timezone

from alerts import candidates, scenes
from alerts.candidates import Candidate, Row
from alerts.decided import Decided, decided_before, known_of
from alerts.models import Notification
from alerts.rules import Outcome, Terms, Verdict, judge_first_check, judge_offer, judge_withdrawal
from alerts.scenes import FirstCheck, Scene, Story
from alerts.seen_prices import remember
from jobs.database import pipelined
from jobs.garbage import uncollected
from jobs.messages import Message

Mail = tuple[str, Decimal]  # from whom, and at what price


def check(message: Message) -> None:
    """Raises PermanentError for a message that `match` would refuse."""
    scenes.parse(message)


def match(messages: Sequence[Message]) -> None:
    """Decide about every alert that these messages can move. Raises PermanentError for a message not of ours."""
    match_at(messages, now=timezone.now())


def match_at(messages: Sequence[Message], *, now: datetime) -> None:
    """The same at a time of the caller's, by which snoozes, expiries and cooldowns are told."""
    events = [scenes.parse(message) for message in messages]
    story = scenes.tell(events, currencies=candidates.currencies_in_use())
    terms = Terms(further=settings.ALERT_FURTHER_FALL, cooldown=settings.ALERT_COOLDOWN)
    attributes = {message.event_id: message.attributes for message in messages}
    ids = candidates.find(asked=story.asked(), moved=story.of_wine, first=story.checks)
    with pipelined(), uncollected():
        before = decided_before(list(attributes))
        for rows in candidates.locked(ids, now=now):
            known, last_mails = known_of(rows, before), _last_mails(rows, story)
            decided = Decided(now, attributes)
            for candidate in candidates.alike(rows, _apart(rows, story, known, last_mails)):
                one = candidate.alerts[0]  # the others are as it is
                for scene in story.of(one, candidate.wine_id, candidate.merchant_id):
                    if scene.event.event_id not in known.get(one, ()):
                        _judge(candidate, scene, story, decided, last_mails, terms)
            decided.write()
    remember((event for event in events if not isinstance(event, FirstCheck)), story.prices)


def _judge(
    candidate: Candidate,
    scene: Scene,
    story: Story,
    decided: Decided,
    last_mails: dict[int, Mail],
    terms: Terms,
) -> None:
    watch = candidate.watch
    sight, told = scene.view(story, watch.currency, (candidate.merchant_id, watch.low_days))
    verdict: Verdict | None = None
    if isinstance(scene.event, FirstCheck):
        verdict = judge_first_check(watch, sight, now=decided.now, terms=terms)
    elif scene.is_withdrawal:
        verdict = judge_withdrawal(watch, best_after=sight.best_after if sight else None)
    elif sight is not None and not scene.is_told_by_its_price:
        if scene.is_return and last_mails.get(candidate.alerts[0]) == (told.merchant, told.price):
            sight = replace(sight, told_of_it=True)
        verdict = judge_offer(watch, sight, now=decided.now, terms=terms)
    if verdict is not None:
        decided.note(candidate, scene, verdict, told)
        if verdict.outcome is Outcome.MAILED and told.price is not None:
            last_mails[candidate.alerts[0]] = (told.merchant, told.price)


def _apart(
    rows: Sequence[Row], story: Story, known: Mapping[int, frozenset[str]], last_mails: Mapping[int, Mail]
) -> dict[int, Hashable]:
    """In what else alerts differ: their own first check, what was decided about them before, their last mail."""
    special = (known.keys() | last_mails.keys() | story.checks.keys()) & {row[0] for row in rows}
    return {pk: (pk if pk in story.checks else None, known.get(pk), last_mails.get(pk)) for pk in special}


def _last_mails(rows: Sequence[Row], story: Story) -> dict[int, Mail]:
    """By alert, for those that may hear of an offer's return; no query where nothing returned."""
    returned = {wine_id for wine_id, some in story.of_wine.items() if any(scene.is_return for scene in some)}
    asked = [alert_id for alert_id, wine_id, *_ in rows if wine_id in returned] if returned else []
    if not asked:
        return {}
    newest = Notification.objects.filter(alert__in=asked).order_by("alert_id", "-id").distinct("alert_id")
    return {mail.alert_id: (mail.merchant_name, mail.new_price) for mail in newest}
