"""Operators: what waits by state and age, one purchase with its evidence; acts have permission, reason and audit."""

from datetime import timedelta
from typing import Any

import pytest
from django.contrib.auth.models import Permission
from django.test import Client
from django.utils import timezone

from jobs.dead_letters.models import AuditEntry
from tests.cast import with_app
from tests.purchases.cast import at_once, buy, buyer, later, state_of, stock, upkeep_now, work
from winecellar.accounts.models import User
from winecellar.demo.payments_api import PaymentServer
from winecellar.demo.payments_script import PaymentScript
from winecellar.purchases import alarms
from winecellar.purchases.models import Purchase, StockItem
from winecellar.purchases.rules import State

pytestmark = pytest.mark.django_db(transaction=True)
HERE = "/admin/purchases/purchase/"


def operator(*permissions: str) -> Client:
    user = User.objects.create_user("charlie@winecellar.example", confirmed=True, is_staff=True)
    user.user_permissions.set(Permission.objects.filter(codename__in=["view_purchase", *permissions]))
    client = Client()
    client.force_login(with_app(user))
    return client


@pytest.fixture
def unclear(provider: PaymentServer) -> Purchase:
    """Charged, as the provider knows and nobody here."""
    provider.script = PaymentScript("confirm: taken-reset; look: 503*60")
    purchase = buy(buyer(provider), stock(1))
    work()
    at_once()
    work()
    for _ in range(2):
        later(purchase, hours=25)
        upkeep_now()
    provider.script = PaymentScript()
    assert state_of(purchase) is State.CHARGE_UNCLEAR
    return purchase


def test_the_list_says_what_is_under_way_and_the_case_shows_its_evidence(unclear: Purchase) -> None:
    client = operator()
    page = client.get(f"{HERE}?standing=person").content.decode()
    assert "charge_unclear" in page and "docs/runbooks/purchases.md" in page and unclear.reference in page
    case = client.get(f"{HERE}{unclear.pk}/change/").content.decode()
    for evidence in (
        f"{unclear.reference}-charge",
        unclear.customer_id,
        "charge_purchase",
        "no answer",
        "patience_over",
    ):
        assert evidence in case, evidence
    assert "Compensate" not in case, "who may only look is offered nothing"
    assert client.get(f"{HERE}999999/change/").status_code == 404
    assert client.get(f"{HERE}{'9' * 30}/change/").status_code == 404


@pytest.mark.parametrize(
    ("act", "end"), [("compensate", State.REFUNDED), ("resume", State.COMPLETED), ("resolve", State.RESOLVED)]
)
def test_each_act_has_its_own_permission_asks_why_and_stands_on_the_audit_log(
    unclear: Purchase, act: str, end: State
) -> None:
    others = [f"{name}_purchase" for name in ("compensate", "resume", "resolve") if name != act]
    address = f"{HERE}{unclear.pk}/act/{act}/"
    client = operator(*others)
    assert client.post(address, {"note": "x"}).status_code == 403
    User.objects.get(email="charlie@winecellar.example").user_permissions.add(
        Permission.objects.get(codename=f"{act}_purchase")
    )
    assert client.get(address).status_code == 200
    assert client.post(address, {"note": "  "}).status_code == 200
    assert state_of(unclear) is State.CHARGE_UNCLEAR
    # The audit log outlives the tests: nothing can empty it.
    entries = AuditEntry.objects.filter(action__startswith="purchase-", selection=f"purchase {unclear.reference}")
    assert not entries.exists()
    assert client.post(address, {"note": "The bank says so."}).status_code == 302
    (entry,) = entries
    assert entry.action == f"purchase-{act}"
    assert (entry.note, entry.details["purchase_id"], entry.letter_ids) == ("The bank says so.", unclear.pk, [])
    work(waits=True)
    assert state_of(unclear) is end
    assert client.post(address, {"note": "again"}).status_code == 200, "what has ended is refused in words"
    assert entries.count() == 1


def test_two_who_decide_at_once_decide_once(unclear: Purchase) -> None:
    client = operator("compensate_purchase")
    address = f"{HERE}{unclear.pk}/act/compensate/"
    assert client.post(address, {"note": "a"}).status_code == 302
    answer = client.post(address, {"note": "a"})
    assert answer.status_code == 200
    assert "being undone already" in answer.content.decode()


def test_the_alarms_tell_of_what_waits_for_a_person_and_of_what_does_not_move(unclear: Purchase) -> None:
    now = timezone.now()
    (page,) = alarms.look(now)
    assert (page.alarm, page.severity) == ("purchase-needs-person", "page")
    assert page.summary.startswith("1 purchase waits for a person, the first for")
    Purchase.objects.update(state=State.NOTIFYING, changed_at=now - timedelta(minutes=61))
    (slow,) = alarms.look(now)
    assert (slow.alarm, slow.subject) == ("purchase-slow", "notifying")
    Purchase.objects.update(changed_at=now - timedelta(minutes=59))
    assert list(alarms.look(now)) == []


def test_an_incident_about_purchases_leads_to_their_page_and_runbook(unclear: Purchase) -> None:
    from jobs.alarms import evaluation
    from jobs.alarms.pages import address_of, page_of
    from jobs.models import Incident

    assert evaluation.evaluate(timezone.now())
    incident = Incident.objects.get(alarm="purchase-needs-person")
    assert page_of(incident.alarm) == "docs/runbooks/purchases.md"
    assert address_of(incident) == ["/admin/purchases/purchase/?standing=open"]


def test_stock_is_set_in_the_admin_and_by_command_and_never_below_what_is_reserved(provider: PaymentServer) -> None:
    from django.core.management import CommandError, call_command

    item = stock(5)
    buy(buyer(provider), item, 3)
    client = operator("change_stockitem", "view_stockitem", "add_stockitem")
    page = f"/admin/purchases/stockitem/{item.pk}/change/"
    form: dict[str, Any] = {"on_hand": 2, "price": "150.00", "currency": "USD"}
    assert client.post(page, form).status_code == 200
    assert client.post(page, {**form, "on_hand": 4, "currency": "XXX"}).status_code == 200
    assert client.post(page, {**form, "on_hand": 4}).status_code == 302
    item.refresh_from_db()
    assert (item.on_hand, item.reserved, str(item.price)) == (4, 3, "150.00")
    call_command("set_stock", "mch_082", "wn_4417", "9", "149.00", verbosity=0)
    assert StockItem.objects.get().on_hand == 9
    for wrong in (
        ["mch_x", "wn_4417", "9", "1"],
        ["mch_082", "wn_4417", "2", "1"],
        ["mch_082", "wn_4417", "9", "x"],
        ["mch_082", "wn_4417", "9", "10.50", "--currency", "JPY"],
    ):
        with pytest.raises(CommandError):
            call_command("set_stock", *wrong)
