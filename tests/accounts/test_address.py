"""Changing the address: the old one stays until the new one is confirmed, and is told."""

from typing import Any

import pytest
from allauth.account.models import EmailAddress
from django.test import Client

from tests.accounts.conftest import PASSWORD, link_in, mails, with_password
from tests.cast import alert, person, price
from tests.pages.html import Page
from winecellar.accounts.models import User

pytestmark = pytest.mark.django_db(transaction=True)
NEW = "alice@new.example"


def page(response: Any) -> Page:
    return Page(response.content.decode())


def change_to(client: Client, email: str = NEW) -> Any:
    client.post("/account/it-is-you", {"password": PASSWORD})
    return client.post("/account/address", {"email": email, "action_add": "1"}, follow=True)


def test_the_old_address_stays_until_the_new_one_is_confirmed_and_is_told_then(alice: User, as_alice: Client) -> None:
    old = alice.email
    assert f"It changes to {NEW} once you have opened the link" in page(change_to(as_alice)).words
    alert("160.00")
    price("150.00")
    told = {message.subject: message.to for message in mails()}
    assert told.pop("Confirm your address") == [NEW]
    assert list(told.values()) == [[old]]  # the alert's mail
    link = "/confirm-address/" + confirmation_key(NEW)
    answer = as_alice.post(link, follow=True)
    assert f"{NEW} is confirmed." in page(answer).words
    alice.refresh_from_db()
    assert alice.email == NEW
    assert list(EmailAddress.objects.values_list("email", "primary", "verified")) == [(NEW, True, True)]
    assert [(message.to, message.subject) for message in mails()] == [([old], "Your account has another address now")]


def confirmation_key(email: str) -> str:
    from allauth.account.models import EmailConfirmationHMAC

    return EmailConfirmationHMAC(EmailAddress.objects.get(email=email)).key


def test_the_password_is_asked_for_first_and_what_was_typed_is_kept(as_alice: Client) -> None:
    asked = as_alice.post("/account/address", {"email": NEW, "action_add": "1"})
    assert asked["Location"] == "/account/it-is-you?next=%2Faccount%2Faddress"
    assert not EmailAddress.objects.filter(email=NEW).exists()
    as_alice.post(asked["Location"], {"password": PASSWORD, "next": "/account/address"})
    assert EmailAddress.objects.filter(email=NEW, verified=False, primary=False).exists()


def test_a_second_thought_replaces_the_first_whose_link_then_does_nothing(alice: User, as_alice: Client) -> None:
    change_to(as_alice, "mistyped@new.example")
    change_to(as_alice, NEW)
    links = {message.to[0]: link_in(message) for message in mails()}
    assert as_alice.post(links["mistyped@new.example"]).status_code == 400
    as_alice.post(links[NEW])
    alice.refresh_from_db()
    assert alice.email == NEW


def test_a_change_can_be_called_off(alice: User, as_alice: Client) -> None:
    change_to(as_alice)
    (message,) = mails()
    as_alice.post("/account/address", {"email": NEW, "action_remove": "1"})
    assert as_alice.post(link_in(message)).status_code == 400
    alice.refresh_from_db()
    assert alice.email == "alice@winecellar.example"


def test_who_mistyped_the_address_when_signing_up_gives_another(stranger: Client) -> None:
    stranger.post("/sign-up", {"email": "dora@mistyped.example", "password1": PASSWORD})
    stranger.post("/sign-in", {"login": "dora@mistyped.example", "password": PASSWORD})
    change_to(stranger, "dora@winecellar.example")
    link = {message.to[0]: link_in(message) for message in mails()}
    dora = User.objects.get()
    assert dora.email == "dora@mistyped.example"
    stranger.post(link["dora@winecellar.example"])
    dora = User.objects.get()
    assert (dora.email, dora.address_is_confirmed) == ("dora@winecellar.example", True)
    assert Client().post(link["dora@mistyped.example"]).status_code == 400


def test_an_address_of_somebody_else_is_not_taken_from_them_nor_told(alice: User, as_alice: Client) -> None:
    person("bob")
    answer = change_to(as_alice, "bob@winecellar.example")
    assert "We sent a link to bob@winecellar.example." in page(answer).words
    (message,) = mails()
    seen = Client().get(link_in(message))
    assert "This address is another account’s" in page(seen).words
    as_alice.post(link_in(message), follow=True)
    alice.refresh_from_db()
    assert alice.email == "alice@winecellar.example"


def test_an_address_that_another_account_never_confirmed_is_a_plain_refusal(alice: User, as_alice: Client) -> None:
    person("squatter", confirmed=False)
    change_to(as_alice, "squatter@winecellar.example")
    (message,) = mails()
    answer = as_alice.post(link_in(message), follow=True)
    assert answer.status_code == 200
    assert "belongs to another account" in page(answer).words
    alice.refresh_from_db()
    assert alice.email == "alice@winecellar.example"
    assert alice.address_is_confirmed


def test_what_somebody_wants_to_change_to_keeps_its_owner_from_nothing(as_alice: Client) -> None:
    change_to(as_alice, "dora@winecellar.example")
    mails()
    from django.core.cache import cache

    cache.clear()  # the link that just went there would make the next one wait
    Client().post("/sign-up", {"email": "dora@winecellar.example", "password1": PASSWORD})
    (message,) = mails()
    Client().post(link_in(message))
    assert User.objects.get(email="dora@winecellar.example").address_is_confirmed


def test_opening_the_link_while_signed_in_as_another_signs_that_one_out(alice: User, stranger: Client) -> None:
    stranger.post("/sign-up", {"email": "dora@winecellar.example", "password1": PASSWORD})
    (message,) = mails()
    browser = Client()
    browser.force_login(alice)
    browser.post(link_in(message))
    assert "_auth_user_id" not in browser.session


def test_an_operators_change_is_at_once_but_unconfirmed_and_mails_the_link(alice: User) -> None:
    from tests.cast import with_app

    charlie = Client()
    charlie.force_login(with_app(User.objects.create_superuser("charlie@winecellar.example")))
    form = {"email": "alice@new.example", "name": "Alice", "is_active": "on"}
    assert charlie.post(f"/admin/accounts/user/{alice.pk}/change/", form).status_code == 302
    alice = User.objects.get(pk=alice.pk)
    assert (alice.email, alice.address_is_confirmed) == (NEW, False)
    (message,) = mails()
    assert message.to == [NEW]
    Client().post(link_in(message))
    assert User.objects.get(pk=alice.pk).address_is_confirmed


def test_a_person_made_in_the_admin_confirms_their_address_as_any() -> None:
    from tests.cast import with_app

    charlie = Client()
    charlie.force_login(with_app(User.objects.create_superuser("charlie@winecellar.example")))
    form = {"email": "dora@winecellar.example", "usable_password": "true"}
    charlie.post("/admin/accounts/user/add/", form | {"password1": "claret-and-port", "password2": "claret-and-port"})
    assert not User.objects.get(email="dora@winecellar.example").address_is_confirmed
    assert [message.to for message in mails()] == [["dora@winecellar.example"]]


def test_an_address_becomes_ones_own_by_its_link_alone() -> None:
    """allauth has an action for it, which our page does not offer."""
    dora = with_password(person("dora", confirmed=False))
    client = Client()
    client.force_login(dora)
    change_to(client, NEW)
    client.post("/account/address", {"email": NEW, "action_primary": "1"})
    dora.refresh_from_db()
    assert dora.email == "dora@winecellar.example"
