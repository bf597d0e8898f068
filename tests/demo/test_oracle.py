"""The independent model of the alerts."""

from decimal import Decimal

from winecellar.demo.oracle import AcceptedPrice, DueMail, WatchedAlert, due_mails

QUENBY, MARROWBY = "mch_082", "mch_014"


def alert(number=1, *, at="100", merchant=None, watching=True, wine="wn_1"):
    return WatchedAlert(number, wine, merchant, Decimal(at), watching)


def due(*prices, alerts=None, before=None, superseded=()):
    """`prices` are (merchant, price) of wn_1, which become events 1, 2, 3 …; returns (alert, event) pairs."""
    accepted = [
        AcceptedPrice(str(n), "wn_1", merchant, Decimal(price)) for n, (merchant, price) in enumerate(prices, 1)
    ]
    offers = {("wn_1", m): Decimal(p) for m, p in (before or {QUENBY: "120", MARROWBY: "130"}).items()}
    mails = due_mails(
        alerts=alerts or [alert()],
        prices=offers,
        accepted=accepted,
        further_fall=Decimal("0.25"),
        superseded={DueMail(a, e) for a, e in superseded},
    )
    return [(mail.alert_id, mail.event_id) for mail in mails]


def test_a_price_at_the_target_is_due_and_one_above_it_is_not():
    assert due((QUENBY, "100.01")) == []
    assert due((QUENBY, "100.00")) == [(1, "1")]
    assert due((QUENBY, "99.99")) == [(1, "1")]


def test_a_small_further_fall_mails_nothing_more():
    assert due((QUENBY, "95"), (QUENBY, "90"), (MARROWBY, "80")) == [(1, "1")]


def test_a_fall_by_a_further_step_is_due_whoever_asks_it():
    assert due((QUENBY, "100"), (QUENBY, "76"), (MARROWBY, "75"), (QUENBY, "60")) == [(1, "1"), (1, "3")]
    assert due((QUENBY, "100"), (MARROWBY, "50"), (MARROWBY, "60")) == [(1, "1"), (1, "2")]


def test_it_watches_again_once_the_price_has_been_above_the_target():
    assert due((QUENBY, "95"), (QUENBY, "101"), (QUENBY, "95")) == [(1, "1"), (1, "3")]


def test_while_another_merchant_is_at_the_target_it_does_not_watch_again():
    assert due((QUENBY, "95"), (MARROWBY, "98"), (QUENBY, "120"), (QUENBY, "90")) == [(1, "1")]


def test_it_watches_again_when_the_last_cheap_offer_has_risen():
    prices = [(QUENBY, "95"), (MARROWBY, "98"), (QUENBY, "120"), (MARROWBY, "120"), (QUENBY, "99")]
    assert due(*prices) == [(1, "1"), (1, "5")]


def test_an_alert_on_one_merchant_hears_no_other():
    only_marrowby = [alert(merchant=MARROWBY)]
    assert due((QUENBY, "95"), alerts=only_marrowby) == []
    assert due((QUENBY, "95"), (MARROWBY, "99"), (QUENBY, "90"), alerts=only_marrowby) == [(1, "2")]
    prices = [(MARROWBY, "99"), (QUENBY, "90"), (MARROWBY, "110"), (MARROWBY, "98")]
    assert due(*prices, alerts=only_marrowby) == [(1, "1"), (1, "4")], "the other's low price does not count"


def test_an_alert_on_another_wine_hears_nothing():
    assert due((QUENBY, "5"), alerts=[alert(wine="wn_2")], before={QUENBY: "120"}) == []


def test_each_alert_has_its_own_target_and_state():
    alerts = [alert(1, at="100"), alert(2, at="90"), alert(3, at="100", watching=False)]
    assert due((QUENBY, "95"), (QUENBY, "85"), alerts=alerts) == [(1, "1"), (2, "2")]


def test_an_alert_that_had_fired_before_waits_for_a_rise():
    prices = [(QUENBY, "94"), (QUENBY, "101"), (QUENBY, "94")]
    assert due(*prices, alerts=[alert(watching=False)], before={QUENBY: "95"}) == [(1, "3")]


def test_a_first_offer_of_a_merchant_counts():
    assert due((MARROWBY, "90"), before={QUENBY: "120"}) == [(1, "1")]


def test_a_price_that_was_replaced_before_it_was_looked_at_mails_by_the_next():
    prices = [(QUENBY, "95"), (QUENBY, "94")]
    assert due(*prices) == [(1, "1")]
    assert due(*prices, superseded=[(1, "1")]) == [(1, "2")]


def test_an_excuse_is_not_believed_when_no_newer_price_came():
    assert due((QUENBY, "95"), (MARROWBY, "94"), superseded=[(1, "1")]) == [(1, "1")]


def test_an_excuse_holds_for_the_alert_it_was_made_for_alone():
    alerts = [alert(1), alert(2)]
    prices = [(QUENBY, "95"), (QUENBY, "120")]
    assert due(*prices, alerts=alerts, superseded=[(1, "1")]) == [(2, "1")]
