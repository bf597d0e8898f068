"""Everything that writes and is swept by tests/faults/test_every_writer.py: handlers, commands, what operators do.

Each says how it is prepared in an empty database, what it does, and what of the database it is about. Names begin with
what they are: `route`, `command`, `admin`.
"""

from __future__ import annotations

import io
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager, redirect_stderr, redirect_stdout, suppress
from dataclasses import dataclass
from datetime import timedelta
from functools import partial
from pathlib import Path
from typing import Any

from allauth.mfa.models import Authenticator
from django.conf import settings
from django.contrib.admin.models import LogEntry
from django.core.management import CommandError, call_command
from django.db import connection, transaction
from django.test import Client
from django.urls import reverse
from django.utils import timezone

from alerts.channels import services as channels
from alerts.channels.models import Channel, ChannelDelivery
from alerts.models import Alert, Digest
from jobs.dead_letters.acts import ACTS
from jobs.dead_letters.selection import Selection
from jobs.models import (
    AuditEntry,
    Breaker,
    DeadLetter,
    Delivery,
    Incident,
    JobLock,
    JobRun,
    LoggedMessage,
    ProcessedMessage,
    Redrive,
    ScheduledJob,
    Subscription,
)
from jobs.schedule import store
from jobs.schedule.crashes import reap
from jobs.schedule.declared import load_schedule
from jobs.sync import ensure_subscriptions
from jobs.worker import drain
from pricing import keys, signing
from pricing.models import (
    CatalogueFile,
    DailyPrice,
    ExchangeRate,
    FeedAnswer,
    FeedKey,
    HeldPrice,
    Listing,
    Offer,
    PriceHistory,
    SigningSecret,
    WineDocument,
)
from pricing.services import record_observations
from tests.alerts.digest_cast import fell, make, watcher
from tests.cast import NOW, alert, merchant, person, price, wine, with_app
from tests.catalogues.refreshing import csv, received, row, shelf, taken
from tests.jobs.dead_letters.conftest import letter
from tests.pricing.observed import seen
from tests.pricing.test_listings import VAGUE, ask, take
from winecellar.accounts import services as accounts
from winecellar.accounts.letters import Written
from winecellar.accounts.models import AccountMail, User
from winecellar.purchases.models import StockItem

# Set before each run: where the audit log stood, which nobody can empty, and where a receiver of webhooks listens.
audit_from, receiver = [0], [""]
NEW_KEY = "the-new-one-" + "k" * 50
RATES = "Date, USD, CHF, \n13 March 2026, 1.1000, 0.9500, \n"


@dataclass(frozen=True)
class Subject:
    """`again`: how it is taken up after a crash; what it did itself, if nothing else is said.

    `turns`: it is more than one transaction, so that between them what it is about may be anything that doing it again
    brings to the same end.
    """

    name: str
    prepare: Callable[[], object]
    act: Callable[[], object]
    state: Callable[[], Any]
    again: Callable[[], object] | None = None
    turns: bool = False


# --- Handlers ---------------------------------------------------------------------------------------------------


def route(
    name: str,
    prepare: Callable[[], object],
    state: Callable[[], Any],
    *,
    others: tuple[str, ...] = (),
    turns: bool = False,
) -> Subject:
    """What a subscription did, with its ledger and what is left in its queue. It has one partition here: which one a
    message falls into decides how many claims there are."""

    def whole() -> Any:
        in_ledger = ProcessedMessage.objects.filter(consumer_name=name).count()
        left = Delivery.objects.filter(subscription__name=name).count()
        buried = DeadLetter.objects.filter(subscription_name=name).exclude(outcome="applied").count()
        # How many turns it took depends on where it was interrupted.
        return state(), bool(in_ledger) if turns else in_ledger, left, buried

    def one_partition() -> None:
        ensure_subscriptions()
        Subscription.objects.filter(name=name).update(partitions=1)
        prepare()

    def again() -> None:
        for _ in range(20):
            Delivery.objects.update(visible_at=timezone.now() - timedelta(seconds=1))
            let_file_leases_end()
            drain([name, *others])
            if not Delivery.objects.filter(subscription__name__in=[name, *others]).exists():
                return
        raise AssertionError("the queue does not empty")

    return Subject(f"route {name}", one_partition, lambda: drain([name]), whole, again, turns)


