"""The list of one's alerts and the page of each: states in words, the log, the actions; nobody else's."""

import re
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from decimal import Decimal
from typing import Any

import pytest
from django.test import Client
from django.utils import timezone

from alerts.models import Alert, Decision, Notification
from alerts.selectors import LOG_LENGTH
from jobs.models import LoggedMessage
from tests.cast import alert, merchant, person, wine
from tests.pages.html import Page

PROMISE = "Alert active. We check prices continuously; alerts arrive within 5 minutes of a price change."
ACTIONS = ["pause", "resume", "snooze", "delete", "restore"]
CountQueries = Callable[..., Any]
pytestmark = pytest.mark.usefixtures("cellar")


def page(client: Client, path: str = "/alerts") -> Page:
    response = client.get(path)
    assert response.status_code == 200
    return Page(response.content.decode())


def words(client: Client, path: str = "/alerts") -> str:
    return page(client, path).words.replace("\u00a0", " ")


def asked_again() -> list[dict[str, Any]]:
    return [message.body for message in LoggedMessage.objects.filter(type="alert.created").order_by("id")]


# --- The list ----------------------------------------------------------------------------------------------------


def test_the_promise_stands_once_under_the_heading_verbatim(as_alice: Client) -> None:
    alert("150")
    alert("140")
    assert words(as_alice).count(PROMISE) == 1
    assert f"My alerts {PROMISE} All 2 Watching 2" in words(as_alice)


def test_the_figure_in_the_promise_is_the_settings(as_alice: Client, settings: Any) -> None:
    settings.ALERT_PROMISE = timedelta(minutes=7)
    assert "alerts arrive within 7 minutes of a price change." in words(as_alice)


def test_without_alerts_the_page_teaches_the_next_step(as_alice: Client) -> None:
    seen = page(as_alice)
    assert "You watch no wine yet. Find one, say what you would pay" in seen.words
    assert {"class": "button", "href": "/wines"} in seen.all("a")
    assert PROMISE in seen.words


@pytest.mark.parametrize(
    ("state", "chip", "action"),
    [
        ("pending", "Checking…", "Change target"),
        ("armed", "Watching", "Change target"),
        ("fired", "Met", "See offers"),
        ("paused", "Paused", "Resume"),
    ],
)
def test_a_card_says_its_state_in_words_and_offers_one_action(
    as_alice: Client, state: str, chip: str, action: str
) -> None:
    alert("150.00", state=state)
    seen = words(as_alice)
    assert f"Ch. Montrose 2016 {chip} at any merchant Target $150.00 Now $160.00 Has to fall $10.00 (6 %)." in seen
    assert action in seen


def test_a_card_says_when_the_target_is_met_and_what_was_told(as_alice: Client) -> None:
    alert("160.00", state="fired")
    alert("165.00", merchant=merchant())
    seen = words(as_alice)
    assert "The price is at your target." in seen
    assert "You were told 14 Mar" in seen
    assert "only at Merchant X Target $165.00 Now $160.00 The price is below your target." in seen
    assert "Merchant X last changed its price" in seen


def test_a_card_of_one_merchant_compares_that_merchants_price(as_alice: Client) -> None:
    alert("150.00", merchant=merchant("083"))
    assert "only at La Cave du Pont Target $150.00 Now $168.00 Has to fall $18.00 (11 %)." in words(as_alice)


def test_a_card_of_a_wine_that_nobody_offers_says_so(as_alice: Client) -> None:
    alert("30", wine=wine("2"))
    alert("150", merchant=merchant("999", "Elsewhere"))
    seen = words(as_alice)
    assert "Target $30.00 Now – Nobody offers it now." in seen
    assert "Elsewhere does not offer it now." in seen


def test_the_bar_is_as_long_as_the_distance_and_full_at_thirty_per_cent(as_alice: Client) -> None:
    for target in ("136.00", "80.00", "160.00"):  # 15, 50 and 0 per cent below 160
        alert(target)
    bars = [tag for name, tag in page(as_alice).tags if name == "svg:rect" and tag["class"] == "fill"]
    assert [bar["width"] for bar in bars] == ["100", "100", "50"]  # the first is the whole bar, green: met


