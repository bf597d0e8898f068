"""What a wish to hear no more changes, and undoing it. Each is one transaction, and the second time changes nothing.

Called by the unsubscribe pages, which know the person by a signed link, and by the settings page.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime

import structlog
from django.contrib.auth import get_user_model
from django.utils import timezone

from alerts import services
from alerts.mail_models import MailWish
from alerts.models import Alert
from alerts.unsubscribe import Scope, Wish

log = structlog.get_logger(__name__)
COLUMNS = {Scope.ALERTS: "alerts_off_at", Scope.DIGEST: "digest_off_at"}


@dataclass(frozen=True)
class Standing:
    """How things are with what a wish is about. `alert`: the one it names."""

    stopped: bool
    alert: Alert | None = None


def standing(wish: Wish) -> Standing | None:
    """None where nothing is left that could send mail: the alert, or the account, is gone."""
    if wish.scope is Scope.ALERT:
        alert = _alert(wish)
        return alert and Standing(alert.state == Alert.State.PAUSED, alert)
    if not get_user_model().objects.filter(pk=wish.user_id, is_active=True).exists():
        return None
    column = COLUMNS[wish.scope]
    return Standing(MailWish.objects.filter(pk=wish.user_id, **{f"{column}__isnull": False}).exists())


def stop(wish: Wish, *, now: datetime) -> None:
    """Send no more of it. Raises nothing where there is nothing to stop."""
    if wish.scope is Scope.ALERT:
        if alert := _alert(wish):
            services.pause(alert=alert, now=now)
    elif get_user_model().objects.filter(pk=wish.user_id).exists():
        MailWish.objects.get_or_create(pk=wish.user_id)
        column = COLUMNS[wish.scope]
        MailWish.objects.filter(pk=wish.user_id, **{f"{column}__isnull": True}).update(**{column: now})
    log.info("mail.unsubscribed", scope=wish.scope.value, user_id=wish.user_id, alert_id=wish.alert_id)


def undo(wish: Wish) -> None:
    """Send it again. An alert is compared with the price now, as whenever it is resumed."""
    if wish.scope is Scope.ALERT:
        if alert := _alert(wish):
            services.resume(alert=alert, now=timezone.now())
    else:
        MailWish.objects.filter(pk=wish.user_id).update(**{COLUMNS[wish.scope]: None})
    log.info("mail.subscribed_again", scope=wish.scope.value, user_id=wish.user_id, alert_id=wish.alert_id)


def _alert(wish: Wish) -> Alert | None:
    return Alert.objects.filter(pk=wish.alert_id, user_id=wish.user_id).select_related("wine").first()
