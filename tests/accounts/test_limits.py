"""How often anything may be tried, counted in the database for all processes together."""

import http.client
import re
import threading
from collections import Counter
from pathlib import Path
from typing import Any
from urllib.parse import urlencode

import pytest
from django.core.cache import cache
from django.db import connection
from django.test import Client

from tests.accounts.conftest import PASSWORD, link_in, mails
from tests.feeds.server import Server
from tests.pages.html import Page
from winecellar.accounts.models import CacheEntry, User

pytestmark = pytest.mark.django_db(transaction=True)
PER_HOUR = 20  # sign-ups from one address, as settings.ACCOUNT_RATE_LIMITS has it


@pytest.fixture(autouse=True)
def _empty() -> None:
    cache.clear()


def words(response: Any) -> str:
    return Page(response.content.decode()).words


def sign_up(number: int, **extra: Any) -> Any:
    form = {"email": f"person-{number}@winecellar.example", "password1": "claret-and-port"}
    return Client().post("/sign-up", form, **extra)


def wrong(email: str, **extra: Any) -> Any:
    return Client().post("/sign-in", {"login": email, "password": "wrong"}, **extra)


# --- Signing up --------------------------------------------------------------------------------------------------


def test_of_a_thousand_sign_ups_from_one_address_twenty_are_taken_and_the_rest_are_429() -> None:
    answers = [sign_up(number) for number in range(1_000)]
    assert Counter(answer.status_code for answer in answers) == {302: PER_HOUR, 429: 1_000 - PER_HOUR}
    assert User.objects.count() == PER_HOUR
    refused = answers[-1]
    assert refused["Retry-After"]
    assert "That was too often" in words(refused)
    assert Page(refused.content.decode()).faults == []
    assert sign_up(2_000, REMOTE_ADDR="192.0.2.7").status_code == 302  # others are not held up


def test_a_neighbourhood_of_ipv6_counts_as_one_address() -> None:
    answers = [sign_up(number, REMOTE_ADDR=f"2001:db8::{number:x}") for number in range(1, 30)]
    assert Counter(answer.status_code for answer in answers)[302] == PER_HOUR
    assert sign_up(99, REMOTE_ADDR="2001:db8:0:1::1").status_code == 302


@pytest.mark.processes
def test_the_count_holds_across_processes(tmp_path: Path) -> None:
    """A real server with two processes, and eight browsers at once."""
    server = Server(tmp_path / "server.log", WEB_CONCURRENCY="2", WEB_THREADS="4", STAFF_NEED_SECOND_FACTOR="true")
    statuses: list[int] = []

    def browse(name: str) -> None:
        for number in range(8):
            statuses.append(post_sign_up(server.port, f"{name}-{number}@winecellar.example"))

    try:
        threads = [threading.Thread(target=browse, args=(name,)) for name in "abcdefgh"]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join(120)
    finally:
        server.stop()
    assert Counter(statuses) == {302: PER_HOUR, 429: 64 - PER_HOUR}
    assert User.objects.count() == PER_HOUR


def post_sign_up(port: int, email: str) -> int:
    browser = http.client.HTTPConnection("127.0.0.1", port, timeout=60)
    try:
        browser.request("GET", "/sign-up")
        form = browser.getresponse()
        (token,) = re.findall(r'name="csrfmiddlewaretoken" value="(\w+)"', form.read().decode())
        cookie = str(form.headers["Set-Cookie"]).partition(";")[0]
        data = urlencode({"email": email, "password1": "claret-and-port", "csrfmiddlewaretoken": token})
        headers = {"Cookie": cookie, "Content-Type": "application/x-www-form-urlencoded"}
        browser.request("POST", "/sign-up", data, headers)
        return browser.getresponse().status
    finally:
        browser.close()


# --- Behind a proxy ----------------------------------------------------------------------------------------------