def test_others_alerts_are_not_listed(as_alice: Client) -> None:
    alert("123", owner="bob")
    assert "$123.00" not in words(as_alice)


def test_a_page_costs_the_same_with_a_thousand_alerts_and_the_next_begins_where_it_ended(
    as_alice: Client, django_assert_num_queries: CountQueries
) -> None:
    user, bottle = person(), wine()
    Alert.objects.bulk_create(
        Alert(user=user, wine=bottle, target=Decimal(number), state=Alert.State.ARMED) for number in range(1, 1_001)
    )
    with django_assert_num_queries(4 + 3):  # alerts, offers, history, counts; the session, who, their address
        seen = page(as_alice)
    targets = [f"Target ${number}.00 Now" for number in range(1_000, 970, -1)]
    assert [target in seen.words.replace("$1,000", "$1000") for target in targets] == [True] * 24 + [False] * 6
    assert "All 1000 Watching 1000" in seen.words
    (following,) = [link["href"] for link in seen.all("a") if link.get("rel") == "next"]
    Alert.objects.order_by("-pk")[:1].get().delete()  # meanwhile
    with django_assert_num_queries(5 + 3):  # and the alert that it begins behind
        later = words(as_alice, f"/alerts{following}")
    assert [target in later for target in targets] == [False] * 24 + [True] * 6
    assert "First page" in later


@pytest.mark.parametrize("after", ["abc", "0", "-1", "99999999999999999999", "१२", "%00"])
def test_a_place_that_is_none_is_the_beginning(as_alice: Client, after: str) -> None:
    alert("30")
    assert "Target $30.00" in words(as_alice, f"/alerts?after={after}")
    assert "Target $30.00" in words(as_alice, f"/alerts?show=nonsense&sort=%00&after={after}")


def test_the_list_narrows_and_sorts_by_its_address(as_alice: Client) -> None:
    soon = timezone.now() + timedelta(hours=1)
    alert("101", state="pending")
    alert("102")
    alert("103", state="fired")
    alert("104", state="paused")
    alert("105", snoozed_until=soon)
    alert("106", state="fired", snoozed_until_rise=True)
    alert("107", expires_at=timezone.now())
    alert("108", deleted_at=timezone.now())
    alert("109", wine=wine("2"), snoozed_until=timezone.now())  # which is over
    shown = {
        "checking": ["101"],
        "watching": ["109", "102"],
        "met": ["103"],
        "snoozed": ["106", "105"],
        "paused": ["104"],
        "expired": ["107"],
        "deleted": ["108"],
        "all": ["109", "107", "106", "105", "104", "103", "102", "101"],
    }
    for name, targets in shown.items():
        seen = words(as_alice, f"/alerts?show={name}")
        assert re.findall(r"Target \$(\d+)", seen) == targets, name
        assert f"{name.title()} {len(targets)}" in seen
    assert re.findall(r"Target \$(\d+)", words(as_alice, "/alerts?sort=wine"))[0] == "109"
    assert re.findall(r"Target \$(\d+)", words(as_alice, "/alerts?sort=told"))[:2] == ["106", "103"]


@pytest.mark.parametrize("sort", ["newest", "told", "wine"])
def test_each_alert_is_on_one_page_in_every_order(as_alice: Client, sort: str) -> None:
    bottles = [wine(str(number), name=f"Wine {number % 2}") for number in range(1, 5)]
    for number in range(60):
        told = timezone.now() - timedelta(hours=number % 7) if number % 3 else None
        alert(str(number + 1), wine=bottles[number % 4], last_notified_at=told)
    where, seen = f"/alerts?sort={sort}", []
    for _ in range(3):
        one = page(as_alice, where)
        seen += re.findall(r"Target \$(\d+)", one.words)
        where = "/alerts" + next((link["href"] for link in one.all("a") if link.get("rel") == "next"), "")
    assert sorted(map(int, seen)) == list(range(1, 61))


