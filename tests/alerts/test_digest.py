"""The weekly digest: who gets one, what it says, and that it is one."""

import re
from collections.abc import Iterator
from datetime import timedelta
from decimal import Decimal
from email import message_from_bytes, policy
from typing import Any

import pytest
from allauth.account.models import EmailAddress
from django.core import mail
from django.core.management import call_command
from django.db import IntegrityError, connection
from django.test import Client
from django.test.utils import CaptureQueriesContext
from django.urls import reverse

from alerts import wishes
from alerts.digest.models import Digest, DigestWeek
from alerts.models import Alert, Notification
from alerts.unsubscribe import Scope, Wish
from jobs.models import Delivery, JobRun, LoggedMessage
from jobs.schedule.declared import CatchUp, load_schedule
from jobs.worker import drain
from tests.alerts.digest_cast import DAY, SLOT, Worth, fell, make, watcher
from tests.cast import merchant, person, wine

pytestmark = pytest.mark.django_db(transaction=True)


@pytest.fixture(autouse=True)
def outbox() -> Iterator[None]:
    mail.outbox = []
    yield
    JobRun.objects.all().delete()


def parts(message: Any) -> tuple[str, str]:
    parsed = message_from_bytes(message.message().as_bytes(), policy=policy.default)
    return tuple(str(parsed.get_body((kind,)).get_content()) for kind in ("plain", "html"))  # type: ignore[union-attr, return-value]


def test_the_mail_says_what_fell_what_was_told_what_is_close_and_what_the_cellar_is_worth(settings: Any) -> None:
    settings.SITE_URL = "https://cellar.example"
    fell()
    watch = watcher(target="150.00")
    Notification.objects.create(
        alert=watch, event_id="evt_1", new_price="154.00", target="160.00",
        merchant_name="Merchant Y", occurred_at=SLOT, created_at=SLOT - DAY,
    )  # fmt: skip
    worth = Worth("EUR", Decimal("1200.00"), Decimal("1000.00"))
    assert make(lambda people, on: dict.fromkeys(people, worth)) == 1
    drain()
    (message,) = mail.outbox
    assert message.subject == "Your week: Ch. Montrose 2016 fell 18 %, 1 alert"
    assert message.to == ["alice@winecellar.example"]
    for text in parts(message):
        for fact in (
            "$164.00",
            "$200.00",
            "18\xa0%",
            "Merchant X",
            "$154.00",
            "Merchant Y",
            "9\xa0%",
            "€1,200.00",
            "+€200.00",
        ):
            assert fact in text, fact
        assert f"https://cellar.example/alerts/{watch.pk}" in text
    assert Digest.objects.get().state == "sent"
    assert message.extra_headers["List-Unsubscribe-Post"] == "List-Unsubscribe=One-Click"


def test_a_week_that_held_nothing_makes_no_mail_and_no_row() -> None:
    fell(days=20)  # the price of today is that of a week ago
    watcher()
    assert make() == 0
    assert not Digest.objects.exists()
    assert not LoggedMessage.objects.exists()


def test_there_is_one_for_each_person_and_week_however_often_the_week_is_run() -> None:
    fell()
    watcher()
    watcher("bob")
    assert [make(), make()] == [2, 0]
    DigestWeek.objects.update(done_to=0)  # even if the mark were lost, the schema holds
    with pytest.raises(IntegrityError):
        make()
    drain()
    assert sorted(message.to[0] for message in mail.outbox) == ["alice@winecellar.example", "bob@winecellar.example"]
    later = SLOT + 7 * DAY
    assert make(slot=later, now=later) == 0  # nothing fell in that week
    drain()
    assert len(mail.outbox) == 2


@pytest.mark.parametrize("when", ["before the week", "before the mail"])
@pytest.mark.parametrize("why", ["unsubscribed", "left", "not confirmed", "bounced"])
def test_nobody_is_written_to_who_cannot_or_does_not_want_to(when: str, why: str) -> None:
    fell()
    user = watcher().user
    if when == "before the mail":
        assert make() == 1
    match why:
        case "unsubscribed":
            wishes.stop(Wish(Scope.DIGEST, user.pk), now=SLOT)
        case "left":
            type(user)._default_manager.update(is_active=False)
        case "not confirmed":
            EmailAddress.objects.update(verified=False)
        case "bounced":
            from alerts.models import Suppression

            Suppression.objects.create(user=user, address=user.email, why="bounced", since=SLOT)
    if when == "before the week":
        assert make() == 0
    drain()
    assert not mail.outbox
    assert not Delivery.objects.exists()
    assert not Digest.objects.exclude(state="unwanted").exists()


def test_one_who_wants_no_mail_about_alerts_still_gets_the_week() -> None:
    fell()
    wishes.stop(Wish(Scope.ALERTS, watcher().user_id), now=SLOT)
    assert make() == 1


