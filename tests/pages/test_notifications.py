"""The notifications centre and the settings of how one is told."""

import re
from datetime import timedelta
from typing import Any
from unittest.mock import ANY

import pytest
from django.db import connection
from django.test import Client
from django.test.utils import CaptureQueriesContext
from django.utils import timezone

from alerts import centre
from alerts.channels import services
from alerts.channels.models import AtomFeed, Channel, ChannelDelivery
from alerts.models import Digest, MailWish, Notification
from tests.cast import NOW, alert, person, wine
from winecellar.accounts.models import User

pytestmark = pytest.mark.django_db(transaction=True)
SETTINGS = "/account/notifications"
SECRET = re.compile(r"whsec_[A-Za-z0-9+/=]{40,}")
FEED = re.compile(r"/alerts/feed/([\w-]{43})")


def told(count: int = 1, *, owner: str = "alice", first: int = 0) -> list[Notification]:
    watch = alert("160.00", owner=owner, wine=wine(f"{owner}{first}"))
    return Notification.objects.bulk_create(
        Notification(
            alert=watch,
            event_id=f"evt_{owner}_{number}",
            new_price="154.00",
            target="160.00",
            merchant_name="Merchant X",
            occurred_at=NOW,
            created_at=NOW + timedelta(minutes=number // 3),  # some at the same time, as matching writes them
        )
        for number in range(first, first + count)
    )


def week(user: User, *, minutes: int = 0) -> Digest:
    at = NOW + timedelta(minutes=minutes)
    monday = at.date() + timedelta(weeks=minutes)  # one for each week, whenever it was made
    return Digest.objects.create(user=user, monday=monday, facts={}, created_at=at)


def channel(user: User, path: str = "") -> Channel:
    return services.add_webhook(user_id=user.pk, url=f"https://hooks.example.org/in{path}", now=NOW)[0]


def text(client: Client, url: str = "/notifications") -> str:
    answer = client.get(url)
    assert answer.status_code == 200
    return answer.content.decode()


# --- The centre -------------------------------------------------------------------------------------------------


def test_each_thing_told_stands_there_with_its_ways_and_their_states(alice: User, as_alice: Client) -> None:
    (row,) = told()
    Notification.objects.filter(pk=row.pk).update(state="sent", settled_at=NOW)
    ChannelDelivery.objects.create(channel=channel(alice), notification=row, answer="answered 503", tries=1)
    week(alice)
    page = text(as_alice)
    assert "$154.00 at Merchant X, below your $160.00" in page
    assert "Mail: handed to the mail server" in page
    assert "hooks.example.org: on its way: answered 503" in page
    assert "Your week" in page


def test_it_holds_nothing_of_others_and_a_stranger_signs_in_first(as_alice: Client, stranger: Client) -> None:
    told(owner="bob")
    week(person("bob"))
    assert "Nothing yet" in text(as_alice)
    assert stranger.get("/notifications")["Location"].startswith("/sign-in?")


def test_every_page_shows_how_much_is_unread_for_one_query_more(alice: User, as_alice: Client) -> None:
    def counting() -> list[str]:
        with CaptureQueriesContext(connection) as queries:
            as_alice.get("/wines/none")
            as_alice.get("/")
        return [query["sql"] for query in queries if "read_at" in query["sql"]]

    told(3)
    week(alice)
    assert len(counting()) <= 2
    assert re.search(r">Notifications <span[^>]*>4<", text(as_alice, "/"))
    told(120, first=10)
    assert re.search(r">Notifications <span[^>]*>99\+<", text(as_alice, "/"))


def test_nobody_is_counted_for_who_is_not_signed_in(stranger: Client) -> None:
    with CaptureQueriesContext(connection) as queries:
        stranger.get("/")
    assert not [query for query in queries if "read_at" in query["sql"]]


def test_marking_marks_what_was_shown_and_not_what_came_since(alice: User, as_alice: Client) -> None:
    told(2)
    week(alice)
    until = as_alice.get("/notifications").context["until"]
    (late,) = told(1, first=50)
    Notification.objects.filter(pk=late.pk).update(created_at=timezone.now())
    told(1, owner="bob")
    as_alice.post("/notifications/read", {"until": until})
    assert centre.unread(user_id=alice.pk) == 1
    assert Notification.objects.filter(read_at=None).count() == 2
    as_alice.post("/notifications/read", {"until": "not a time"})
    assert centre.unread(user_id=alice.pk) == 0
    assert centre.unread(user_id=person("bob").pk) == 1


def test_marking_is_by_post_alone(as_alice: Client) -> None:
    assert as_alice.get("/notifications/read").status_code == 405


def test_its_pages_hold_everything_once_in_order_and_cost_the_same_queries(alice: User, as_alice: Client) -> None:
    told(70)
    for minutes in (-1, 7, 500):
        week(alice, minutes=minutes)
    expected = [("alert", pk) for pk in Notification.objects.values_list("pk", flat=True)]
    expected += [("digest", pk) for pk in Digest.objects.values_list("pk", flat=True)]
    seen, cursor, counts = [], "", set()
    for _ in range(10):  # pages: an end that never comes would be a fault too
        with CaptureQueriesContext(connection) as queries:
            page = as_alice.get("/notifications", {"before": cursor} if cursor else {}).context["page"]
        counts.add(len(queries))
        seen += [(entry.kind, entry.pk) for entry in page.entries]
        if page.older is None:
            break
        cursor = page.older
    assert sorted(seen) == sorted(expected)
    times = [
        entry.created_at
        for entry in [
            Notification.objects.get(pk=pk) if kind == "alert" else Digest.objects.get(pk=pk) for kind, pk in seen
        ]
    ]
    assert times == sorted(times, reverse=True)
    assert max(counts) <= 8


@pytest.mark.parametrize(
    "cursor",
    [
        "x",
        "2026-03-14T09:12:04_alert_1",
        "2026-99-14T09:12:04+00:00_alert_1",
        "\x00",
        "2026-03-14T09:12:04+00:00_alert_" + "9" * 18,
        "٢",
    ],
)
def test_an_odd_cursor_is_no_error(as_alice: Client, cursor: str) -> None:
    told(2)
    assert as_alice.get("/notifications", {"before": cursor}).status_code in {200, 400}


def test_a_channel_that_was_switched_off_for_failing_is_said_and_ones_own_doing_is_not(
    alice: User, as_alice: Client
) -> None:
    broken, own = channel(alice), channel(alice, "2")
    Channel.objects.filter(pk=broken.pk).update(off_at=NOW, off_because="It did not take 3 notifications in a row.")
    services.switch_off(channel=own, now=NOW)
    page = text(as_alice)
    assert page.count("is switched off") == 1
    assert "It did not take 3 notifications in a row." in page


# --- The settings -----------------------------------------------------------------------------------------------


def test_a_webhooks_secret_is_shown_once_and_never_kept_in_the_browser(as_alice: Client) -> None:
    answer = as_alice.post(f"{SETTINGS}/channels", {"address": "https://hooks.example.org/in?key=very-secret"})
    assert SECRET.search(answer.content.decode())
    assert "no-store" in answer["Cache-Control"]
    assert not any("whsec" in cookie.value for cookie in answer.cookies.values())
    again = text(as_alice, SETTINGS)
    assert not SECRET.search(again)
    assert "very-secret" not in again
    assert "hooks.example.org" in again


@pytest.mark.parametrize(
    ("address", "says"),
    [
        ("", "This field is required"),
        ("http://hooks.example.org/", "starts with https://"),
        ("https://127.0.0.1/", "not on the public internet"),
        ("https://169.254.169.254/latest", "not on the public internet"),
        ("file:///etc/passwd", "begins with discord://"),
        ("tgram://nonsense", "no address of Telegram"),
        ("x" * 700, "at most 600"),
        ("https://hooks.example.org/\x00", "Null characters"),
    ],
)
def test_an_address_that_cannot_be_had_is_told_next_to_the_field_and_kept(
    as_alice: Client, address: str, says: str
) -> None:
    answer = as_alice.post(f"{SETTINGS}/channels", {"address": address})
    assert answer.status_code == 200
    page = answer.content.decode()
    assert says in page
    assert 'class="error"' in page
    assert not Channel.objects.exists()


def test_a_service_is_added_by_its_apprise_address(as_alice: Client) -> None:
    as_alice.post(f"{SETTINGS}/channels", {"address": "ntfy://my-wines"})
    assert (Channel.objects.get().kind, str(Channel.objects.get())) == ("apprise", "ntfy.sh")
    assert "my-wines" not in text(as_alice, SETTINGS)


def test_each_button_does_what_it_says(alice: User, as_alice: Client) -> None:
    mine = channel(alice)

    def press(action: str) -> Any:
        answer = as_alice.post(f"{SETTINGS}/channels/{mine.pk}/{action}")
        mine.refresh_from_db()
        return answer

    press("test")
    assert ChannelDelivery.objects.get().notification is None
    sealed = mine.sealed_secret
    assert SECRET.search(press("secret").content.decode())
    assert (mine.sealed_old_secret, mine.sealed_secret) == (sealed, ANY)
    assert mine.sealed_secret != sealed
    press("off")
    assert mine.off_because == "You switched it off."
    press("on")
    assert mine.off_at is None
    as_alice.post(f"{SETTINGS}/channels/{mine.pk}/remove")
    assert not Channel.objects.exists()
    assert as_alice.post(f"{SETTINGS}/channels/{mine.pk}/test").status_code == 404


def test_another_persons_channel_is_404_and_so_is_an_odd_action(alice: User, as_alice: Client) -> None:
    theirs = channel(person("bob"))
    for action in ("test", "secret", "off", "on", "remove"):
        assert as_alice.post(f"{SETTINGS}/channels/{theirs.pk}/{action}").status_code == 404
    assert as_alice.post(f"{SETTINGS}/channels/{channel(alice).pk}/explode").status_code == 404
    assert as_alice.get(f"{SETTINGS}/channels/{theirs.pk}/remove").status_code == 405
    assert Channel.objects.filter(user=person("bob"), off_at=None).exists()


def test_mail_is_switched_off_and_on_by_its_boxes(alice: User, as_alice: Client) -> None:
    assert text(as_alice, SETTINGS).count(" checked") == 2
    as_alice.post(f"{SETTINGS}/mail", {"alerts": "on"})
    wish = MailWish.objects.get(pk=alice.pk)
    assert (wish.alerts_off_at, wish.digest_off_at is None) == (None, False)
    assert text(as_alice, SETTINGS).count(" checked") == 1
    as_alice.post(f"{SETTINGS}/mail", {"alerts": "on", "digest": "on"})
    assert text(as_alice, SETTINGS).count(" checked") == 2


def test_the_feeds_address_is_shown_once_made_anew_and_closed(as_alice: Client) -> None:
    first = FEED.search(as_alice.post(f"{SETTINGS}/feed").content.decode())
    assert first is not None
    assert not FEED.search(text(as_alice, SETTINGS))
    assert Client().get(first[0]).status_code == 200
    second = FEED.search(as_alice.post(f"{SETTINGS}/feed").content.decode())
    assert second is not None
    assert second[1] != first[1]
    as_alice.post(f"{SETTINGS}/feed/close")
    assert not AtomFeed.objects.exists()


def test_the_settings_cost_a_bounded_number_of_queries(alice: User, as_alice: Client) -> None:
    for number in range(5):
        services.send_test(channel=channel(alice, str(number)), now=NOW)
    with CaptureQueriesContext(connection) as queries:
        page = text(as_alice, SETTINGS)
    assert len(queries) <= 7
    assert "These are as many as there can be" in page


def test_without_csrf_nothing_changes(alice: User) -> None:
    client = Client(enforce_csrf_checks=True)
    client.force_login(alice)
    for path in ("channels", "mail", "feed", "feed/close"):
        assert client.post(f"{SETTINGS}/{path}").status_code == 403
    assert client.post("/notifications/read").status_code == 403