def test_a_card_shows_ninety_days_in_a_line_and_in_words(as_alice: Client) -> None:
    alert("150")
    alert("140", merchant=merchant("083"))
    alert("20", wine=wine("2"))
    response = as_alice.get("/alerts")
    paths = [
        tag for name, tag in Page(response.content.decode()).tags if name == "svg:path" and tag["d"].endswith("H120")
    ]
    assert len(paths) == 2
    assert "In 90 days from $149.00 to $171.00." in words(as_alice)
    assert "In 90 days from $149.00 to $168.00." in words(as_alice)


# --- Several at once ---------------------------------------------------------------------------------------------


def bulk(client: Client, act: str, *alerts: Alert, **more: Any) -> Page:
    ids = [str(one.pk) for one in alerts]
    response = client.post("/alerts/bulk", {"act": act, "alert": ids, **more}, follow=True)
    return Page(response.content.decode())


@pytest.mark.parametrize(
    ("act", "done", "undone"),
    [
        ("pause", {"state": "paused"}, {"state": "pending"}),
        ("snooze-week", {"state": "armed", "asleep": True}, {"state": "pending"}),
        ("delete", {"state": "armed", "deleted": True}, {"state": "pending"}),
    ],
)
def test_several_are_asked_about_then_done_and_can_be_undone(
    as_alice: Client, act: str, done: dict[str, Any], undone: dict[str, Any]
) -> None:
    one, two, bobs = alert("150"), alert("140"), alert("130", owner="bob")

    def stored(which: Alert) -> dict[str, Any]:
        which.refresh_from_db()
        flags = {"asleep": which.snoozed_until is not None, "deleted": which.deleted_at is not None}
        return {"state": which.state, **{name: True for name, flag in flags.items() if flag}}

    asked = bulk(as_alice, act, one, two, bobs)
    assert "2 alerts Nothing has been done yet" in asked.words
    assert [stored(one), stored(two)] == [{"state": "armed"}] * 2
    told = bulk(as_alice, act, one, two, bobs, confirmed="1")
    assert "2 alerts" in told.words
    assert "Undo" in told.words
    assert [stored(one), stored(two), stored(bobs)] == [done, done, {"state": "armed"}]
    as_alice.post("/alerts/undo")
    assert [stored(one), stored(two)] == [undone] * 2
    assert "There is nothing to undo." in Page(as_alice.post("/alerts/undo", follow=True).content.decode()).words


@pytest.mark.parametrize("alerts", [[], ["x"], ["99999999999999999999"], ["-1"], ["१"]])
def test_nothing_chosen_is_said(as_alice: Client, alerts: list[str]) -> None:
    response = as_alice.post("/alerts/bulk", {"act": "delete", "alert": alerts, "confirmed": "1"}, follow=True)
    assert "Choose at least one alert" in Page(response.content.decode()).words


def test_an_act_there_is_not_does_nothing(as_alice: Client) -> None:
    one = alert("150")
    assert "Choose" in bulk(as_alice, "sell", one, confirmed="1").words
    assert Alert.live.get() == one


# --- One alert ---------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("state", "sentence"),
    [
        ("pending", "We are comparing it with the prices now. That takes up to a minute"),
        ("armed", "The price is above your target. You get a mail when it is there."),
        ("fired", "You were told 14 Mar"),
        ("paused", "nothing is compared and no mail is sent until you resume it"),
    ],
)
def test_the_page_says_what_the_alert_waits_for_and_where_it_stands(
    as_alice: Client, state: str, sentence: str
) -> None:
    one = alert("150", state=state, price_when_created=Decimal("171"))
    seen = words(as_alice, f"/alerts/{one.pk}")
    assert "Waits for $150.00 or less at any merchant." in seen
    assert sentence in seen
    assert "Target $150.00 Now $160.00 When you set it $171.00" in seen


