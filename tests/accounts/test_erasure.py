"""Erasing an account: all that is theirs goes in one transaction, and no mail follows."""

import threading
from decimal import Decimal
from typing import Any

import pytest
from django.contrib.admin.models import ADDITION, LogEntry
from django.contrib.contenttypes.models import ContentType
from django.core.mail.backends import locmem
from django.db import connection, connections
from django.test import Client

from alerts.models import Alert, Decision, Notification
from jobs.models import DeadLetter, Delivery
from jobs.worker import drain
from tests.accounts.conftest import PASSWORD, mails
from tests.cast import alert, merchant, price, wine, with_app
from tests.pages.html import Page
from tests.purchases.cast import buyer, stock
from winecellar import payment_provider
from winecellar.accounts import services
from winecellar.accounts.belongings import all_belongings
from winecellar.accounts.models import AccountMail, Session, User
from winecellar.demo.payments_api import PaymentServer
from winecellar.purchases.forms import fresh_form
from winecellar.purchases.models import Purchase, StockItem

pytestmark = pytest.mark.django_db(transaction=True)
PATIENCE = 30


def page(response: Any) -> Page:
    return Page(response.content.decode())


def rows_of(user_id: int) -> dict[str, int]:
    person = User(pk=user_id)
    found = {belonging.name: belonging.of(person).count() for belonging in all_belongings()}
    return {name: count for name, count in found.items() if count}


def everything_of(user: User) -> None:
    """A row in each table that is a person's, but for those of allauth that we do not use."""
    with_app(user)
    one = alert("160.00", state="armed")
    Decision.objects.create(alert=one, event_id="evt_1", outcome="armed", reason="r", price=Decimal("171.10"))
    price("150.00")
    drain(["alert-matching"])
    Client().post("/new-password", {"email": user.email})
    assert AccountMail.objects.filter(user=user).exists()


@pytest.mark.parametrize("what", ["an alert", "a purchase"])
def test_a_form_that_arrives_while_its_sender_is_erased_writes_nothing_and_leads_to_the_sign_in(
    what: str, alice: User, as_alice: Client, settings: Any
) -> None:
    with PaymentServer() as payments:  # which nobody asks anything
        settings.PAYMENTS = payment_provider.read(payments.url)
        item = stock(5)
        buyer(payments)
    forms: dict[str, tuple[str, dict[str, Any], str]] = {
        "an alert": (f"/wines/{item.wine_id}", {"target": "100.00"}, "FOR NO KEY UPDATE"),
        "a purchase": (f"/buy/{item.pk}", fresh_form(item).initial, "INSERT INTO"),
    }
    path, form, statement = forms[what]
    erased: list[threading.Thread] = []

    def erase_first(execute: Any, sql: str, *given: Any) -> Any:
        if statement in sql and not erased:
            erased.append(threading.Thread(target=erase_elsewhere, args=(alice,)))
            erased[0].start()
            erased[0].join(PATIENCE)
        return execute(sql, *given)

    with connection.execute_wrapper(erase_first):
        answer = as_alice.post(path, form)
    assert not User.objects.filter(pk=alice.pk).exists()
    assert (answer.status_code, answer["Location"]) == (302, f"/sign-in?next={path}")
    assert rows_of(alice.pk) == {}
    assert not Purchase.objects.exists()
    assert StockItem.objects.get().reserved == 0


def erase_elsewhere(user: User) -> None:
    try:
        services.erase(user=user)
    finally:
        connection.close()


def test_the_password_erases_the_account_with_all_that_is_its_and_signs_out(alice: User, as_alice: Client) -> None:
    elsewhere = Client()
    elsewhere.force_login(alice)
    everything_of(alice)
    bobs = alert("150.00", owner="bob")
    assert set(rows_of(alice.pk)) >= {"alerts", "decisions", "notifications", "sessions", "account mails"}
    answer = as_alice.post("/account/erase", {"password": PASSWORD}, follow=True)
    assert "Your account is erased" in page(answer).words
    assert not User.objects.filter(pk=alice.pk).exists()
    assert rows_of(alice.pk) == {}
    assert list(Alert.objects.all()) == [bobs]
    for client in (as_alice, elsewhere):
        assert client.get("/account")["Location"].startswith("/sign-in")
    assert not Session.objects.filter(user=alice.pk).exists()
    assert mails() == []  # neither the alert's nor the link, though both had been decided on
    assert not Delivery.objects.exists()
    assert not DeadLetter.objects.exists()


