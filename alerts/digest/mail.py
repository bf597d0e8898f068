"""The digest-delivery subscription: the weekly mails, handed over as every mail is.

Guarantee: sent only if it is still wanted a moment before, by somebody who can be written to; its Message-ID is the
same on every try. Apart from the alerts' mails: on a Monday a hundred thousand of these must not stand before one of
those, which arrives within its five minutes or is late.
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import timedelta
from typing import Any

from django.conf import settings
from django.core.mail import EmailMultiAlternatives
from django.template.loader import render_to_string
from django.urls import reverse
from django.utils import timezone

from alerts import owners, reachable, suppressions, unsubscribe
from alerts.digest import facts
from alerts.digest.models import Digest
from alerts.mail_models import Suppression
from alerts.told import one_line
from alerts.unsubscribe import Scope, Wish
from jobs.mail.transport import REFUSED, SENT, stable_message_id
from jobs.messages import Message

OF_RESULT = {
    SENT: Digest.State.SENT,
    REFUSED: Digest.State.REFUSED,
    None: Digest.State.UNWANTED,
}


def check(message: Message) -> None:
    """Raises PermanentError for a message that `prepare` would refuse."""
    message.number("digest_id")


def prepare(messages: Sequence[Message]) -> list[EmailMultiAlternatives | None]:
    """The mail for each command; None where it is no longer wanted, or sent already."""
    ids = [message.number("digest_id") for message in messages]
    queued = Digest.objects.filter(
        owners.confirmed("user"),
        reachable.digest_wanted("user"),
        reachable.address_works("user"),
        pk__in=ids,
        state=Digest.State.QUEUED,
        user__is_active=True,
    )
    by_id = {digest.pk: digest for digest in queued.select_related("user")}
    return [compose(by_id[pk]) if pk in by_id else None for pk in ids]


def record(pairs: Sequence[tuple[Message, str | None]]) -> None:
    """Settle the digests: sent, refused, or not wanted any more. `transport.deliver` says which."""
    now = timezone.now()
    for result, state in OF_RESULT.items():
        ids = [message.number("digest_id") for message, became in pairs if became == result]
        if not ids:
            continue
        queued = Digest.objects.filter(pk__in=ids, state=Digest.State.QUEUED)
        if result is REFUSED:
            for address in set(queued.values_list("user__email", flat=True)):
                suppressions.suppress(address=address, why=Suppression.Why.BOUNCED, at=now)
        queued.update(state=state, settled_at=now)


def compose(digest: Digest) -> EmailMultiAlternatives:
    """The mail with its text and HTML parts; its person must be loaded."""
    week, wish = facts.read(digest.facts), Wish(Scope.DIGEST, digest.user_id)
    context: dict[str, Any] = {
        "week": week,
        "name": digest.user.get_short_name(),
        "first_day": digest.monday - timedelta(days=7),
        "last_day": digest.monday - timedelta(days=1),
        "site": settings.SITE_URL,
        "page_url": settings.SITE_URL + reverse("digest", args=[digest.pk]),
        "cellar_url": settings.SITE_URL + reverse("cellar"),
        "stop_url": unsubscribe.link(wish),
    }
    mail = EmailMultiAlternatives(
        subject=subject(week),
        body=render_to_string("alerts/mail/digest.txt", context),
        from_email=settings.MAIL_FROM,
        to=[digest.user.email],
        headers={
            "Message-ID": stable_message_id(f"digest-{digest.user_id}.{digest.monday:%Y-%m-%d}"),
            "Auto-Submitted": "auto-generated",
            **unsubscribe.headers(wish),
        },
    )
    mail.attach_alternative(render_to_string("alerts/mail/digest.html", context), "text/html")
    return mail


LONGEST_NAME = 60  # letters of a wine's name in the subject: phones show as many


def subject(week: facts.Week) -> str:
    """“Your week: Ch. Montrose 2016 fell 18 %, 2 alerts”: the largest thing first."""
    parts = []
    if week.drops:
        first, more = week.drops[0], week.drop_count - 1
        others = f" and {more} more fell" if more else ""
        parts.append(f"{one_line(first.name)[:LONGEST_NAME]} fell {first.percent:.0f} %{others}")
    if week.fired_count:
        parts.append("1 alert" if week.fired_count == 1 else f"{week.fired_count} alerts")
    return "Your week: " + (", ".join(parts) or "your cellar’s worth changed")