def test_the_log_tells_each_decision_with_its_reason_and_its_mail(as_alice: Client) -> None:
    one = alert("160")
    at = datetime(2026, 3, 14, 14, 2, 0, tzinfo=UTC)
    for number, (outcome, reason, price) in enumerate(
        [
            ("mailed", "below your target", "154.00"),
            ("not_mailed", "you were told at $154.00", "152.50"),
            ("armed", "the price rose above your target: watching again", "161.00"),
        ]
    ):
        Decision.objects.create(
            alert=one,
            event_id=f"evt_{number}",
            outcome=outcome,
            reason=reason,
            price=Decimal(price),
            merchant_name="Merchant X",
            decided_at=at + timedelta(minutes=number),
        )
    Notification.objects.create(
        alert=one,
        event_id="evt_0",
        state="sent",
        new_price=Decimal("154.00"),
        target=Decimal("160.00"),
        merchant_name="Merchant X",
        occurred_at=at,
        settled_at=at + timedelta(seconds=3),
    )
    response = as_alice.get(f"/alerts/{one.pk}")
    assert (
        "14 Mar 14:04:00 UTC $161.00 at Merchant X: the price rose above your target: watching again "
        "14 Mar 14:03:00 UTC $152.50 at Merchant X: you were told at $154.00 → not mailed "
        "14 Mar 14:02:00 UTC $154.00 at Merchant X: below your target → mailed "
        "Mail: handed to the mail server 14 Mar 14:02:03 UTC"
    ) in Page(response.content.decode()).words.replace("\u00a0", " ").replace(" 2026", "")
    assert '<time datetime="2026-03-14T14:02:03Z">' in response.content.decode()


def test_the_log_of_a_new_alert_says_what_will_stand_there(as_alice: Client) -> None:
    one = alert("150", state="pending")
    assert "Nothing yet. Every price that is compared" in words(as_alice, f"/alerts/{one.pk}")


def test_the_page_takes_a_fixed_number_of_queries_and_shows_the_latest_of_a_long_log(
    as_alice: Client, django_assert_num_queries: CountQueries
) -> None:
    one = alert("150")
    Decision.objects.bulk_create(
        Decision(
            alert=one,
            event_id=f"evt_{number:03}",
            outcome="not_mailed",
            reason=f"reason {number:03}.",
            price=Decimal(200),
            decided_at=timezone.now() - timedelta(minutes=200 - number),
        )
        for number in range(150)
    )
    with django_assert_num_queries(
        4 + 3
    ):  # the alert, the offers, decisions, mails; the session, who it is, their address
        seen = words(as_alice, f"/alerts/{one.pk}")
    assert seen.count("reason ") == LOG_LENGTH
    assert "reason 149." in seen
    assert "reason 049." not in seen


def test_another_persons_alert_is_not_there(as_alice: Client) -> None:
    bobs = alert("150", owner="bob")
    assert as_alice.get(f"/alerts/{bobs.pk}").status_code == 404
    assert as_alice.get(f"/alerts/{bobs.pk}").content == as_alice.get("/alerts/999999").content
    for action in ACTIONS:
        assert as_alice.post(f"/alerts/{bobs.pk}/{action}", {"target": "1"}).status_code == 404
        assert as_alice.post(f"/alerts/999999/{action}", {"target": "1"}).status_code == 404
    bobs.refresh_from_db()
    assert (bobs.state, bobs.target) == ("armed", Decimal("150.00"))


@pytest.mark.parametrize("pk", ["99999999999999999999", "0", "-1", "x", "1.5", "%00", "1%00"])
def test_an_address_that_names_no_alert_is_a_404(as_alice: Client, pk: str) -> None:
    assert as_alice.get(f"/alerts/{pk}").status_code == 404


def test_a_stranger_is_sent_to_sign_in_and_changes_nothing(stranger: Client) -> None:
    one = alert("150")
    assert stranger.get("/alerts")["Location"] == "/sign-in?next=/alerts"
    assert stranger.get(f"/alerts/{one.pk}")["Location"] == f"/sign-in?next=/alerts/{one.pk}"
    for action in ACTIONS:
        response = stranger.post(f"/alerts/{one.pk}/{action}", {"target": "1"})
        assert response["Location"] == f"/sign-in?next=/alerts/{one.pk}"  # not the action, which a GET cannot do
    one.refresh_from_db()
    assert (one.state, one.target) == ("armed", Decimal("150.00"))


@pytest.mark.parametrize("action", ACTIONS)
def test_an_action_by_get_is_refused(as_alice: Client, action: str) -> None:
    one = alert("150")
    assert as_alice.get(f"/alerts/{one.pk}/{action}").status_code == 405
    assert Alert.objects.get().state == "armed"