@pytest.mark.parametrize("password", ["", "wrong", PASSWORD + " "])
def test_without_the_password_nothing_goes(alice: User, as_alice: Client, password: str) -> None:
    answer = as_alice.post("/account/erase", {"password": password})
    assert answer.status_code == 200
    (field,) = [tag for tag in page(answer).all("input") if tag["name"] == "password"]
    assert field["aria-describedby"] == "id_password_error"
    assert User.objects.filter(pk=alice.pk).exists()


def test_guessing_the_password_here_is_counted_as_signing_in_is(as_alice: Client) -> None:
    for _ in range(6):
        answer = as_alice.post("/account/erase", {"password": "wrong"})
    assert "That was wrong too often." in page(answer).words
    assert "That was wrong too often." in page(as_alice.post("/account/erase", {"password": PASSWORD})).words
    assert User.objects.exists()


def test_it_is_all_or_nothing(alice: User, monkeypatch: pytest.MonkeyPatch) -> None:
    everything_of(alice)
    before = rows_of(alice.pk)

    def fail(self: User, *_: Any, **__: Any) -> None:
        Alert.objects.filter(user=self).delete()
        raise RuntimeError("in the middle")

    monkeypatch.setattr(User, "delete", fail)
    with pytest.raises(RuntimeError):
        services.erase(user=alice)
    assert rows_of(alice.pk) == before


def test_whoever_looks_after_the_site_has_that_taken_away_first(alice: User, as_alice: Client) -> None:
    User.objects.update(is_staff=True)
    answer = as_alice.post("/account/erase", {"password": PASSWORD})
    assert "Have another operator take that from you first." in page(answer).words
    assert User.objects.exists()


def test_who_once_worked_in_the_admin_stays_in_its_log_as_a_number(alice: User) -> None:
    everything_of(alice)
    kind = ContentType.objects.get_for_model(User)
    LogEntry.objects.create(user=alice, content_type=kind, object_id="7", object_repr="x", action_flag=ADDITION)
    services.erase(user=alice)
    assert LogEntry.objects.get().user_id == alice.pk
    assert rows_of(alice.pk) == {}
    left = User.objects.get(pk=alice.pk)
    assert (left.name, left.email, left.is_active) == ("", f"erased-{alice.pk}@invalid", False)
    assert not left.has_usable_password()
    assert mails() == []


def test_the_address_can_be_used_for_a_new_account(alice: User) -> None:
    services.erase(user=alice)
    Client().post("/sign-up", {"email": alice.email, "password1": "claret-and-port"})
    assert [message.subject for message in mails()] == ["Confirm your address"]


def test_the_admin_erases_as_the_page_does(alice: User) -> None:
    everything_of(alice)
    charlie = Client()
    charlie.force_login(with_app(User.objects.create_superuser("charlie@winecellar.example")))
    kind = ContentType.objects.get_for_model(User)
    LogEntry.objects.create(user=alice, content_type=kind, object_id="7", object_repr="x", action_flag=ADDITION)
    charlie.post(f"/admin/accounts/user/{alice.pk}/delete/", {"post": "yes"})
    assert LogEntry.objects.filter(user=alice).exists()
    assert not User.objects.filter(email=alice.email).exists()
    assert rows_of(alice.pk) == {}


def test_the_admin_erases_no_operator_and_not_many_at_once(alice: User) -> None:
    User.objects.update(is_staff=True)
    charlie = Client()
    charlie.force_login(with_app(User.objects.create_superuser("charlie@winecellar.example")))
    assert charlie.post(f"/admin/accounts/user/{alice.pk}/delete/", {"post": "yes"}).status_code == 403
    chosen = {"action": "delete_selected", "_selected_action": [alice.pk], "post": "yes"}
    charlie.post("/admin/accounts/user/", chosen)
    assert User.objects.filter(pk=alice.pk).exists()


# --- While the worker works: fault F36 ---------------------------------------------------------------------------


class Provider:
    """A mail server that takes a mail, and says so only when it is let."""

    def __init__(self, patch: pytest.MonkeyPatch) -> None:
        self.began, self.go = threading.Event(), threading.Event()
        self.log: list[str] = []
        real = locmem.EmailBackend.send_messages

        def send(backend: Any, messages: Any) -> int:
            self.began.set()
            assert self.go.wait(PATIENCE)
            self.log.extend(message.subject for message in messages)
            return int(real(backend, messages))

        patch.setattr(locmem.EmailBackend, "send_messages", send)


