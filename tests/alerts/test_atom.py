"""The Atom feed: who may read it, what stands in it, and when it says that nothing is new."""

import xml.etree.ElementTree as ET
from datetime import timedelta
from typing import Any

import pytest
from django.core.cache import cache
from django.db import connection
from django.test import Client
from django.test.utils import CaptureQueriesContext

from alerts.channels import services
from alerts.models import Notification
from jobs.worker import drain
from tests.cast import NOW, alert, merchant, person, price, wine

pytestmark = pytest.mark.django_db(transaction=True)
ATOM = "{http://www.w3.org/2005/Atom}"


@pytest.fixture(autouse=True)
def _nothing_counted() -> Any:
    yield
    cache.clear()


def feed(name: str = "alice") -> str:
    return f"/alerts/feed/{services.open_feed(user_id=person(name).pk, now=NOW)}"


def told(count: int = 1, *, owner: str = "alice", **names: str) -> list[Notification]:
    watch = alert("160.00", owner=owner, wine=wine(owner, **names) if names else None)
    return Notification.objects.bulk_create(
        Notification(
            alert=watch,
            event_id=f"evt_{owner}_{number}",
            new_price="154.00",
            target="160.00",
            merchant_name="A & Söhne",
            occurred_at=NOW,
            created_at=NOW + timedelta(minutes=number),
        )
        for number in range(count)
    )


def test_an_entry_has_an_id_of_its_alert_and_event_for_ever_and_says_what_the_mail_says(settings: Any) -> None:
    settings.SITE_URL = "https://cellar.example"
    watch = alert("160.00")
    event = price("154.00", at=merchant("9", "A & Söhne"))
    drain(["alert-matching"])
    answer = Client().get(feed())
    assert answer["Content-Type"] == "application/atom+xml; charset=utf-8"
    root = ET.fromstring(answer.content)
    (entry,) = root.findall(f"{ATOM}entry")
    assert entry.findtext(f"{ATOM}id") == f"tag:cellar.example,2026:alert/{watch.pk}/{event.event_id}"
    assert entry.findtext(f"{ATOM}title") == "Ch. Montrose 2016 is $154.00 at A & Söhne, below your $160.00"
    assert entry.find(f"{ATOM}link").get("href") == "https://cellar.example/wines/wn_4417"  # type: ignore[union-attr]
    # What RFC 4287 asks of a feed: an id, a title, a time, an author, and where it is itself.
    assert all(root.findtext(f"{ATOM}{name}") for name in ("id", "title", "updated"))
    assert root.findtext(f"{ATOM}author/{ATOM}name") == "Winecellar"
    assert root.find(f"{ATOM}link[@rel='self']") is not None


def test_it_is_ones_own_and_bounded_and_the_newest_come_first(settings: Any) -> None:
    settings.ATOM_ENTRIES = 3
    told(5)
    told(2, owner="bob")
    with CaptureQueriesContext(connection) as queries:
        answer = Client().get(feed())
    entries = ET.fromstring(answer.content).findall(f"{ATOM}entry")
    assert [e.findtext(f"{ATOM}id", "").rpartition("/")[2] for e in entries] == [
        "evt_alice_4",
        "evt_alice_3",
        "evt_alice_2",
    ]
    assert sum("alerts_" in query["sql"] for query in queries) <= 5  # making the address among them


def test_whoever_has_the_newest_gets_304_until_something_changes() -> None:
    rows, address, client = told(2), feed(), Client()
    first = client.get(address)
    for headers in ({"If-None-Match": first["ETag"]}, {"If-Modified-Since": first["Last-Modified"]}):
        again = client.get(address, headers=headers)
        assert (again.status_code, again.content) == (304, b"")
        assert again["ETag"] == first["ETag"]
    Notification.objects.filter(pk=rows[0].pk).delete()
    assert client.get(address, headers={"If-None-Match": first["ETag"]}).status_code == 200
    assert client.head(address).status_code == 200
    assert client.post(address).status_code == 405


def test_no_searcher_and_no_shared_cache_keeps_it() -> None:
    answer = Client().get(feed())
    assert answer["X-Robots-Tag"] == "noindex, nofollow"
    assert answer["Cache-Control"] == "private, no-cache"
    assert not answer.cookies


@pytest.mark.parametrize("key", ["x", "a" * 43, "a" * 5_000, "%00", "%F0%9F%8D%B7", "..%2f"])
def test_an_address_that_is_nobodys_is_404(key: str) -> None:
    feed()
    assert Client().get(f"/alerts/feed/{key}").status_code == 404


def test_a_new_address_ends_the_old_one_and_closing_ends_both() -> None:
    old, new = feed(), feed()
    assert [Client().get(address).status_code for address in (old, new)] == [404, 200]
    services.close_feed(user_id=person().pk)
    assert Client().get(new).status_code == 404


def test_the_feed_of_somebody_who_left_is_404() -> None:
    address = feed()
    type(person()).objects.update(is_active=False)
    assert Client().get(address).status_code == 404


@pytest.mark.parametrize("rates", ["2/h/key", "2/h/ip"])
def test_asking_too_often_is_429_with_when_to_come_back(settings: Any, rates: str) -> None:
    settings.ATOM_RATES = rates
    address = feed()
    answers = [Client().get(address).status_code for _ in range(3)]
    assert answers == [200, 200, 429]
    assert int(Client().get(address)["Retry-After"]) > 0


def test_names_with_markup_and_control_letters_make_a_document_all_the_same() -> None:
    told(1, name="Evil\x0b\x1b ]]> <b>Cru</b> & \ud7ff\ufffe")
    (entry,) = ET.fromstring(Client().get(feed()).content).findall(f"{ATOM}entry")
    assert (entry.findtext(f"{ATOM}title") or "").startswith("Evil ]]> <b>Cru</b> &")


def test_the_token_is_not_in_the_log(caplog: pytest.LogCaptureFixture, capfd: pytest.CaptureFixture[str]) -> None:
    caplog.set_level("DEBUG")
    address = feed()
    Client().get(address)
    assert address.rpartition("/")[2] not in caplog.text + "".join(capfd.readouterr())