@pytest.mark.parametrize("action", ACTIONS)
def test_an_action_without_its_token_is_refused(alice: Any, action: str) -> None:
    one = alert("150")
    client = Client(enforce_csrf_checks=True)
    client.force_login(alice)
    assert client.post(f"/alerts/{one.pk}/{action}", {"target": "1"}).status_code == 403
    assert Alert.objects.get().target == Decimal("150.00")


def test_the_form_shows_the_alert_and_what_is_changed_is_checked_anew(as_alice: Client) -> None:
    one = alert("150", name="Birthday")
    fields = {tag["name"]: tag.get("value") for tag in page(as_alice, f"/alerts/{one.pk}/edit").all("input")}
    assert (fields["target"], fields["name"]) == ("150.00", "Birthday")
    response = as_alice.post(
        f"/alerts/{one.pk}/edit", {"kind": "low", "low_days": "30", "merchant": "mch_083"}, follow=True
    )
    seen = Page(response.content.decode()).words
    assert "Alert changed. We’ll check prices within a minute." in seen
    assert "Waits for a new low of 30 days at La Cave du Pont." in seen
    assert "Checking…" in seen
    assert asked_again() == [{"alert_id": one.pk, "wine_id": "wn_4417"}]


@pytest.mark.parametrize(
    ("typed", "field"),
    [
        *(({"target": text}, "target") for text in ("0", "-5", "NaN", "1e400", "12.345", "१२", "12,50", "")),
        *(
            ({"kind": "percent", "percent": text}, "percent")
            for text in ("0", "100", "-1", "NaN", "1e1", "", "१", "5.55")
        ),
        *(({"kind": "low", "low_days": text}, "low_days") for text in ("0", "-1", "3651", "1.5", "१", "1e3")),
        ({"target": "1", "expires": "2020-01-01"}, "expires"),
        ({"target": "1", "expires": "2027-02-30"}, "expires"),
        ({"target": "1", "currency": "EUR"}, "currency"),  # it stays what it is
        ({"target": "1", "currency": "XXX"}, "currency"),
        ({"target": "1", "merchant": "mch_999"}, "merchant"),
        ({"target": "1", "name": "n" * 81}, "name"),
        ({"target": "1", "name": "a\x00b"}, "name"),
        ({"target": "1", "kind": "sell"}, "kind"),
    ],
)
def test_what_is_no_wish_is_said_beside_its_field_kept_as_typed_and_changes_nothing(
    as_alice: Client, typed: dict[str, str], field: str
) -> None:
    merchant("999", "Elsewhere")
    one = alert("150")
    for path in (f"/alerts/{one.pk}/edit", "/wines/wn_2" if field != "currency" else f"/alerts/{one.pk}/edit"):
        response = as_alice.post(path, typed)
        assert response.status_code == 200
        seen = Page(response.content.decode())
        assert seen.faults == []
        (wrong,) = [tag for tag in [*seen.all("input"), *seen.all("select")] if "aria-invalid" in tag]
        assert (wrong["name"], wrong["aria-describedby"].split()[-1]) == (field, f"id_{field}_error")
        if wrong.get("type") == "text":
            assert wrong.get("value", "").replace("\ufffd", "\x00") == typed.get(field, "")
    assert Alert.objects.get().target == Decimal("150.00")
    assert asked_again() == []


@pytest.mark.parametrize(("period", "hours"), [("day", 24), ("week", 168), ("nonsense", 24)])
def test_a_snooze_is_said_with_its_end_and_can_be_ended(as_alice: Client, period: str, hours: int) -> None:
    one = alert("150")
    response = as_alice.post(f"/alerts/{one.pk}/snooze", {"for": period}, follow=True)
    assert "Snoozed until" in Page(response.content.decode()).words
    one.refresh_from_db()
    assert one.snoozed_until is not None
    assert abs(one.snoozed_until - timezone.now() - timedelta(hours=hours)) < timedelta(minutes=1)
    as_alice.post(f"/alerts/{one.pk}/resume")
    one.refresh_from_db()
    assert (one.snoozed_until, one.state) == (None, "pending")