def let_file_leases_end() -> None:
    """Whoever worked on a merchant's file is gone for longer than its lease."""
    CatalogueFile.objects.filter(leased_until__isnull=False).update(leased_until=timezone.now() - timedelta(seconds=1))


def two_prices() -> None:
    wine(), merchant()
    price("189.00")
    price("154.00", minutes=1)


def documents() -> list[Any]:
    return list(WineDocument.objects.values_list("wine_id", "offers", "best_usd"))


def days() -> list[Any]:
    return list(DailyPrice.objects.values_list("wine_id", "low", "high", "close", "offers"))


def a_week() -> None:
    fell()
    watcher()
    make()


def digests() -> list[Any]:
    return list(Digest.objects.values_list("state"))


def an_unconfirmed_watcher() -> None:
    someone = person("dora", confirmed=False)
    alert("160.00", owner="dora", state="armed")
    with transaction.atomic():
        accounts.announce_confirmed(user_id=someone.pk)


def woken() -> Any:
    asked = LoggedMessage.objects.filter(type="alert.created").count()
    return list(Alert.objects.values_list("state")), asked


def a_letter() -> None:
    accounts.queue_mail(
        to="alice@winecellar.example",
        user=person(),
        letter=Written("Confirm", "text", "<p>text</p>", timedelta(days=1)),
        now=timezone.now(),
    )


def account_mails() -> list[Any]:
    return list(AccountMail.objects.values_list("to"))


def a_list_of_wines() -> None:
    shelf(3)
    taken(merchant(), csv(*(row(n) for n in (1, 2, 3))))
    received(merchant(), csv(row(1, 18), row(2), row(3, 25)), hours=24, send=True)


def offered() -> Any:
    file = CatalogueFile.objects.latest("pk")
    changes = LoggedMessage.objects.filter(type="wine.price_changed").count()
    return file.status, file.changed, file.unchanged, changes, sorted(Offer.objects.values_list("wine_id", "price_usd"))


def mendable_letters() -> None:
    """Two price events that a release has mended: they were buried, and would now pass."""
    two_prices()
    for message in LoggedMessage.objects.filter(type="wine.price_changed"):
        letter(
            message.id,
            message_id=message.id,
            event_id=message.event_id,
            key=message.key,
            body=message.body,
            published_at=message.published_at,
        )
    with connection.cursor() as cursor:
        cursor.execute("DELETE FROM jobs_delivery")
    decide("redrive")


def redriven() -> Any:
    (run,) = Redrive.objects.all()
    return run.state, run.ended_at is not None, sorted(DeadLetter.objects.values_list("outcome")), history()


def history() -> list[Any]:
    return list(PriceHistory.objects.order_by("id").values_list("wine_id", "price_usd"))


def notified_channel() -> None:
    channels.add_webhook(user_id=person().pk, url=receiver[0], now=NOW)
    alert("160.00")
    price("154.00")
    drain(["alert-matching"])


def posted() -> list[Any]:
    return list(ChannelDelivery.objects.values_list("state"))


ROUTES = [
    route("search-index", two_prices, documents),
    route("analytics-rollup", two_prices, days),
    route("channel-delivery", notified_channel, posted),
    route("digest-delivery", a_week, digests),
    route("alert-waking", an_unconfirmed_watcher, woken),
    route("account-mail", a_letter, account_mails),
    route("catalogue-refresh", a_list_of_wines, offered, turns=True),
    route("dead-letter-redrive", mendable_letters, redriven, others=("price-history",), turns=True),
]


# --- Commands ---------------------------------------------------------------------------------------------------


def run(*words: str) -> None:
    """A command, quietly; what it refuses, since it was done before, it refuses."""
    with redirect_stdout(io.StringIO()), redirect_stderr(io.StringIO()), suppress(CommandError):
        call_command(*words, stdout=io.StringIO(), stderr=io.StringIO())


@contextmanager
def file(content: bytes) -> Iterator[str]:
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "file.csv"
        path.write_bytes(content)
        yield str(path)


def run_with(content: bytes, *words: str) -> None:
    with file(content) as path:
        run(*(path if word == "FILE" else word for word in words))


