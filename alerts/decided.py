"""What matching decided for a chunk of alerts, written set-wise: decisions, alerts, mails, the commands to send them.

Guarantee: one decision and one mail per (alert, event), ever; the schema refuses a second, and what a redrive would
decide again is known beforehand. Of a wine that many watch most are told the same: what is the same is said once, with
the alerts that it is said to. Called by matching alone, in its transaction, which holds the alerts' rows.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from decimal import Decimal
from typing import Any, NamedTuple, TypeVar

from django.db import connection

from alerts.candidates import Candidate
from alerts.channels.fan_out import fan_out
from alerts.events import SEND_ALERT_EMAIL
from alerts.rules import Outcome, State, Verdict
from alerts.scenes import Scene, Told
from jobs.messages import NewMessage, dumps
from jobs.outbox import follow_up, publish

# Each alert is looked up by itself (OFFSET 0). By the event the planner would read what it has decided about the chunks
# before, each time: a hundred thousand watchers cost five times as much.
KNOWN = """
SELECT known.alert_id, known.event_id FROM unnest(%s::bigint[]) AS asked (id) CROSS JOIN LATERAL (
    SELECT alert_id, event_id FROM alerts_decision WHERE alert_id = asked.id AND event_id = ANY(%s) OFFSET 0
) known
"""
DECISIONS = """
INSERT INTO alerts_decision (alert_id, event_id, outcome, reason, price, merchant_name, decided_at)
SELECT alert_id, event_id, outcome, reason, price, merchant, %s
FROM jsonb_to_recordset(%s::jsonb) AS said (
    alerts bigint[], event_id text, outcome text, reason text, price numeric, merchant text),
    unnest(said.alerts) AS alert_id
"""
NOTIFICATIONS = """
INSERT INTO alerts_notification (alert_id, event_id, state, currency, old_price, new_price, target, reason,
                                 merchant_name, occurred_at, created_at)
SELECT alert_id, event_id, 'queued', currency, old_price, price, target, reason, merchant, occurred_at, %s
FROM jsonb_to_recordset(%s::jsonb) AS said (
    alerts bigint[], event_id text, currency text, old_price numeric, price numeric, target numeric, reason text,
    merchant text, occurred_at timestamptz),
    unnest(said.alerts) AS alert_id
RETURNING id, alert_id, event_id
"""
# Nobody's own columns (a pause, a snooze, a name) are among these; the rows are locked.
ALERTS = """
UPDATE alerts_alert SET state = said.state, snoozed_until_rise = said.until_rise,
    last_notified_at = CASE WHEN said.told_at IS NULL THEN last_notified_at ELSE %s END,
    last_notified_price = coalesce(said.told_at, last_notified_price)
FROM jsonb_to_recordset(%s::jsonb) AS said (alerts bigint[], state text, told_at numeric, until_rise boolean),
    unnest(said.alerts) AS changed (id)
WHERE alerts_alert.id = changed.id
"""


class _Decision(NamedTuple):
    """What is said to all who are alike. `place` is the event's: an alert's rows are written in the events' order."""

    place: int
    event_id: str
    told: Told
    outcome: str
    reason: str


class _Mail(NamedTuple):
    place: int
    event_id: str
    told: Told
    reason: str
    currency: str
    target: Decimal | None


Said = TypeVar("Said", _Decision, _Mail)


@dataclass
class Decided:
    """One chunk's decisions. `attributes` are those of the events, by id, which go along with the commands."""

    now: datetime
    attributes: Mapping[str, Mapping[str, str]]
    known: set[tuple[int, str]] = field(default_factory=set)
    _decisions: dict[_Decision, list[int]] = field(default_factory=lambda: defaultdict(list))
    _mails: dict[_Mail, list[int]] = field(default_factory=lambda: defaultdict(list))
    _changed: dict[int, Candidate] = field(default_factory=dict)

    @classmethod
    def about(
        cls, chunk: Sequence[Candidate], *, attributes: Mapping[str, Mapping[str, str]], now: datetime
    ) -> Decided:
        """Begin, knowing what was decided before the ledger forgot it: 1 query."""
        with connection.cursor() as cursor:
            cursor.execute(KNOWN, [[candidate.pk for candidate in chunk], list(attributes)])
            return cls(now, attributes, set(cursor.fetchall()))

    def note(self, candidate: Candidate, scene: Scene, verdict: Verdict, told: Told) -> None:
        """One verdict: the alert is what it says from here on."""
        watch, about = candidate.watch, (scene.place, scene.event.event_id, told)
        self._decisions[_Decision(*about, verdict.outcome.value, verdict.reason)].append(candidate.pk)
        if verdict.outcome is Outcome.MAILED:
            watch.told_at, watch.told_when = told.price, self.now
            self._mails[_Mail(*about, verdict.reason, watch.currency, watch.target)].append(candidate.pk)
        if verdict.state is not watch.state or verdict.outcome is Outcome.MAILED:
            watch.state = verdict.state
            watch.snoozed_until_rise = watch.snoozed_until_rise and verdict.state is State.FIRED
            self._changed[candidate.pk] = candidate

    def write(self) -> None:
        """At most five statements, however many alerts."""
        with connection.cursor() as cursor:
            if self._decisions:
                cursor.execute(DECISIONS, [self.now, dumps(self._decision_rows())])
            if self._changed:
                cursor.execute(ALERTS, [self.now, dumps(self._alert_rows())])
            if not self._mails:
                return
            cursor.execute(NOTIFICATIONS, [self.now, dumps(self._mail_rows())])
            mails = cursor.fetchall()
        publish([self._command(*mail) for mail in mails])
        fan_out({pk: event_id for pk, _, event_id in mails}, attributes=self.attributes)

    def _command(self, pk: int, alert_id: int, event_id: str) -> NewMessage:
        return NewMessage(
            type=SEND_ALERT_EMAIL,
            key=f"alert:{alert_id}",
            body={"notification_id": pk, "alert_id": alert_id, "event_id": event_id},
            attributes=follow_up(self.attributes.get(event_id, {}), caused_by=event_id),
        )

    def _decision_rows(self) -> list[dict[str, Any]]:
        return [
            {
                "alerts": alerts,
                "event_id": said.event_id,
                "outcome": said.outcome,
                "reason": said.reason,
                "price": said.told.price,
                "merchant": said.told.merchant,
            }
            for said, alerts in _in_order(self._decisions)
        ]

    def _mail_rows(self) -> list[dict[str, Any]]:
        return [
            {
                "alerts": alerts,
                "event_id": said.event_id,
                "currency": said.currency,
                "old_price": said.told.old_price,
                "price": said.told.price,
                "target": said.target,
                "reason": said.reason,
                "merchant": said.told.merchant,
                "occurred_at": said.told.occurred_at,
            }
            for said, alerts in _in_order(self._mails)
        ]

    def _alert_rows(self) -> list[dict[str, Any]]:
        alike: dict[tuple[str, Decimal | None, bool], list[int]] = defaultdict(list)
        for pk, candidate in self._changed.items():
            watch = candidate.watch
            told_at = watch.told_at if watch.told_when is self.now else None  # of a mail of this batch
            alike[watch.state.value, told_at, watch.snoozed_until_rise].append(pk)
        return [
            {"alerts": alerts, "state": state, "told_at": told_at, "until_rise": until_rise}
            for (state, told_at, until_rise), alerts in alike.items()
        ]


def _in_order(noted: Mapping[Said, list[int]]) -> list[tuple[Said, list[int]]]:
    return sorted(noted.items(), key=lambda one: one[0].place)
