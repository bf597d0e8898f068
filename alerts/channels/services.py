"""What people do with their channels and their Atom feed. Each function is one transaction.

Guarantee: a secret or a token is returned once and stored sealed, or as a hash; nobody has more channels than the
setting says. Locks the person where it counts, else the channel. Called by the views.
"""

from __future__ import annotations

import hashlib
import secrets
from datetime import datetime

from django.conf import settings
from django.contrib.auth import get_user_model
from django.db import IntegrityError, transaction

from alerts.channels import outside, vendors
from alerts.channels.fan_out import command
from alerts.channels.models import SWITCHED_OFF, AtomFeed, Channel, ChannelDelivery
from jobs import standard_webhooks
from jobs.outbox import publish
from pricing.sealing import UnreadableError, reseal, seal, unseal

SECRET_BYTES = 32


class ChannelRefusedError(Exception):
    """The channel cannot be had; the message says why, in the reader's words."""


def add_webhook(*, user_id: int, url: str, now: datetime) -> tuple[Channel, str]:
    """The channel, and the secret that its posts are signed with, which is not shown again."""
    try:
        parts = outside.read_url(url)
    except outside.RefusedAddressError as error:
        raise ChannelRefusedError(str(error)) from error
    secret = secrets.token_bytes(SECRET_BYTES)
    shown = parts.netloc[-120:]
    channel = _add(user_id, Channel.Kind.WEBHOOK, url, shown=shown, sealed_secret=seal(secret), now=now)
    return channel, standard_webhooks.write_secret(secret)


def add_service(*, user_id: int, address: str, now: datetime) -> Channel:
    """A chat or push service, by its Apprise address."""
    try:
        name = vendors.read_address(address)
    except vendors.RefusedServiceError as error:
        raise ChannelRefusedError(str(error)) from error
    return _add(user_id, Channel.Kind.APPRISE, address, shown=name, sealed_secret="", now=now)


def _add(user_id: int, kind: str, address: str, *, shown: str, sealed_secret: str, now: datetime) -> Channel:
    with transaction.atomic():
        get_user_model().objects.select_for_update(no_key=True).get(pk=user_id)
        mine = list(Channel.objects.filter(user_id=user_id))
        if len(mine) >= settings.CHANNELS_PER_USER:
            raise ChannelRefusedError(
                f"You have {settings.CHANNELS_PER_USER} of them, which is the most there can be. Remove one first."
            )
        if address in [_address(channel) for channel in mine]:
            raise ChannelRefusedError("You have this address already.")
        return Channel.objects.create(
            user_id=user_id,
            kind=kind,
            shown=shown,
            sealed_address=seal(address.encode()),
            sealed_secret=sealed_secret,
            created_at=now,
        )


def _address(channel: Channel) -> str | None:
    try:
        return unseal(channel.sealed_address).decode()
    except UnreadableError:
        return None


def rotate_secret(*, channel: Channel, now: datetime) -> str:
    """A new secret, shown once; the old one signs beside it for CHANNEL_SECRET_OVERLAP. Raises Channel.DoesNotExist."""
    secret = secrets.token_bytes(SECRET_BYTES)
    with transaction.atomic():
        stored = _lock(channel)
        if stored.kind != Channel.Kind.WEBHOOK:
            raise ChannelRefusedError("Only webhooks are signed.")
        stored.sealed_old_secret, stored.old_secret_until = stored.sealed_secret, now + settings.CHANNEL_SECRET_OVERLAP
        stored.sealed_secret = seal(secret)
        stored.save(update_fields=["sealed_secret", "sealed_old_secret", "old_secret_until"])
    return standard_webhooks.write_secret(secret)


def switch_off(*, channel: Channel, now: datetime) -> None:
    """Post nothing more there, not even what waits. One that is off stays so, for the reason it had."""
    Channel.objects.filter(pk=channel.pk, off_at=None).update(off_at=now, off_because=SWITCHED_OFF)


def switch_on(*, channel: Channel) -> None:
    """Post there again, what is notified from now on."""
    Channel.objects.filter(pk=channel.pk).update(off_at=None, off_because="", given_up=0, retry_at=None)


def remove(*, channel: Channel) -> None:
    """Forget the channel with its secrets and what was posted there; quiet if it is gone already."""
    Channel.objects.filter(pk=channel.pk).delete()


def send_test(*, channel: Channel, now: datetime) -> bool:
    """Have a test posted there. False while another one is on its way, or when the channel is off."""
    try:
        with transaction.atomic():
            if _lock(channel).off_at is not None:
                return False
            ChannelDelivery.objects.filter(channel=channel, notification=None).exclude(state="queued").delete()
            delivery = ChannelDelivery.objects.create(channel=channel, created_at=now)
            publish([command(delivery.pk, channel.pk)])
    except IntegrityError:  # the schema allows one waiting test
        return False
    return True


def _lock(channel: Channel) -> Channel:
    return Channel.objects.select_for_update(no_key=True).get(pk=channel.pk)


SEALED = ("sealed_address", "sealed_secret", "sealed_old_secret")


def reseal_all() -> tuple[int, int]:
    """Seal every channel with today's SECRET_KEY. Returns how many were, and how many no key of ours can read."""
    done = unreadable = 0
    for channel in Channel.objects.only("pk", *SEALED).iterator():
        was = {name: getattr(channel, name) for name in SEALED}
        try:
            anew = {name: reseal(sealed) if sealed else "" for name, sealed in was.items()}
        except UnreadableError:
            unreadable += 1
            continue
        done += Channel.objects.filter(pk=channel.pk, **was).update(**anew)  # one replaced meanwhile is new already
    return done, unreadable


# --- The Atom feed ---------------------------------------------------------------------------------------------


def open_feed(*, user_id: int, now: datetime) -> str:
    """A new address for somebody's feed; the one before stops working. The token is not shown again."""
    token = secrets.token_urlsafe(32)
    AtomFeed.objects.update_or_create(user_id=user_id, defaults={"token_sha256": digest_of(token), "created_at": now})
    return token


def close_feed(*, user_id: int) -> None:
    AtomFeed.objects.filter(user_id=user_id).delete()


def digest_of(token: str) -> str:
    """A plain hash is enough: the token is 256 random bits, so there is nothing to guess from."""
    return hashlib.sha256(token.encode()).hexdigest()