def test_a_forwarded_address_is_believed_only_as_far_as_our_proxies_reach(settings: Any) -> None:
    for number in range(PER_HOUR):
        sign_up(number, HTTP_X_FORWARDED_FOR=f"192.0.2.{number}")
    assert sign_up(98, HTTP_X_FORWARDED_FOR="192.0.2.98").status_code == 429  # nobody vouches for the header

    settings.ALLAUTH_TRUSTED_PROXY_COUNT = 1
    for number in range(PER_HOUR):
        made_up = f"203.0.113.{number}, 198.51.100.1"  # what the client wrote, and what our proxy added
        assert sign_up(100 + number, HTTP_X_FORWARDED_FOR=made_up).status_code == 302
    assert sign_up(198, HTTP_X_FORWARDED_FOR="203.0.113.99, 198.51.100.1").status_code == 429
    assert sign_up(199, HTTP_X_FORWARDED_FOR="203.0.113.99, 198.51.100.2").status_code == 302


@pytest.mark.parametrize("header", ["198.51.100.1", "", "nonsense"])
def test_a_header_shorter_than_our_proxies_is_no_error(settings: Any, header: str) -> None:
    settings.ALLAUTH_TRUSTED_PROXY_COUNT = 2
    assert sign_up(1, HTTP_X_FORWARDED_FOR=header).status_code == 302


# --- Signing in --------------------------------------------------------------------------------------------------


def test_five_wrong_passwords_lock_an_account_whichever_browser_they_come_from(alice: User) -> None:
    for number in range(5):
        assert "do not belong together" in words(wrong(alice.email, REMOTE_ADDR=f"192.0.2.{number}"))
    right = {"login": alice.email, "password": PASSWORD}
    client = Client()
    answer = client.post("/sign-in", right, REMOTE_ADDR="192.0.2.99")
    assert "That was wrong too often." in words(answer)
    assert "_auth_user_id" not in client.session
    assert "do not belong together" in words(wrong("nobody@winecellar.example", REMOTE_ADDR="192.0.2.99"))


def test_an_address_without_an_account_is_locked_alike(alice: User) -> None:
    answers = [words(wrong("nobody@winecellar.example", REMOTE_ADDR=f"192.0.2.{number}")) for number in range(6)]
    assert "That was wrong too often." in answers[-1]
    assert all("That was wrong too often." not in answer for answer in answers[:-1])


def test_another_spelling_or_host_is_not_counted_anew(alice: User, settings: Any) -> None:
    settings.ALLOWED_HOSTS = ["*"]
    hosts = ["testserver", "testserver:81", "testserver:82", "a.example", "b.example"]
    for number, host in enumerate(hosts):
        email = alice.email if number % 2 else alice.email.upper()
        wrong(email, REMOTE_ADDR=f"192.0.2.{number}", HTTP_HOST=host)
    assert "That was wrong too often." in words(wrong(alice.email, REMOTE_ADDR="192.0.2.99", HTTP_HOST="c.example"))


def test_signing_in_rightly_is_no_attempt(alice: User) -> None:
    for _ in range(8):
        assert Client().post("/sign-in", {"login": alice.email, "password": PASSWORD}).status_code == 302


def test_a_new_password_through_the_mail_ends_the_lockout(alice: User) -> None:
    for number in range(6):
        wrong(alice.email, REMOTE_ADDR=f"192.0.2.{number}")
    Client().post("/new-password", {"email": alice.email})
    (message,) = mails()
    browser = Client()
    browser.post(browser.get(link_in(message))["Location"], {"password1": "another-long-one"})
    client = Client()
    client.post("/sign-in", {"login": alice.email, "password": "another-long-one"})
    assert "_auth_user_id" in client.session


def test_the_lockout_ends_by_itself(alice: User) -> None:
    for number in range(6):
        wrong(alice.email, REMOTE_ADDR=f"192.0.2.{number}")
    CacheEntry.objects.update(expires_at="2026-01-01T00:00:00Z")
    assert Client().post("/sign-in", {"login": alice.email, "password": PASSWORD}).status_code == 302


def test_nobody_is_sent_reset_links_without_end(alice: User) -> None:
    answers = [
        Client().post("/new-password", {"email": alice.email}, REMOTE_ADDR=f"192.0.2.{n}").status_code for n in range(5)
    ]
    assert answers == [302, 302, 302, 429, 429]
    assert len(mails()) == 3


def test_counting_needs_no_disk_flush() -> None:
    with connection.cursor() as cursor:
        cursor.execute("SELECT relpersistence FROM pg_class WHERE relname = 'accounts_cacheentry'")
        assert cursor.fetchone() == ("u",)