def command(
    name: str, prepare: Callable[[], object], act: Callable[[], object], state: Callable[[], Any], **more: Any
) -> Subject:
    return Subject(f"command {name}", prepare, act, state, **more)


def a_credential(make_: Callable[..., Any]) -> Callable[[], None]:
    return lambda: make_(merchant=merchant(), note="", now=NOW) and None


def revoke(model: Any, name: str) -> None:
    run(name, model.objects.get().prefix)


def is_revoked(model: Any) -> list[bool]:
    return [each.revoked_at is not None for each in model.objects.all()]


def under_another_key(make_: Callable[[], object]) -> Callable[[], None]:
    """As it was sealed before SECRET_KEY was replaced."""

    def prepare() -> None:
        now, before = settings.SECRET_KEY, settings.SECRET_KEY_FALLBACKS
        settings.SECRET_KEY, settings.SECRET_KEY_FALLBACKS = before[0], []
        try:
            make_()
        finally:
            settings.SECRET_KEY, settings.SECRET_KEY_FALLBACKS = now, before

    return prepare


def readable(model: Any, read: Callable[[Any], str]) -> Callable[[], Any]:
    """How many can be read by the new key alone."""
    from pricing.sealing import UnreadableError, unseal

    def state() -> int:
        fallbacks, settings.SECRET_KEY_FALLBACKS = settings.SECRET_KEY_FALLBACKS, []
        count = 0
        for each in model.objects.all():
            with suppress(UnreadableError):
                unseal(read(each))
                count += 1
        settings.SECRET_KEY_FALLBACKS = fallbacks
        return count

    return state


def a_wrong_history() -> None:
    two_prices()
    drain(["price-history"])
    PriceHistory.objects.filter(price_usd=189).delete()


def projected(name: str, model: Any) -> Callable[[], None]:
    def prepare() -> None:
        two_prices()
        drain([name, "price-history"])
        model.objects.all().delete()

    return prepare


def waiting_for_a_rate() -> None:
    wine()
    merchant()
    record_observations(
        merchant=merchant(),
        observations=[replace_currency()],
        attributes={},
        now=NOW,
    )


def replace_currency() -> Any:
    from dataclasses import replace
    from decimal import Decimal

    return replace(seen("100.00"), price_usd=None, native_price=Decimal(100), native_currency="CHF")


def rates_and_offers() -> Any:
    return ExchangeRate.objects.count(), HeldPrice.objects.count(), list(Offer.objects.values_list("native_price"))


def queue_of(name: str) -> Subscription:
    return Subscription.objects.get(name=name)


def some_waiting() -> None:
    ensure_subscriptions()
    Subscription.objects.filter(name="price-history").update(partitions=4, paused_at=None, batch=None)
    two_prices()


def spread() -> Any:
    left = Delivery.objects.filter(subscription__name="price-history")
    return queue_of("price-history").partitions, left.count(), left.filter(part__gte=2).count()


def applied_and_forgotten() -> None:
    """As if price-history had been added after the events: the log has them, its ledger does not."""
    some_waiting()
    with connection.cursor() as cursor:
        cursor.execute("DELETE FROM jobs_delivery")


def replayed() -> Any:
    return Delivery.objects.filter(subscription__name="price-history").count(), queue_of("price-history").paused_at


def replay() -> None:
    run("subscriptions", "replay", "price-history", "--since", "2026-01-01T00:00Z")


def replay_again() -> None:
    """What broke off is paused: it is resumed, catches up, and is replayed again."""
    run("subscriptions", "resume", "price-history")
    drain(["price-history"])
    replay()


def both_in_history() -> Any:
    waiting, paused = replayed()
    return waiting + len(history()), paused


def limits(name: str = "price-history") -> Any:
    found = queue_of(name)
    return found.paused_at is not None, found.batch


def paused() -> None:
    some_waiting()
    Subscription.objects.filter(name="price-history").update(paused_at=NOW)


def an_open_breaker() -> None:
    now = timezone.now()
    Breaker.objects.create(name="mail", failed=5, opened_at=now, probe_at=now + timedelta(minutes=5), reason="away")


def breakers() -> list[Any]:
    return [each.opened_at is None for each in Breaker.objects.all()]


