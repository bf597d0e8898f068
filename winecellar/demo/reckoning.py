"""Holds what happened against what had to happen. Pure: all it compares is given to it.

Called by orchestra.py at the end of a bounded run; summary.py says it in words.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from decimal import Decimal

from winecellar.demo.mail_log import MailTaken
from winecellar.demo.oracle import AcceptedPrice, DueMail, WatchedAlert, due_mails


@dataclass(frozen=True)
class Reckoning:
    """`missing` and `unexpected` mails, and events acknowledged but `not_in_log`, should all be empty."""

    due: list[DueMail]
    arrived: list[DueMail]
    missing: list[DueMail]
    unexpected: list[DueMail]
    mailed_twice: list[DueMail]
    not_in_log: list[str]
    superseded: int

    @property
    def all_is_well(self) -> bool:
        return not (self.missing or self.unexpected or self.mailed_twice or self.not_in_log)


def reckon(
    *,
    alerts: Sequence[WatchedAlert],
    prices: Mapping[tuple[str, str], Decimal],
    acknowledged: Collection[str],
    log: Sequence[AcceptedPrice],
    superseded: Collection[DueMail],
    further_fall: Decimal,
    mails: Sequence[MailTaken],
) -> Reckoning:
    """Compare the mails taken with those due for `alerts`, which nobody else has touched meanwhile.

    acknowledged  the event ids that the feed's 202 named
    log           every price change published, in order, those of other senders included
    """
    due = due_mails(alerts=alerts, prices=prices, accepted=log, superseded=superseded, further_fall=further_fall)
    published = {price.event_id for price in log}
    ours = {alert.id for alert in alerts}
    taken = Counter(
        DueMail(mail.alert_id, mail.event_id) for mail in mails if mail.alert_id in ours and mail.event_id in published
    )
    return Reckoning(
        due=due,
        arrived=[mail for mail in due if mail in taken],
        missing=[mail for mail in due if mail not in taken],
        unexpected=sorted(taken.keys() - set(due), key=lambda mail: (mail.alert_id, mail.event_id)),
        mailed_twice=[mail for mail, count in taken.items() if count > 1],
        not_in_log=sorted(set(acknowledged) - published),
        superseded=len(superseded),
    )


def latencies(mails: Sequence[MailTaken], accepted_at: Mapping[str, datetime]) -> list[float]:
    """Milliseconds from the 202 to the mail in the sink, ascending, for the mails about an acknowledged event.

    The mail may be there before the sender has read its answer; that counts as zero.
    """
    return sorted(
        max((mail.received_at - accepted_at[mail.event_id]).total_seconds() * 1000, 0.0)
        for mail in mails
        if mail.event_id in accepted_at
    )


def percentile(ascending: Sequence[float], part: float) -> float:
    """The smallest value that at least `part` (0 to 1) of the values do not exceed."""
    return ascending[max(math.ceil(part * len(ascending)) - 1, 0)]