def test_until_it_rises_is_for_what_was_told(as_alice: Client) -> None:
    met, waiting = alert("160", state="fired"), alert("150")
    response = as_alice.post(f"/alerts/{met.pk}/snooze", {"for": "rise"}, follow=True)
    assert "Snoozed until it rises" in Page(response.content.decode()).words
    response = as_alice.post(f"/alerts/{waiting.pk}/snooze", {"for": "rise"}, follow=True)
    assert "has not been told to you" in Page(response.content.decode()).words


def test_a_duplicate_begins_with_the_same_wish(as_alice: Client) -> None:
    one = alert("150", name="Gift", merchant=merchant())
    (link,) = [a["href"] for a in page(as_alice, f"/alerts/{one.pk}").all("a") if "kind=threshold" in a.get("href", "")]
    fields = {tag["name"]: tag.get("value") for tag in page(as_alice, link.partition("#")[0]).all("input")}
    assert (fields["target"], fields["name"]) == ("150.00", "Gift")


def test_the_part_that_the_script_asks_for_says_when_it_is_done(as_alice: Client) -> None:
    one = alert("150", state="pending")
    whole = as_alice.get(f"/alerts/{one.pk}").content.decode()
    assert f'data-fresh="/alerts/{one.pk}?standing=1"' in whole
    assert '<script src="/static/fresh.js" defer></script>' in whole
    assert "data-fresh" in as_alice.get(f"/alerts/{one.pk}?standing=1").content.decode()
    Alert.objects.update(state="armed")
    part = as_alice.get(f"/alerts/{one.pk}?standing=1").content.decode()
    assert "data-fresh" not in part
    assert "<html" not in part
    assert "Watching" in part
    assert "fresh.js" not in as_alice.get(f"/alerts/{one.pk}").content.decode()


def test_pausing_and_resuming(as_alice: Client) -> None:
    one = alert("150")
    response = as_alice.post(f"/alerts/{one.pk}/pause", follow=True)
    assert "Alert paused. You will hear nothing about it" in Page(response.content.decode()).words
    assert Alert.objects.get().state == "paused"
    assert asked_again() == []
    response = as_alice.post(f"/alerts/{one.pk}/resume", {"from": "list"}, follow=True)
    assert "Alert resumed — we'll check prices within a minute." in Page(response.content.decode()).words
    assert response.redirect_chain == [("/alerts", 302)]
    assert Alert.objects.get().state == "pending"
    assert asked_again() == [{"alert_id": one.pk, "wine_id": "wn_4417"}]


def test_the_target_of_a_paused_alert_changes_without_ending_the_pause(as_alice: Client) -> None:
    one = alert("150", state="paused")
    response = as_alice.post(f"/alerts/{one.pk}/edit", {"target": "140"}, follow=True)
    assert "Alert changed. It is still paused." in Page(response.content.decode()).words
    assert (Alert.objects.get().state, Alert.objects.get().target) == ("paused", Decimal("140.00"))
    assert asked_again() == []


def test_a_deleted_alert_is_gone_from_the_list_and_can_be_brought_back_with_its_log(as_alice: Client) -> None:
    one, other = alert("150"), alert("140")
    Decision.objects.create(alert=one, event_id="evt_1", outcome="armed", reason="because")
    response = as_alice.post(f"/alerts/{one.pk}/delete", follow=True)
    assert "Alert deleted. You can undo that for 7 days. Undo" in Page(response.content.decode()).words
    assert list(Alert.live.all()) == [other]
    assert "Target $150.00" not in words(as_alice)
    seen = words(as_alice, f"/alerts/{one.pk}")
    assert "It was deleted" in seen
    assert as_alice.get(f"/alerts/{one.pk}/edit").status_code == 302
    assert as_alice.post(f"/alerts/{one.pk}/pause").status_code == 404
    response = as_alice.post(f"/alerts/{one.pk}/restore", follow=True)
    assert "Brought back" in Page(response.content.decode()).words
    assert "because" in Page(response.content.decode()).words
    assert set(Alert.live.all()) == {one, other}
