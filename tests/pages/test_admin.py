"""People in the admin; alerts, decisions and mails to look at."""

import pytest
from django.test import Client

from alerts.models import Alert, Decision
from tests.cast import alert, with_app
from winecellar.accounts.models import User


@pytest.fixture
def charlie(db: None) -> Client:
    client = Client()
    client.force_login(with_app(User.objects.create_superuser("charlie@winecellar.example", "an-operators-password")))
    return client


def test_a_person_is_added_by_address_in_lower_case_with_a_password(charlie: Client) -> None:
    form = {"email": "Dora@Winecellar.example", "usable_password": "true"}
    form |= {"password1": "claret-and-port", "password2": "claret-and-port"}
    assert charlie.post("/admin/accounts/user/add/", form).status_code == 302
    dora = User.objects.get(email="dora@winecellar.example")
    assert dora.check_password("claret-and-port")
    assert not dora.is_staff


def test_an_address_is_taken_once_whatever_its_spelling(charlie: Client) -> None:
    form = {"email": "CHARLIE@winecellar.example", "usable_password": "true"}
    form |= {"password1": "claret-and-port", "password2": "claret-and-port"}
    response = charlie.post("/admin/accounts/user/add/", form)
    assert response.status_code == 200
    assert "already exists" in response.content.decode()
    assert User.objects.count() == 1


def test_people_are_listed_found_changed_and_given_a_password(charlie: Client) -> None:
    alert()
    person = User.objects.get(name="Alice")
    assert "alice@winecellar.example" in charlie.get("/admin/accounts/user/?q=alice").content.decode()
    page = f"/admin/accounts/user/{person.pk}"
    assert charlie.get(f"{page}/change/").status_code == 200
    assert (
        charlie.post(f"{page}/change/", {"email": "Alice@New.example", "name": "A", "is_active": "on"}).status_code
        == 302
    )
    passwords = {"usable_password": "true", "password1": "claret-and-port", "password2": "claret-and-port"}
    assert charlie.post(f"{page}/password/", passwords).status_code == 302
    person.refresh_from_db()
    assert person.email == "alice@new.example"
    assert person.check_password("claret-and-port")


def test_alerts_decisions_and_mails_can_be_read_and_not_changed(charlie: Client) -> None:
    one = alert()
    decision = Decision.objects.create(alert=one, event_id="evt_1", outcome="armed", reason="r")
    for name, pk, search in (
        ("alert", one.pk, "alice"),
        ("decision", decision.pk, "evt_1"),
        ("notification", None, "evt_1"),
    ):
        assert charlie.get(f"/admin/alerts/{name}/?q={search}").status_code == 200
        assert charlie.get(f"/admin/alerts/{name}/add/").status_code == 403
        if pk:
            assert charlie.get(f"/admin/alerts/{name}/{pk}/change/").status_code == 200
            assert charlie.post(f"/admin/alerts/{name}/{pk}/change/", {"state": "paused"}).status_code == 403
            assert charlie.post(f"/admin/alerts/{name}/{pk}/delete/", {"post": "yes"}).status_code == 403
    assert Alert.objects.get().state == "armed"
