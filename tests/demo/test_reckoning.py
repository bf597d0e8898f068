"""The comparison of what happened with what had to happen, and what is said about it."""

from datetime import UTC, datetime, timedelta
from decimal import Decimal

import pytest

from winecellar.demo.mail_log import MailTaken
from winecellar.demo.oracle import AcceptedPrice, DueMail, WatchedAlert
from winecellar.demo.reckoning import latencies, percentile, reckon
from winecellar.demo.summary import Figures, figures_in_words, verdict_in_words
from winecellar.demo.tally import PriceTaken, Totals

AT = datetime(2030, 5, 17, 9, 30, tzinfo=UTC)
ALERT = WatchedAlert(1, "wn_1", None, Decimal(100), watching=True)
DROP = AcceptedPrice("evt_1", "wn_1", "mch_082", Decimal(95))
RISE = AcceptedPrice("evt_2", "wn_1", "mch_082", Decimal(120))


def mail(event_id="evt_1", alert_id=1, after=0.05):
    return MailTaken(AT + timedelta(seconds=after), alert_id, event_id, f"<{event_id}>", "dana@x.example", "Cheap")


def reckoned(*, log=(DROP, RISE), mails=(), superseded=(), acknowledged=("evt_1", "evt_2")):
    return reckon(
        alerts=[ALERT],
        prices={("wn_1", "mch_082"): Decimal(130)},
        acknowledged=acknowledged,
        log=log,
        superseded=set(superseded),
        further_fall=Decimal("0.05"),
        mails=mails,
    )


def test_all_is_well_when_what_was_due_has_arrived():
    result = reckoned(mails=[mail()])
    assert result.all_is_well
    assert result.due == result.arrived == [DueMail(1, "evt_1")]


def test_a_mail_that_did_not_arrive_is_named():
    result = reckoned()
    assert result.missing == [DueMail(1, "evt_1")]
    assert not result.all_is_well


def test_a_superseded_price_may_be_missing():
    assert reckoned(superseded=[DueMail(1, "evt_1")]).all_is_well


def test_a_mail_that_nobody_expected_and_one_that_came_twice_are_named():
    assert reckoned(mails=[mail(), mail("evt_2")]).unexpected == [DueMail(1, "evt_2")]
    assert reckoned(mails=[mail(), mail()]).mailed_twice == [DueMail(1, "evt_1")]


def test_mails_about_other_alerts_and_first_checks_are_none_of_its_business():
    assert reckoned(mails=[mail(), mail(alert_id=99), mail(alert_id=None), mail("evt_first_check")]).all_is_well


def test_an_acknowledged_event_that_is_not_in_the_log_is_a_broken_promise():
    result = reckoned(mails=[mail()], acknowledged=["evt_1", "evt_2", "evt_3"])
    assert result.not_in_log == ["evt_3"]
    assert not result.all_is_well


def test_latency_is_from_the_202_to_the_mail_and_never_below_zero():
    mails = [mail("evt_1", after=0.2), mail("evt_2", after=-0.01), mail("evt_first_check")]
    assert latencies(mails, {"evt_1": AT, "evt_2": AT}) == [0.0, 200.0]


@pytest.mark.parametrize(("part", "value"), [(0.5, 50), (0.99, 99), (1.0, 100), (0.0, 1)])
def test_a_percentile_is_a_value_that_was_seen(part, value):
    assert percentile(list(range(1, 101)), part) == value


def test_the_percentiles_of_one_value_are_that_value():
    assert percentile([7.0], 0.5) == percentile([7.0], 0.99) == 7.0


def figures(**changes):
    values = {
        "seconds": 30.0,
        "seed": 5,
        "totals": Totals(sent=412, requests=171, accepted=412, unchanged=200, events=212, retries=9, duplicates=9),
        "acked": {"alert-matching": 212, "price-history": 212},
        "mails": 2,
        "latencies": [20.0, 40.0],
        "still_waiting": 0,
        "dead_letters": [],
        "complaints": [],
    }
    return Figures(**{**values, **changes})


def test_the_summary_names_every_figure():
    text = "\n".join(figures_in_words(figures()))
    for said in [
        "412",
        "prices sent",
        "accepted",
        "events",
        "424",
        "deliveries acked",
        "emails",
        "p50 20 ms",
        "p99 40 ms",
    ]:
        assert said in text
    assert "duplicates" in text


def test_the_verdict_counts_what_arrived():
    well, lines = verdict_in_words(figures(), reckoned(mails=[mail()]), {}, {})
    assert well
    assert lines == ["Every alert that was due arrived (1 of 1)."]


def test_the_verdict_names_the_alert_that_is_missing():
    price = PriceTaken("wn_1", "mch_082", Decimal(130), Decimal(95), promotion=False, event_id="evt_1", reason=None)
    well, lines = verdict_in_words(
        figures(), reckoned(), {1: "Dana’s alert on Ch. Montrose 2016"}, {"evt_1": (price, AT)}
    )
    assert not well
    assert "Dana’s alert on Ch. Montrose 2016" in lines[0]
    assert "evt_1" in lines[0]
    assert "$95.00" in lines[0]


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({"still_waiting": 3}, "3 deliveries were still waiting"),
        ({"dead_letters": ["evt_9 for alert-matching: no such wine"]}, "evt_9"),
        ({"complaints": ["mch_082: 422 invalid_price"]}, "422 invalid_price"),
        ({"totals": Totals(sent=9, accepted=9, retries=4, duplicates=3)}, "1 retries were not recognised"),
        ({"totals": Totals(sent=9, accepted=6, refused=1)}, "2 of them never answered"),
        ({"totals": Totals()}, "0 prices were sent"),
    ],
)
def test_anything_else_that_went_wrong_fails_the_run_too(changes, said):
    well, lines = verdict_in_words(figures(**changes), reckoned(mails=[mail()]), {}, {})
    assert not well
    assert any(said in line for line in lines)
