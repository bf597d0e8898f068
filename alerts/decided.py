"""What matching decided for a chunk of alerts, written set-wise: decisions, alerts, mails, the commands to send them.

Guarantee: one decision and one mail per (alert, event), ever; the schema refuses a second, and what a redrive would
decide again is known beforehand. Called by matching alone, in its transaction, which holds the alerts' rows.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any

from django.db import connection

from alerts.candidates import Candidate
from alerts.channels.fan_out import fan_out
from alerts.events import SEND_ALERT_EMAIL
from alerts.rules import Outcome, State, Verdict
from alerts.scenes import Told
from jobs.messages import NewMessage, dumps
from jobs.outbox import follow_up, publish

KNOWN = "SELECT alert_id, event_id FROM alerts_decision WHERE alert_id = ANY(%s) AND event_id = ANY(%s)"
DECISIONS = """
INSERT INTO alerts_decision (alert_id, event_id, outcome, reason, price, merchant_name, decided_at)
SELECT alert_id, event_id, outcome, reason, price, merchant, %s
FROM jsonb_to_recordset(%s::jsonb) AS row (
    alert_id bigint, event_id text, outcome text, reason text, price numeric, merchant text)
"""
NOTIFICATIONS = """
INSERT INTO alerts_notification (alert_id, event_id, state, currency, old_price, new_price, target, reason,
                                 merchant_name, occurred_at, created_at)
SELECT alert_id, event_id, 'queued', currency, old_price, price, target, reason, merchant, occurred_at, %s
FROM jsonb_to_recordset(%s::jsonb) AS row (
    alert_id bigint, event_id text, currency text, old_price numeric, price numeric, target numeric, reason text,
    merchant text, occurred_at timestamptz)
RETURNING id, alert_id, event_id
"""
# Nobody's own columns (a pause, a snooze, a name) are among these; the rows are locked.
ALERTS = """
UPDATE alerts_alert SET state = row.state, snoozed_until_rise = row.until_rise,
    last_notified_at = CASE WHEN row.told_at IS NULL THEN last_notified_at ELSE %s END,
    last_notified_price = coalesce(row.told_at, last_notified_price)
FROM jsonb_to_recordset(%s::jsonb) AS row (id bigint, state text, told_at numeric, until_rise boolean)
WHERE alerts_alert.id = row.id
"""


@dataclass
class Decided:
    """One chunk's decisions. `attributes` are those of the events, by id, which go along with the commands."""

    now: datetime
    attributes: Mapping[str, Mapping[str, str]]
    known: set[tuple[int, str]] = field(default_factory=set)
    _decisions: list[dict[str, Any]] = field(default_factory=list)
    _mails: list[dict[str, Any]] = field(default_factory=list)
    _changed: dict[int, Candidate] = field(default_factory=dict)

    @classmethod
    def about(
        cls, chunk: Sequence[Candidate], *, attributes: Mapping[str, Mapping[str, str]], now: datetime
    ) -> Decided:
        """Begin, knowing what was decided before the ledger forgot it: 1 query."""
        with connection.cursor() as cursor:
            cursor.execute(KNOWN, [[candidate.pk for candidate in chunk], list(attributes)])
            return cls(now, attributes, set(cursor.fetchall()))

    def note(self, candidate: Candidate, event_id: str, verdict: Verdict, told: Told) -> None:
        """One verdict: the alert is what it says from here on."""
        watch = candidate.watch
        said = {
            "alert_id": candidate.pk,
            "event_id": event_id,
            "reason": verdict.reason,
            "price": told.price,
            "merchant": told.merchant,
        }
        self._decisions.append({**said, "outcome": verdict.outcome.value})
        if verdict.outcome is Outcome.MAILED:
            watch.told_at, watch.told_when = told.price, self.now
            self._mails.append(
                {
                    **said,
                    "currency": watch.currency,
                    "old_price": told.old_price,
                    "target": watch.target,
                    "occurred_at": told.occurred_at,
                }
            )
        if verdict.state is not watch.state or verdict.outcome is Outcome.MAILED:
            watch.state = verdict.state
            watch.snoozed_until_rise = watch.snoozed_until_rise and verdict.state is State.FIRED
            self._changed[candidate.pk] = candidate

    def write(self) -> None:
        """At most five statements, however many alerts."""
        with connection.cursor() as cursor:
            if self._decisions:
                cursor.execute(DECISIONS, [self.now, dumps(self._decisions)])
            if self._changed:
                rows = [self._row(candidate) for candidate in self._changed.values()]
                cursor.execute(ALERTS, [self.now, dumps(rows)])
            if not self._mails:
                return
            cursor.execute(NOTIFICATIONS, [self.now, dumps(self._mails)])
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

    def _row(self, candidate: Candidate) -> dict[str, Any]:
        watch = candidate.watch
        return {
            "id": candidate.pk,
            "state": watch.state.value,
            "told_at": watch.told_at if watch.told_when is self.now else None,  # of a mail of this batch
            "until_rise": watch.snoozed_until_rise,
        }
