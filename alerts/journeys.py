"""What the alerts know of an event's journey: the decisions about alerts, the mails and posts, and what became of them.

Names no address. Reads only, by keys and indexes. Registered in winecellar/journeys.py.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Sequence

from django.conf import settings
from django.urls import reverse

from alerts.channels.models import ChannelDelivery
from alerts.digest.models import Digest
from alerts.events import DELIVER_TO_CHANNEL, SEND_ALERT_EMAIL, SEND_DIGEST_EMAIL
from alerts.mail import message_id
from alerts.models import Decision, Notification
from alerts.money import said
from jobs.journey.hooks import Found, Note, Published, Section

HINT = "the Message-ID or the number of a mail"
NOT_KEPT = "Decisions, mails and posts go with their alert when it is deleted for good, or its owner’s account."
MESSAGE_ID = re.compile(r"<?alert-[0-9]+\.([^@<>\s]+)@[^<>\s]+>?")
NUMBER = re.compile(r"(?:notification|mail)?[ #]*([0-9]{1,18})", re.IGNORECASE)


def became(message: Published) -> list[Section]:
    """What came of an event, or of a command: 1 query for a command, 3 for an event, however many alerts it moved."""
    if message.type in COMMANDS:
        name, section = COMMANDS[message.type]
        number = message.body.get(name)
        return [section(number if isinstance(number, int) else 0)]
    most = settings.JOURNEY_SHOWN
    decisions = list(Decision.objects.filter(event_id=message.event_id).order_by("id")[: most + 1])
    if not decisions:
        return []
    mailed = [each.alert_id for each in decisions[:most] if each.outcome == Decision.Outcome.MAILED]
    mails = list(Notification.objects.filter(event_id=message.event_id, alert__in=mailed).order_by("id"))
    posts = list(ChannelDelivery.objects.filter(notification__in=mails).order_by("id")[: most + 1])
    return [
        Section("Decisions about alerts", [_decision(each) for each in decisions[:most]], len(decisions) > most),
        Section(
            "Mails", [note for mail in mails for note in _mail(mail)], len(decisions) > most, "None was decided on."
        ),
        Section("Posts", [note for post in posts[:most] for note in _post(post)], len(posts) > most, "None was due."),
    ]


def _decision(decision: Decision) -> Note:
    where = f" at {decision.merchant_name}" if decision.merchant_name else ""
    price = f"{decision.price}{where}: " if decision.price is not None else ""
    what = f"alert {decision.alert_id}: {price}{decision.reason} → {decision.get_outcome_display()}"
    return Note(decision.decided_at, what, reverse("admin:alerts_decision_change", args=[decision.pk]))


def _mail(mail: Notification) -> list[Note]:
    url = reverse("admin:alerts_notification_change", args=[mail.pk])
    about = f"mail {mail.pk} about alert {mail.alert_id}"
    began = Note(mail.created_at, f"{about}: {said(mail.new_price, mail.currency)}, {message_id(mail)}", url)
    return [began, Note(mail.settled_at, f"{about}: {mail.get_state_display()}", url)]


def _post(post: ChannelDelivery) -> list[Note]:
    about = f"post {post.pk} on channel {post.channel_id}"
    tries = f"after {post.tries} {'try' if post.tries == 1 else 'tries'}"
    answer = f"; the last: {post.answer}" if post.answer else ""
    return [
        Note(post.created_at, f"{about}, of mail {post.notification_id or 'none: a test'}"),
        Note(post.settled_at, f"{about}: {post.get_state_display()} {tries}{answer}"),
    ]


def _the_mail(number: int) -> Section:
    return _section("The mail", Notification.objects.filter(pk=number), _mail)


def _the_post(number: int) -> Section:
    return _section("The post", ChannelDelivery.objects.filter(pk=number), _post)


def _the_digest(number: int) -> Section:
    return _section("The digest", Digest.objects.filter(pk=number), _digest)


def _digest(digest: Digest) -> list[Note]:
    about = f"digest {digest.pk}"
    return [
        Note(digest.created_at, f"{about} was made"),
        Note(digest.settled_at, f"{about}: {digest.get_state_display()}"),
    ]


def _section(title: str, rows: Iterable[object], told: Callable[..., list[Note]]) -> Section:
    notes = [note for row in rows for note in told(row)]
    return Section(title, notes, empty="It is gone, with its alert or its owner.")


# By type: what the command's body calls it, and its section.
COMMANDS: dict[str, tuple[str, Callable[[int], Section]]] = {
    SEND_ALERT_EMAIL: ("notification_id", _the_mail),
    DELIVER_TO_CHANNEL: ("channel_delivery_id", _the_post),
    SEND_DIGEST_EMAIL: ("digest_id", _the_digest),
}


def find(text: str) -> Sequence[Found]:
    """The event that a mail is about."""
    if named := MESSAGE_ID.fullmatch(text):
        return [Found(named[1], "the mail with that Message-ID is about it")]
    if number := NUMBER.fullmatch(text):
        mails = Notification.objects.filter(pk=int(number[1]))
        return [Found(mail.event_id, f"mail {mail.pk} is about it", mail.created_at) for mail in mails]
    return []
