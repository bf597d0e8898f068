"""The channel-delivery subscription: notifications posted to their owner's webhooks, chats and pushes.

Guarantee: each is posted under one id on every try, by an own schedule of tries, and a receiver that does not take it
never becomes a dead letter of ours. A channel that failed a moment ago is not tried again for the next notification,
so one that hangs holds up at most what is under way. Locks the channels, then their deliveries, each in id order.
"""

from __future__ import annotations

import random
from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta

from django.conf import settings
from django.db.models import F, Q
from django.utils import timezone

from alerts import owners, told
from alerts.channels import envelope, outside, vendors
from alerts.channels.fan_out import command
from alerts.channels.models import Channel, ChannelDelivery
from alerts.channels.rules import Again, Came, Limits, Outcome, Settled, after_try
from alerts.models import Notification
from jobs import tracing
from jobs.messages import Message
from jobs.outbox import follow_up, publish
from pricing.sealing import UnreadableError, unseal

State = ChannelDelivery.State


@dataclass(frozen=True, slots=True)
class Post:
    """One try at a webhook. Its address and headers are never shown, logged or put into an error."""

    url: str = field(repr=False)
    body: bytes = field(repr=False)
    headers: dict[str, str] = field(repr=False)


@dataclass(frozen=True, slots=True)
class Push:
    """One try at a service."""

    address: str = field(repr=False)
    title: str
    text: str = field(repr=False)


Task = Post | Push | Outcome


def check(message: Message) -> None:
    """Raises PermanentError for a message that `prepare` would refuse."""
    message.number("channel_delivery_id"), message.number("channel_id")


def prepare(messages: Sequence[Message]) -> list[Task | None]:
    """What to post for each command; None where it is no longer wanted: channel off or gone, person gone, posted."""
    ids = [message.number("channel_delivery_id") for message in messages]
    now = timezone.now()
    # As for its mail: not if the alert was paused, snoozed or deleted meanwhile.
    wanted = Q(notification=None) | Q(notification__in=Notification.objects.filter(owners.wanted(now)))
    queued = ChannelDelivery.objects.filter(
        wanted, pk__in=ids, state=State.QUEUED, channel__off_at__isnull=True, channel__user__is_active=True
    ).select_related("channel", "notification__alert__wine")
    by_id = {delivery.pk: delivery for delivery in queued}
    return [_task(by_id[pk], now) if pk in by_id else None for pk in ids]


def _task(delivery: ChannelDelivery, now: datetime) -> Task:
    channel = delivery.channel
    if channel.retry_at is not None and channel.retry_at > now and delivery.tries == 0:
        return Outcome(Came.POSTPONED, "it failed a moment ago")
    try:
        address = unseal(channel.sealed_address).decode()
        secrets = [unseal(sealed) for sealed in _sealed_secrets(channel, now)]
    except UnreadableError:
        return Outcome(Came.UNREADABLE, "its address cannot be read")
    if channel.kind == Channel.Kind.WEBHOOK:
        body = envelope.cloud_event(delivery)
        headers = envelope.signed_headers(envelope.webhook_id(delivery), body, secrets=secrets, now=now)
        return Post(address, body, headers)
    if delivery.notification is None:
        return Push(address, "Winecellar", "Notifications will come here.")
    return Push(address, told.headline(delivery.notification), told.wine_url(delivery.notification))


def _sealed_secrets(channel: Channel, now: datetime) -> list[str]:
    """The new one first; the old one beside it while the owner changes over."""
    old = channel.sealed_old_secret if channel.old_secret_until and channel.old_secret_until > now else ""
    return [sealed for sealed in (channel.sealed_secret, old) if sealed]


