"""The pages about accounts: well-formed, one's own only, and closed to forged forms."""

import pytest
import structlog
from django.core.management import call_command
from django.test import Client, override_settings

from tests.accounts.conftest import PASSWORD
from tests.cast import alert, person, with_app
from tests.pages.html import Page
from winecellar.accounts import checks, letters, words
from winecellar.accounts.letters import LETTERS
from winecellar.accounts.models import User

FOR_STRANGERS = [
    "/sign-in",
    "/sign-in?next=/alerts",
    "/sign-in/closed",
    "/sign-up",
    "/sign-up/look-into-your-mail",
    "/new-password",
    "/new-password/look-into-your-mail",
    "/new-password/done",
]
OWN = ["/account", "/account/address", "/account/password", "/account/it-is-you", "/account/second-factor"]
OWN += ["/account/erase", "/account/second-factor/add", "/account/recovery-codes", "/account/recovery-codes/new"]
FORMS = ["/sign-in", "/sign-up", "/new-password"]
OWN_FORMS = ["/account/address", "/account/password", "/account/erase", "/account/it-is-you", "/sign-out"]


@pytest.mark.django_db
@pytest.mark.parametrize("path", FOR_STRANGERS)
def test_a_strangers_page_is_well_formed(stranger: Client, path: str) -> None:
    answer = stranger.get(path)
    assert answer.status_code == 200
    assert Page(answer.content.decode()).faults == []


@pytest.mark.django_db
@pytest.mark.parametrize("path", FORMS)
def test_a_form_with_nothing_in_it_says_what_to_do_beside_each_field(stranger: Client, path: str) -> None:
    page = Page(stranger.post(path, {}).content.decode())
    assert page.faults == []
    fields = [tag for tag in page.all("input") if tag.get("type") in ("email", "password")]
    assert fields
    assert all(field["aria-invalid"] == "true" and "_error" in field["aria-describedby"] for field in fields)


@pytest.mark.django_db
def test_ones_own_pages_are_well_formed_in_every_standing(alice: User) -> None:
    for user in (alice, person("dora", confirmed=False), with_app(person("eve"))):
        client = Client()
        user.set_password(PASSWORD)
        user.save()
        client.force_login(user)
        client.post("/account/it-is-you", {"password": PASSWORD})
        client.post("/account/address", {"email": f"new-{user.pk}@winecellar.example", "action_add": "1"})
        for path in OWN:
            answer = client.get(path, follow=True)
            assert answer.status_code in (200, 404), path  # recovery codes of whoever has none
            assert Page(answer.content.decode()).faults == [], (user, path)


@pytest.mark.django_db
@pytest.mark.parametrize("path", [*OWN, "/account/data", "/account/recovery-codes/file", "/account/it-is-you/code"])
def test_a_stranger_is_led_to_sign_in(stranger: Client, path: str) -> None:
    answer = stranger.get(path, follow=True)
    assert answer.redirect_chain[-1][0].startswith("/sign-in")


@pytest.mark.django_db
def test_no_page_about_an_account_can_be_asked_of_another(as_alice: Client) -> None:
    """None takes an id; what others have is a 404, whatever the method."""
    bob = person("bob")
    one = alert("150", owner="bob")
    for path in (f"/account/{bob.pk}", f"/account/{bob.pk}/data", "/account/address/bob", f"/alerts/{one.pk}/delete"):
        for method in (as_alice.get, as_alice.post, as_alice.delete):
            assert method(path).status_code in ({404, 405} if path.endswith("/delete") else {404}), path
    assert as_alice.post(f"/alerts/{one.pk}/delete").status_code == 404
    assert as_alice.get(f"/alerts/{one.pk}").status_code == 404


@pytest.mark.django_db
@pytest.mark.parametrize("path", FORMS)
def test_a_strangers_form_without_its_token_is_refused(path: str) -> None:
    assert Client(enforce_csrf_checks=True).post(path, {"login": "a@b.example"}).status_code == 403


@pytest.mark.django_db
@pytest.mark.parametrize("path", OWN_FORMS)
def test_ones_own_form_without_its_token_is_refused(alice: User, path: str) -> None:
    client = Client(enforce_csrf_checks=True)
    client.force_login(alice)
    form = {"password": PASSWORD, "oldpassword": PASSWORD, "password1": "another-long-one"}
    assert client.post(path, form).status_code == 403
    assert User.objects.get(pk=alice.pk).check_password(PASSWORD)