def test_the_link_in_the_mail_ends_the_weekly_mails_by_one_click() -> None:
    fell()
    user = watcher().user
    make()
    drain()
    link = re.search(r"<https?://[^/]+(/[^>]+)>", mail.outbox[0].extra_headers["List-Unsubscribe"])
    assert link is not None
    assert Client().post(link[1], {"List-Unsubscribe": "One-Click"}).status_code == 200
    later = SLOT + 7 * DAY
    fell("2", days=-5)
    watcher(number="2")
    assert make(slot=later, now=later) == 0
    assert Digest.objects.filter(user=user).count() == 1


@pytest.mark.parametrize(
    ("change", "expected"),
    [("paused", 0), ("gone", 0), ("dearer elsewhere", 1), ("new offer", 0)],
)
def test_what_counts_as_a_fall(change: str, expected: int) -> None:
    fell()
    watch = watcher()
    from pricing.models import Offer

    match change:
        case "paused":
            Alert.objects.filter(pk=watch.pk).update(state="paused")
        case "gone":
            Offer.objects.update(withdrawn_at=SLOT)
        case "dearer elsewhere":
            Offer.objects.create(
                wine=wine(), merchant=merchant("2", "Dear"), price_usd="300.00",
                occurred_at=SLOT - 30 * DAY, event_id="e", seen_at=SLOT,
            )  # fmt: skip
        case "new offer":
            from pricing.models import PriceHistory

            PriceHistory.objects.filter(observed_at__lt=SLOT - 7 * DAY).delete()
    assert make() == expected


def test_names_with_markup_and_newlines_stay_text() -> None:
    fell("666")
    bottle = wine("666")
    type(bottle).objects.filter(pk=bottle.pk).update(name="Evil\r\nBcc: all@example.org <b>Cru</b>")
    watcher(number="666")
    make()
    drain()
    (message,) = mail.outbox
    assert "Bcc" not in message.message()
    assert message.subject.startswith("Your week: Evil Bcc: all@example.org <b>Cru</b> 2016 fell 18 %")
    text, html = parts(message)
    assert "<b>Cru</b>" in text
    assert "<b>Cru</b>" not in html
    assert "&lt;b&gt;Cru&lt;/b&gt;" in html


def test_a_chunk_costs_the_same_queries_for_few_people_and_many(settings: Any) -> None:
    settings.DIGEST_CHUNK = 1_000
    fell()

    def queries(names: list[str], slot: Any) -> int:
        for name in names:
            watcher(name)
        with CaptureQueriesContext(connection) as caught:
            make(slot=slot, now=slot)
        return len(caught)

    few = queries(["a"], SLOT)
    many = queries([f"p{number}" for number in range(30)], SLOT + DAY)
    assert Digest.objects.count() == 32
    assert many == few


def test_the_mail_is_the_same_on_every_try(monkeypatch: pytest.MonkeyPatch) -> None:
    fell()
    watcher()
    make()
    from alerts.digest.mail import compose

    digest = Digest.objects.select_related("user").get()
    first, second = compose(digest), compose(digest)
    assert first.extra_headers == second.extra_headers
    assert first.body == second.body
    assert first.extra_headers["Message-ID"].startswith(f"<digest-{digest.user_id}.2026-03-16@")


def test_the_job_is_declared_for_monday_at_eight_and_runs_by_hand_through_the_real_fence() -> None:
    job = load_schedule()["weekly-digest"]
    assert (job.cron, job.catch_up) == ("0 8 * * 1", CatchUp.latest())
    fell()
    watcher()
    call_command("run_job", "weekly-digest", "--for", SLOT.date().isoformat())
    assert Digest.objects.get().monday == SLOT.date()
    assert JobRun.objects.get().counts["digests"] == 1


def test_the_page_shows_ones_own_week_and_nobody_elses() -> None:
    fell()
    watcher()
    make()
    digest, client = Digest.objects.get(), Client()
    client.force_login(person("alice"))
    answer = client.get(reverse("digest", args=[digest.pk]))
    assert "Ch. Montrose 2016" in answer.content.decode()
    client.force_login(person("bob"))
    assert client.get(reverse("digest", args=[digest.pk])).status_code == 404


def test_the_message_type_has_its_own_subscription_so_that_alerts_do_not_wait() -> None:
    fell()
    watcher()
    make()
    assert list(Delivery.objects.values_list("subscription__name", flat=True)) == ["digest-delivery"]


def test_a_cellars_week_is_told_by_the_cellars() -> None:
    from tests.cellars.cast import cellar
    from winecellar.cellars.models import Valuation
    from winecellar.cellars.selectors import worths

    mine = cellar()
    for day, value in ((SLOT.date(), "1200.00"), (SLOT.date() - timedelta(days=8), "1000.00")):
        Valuation.objects.create(
            cellar=mine, day=day, currency="EUR", usd_rate=1, value=value, bottles=2, without_value=0
        )
    (worth,) = worths([mine.owner_id], on=SLOT.date()).values()
    assert worth == ("EUR", Decimal("1200.00"), Decimal("1000.00"))
    assert worths([mine.owner_id + 1], on=SLOT.date()) == {}
    Valuation.objects.filter(day=SLOT.date() - timedelta(days=8)).update(currency="USD")
    assert worths([mine.owner_id], on=SLOT.date())[mine.owner_id].before is None