def old_answers() -> None:
    store.insert_missing_jobs(list(load_schedule().values()))
    FeedAnswer.objects.create(merchant=merchant(), key="k", body_sha256="0" * 64, answer={})
    FeedAnswer.objects.update(created_at=timezone.now() - timedelta(days=400))


def purged() -> Any:
    return FeedAnswer.objects.count(), sorted(JobRun.objects.values_list("outcome", flat=True))


def run_again() -> None:
    """When its lock has run out, a scheduler finds it dead; then whoever asks for it again gets it."""
    JobLock.objects.filter(token__isnull=False).update(expires_at=timezone.now() - timedelta(seconds=1))
    reap(load_schedule())
    run("run_job", "feed-answers")


def purged_at_last() -> Any:
    return FeedAnswer.objects.count(), JobRun.objects.filter(outcome="ran").exists()


def long_waiting() -> None:
    letter(1)
    store.insert_missing_jobs(list(load_schedule().values()))


def evaluate() -> None:
    """What the watchman does every few seconds, and the job `alarm-evaluation` too."""
    from jobs.alarms import evaluation

    evaluation.evaluate(store.now())


def incidents() -> Any:
    return sorted(Incident.objects.values_list("alarm", "subject"))


def an_upload() -> bytes:
    return csv(row(1), row(2))


def import_file() -> None:
    run_with(an_upload(), "import_catalogue", "mch_082", "FILE", "--as-of", "2026-03-15T00:00:00Z")


def import_again() -> None:
    let_file_leases_end()
    import_file()


def imported() -> Any:
    changes = LoggedMessage.objects.filter(type="wine.price_changed").count()
    return changes, sorted(Offer.objects.values_list("wine_id", "price_usd"))


def decide(act: str) -> Any:
    """As the command and the admin do it."""
    asked: dict[str, Any] = {
        "quarantine": {"wake_at": timezone.now() + timedelta(days=1)},
        "assign": {"to": "bob"},
    }.get(act, {})
    return ACTS[act].do(
        selection=Selection(subscription="price-history"), by="charlie", note="why", now=timezone.now(), **asked
    )


def decided() -> Any:
    marks = sorted(DeadLetter.objects.values_list("decision", "assigned_to"))
    told = [
        (entry.action, len(entry.letter_ids))
        for entry in AuditEntry.objects.filter(id__gt=audit_from[0]).order_by("id")
    ]
    return marks, told, Redrive.objects.count(), LoggedMessage.objects.filter(type="run_redrive").count()


def once(act: str) -> Any:
    """Of what may be said any number of times, whether it was."""
    marks, told, redrives, commands = decided()
    return marks, bool(told), redrives, commands


def of_letters(act: str) -> Subject:
    words = ["dead_letters", act, "--subscription", "price-history", "--by", "charlie", "--note", "why"]
    words += ["--wake-at", (timezone.now() + timedelta(days=1)).isoformat()] if act == "quarantine" else []
    words += ["--to", "bob"] if act == "assign" else []

    def prepare() -> None:
        two_prices()
        message = LoggedMessage.objects.order_by("id").first()
        assert message is not None
        letter(1, body=message.body, key=message.key, published_at=message.published_at)
        letter(2)
        if act == "reopen":
            decide("discard")

    repeatable = act in {
        "assign",
        "comment",
        "quarantine",
    }  # whoever says it again has said it twice, and the audit log says so
    return command(f"dead_letters {act}", prepare, lambda: run(*words), partial(once, act) if repeatable else decided)


def a_running_redrive() -> None:
    letter(1)
    decide("redrive")


def stopping() -> Any:
    asked = [bool(each.stop_asked_by) for each in Redrive.objects.all()]
    return asked, AuditEntry.objects.filter(action="stop", id__gt=audit_from[0]).count()


def stop_redrive() -> None:
    run("dead_letters", "stop", str(Redrive.objects.get().pk), "--by", "charlie", "--note", "why")


def an_incident() -> None:
    now = timezone.now()
    Incident.objects.create(
        alarm="job-overdue",
        subject="nightly",
        severity="page",
        summary="late",
        since=now,
        last_true_at=now,
        opened_at=now,
    )


def acknowledge() -> None:
    run("incidents", "acknowledge", str(Incident.objects.get().pk), "--by", "alice")