def in_thread(work: Any) -> tuple[threading.Thread, list[BaseException]]:
    failed: list[BaseException] = []

    def run() -> None:
        try:
            work()
        except BaseException as error:
            failed.append(error)
        finally:
            connections.close_all()

    thread = threading.Thread(target=run)
    thread.start()
    return thread, failed


def test_of_mails_that_wait_none_is_sent_once_the_account_is_gone(alice: User, monkeypatch: pytest.MonkeyPatch) -> None:
    """Thirty mails are due; eight are with the provider when the account goes. Those may arrive, the others may not."""
    for number in range(30):
        alert(f"{160 + number}.00")
    price("150.00")
    drain(["alert-matching"])
    assert Notification.objects.count() == 30
    provider = Provider(monkeypatch)
    worker, failed = in_thread(lambda: drain(["notification-delivery"]))
    assert provider.began.wait(PATIENCE)
    services.erase(user=alice)
    at_the_provider = 8
    provider.go.set()
    worker.join(PATIENCE)
    assert not worker.is_alive()
    assert failed == []
    assert len(provider.log) <= at_the_provider
    drain()
    assert len(provider.log) <= at_the_provider
    assert not Delivery.objects.exists()
    assert not DeadLetter.objects.exists()
    assert rows_of(alice.pk) == {}


def test_one_claimed_before_and_sent_after_is_settled_without_a_trace(
    alice: User, monkeypatch: pytest.MonkeyPatch
) -> None:
    alert("160.00")
    price("150.00")
    drain(["alert-matching"])
    provider = Provider(monkeypatch)
    worker, failed = in_thread(lambda: drain(["notification-delivery"]))
    assert provider.began.wait(PATIENCE)
    services.erase(user=alice)
    provider.go.set()
    worker.join(PATIENCE)
    assert failed == []
    assert not Delivery.objects.filter(subscription__name="notification-delivery").exists()
    assert not Notification.objects.exists()
    price("140.00", minutes=1)
    drain()
    assert len(provider.log) == 1


def test_erasing_while_matching_decides_leaves_no_orphan_and_fails_neither(
    alice: User, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Matching holds the alert and has not written yet; erasure waits for it, and takes what it wrote along."""
    from alerts.decided import Decided

    alert("160.00")
    price("150.00")
    holds, go = threading.Event(), threading.Event()
    real = Decided.write

    def write_when_let(decided: Decided) -> None:
        holds.set()
        assert go.wait(PATIENCE)
        real(decided)

    monkeypatch.setattr(Decided, "write", write_when_let)
    worker, worker_failed = in_thread(lambda: drain(["alert-matching"]))
    assert holds.wait(PATIENCE)
    erasing, erasing_failed = in_thread(lambda: services.erase(user=alice))
    wait_until_one_waits_for_a_lock()
    go.set()
    worker.join(PATIENCE)
    erasing.join(PATIENCE)
    assert (worker_failed, erasing_failed) == ([], [])
    assert rows_of(alice.pk) == {}
    assert not Decision.objects.exists()
    assert mails() == []
    assert not DeadLetter.objects.exists()


def wait_until_one_waits_for_a_lock() -> None:
    import time

    end = time.monotonic() + PATIENCE
    while time.monotonic() < end:
        with connection.cursor() as cursor:
            cursor.execute(
                "SELECT count(*) FROM pg_stat_activity WHERE datname = current_database() AND wait_event_type = 'Lock'"
            )
            if cursor.fetchone()[0]:
                return
        time.sleep(0.01)
    raise AssertionError("nobody waited for a lock")


def test_an_alert_made_while_the_account_goes_is_refused_or_goes_too(alice: User) -> None:
    """Both lock the person: whoever is second finds what the first left."""
    seller, bottles = merchant(), [wine(str(number)) for number in range(6)]
    assert seller
    from alerts.services import Wish, create_alert
    from tests.cast import NOW

    barrier = threading.Barrier(7)
    errors: list[BaseException] = []

    def watch(bottle: Any) -> None:
        barrier.wait(PATIENCE)
        try:
            create_alert(user=alice, wine=bottle, wish=Wish(target=Decimal(5)), now=NOW)
        except User.DoesNotExist:
            pass
        except BaseException as error:
            errors.append(error)

    def erase() -> None:
        barrier.wait(PATIENCE)
        services.erase(user=alice)

    threads = [in_thread(lambda bottle=bottle: watch(bottle)) for bottle in bottles] + [in_thread(erase)]
    for thread, failed in threads:
        thread.join(PATIENCE)
        assert failed == []
    assert errors == []
    assert rows_of(alice.pk) == {}
    drain()

    assert not User.objects.filter(pk=alice.pk).exists()