@pytest.mark.django_db
def test_a_token_from_before_signing_in_is_refused_after_it(alice: User) -> None:
    client = Client(enforce_csrf_checks=True)
    fields = {tag["name"]: tag for tag in Page(client.get("/sign-in").content.decode()).all("input")}
    token = fields["csrfmiddlewaretoken"]["value"]
    sent = {"login": alice.email, "password": PASSWORD, "csrfmiddlewaretoken": token}
    assert client.post("/sign-in", sent).status_code == 302
    assert client.post("/account/erase", {"password": PASSWORD, "csrfmiddlewaretoken": token}).status_code == 403


@pytest.mark.django_db
def test_asking_as_a_script_would_gets_the_page_all_the_same(stranger: Client) -> None:
    answer = stranger.get("/sign-in", headers={"Accept": "application/json", "X-Requested-With": "XMLHttpRequest"})
    assert answer["Content-Type"].startswith("text/html")


@pytest.mark.parametrize("kind", sorted(LETTERS))
def test_every_letter_can_be_written_and_says_where_to_go(kind: str) -> None:
    context = {"activate_url": "https://c.example/confirm-address/k", "password_reset_url": "https://c.example/r"}
    written = letters.write(kind, context)
    assert written.text.count("http") == 1
    assert written.html.count("<a href=") == 1
    assert "!" not in written.subject + written.text
    assert "None" not in written.text + written.html


def test_every_mail_and_message_that_allauth_may_ask_for_is_ours() -> None:
    """The names are read in its source, so that a new release cannot bring a mail without words."""
    import re
    from pathlib import Path

    import allauth

    root = Path(allauth.__file__).parent
    sources = [p for folder in ("account", "mfa") for p in (root / folder).rglob("*.py") if "tests" not in p.parts]
    asked = set(re.findall(r'"((?:account|mfa)/email/\w+)"', "\n".join(p.read_text() for p in sources)))
    of_no_use = {"account/email/login_code", "account/email/password_reset_code", "account/email/password_set"}
    of_no_use |= {"mfa/email/webauthn_added", "mfa/email/webauthn_removed"}
    assert asked - of_no_use == set(LETTERS)
    said = set(re.findall(r'"((?:account|mfa)/messages/\w+\.txt)"', "\n".join(p.read_text() for p in sources)))
    assert set(words.MESSAGES) <= said


def test_a_deployment_keeps_the_second_factor_and_counts_by_client() -> None:
    with override_settings(STAFF_NEED_SECOND_FACTOR=False):
        assert [found.id for found in checks.the_staff_needs_a_second_factor()] == ["accounts.E001"]
    assert list(checks.the_staff_needs_a_second_factor()) == []
    with override_settings(SECURE_PROXY_SSL_HEADER=("X", "https"), ALLAUTH_TRUSTED_PROXY_COUNT=0):
        assert [found.id for found in checks.attempts_are_counted_by_client()] == ["accounts.W001"]
    with override_settings(SECURE_PROXY_SSL_HEADER=("X", "https"), ALLAUTH_TRUSTED_PROXY_COUNT=1):
        assert list(checks.attempts_are_counted_by_client()) == []


@pytest.mark.django_db
def test_whoever_makes_a_superuser_answers_for_the_address() -> None:
    call_command("createsuperuser", email="charlie@winecellar.example", interactive=False)
    assert User.objects.get().address_is_confirmed


@pytest.mark.django_db
@pytest.mark.parametrize("path", ["/confirm-address/a-secret-key", "/new-password/1-a-secret-key"])
def test_a_links_key_is_not_in_the_log(stranger: Client, path: str) -> None:
    with structlog.testing.capture_logs() as lines:
        stranger.get(path)
    (line,) = [line for line in lines if line["event"] == "request"]
    assert line["path"] == path.replace("a-secret-key", "…")
    assert "a-secret-key" not in str(lines)


NASTY = [
    "\x00",
    "a\x00@b.example",
    "x" * 100_000,
    "’; DROP TABLE x; --",
    "<script>1</script>",
    "\ud83d",
    "a@b.example\r\nBcc: c@d.example",
]
FIELDS = ["login", "email", "password", "password1", "oldpassword", "code", "next", "action_add", "action_send"]


@pytest.mark.django_db
@pytest.mark.parametrize("path", [*FOR_STRANGERS, *OWN])
def test_nothing_that_anybody_sends_is_an_error_of_ours(alice: User, path: str) -> None:
    person_, stranger_ = Client(), Client()
    person_.force_login(alice)
    for nasty in NASTY:
        sent = dict.fromkeys(FIELDS, nasty.encode("utf-8", "surrogatepass").decode("latin-1"))
        for client in (person_, stranger_):
            assert client.post(path, sent).status_code < 500, nasty[:20]
            assert (
                client.get(path, {"next": nasty[:500].encode("utf-8", "surrogatepass"), "email": "x"}).status_code < 500
            )