def seen_by() -> list[Any]:
    return list(Incident.objects.values_list("acknowledged_by", flat=True))


COMMANDS = [
    command("create_feed_key", merchant, lambda: run("create_feed_key", "mch_082"), FeedKey.objects.exists),
    command(
        "create_signing_secret",
        merchant,
        lambda: run("create_signing_secret", "mch_082"),
        SigningSecret.objects.exists,
    ),
    command(
        "revoke_feed_key",
        a_credential(keys.create_key),
        lambda: revoke(FeedKey, "revoke_feed_key"),
        lambda: is_revoked(FeedKey),
    ),
    command(
        "revoke_signing_secret",
        a_credential(signing.create_secret),
        lambda: revoke(SigningSecret, "revoke_signing_secret"),
        lambda: is_revoked(SigningSecret),
    ),
    command(
        "reseal_signing_secrets",
        under_another_key(a_credential(signing.create_secret)),
        lambda: run("reseal_signing_secrets"),
        readable(SigningSecret, lambda each: each.sealed),
    ),
    command(
        "reseal_channels",
        under_another_key(lambda: channels.add_webhook(user_id=person().pk, url="https://hook.example/", now=NOW)),
        lambda: run("reseal_channels"),
        readable(Channel, lambda each: each.sealed_address),
    ),
    command(
        "reseal_second_factors",
        under_another_key(lambda: with_app(person())),
        lambda: run("reseal_second_factors"),
        readable(Authenticator, lambda each: each.data.get("secret", "")),
    ),
    command(
        "load_rates",
        waiting_for_a_rate,
        lambda: run_with(RATES.encode(), "load_rates", "FILE"),
        rates_and_offers,
        turns=True,
    ),
    command("rebuild price-history", a_wrong_history, lambda: run("rebuild", "price-history"), history),
    command(
        "rebuild search-index",
        projected("search-index", WineDocument),
        lambda: run("rebuild", "search-index"),
        documents,
        turns=True,
    ),
    command(
        "rebuild analytics-rollup",
        projected("analytics-rollup", DailyPrice),
        lambda: run("rebuild", "analytics-rollup"),
        days,
        turns=True,
    ),
    command(
        "import_catalogue",
        lambda: (shelf(2), merchant()),
        import_file,
        imported,
        again=import_again,
        turns=True,
    ),
    command("subscriptions pause", some_waiting, lambda: run("subscriptions", "pause", "price-history"), limits),
    command("subscriptions resume", paused, lambda: run("subscriptions", "resume", "price-history"), limits),
    command(
        "subscriptions limit",
        some_waiting,
        lambda: run("subscriptions", "limit", "price-history", "--batch", "7"),
        limits,
    ),
    command("subscriptions retry", an_open_breaker, lambda: run("subscriptions", "retry", "mail"), breakers),
    command("incidents acknowledge", an_incident, acknowledge, seen_by),
    command(
        "set_stock",
        lambda: [wine(), merchant()],
        lambda: run("set_stock", "mch_082", wine().pk, "24", "154.00"),
        lambda: list(StockItem.objects.values_list("on_hand", "price")),
    ),
    command(
        "subscriptions repartition",
        some_waiting,
        lambda: run("subscriptions", "repartition", "price-history", "2"),
        spread,
    ),
    command("subscriptions replay", applied_and_forgotten, replay, both_in_history, again=replay_again, turns=True),
    command(
        "run_job", old_answers, lambda: run("run_job", "feed-answers"), purged_at_last, again=run_again, turns=True
    ),
    command("run_watchman", long_waiting, evaluate, incidents, turns=True),
    *(of_letters(act) for act in ACTS),
    command("dead_letters stop", a_running_redrive, stop_redrive, stopping),
]


# --- What operators do in the admin -----------------------------------------------------------------------------


def operator() -> Client:
    charlie = with_app(person("charlie"))
    User.objects.filter(pk=charlie.pk).update(is_staff=True, is_superuser=True)
    charlie.refresh_from_db()
    client = Client(raise_request_exception=False)
    client.force_login(charlie)
    return client


current: list[Client] = []


def signed_in(prepare: Callable[[], object]) -> Callable[[], None]:
    def prepared() -> None:
        prepare()
        current[:] = [operator()]

    return prepared


