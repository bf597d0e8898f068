"""What matching decided for a chunk of alerts, written set-wise: decisions, alerts, mails, the commands to send them.

Guarantee: one decision and one mail per (alert, event), ever; the schema refuses a second, and what a redrive would
decide again is known beforehand. Of a wine that many watch most are told the same: what is the same is said once, with
the alerts that it is said to. Called by matching alone, in its transaction, which holds the alerts' rows, and in a
pipeline, so that the server writes one chunk while the next is judged.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from decimal import Decimal
from typing import Any, NamedTuple, TypeVar

from alerts.candidates import Candidate, Row
from alerts.channels import fan_out
from alerts.events import SEND_ALERT_EMAIL
from alerts.rules import Outcome, State, Verdict
from alerts.scenes import Scene, Told
from jobs.database import run
from jobs.messages import NewMessage, dumps
from jobs.outbox import follow_up, publish

# Of these events those that were decided about before: hardly ever one, so that no alert need be asked about. By the
# next id in the index, since the planner would read all that many decisions on few events.
AGAIN = """
SELECT asked.event_id FROM unnest(%(events)s::text[]) AS asked (event_id) CROSS JOIN LATERAL (
    SELECT event_id FROM alerts_decision WHERE event_id >= asked.event_id ORDER BY event_id LIMIT 1
) next WHERE next.event_id = asked.event_id
"""
# Each alert is looked up by itself (OFFSET 0). By the event the planner would read what it has decided about the chunks
# before, each time: a hundred thousand watchers cost five times as much.
KNOWN = """
SELECT known.alert_id, known.event_id FROM unnest(%(alerts)s::bigint[]) AS asked (id) CROSS JOIN LATERAL (
    SELECT alert_id, event_id FROM alerts_decision WHERE alert_id = asked.id AND event_id = ANY(%(events)s) OFFSET 0
) known
"""
DECISIONS = """
INSERT INTO alerts_decision (alert_id, event_id, outcome, reason, price, merchant_name, decided_at)
SELECT alert_id, event_id, outcome, reason, price, merchant, %(now)s
FROM jsonb_to_recordset(%(said)s::jsonb) AS said (
    alerts bigint[], event_id text, outcome text, reason text, price numeric, merchant text),
    unnest(said.alerts) AS alert_id
"""
NOTIFICATIONS = """
INSERT INTO alerts_notification (alert_id, event_id, state, currency, old_price, new_price, target, reason,
                                 merchant_name, occurred_at, created_at)
SELECT alert_id, event_id, 'queued', currency, old_price, price, target, reason, merchant, occurred_at, %(now)s
FROM jsonb_to_recordset(%(said)s::jsonb) AS said (
    alerts bigint[], event_id text, currency text, old_price numeric, price numeric, target numeric, reason text,
    merchant text, occurred_at timestamptz),
    unnest(said.alerts) AS alert_id
RETURNING id, alert_id, event_id
"""
# Nobody's own columns (a pause, a snooze, a name) are among these; the rows are locked.
ALERTS = """
UPDATE alerts_alert SET state = said.state, snoozed_until_rise = said.until_rise,
    last_notified_at = CASE WHEN said.told_at IS NULL THEN last_notified_at ELSE %(now)s END,
    last_notified_price = coalesce(said.told_at, last_notified_price)
FROM jsonb_to_recordset(%(said)s::jsonb) AS said (alerts bigint[], state text, told_at numeric, until_rise boolean),
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


def decided_before(event_ids: Sequence[str]) -> list[str]:
    """Those that some alert was decided about, before the ledger forgot them: 1 query."""
    return [event_id for (event_id,) in run(AGAIN, {"events": list(event_ids)}).fetchall()]


def known_of(rows: Sequence[Row], event_ids: Sequence[str]) -> dict[int, frozenset[str]]:
    """What was decided before on these events, by alert; no query where nothing was."""
    found: dict[int, set[str]] = defaultdict(set)
    if event_ids:
        asked = {"alerts": [row[0] for row in rows], "events": list(event_ids)}
        for alert_id, event_id in run(KNOWN, asked, keep_plan=False).fetchall():
            found[alert_id].add(event_id)
    return {alert_id: frozenset(events) for alert_id, events in found.items()}


@dataclass
class Decided:
    """One chunk's decisions. `attributes` are those of the events, by id, which go along with the commands."""

    now: datetime
    attributes: Mapping[str, Mapping[str, str]]
    _decisions: dict[_Decision, list[int]] = field(default_factory=lambda: defaultdict(list))
    _mails: dict[_Mail, list[int]] = field(default_factory=lambda: defaultdict(list))
    _changed: dict[int, Candidate] = field(default_factory=dict)  # by one of its alerts

    def note(self, candidate: Candidate, scene: Scene, verdict: Verdict, told: Told) -> None:
        """One verdict: the alerts are what it says from here on."""
        watch, about = candidate.watch, (scene.place, scene.event.event_id, told)
        self._decisions[_Decision(*about, verdict.outcome.value, verdict.reason)] += candidate.alerts
        if verdict.outcome is Outcome.MAILED:
            watch.told_at, watch.told_when = told.price, self.now
            self._mails[_Mail(*about, verdict.reason, watch.currency, watch.target)] += candidate.alerts
        if verdict.state is not watch.state or verdict.outcome is Outcome.MAILED:
            watch.state = verdict.state
            watch.snoozed_until_rise = watch.snoozed_until_rise and verdict.state is State.FIRED
            self._changed[candidate.alerts[0]] = candidate

    def write(self) -> None:
        """At most five statements, however many alerts. The server has the rest to do while commands are made."""
        if self._decisions:
            run(DECISIONS, {"now": self.now, "said": dumps(self._decision_rows())})
        made: list[tuple[int, int, str]] = []
        if self._mails:
            mails = run(NOTIFICATIONS, {"now": self.now, "said": dumps(self._mail_rows())})
            channels = fan_out.begin(self._told())
            made = mails.fetchall()
        if self._changed:
            run(ALERTS, {"now": self.now, "said": dumps(self._alert_rows())}, keep_plan=False)
        if made:
            told = {pk: event_id for pk, _, event_id in made}
            causes = {event: follow_up(self.attributes.get(event, {}), caused_by=event) for event in set(told.values())}
            publish([_command(*mail, causes[mail[2]]) for mail in made])
            fan_out.finish(channels, told=told, attributes=causes)

    def _told(self) -> dict[str, list[int]]:
        """Whom a mail goes to, by event."""
        told: dict[str, list[int]] = defaultdict(list)
        for said, alerts in self._mails.items():
            told[said.event_id] += alerts
        return told

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
        for candidate in self._changed.values():
            watch = candidate.watch
            told_at = watch.told_at if watch.told_when is self.now else None  # of a mail of this batch
            alike[watch.state.value, told_at, watch.snoozed_until_rise] += candidate.alerts
        return [
            {"alerts": alerts, "state": state, "told_at": told_at, "until_rise": until_rise}
            for (state, told_at, until_rise), alerts in alike.items()
        ]


def _command(pk: int, alert_id: int, event_id: str, attributes: Mapping[str, str]) -> NewMessage:
    return NewMessage(
        type=SEND_ALERT_EMAIL,
        key=f"alert:{alert_id}",
        body={"notification_id": pk, "alert_id": alert_id, "event_id": event_id},
        attributes=attributes,
    )


def _in_order(noted: Mapping[Said, list[int]]) -> list[tuple[Said, list[int]]]:
    return sorted(noted.items(), key=lambda one: one[0].place)
