"""The list of one's alerts and the page of each: states in words, the log, the actions; nobody else's."""

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
from tests.cast import alert, merchant, wine
from tests.pages.html import Page

PROMISE = "Alert active. We check prices continuously; alerts arrive within 5 minutes of a price change."
ACTIONS = ["target", "pause", "resume", "delete"]
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
    assert f"My alerts {PROMISE} Ch. Montrose 2016" in words(as_alice)


def test_the_figure_in_the_promise_is_the_settings(as_alice: Client, settings: Any) -> None:
    settings.ALERT_PROMISE = timedelta(minutes=7)
    assert "alerts arrive within 7 minutes of a price change." in words(as_alice)


def test_without_alerts_the_page_teaches_the_next_step(as_alice: Client) -> None:
    seen = page(as_alice)
    assert "You watch no wine yet. Find one, say what you would pay" in seen.words
    assert {"class": "button", "href": "/"} in seen.all("a")
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
    assert "The price is at your target. You were told 14 Mar" in seen
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


def test_the_list_takes_three_queries_of_its_own_and_has_pages(
    as_alice: Client, django_assert_num_queries: CountQueries
) -> None:
    for number in range(1, 31):
        alert(str(number), merchant=merchant() if number % 2 else None)
    with django_assert_num_queries(3 + 4):  # the session, who it is, whether their address is confirmed, what is unread
        assert "$30.00" in words(as_alice)
    assert "Page 1 of 2" in words(as_alice)
    for far in ("2", "99", "99999999999999999999"):
        assert "$6.00" in words(as_alice, f"/alerts?page={far}")
    assert "$30.00" in words(as_alice, "/alerts?page=abc")


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
    one = alert("150", state=state, price_when_created_usd=Decimal("171"))
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
            price_usd=Decimal(price),
            merchant_name="Merchant X",
            decided_at=at + timedelta(minutes=number),
        )
    Notification.objects.create(
        alert=one,
        event_id="evt_0",
        state="sent",
        new_price_usd=Decimal("154.00"),
        threshold_usd=Decimal("160.00"),
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
            price_usd=Decimal(200),
            decided_at=timezone.now() - timedelta(minutes=200 - number),
        )
        for number in range(150)
    )
    # The alert, the offers, decisions, mails; the session, who it is, their address, what is unread.
    with django_assert_num_queries(4 + 4):
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
    assert (bobs.state, bobs.threshold_usd) == ("armed", Decimal("150.00"))


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
    assert (one.state, one.threshold_usd) == ("armed", Decimal("150.00"))


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
    assert Alert.objects.get().threshold_usd == Decimal("150.00")


def test_changing_the_target_checks_anew_and_says_so(as_alice: Client) -> None:
    one = alert("150")
    response = as_alice.post(f"/alerts/{one.pk}/target", {"target": "$155"}, follow=True)
    seen = Page(response.content.decode()).words
    assert "Target changed to $155.00 — we'll check prices within a minute." in seen
    assert "Checking…" in seen
    assert asked_again() == [{"alert_id": one.pk, "wine_id": "wn_4417"}]


@pytest.mark.parametrize("typed", ["0", "-5", "NaN", "1e20", "12.345", "१२", "12,50", ""])
def test_what_is_no_target_changes_nothing_and_is_kept_as_typed(as_alice: Client, typed: str) -> None:
    one = alert("150")
    response = as_alice.post(f"/alerts/{one.pk}/target", {"target": typed})
    assert response.status_code == 200
    seen = Page(response.content.decode())
    (field,) = [tag for tag in seen.all("input") if tag["name"] == "target"]
    assert (field.get("value", ""), field["aria-describedby"]) == (typed, "id_target_error")
    assert Alert.objects.get().threshold_usd == Decimal("150.00")
    assert asked_again() == []


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
    response = as_alice.post(f"/alerts/{one.pk}/target", {"target": "140"}, follow=True)
    assert "Target changed to $140.00. The alert is still paused." in Page(response.content.decode()).words
    assert Alert.objects.get().state == "paused"
    assert asked_again() == []


def test_deleting_forgets_the_alert_its_log_and_its_mails(as_alice: Client) -> None:
    one, other = alert("150"), alert("140")
    Decision.objects.create(alert=one, event_id="evt_1", outcome="armed", reason="r")
    response = as_alice.post(f"/alerts/{one.pk}/delete", follow=True)
    assert "Alert deleted. You will hear nothing more about it." in Page(response.content.decode()).words
    assert list(Alert.objects.all()) == [other]
    assert not Decision.objects.exists()
    assert as_alice.get(f"/alerts/{one.pk}").status_code == 404