def perform(task: Task) -> Outcome:
    """Post it. Nothing that the other side does is an error of ours."""
    match task:
        case Outcome():
            return task
        case Push():
            with tracing.outside("push"):
                taken = vendors.send(task.address, title=task.title, text=task.text)
            return Outcome(Came.TAKEN, "taken") if taken else Outcome(Came.FAILED, "the service did not take it")
    try:
        with tracing.outside("POST", **{"http.request.method": "POST"}):
            answer = outside.post(task.url, task.body, task.headers, seconds=settings.CHANNEL_TIMEOUT.total_seconds())
    except (outside.RefusedAddressError, outside.NoAnswerError) as error:
        return Outcome(Came.FAILED, str(error))
    if 200 <= answer.status < 300:
        return Outcome(Came.TAKEN, f"answered {answer.status}")
    if answer.status == GONE:
        return Outcome(Came.GONE, f"answered {GONE}")
    redirect = ", a redirect, which we do not follow" if 300 <= answer.status < 400 else ""
    return Outcome(Came.FAILED, f"answered {answer.status}{redirect}", answer.retry_after)


GONE = 410


def record(pairs: Sequence[tuple[Message, Outcome | None]]) -> None:
    """Write what came of each, and publish the next try where there is one, in the transaction that acks this one."""
    now = timezone.now()
    channels = {message.number("channel_id") for message, _ in pairs}
    locked = {c.pk: c for c in Channel.objects.filter(pk__in=channels).select_for_update(no_key=True).order_by("pk")}
    ids = [message.number("channel_delivery_id") for message, _ in pairs]
    queued = ChannelDelivery.objects.filter(pk__in=ids, state=State.QUEUED).select_for_update(no_key=True)
    deliveries = {delivery.pk: delivery for delivery in queued.order_by("pk")}
    for message, outcome in pairs:
        delivery = deliveries.get(message.number("channel_delivery_id"))
        channel = locked.get(delivery.channel_id) if delivery else None
        if delivery is None or channel is None:
            continue  # removed meanwhile
        if outcome is None:
            _settle(delivery, State.UNWANTED, now)
        else:
            _apply(delivery, channel, outcome, message, now)


def _apply(delivery: ChannelDelivery, channel: Channel, outcome: Outcome, message: Message, now: datetime) -> None:
    rest = (channel.retry_at - now).total_seconds() if channel.retry_at else 0.0
    next_step = after_try(
        outcome,
        tries=delivery.tries,
        given_up=channel.given_up,
        wait=max(rest, 0.0),
        # Whoever asks for a test waits for it.
        limits=_limits() if delivery.notification_id else _test_limits(),
        uniform=random.uniform,
    )
    delivery.answer = outcome.said[:120]
    match next_step:
        case Again(delay=delay, counts=counts):
            if counts:
                delivery.tries += 1
                channel.retry_at = now + timedelta(seconds=delay)
                channel.save(update_fields=["retry_at"])
            delivery.save(update_fields=["tries", "answer"])
            # Of the same event as the try before, or of that try where it is a test.
            cause = message.attributes.get("caused_by", message.event_id)
            again = command(delivery.pk, channel.pk, follow_up(message.attributes, caused_by=cause))
            publish([again], delay=timedelta(seconds=delay))
        case Settled(taken=True):
            channel.told_at, channel.retry_at, channel.given_up = now, None, 0
            channel.save(update_fields=["told_at", "retry_at", "given_up"])
            _settle(delivery, State.TAKEN, now)
        case Settled(off=off):
            _settle(delivery, State.GIVEN_UP, now)
            if delivery.notification_id:
                channel.given_up += 1
            if off and channel.off_at is None:
                channel.off_at, channel.off_because = now, off[:200]
            channel.save(update_fields=["given_up", "off_at", "off_because"])


def _settle(delivery: ChannelDelivery, state: State, now: datetime) -> None:
    tried = 1 if state in (State.TAKEN, State.GIVEN_UP) else 0
    ChannelDelivery.objects.filter(pk=delivery.pk).update(
        state=state, settled_at=now, tries=F("tries") + tried, answer=delivery.answer
    )


def _limits() -> Limits:
    return Limits(settings.CHANNEL_RETRY_DELAYS, settings.CHANNEL_LONGEST_WAIT, settings.CHANNEL_GIVE_UPS)


def _test_limits() -> Limits:
    return Limits((), settings.CHANNEL_LONGEST_WAIT, give_ups=settings.CHANNEL_GIVE_UPS + 1_000)