def action(name: str, model: Any, prepare: Callable[[], object], state: Callable[[], Any]) -> Subject:
    """An action on all rows of a list; with what the admin's log says of it."""
    where = reverse(f"admin:{model._meta.app_label}_{model._meta.model_name}_changelist")

    def act() -> None:
        ids = [str(pk) for pk in model.objects.values_list("pk", flat=True)]
        current[0].post(where, {"action": name, "_selected_action": ids})

    return Subject(
        f"admin {model._meta.model_name} {name}",
        signed_in(prepare),
        act,
        lambda: (state(), LogEntry.objects.exists()),
    )


def a_job() -> None:
    store.insert_missing_jobs([load_schedule()["feed-answers"]])


def jobs_paused() -> list[bool]:
    return [each.paused_at is None for each in ScheduledJob.objects.all()]


def a_paused_job() -> None:
    a_job()
    ScheduledJob.objects.update(paused_at=NOW)


def asked_for() -> list[Any]:
    return list(JobRun.objects.values_list("origin", "outcome"))


def a_held_price() -> None:
    wine(), merchant()
    at = NOW + timedelta(hours=1)
    price("189.00")
    record_observations(merchant=merchant(), observations=[seen("9.00", at)], attributes={}, now=at)


def prices_held() -> Any:
    published = LoggedMessage.objects.filter(type="wine.price_changed").count()
    return HeldPrice.objects.count(), published, list(Offer.objects.values_list("price_usd", flat=True))


def a_file() -> None:
    shelf(2)
    taken(merchant(), csv(row(1), row(2)))
    from pricing.models import CatalogueSettings

    CatalogueSettings.objects.update(rows=1)


def size_accepted() -> list[Any]:
    from pricing.models import CatalogueSettings

    return list(CatalogueSettings.objects.values_list("rows", flat=True))


def a_listing() -> None:
    wine()
    take(merchant(), ask(VAGUE, "180.00"))


def set_aside() -> list[bool]:
    return [each.set_aside_at is None for each in Listing.objects.all()]


def in_the_admin(act: str) -> Subject:
    """The confirmation page of an act about dead letters."""
    plain = of_letters(act)
    form: dict[str, Any] = {"confirm": "1", "subscription": "price-history", "note": "why"}
    form |= {"to": "bob"} if act == "assign" else {}
    form |= {"rate_per_second": "50", "stop_share": "0.1"} if ACTS[act].redrives else {}
    if act == "quarantine":
        when = timezone.now() + timedelta(days=1)
        form |= {"wake_at": f"{when:%Y-%m-%dT%H:%M}", "wake_at_0": f"{when:%Y-%m-%d}", "wake_at_1": f"{when:%H:%M}"}

    def do() -> None:
        current[0].post(reverse("admin:jobs_deadletter_decide", args=[act]), form)

    return Subject(f"admin deadletter {act}", signed_in(plain.prepare), do, plain.state)


def stop_in_the_admin() -> None:
    current[0].post(reverse("admin:jobs_redrive_stop", args=[Redrive.objects.get().pk]), {"note": "why"})


ADMIN = [
    action("pause", ScheduledJob, a_job, jobs_paused),
    action("resume", ScheduledJob, a_paused_job, jobs_paused),
    action("run_now", ScheduledJob, a_job, asked_for),
    action(
        "acknowledge", Incident, an_incident, lambda: [each.acknowledged_at is None for each in Incident.objects.all()]
    ),
    action("retry", Breaker, an_open_breaker, breakers),
    action("release", HeldPrice, a_held_price, prices_held),
    action("reject", HeldPrice, a_held_price, prices_held),
    action("accept_size", CatalogueFile, a_file, size_accepted),
    action("revoke", FeedKey, a_credential(keys.create_key), lambda: is_revoked(FeedKey)),
    action("revoke", SigningSecret, a_credential(signing.create_secret), lambda: is_revoked(SigningSecret)),
    action("set_aside", Listing, a_listing, set_aside),
    *(in_the_admin(act) for act in ACTS),
    Subject("admin redrive stop", signed_in(a_running_redrive), stop_in_the_admin, stopping),
]

SUBJECTS = {subject.name: subject for subject in (*ROUTES, *COMMANDS, *ADMIN)}
