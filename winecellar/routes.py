"""Every subscription on one screen: what it receives, who handles it, in what order, how many at once."""

from django.conf import settings

from alerts import matching, notifications, waiting
from alerts.channels import delivery as channels
from alerts.digest import mail as digest_mail
from alerts.events import ALERT_CREATED, DELIVER_TO_CHANNEL, SEND_ALERT_EMAIL, SEND_DIGEST_EMAIL
from jobs.dead_letters import redrive
from jobs.dead_letters.events import RUN_REDRIVE
from jobs.mail.transport import BREAKER, deliver, hand_over
from jobs.subscriptions import External, Route
from pricing import analytics, history, search_index
from pricing.catalogues import turns
from pricing.events import (
    LATE_PRICE_OBSERVED,
    OFFER_RETURNED,
    OFFER_WITHDRAWN,
    PRICE_CHANGED,
    REFRESH_CATALOGUE,
    WINE_DESCRIBED,
)
from winecellar.accounts import delivery
from winecellar.accounts.events import ADDRESS_CONFIRMED, SEND_ACCOUNT_EMAIL
from winecellar.purchases import mail as purchase_mail
from winecellar.purchases import paying
from winecellar.purchases.events import (
    CALL_OFF_PURCHASE,
    CHARGE_PURCHASE,
    CHECK_PAYMENT,
    REFUND_PURCHASE,
    SEND_PURCHASE_EMAIL,
)

ROUTES = [
    # Appends every price, and the end of every offer, to the wine's time series. In order, so that it reads as it was.
    Route(
        "price-history",
        (PRICE_CHANGED, LATE_PRICE_OBSERVED, OFFER_WITHDRAWN, OFFER_RETURNED),
        history.append,
        ordered=True,
        batch=500,
        check=history.check,
    ),
    # Decides who hears about a price. In order per wine: a late drop must not be judged after the rise that followed.
    Route(
        "alert-matching",
        (PRICE_CHANGED, OFFER_WITHDRAWN, OFFER_RETURNED, ALERT_CREATED),
        matching.match,
        ordered=True,
        batch=200,
        check=matching.check,
    ),
    # What is searched: wines, and what they cost. In order, so that the last of a wine's messages sees its last price.
    Route(
        "search-index",
        (WINE_DESCRIBED, PRICE_CHANGED, OFFER_WITHDRAWN, OFFER_RETURNED),
        search_index.index,
        ordered=True,
        batch=500,
    ),
    # Prices by the day, for charts and figures over months. In order, so that a day's low and high are what they were.
    Route(
        "analytics-rollup",
        (PRICE_CHANGED, OFFER_WITHDRAWN, OFFER_RETURNED),
        analytics.enter,
        ordered=True,
        batch=500,
        check=analytics.check,
    ),
    # Sends the mails. Each stands for itself, so none waits for another.
    Route(
        "notification-delivery",
        (SEND_ALERT_EMAIL,),
        External(
            notifications.prepare,
            deliver,
            notifications.record,
            at_once=settings.MAIL_AT_ONCE,
            breaker=BREAKER,
        ),
        ordered=False,
        partitions=4,
        batch=settings.MAIL_BATCH,
        check=notifications.check,
    ),
    # Posts to people's own webhooks, chats and pushes. Apart from the mails, for their receivers may be anything.
    Route(
        "channel-delivery",
        (DELIVER_TO_CHANNEL,),
        External(channels.prepare, channels.perform, channels.record, at_once=settings.CHANNEL_AT_ONCE),
        ordered=False,
        partitions=4,
        batch=settings.CHANNEL_AT_ONCE,
        check=channels.check,
    ),
    # The weekly mails. Apart from the alerts', which keep a promise on a Monday too.
    Route(
        "digest-delivery",
        (SEND_DIGEST_EMAIL,),
        External(
            digest_mail.prepare,
            deliver,
            digest_mail.record,
            at_once=settings.MAIL_AT_ONCE,
            breaker=BREAKER,
        ),
        ordered=False,
        partitions=2,
        batch=settings.MAIL_BATCH,
        promise=settings.DIGEST_PROMISE,
        check=digest_mail.check,
    ),
    # Has the alerts that waited for their owner's address looked at. Each person stands for themselves.
    Route(
        "alert-waking", (ADDRESS_CONFIRMED,), waiting.wake, ordered=False, partitions=2, batch=20, check=waiting.check
    ),
    # Sends the mails about accounts. Apart from the alerts', so that whoever signs up waits for none of those.
    Route(
        "account-mail",
        (SEND_ACCOUNT_EMAIL,),
        External(delivery.prepare, hand_over, delivery.record, at_once=settings.MAIL_AT_ONCE, breaker=BREAKER),
        ordered=False,
        partitions=2,
        batch=settings.MAIL_BATCH,
        check=delivery.check,
    ),
    # Asks the payment provider: to charge, to call off, to refund, how it stands. None waits for another's purchase.
    Route(
        "purchase-payment",
        (CHARGE_PURCHASE, CALL_OFF_PURCHASE, REFUND_PURCHASE, CHECK_PAYMENT),
        External(
            paying.prepare, paying.perform, paying.record, at_once=settings.PAYMENT_AT_ONCE, breaker=paying.BREAKER
        ),
        ordered=False,
        partitions=4,
        batch=settings.PAYMENT_AT_ONCE,
        check=paying.check,
    ),
    # The last step of a purchase: mails to its buyer and its merchant.
    Route(
        "purchase-mail",
        (SEND_PURCHASE_EMAIL,),
        External(
            purchase_mail.prepare,
            deliver,
            purchase_mail.record,
            at_once=settings.MAIL_AT_ONCE,
            breaker=BREAKER,
        ),
        ordered=False,
        partitions=2,
        batch=settings.MAIL_BATCH,
        check=purchase_mail.check,
    ),
    # Takes merchants' files, some seconds at a time; two, so that a long one does not keep the others waiting.
    Route(
        "catalogue-refresh",
        (REFRESH_CATALOGUE,),
        External(turns.prepare, turns.perform, turns.record, at_once=2, time_limit=settings.CATALOGUE_TIME_LIMIT),
        ordered=False,
        partitions=1,
        batch=2,
        promise=settings.CATALOGUE_ORDER_PATIENCE,
        check=turns.check,
    ),
    # Sends dead letters to their subscriptions again, at a rate; see docs/runbooks/dead-letters.md.
    Route(
        "dead-letter-redrive",
        (RUN_REDRIVE,),
        External(redrive.prepare, redrive.perform, redrive.record, at_once=4),
        ordered=False,
        partitions=1,
        batch=4,
        check=redrive.check,
    ),
]
