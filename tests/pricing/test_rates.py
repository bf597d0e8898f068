"""Prices in other money: converted by the rate of their day, held without one, and never changed by a rate alone."""

from datetime import date, timedelta
from decimal import Decimal

import pytest
from django.core.management import CommandError, call_command

from pricing import holds, rates
from pricing.exchange import Rate
from pricing.models import ExchangeRate, HeldPrice, Offer
from pricing.rules import Observation, Verdict
from pricing.services import record_observations
from tests import cast
from tests.cast import NOW
from tests.pricing.observed import load_rates, published, seen

pytestmark = pytest.mark.django_db(transaction=True)
DAY = timedelta(days=1)
HOUR = timedelta(hours=1)
CSV = "Date, USD, GBP, \n13 March 2026, 1.1000, 0.8500, \n"


def euros(price, at=NOW, currency="EUR"):
    return Observation.of("wn_4417", Decimal(price), currency, at)


def record(merchant, *observations, **options):
    outcomes = record_observations(
        merchant=merchant, observations=observations, attributes={"request_id": "r"}, now=NOW + 30 * DAY, **options
    )
    return [outcome.verdict for outcome in outcomes]


def standing():
    offer = Offer.objects.get()
    return str(offer.price_usd), offer.native_currency, None if offer.native_price is None else str(offer.native_price)


# --- Conversion -------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("amount", "per_eur", "usd_per_eur", "dollars"),
    [
        ("100.00", "1", "1.1", "110.00"),
        ("12.55", "1", "1.1", "13.81"),  # 13.805: half up
        ("12.54", "1", "1.1", "13.79"),  # 13.794
        ("100.00", "0.85", "1.1", "129.41"),
        ("26000.00", "28600", "1.1", "1.00"),
        ("999999999999.99", "28600.5", "1.1", "38460866.07"),
        ("0.01", "160", "1.1", None),  # less than a cent
        ("999999999999.99", "1", "1.1", None),  # more than a price can be
    ],
)
def test_an_amount_is_in_dollars_to_the_cent(amount, per_eur, usd_per_eur, dollars):
    found = Rate(date(2026, 3, 13), Decimal(per_eur), Decimal(usd_per_eur)).to_usd(Decimal(amount))
    assert found == (None if dollars is None else Decimal(dollars))


def test_a_price_in_other_money_is_an_offer_in_dollars_that_keeps_what_was_asked(merchant, wine):
    load_rates("2026-03-14", USD="1.10", GBP="0.85")
    assert record(merchant, euros("100.00", currency="GBP")) == [Verdict.APPLIED]
    assert standing() == ("129.41", "GBP", "100.00")
    [message] = published()
    assert message["body"]["new_price_usd"] == Decimal("129.41")
    assert (message["body"]["native_price"], message["body"]["native_currency"]) == (Decimal("100.00"), "GBP")
    assert message["body"]["currency"] == "USD"


def test_a_price_in_dollars_has_no_other_money_beside_it(merchant, wine):
    record(merchant, seen("100.00"))
    assert standing() == ("100.00", "", None)
    assert len(published()[0]["body"]) == 9


@pytest.mark.parametrize(
    ("days", "verdict"), [(0, Verdict.APPLIED), (1, Verdict.APPLIED), (7, Verdict.APPLIED), (8, Verdict.NO_RATE)]
)
def test_the_last_published_day_counts_for_a_week(merchant, wine, days, verdict):
    load_rates("2026-03-14", USD="1.10")
    assert record(merchant, euros("100.00", NOW + days * DAY)) == [verdict]


def test_a_later_days_rate_is_not_that_of_today(merchant, wine):
    load_rates("2026-03-15", USD="1.10")
    assert record(merchant, euros("100.00")) == [Verdict.NO_RATE]
    load_rates("2026-03-12", USD="1.20")
    load_rates("2026-03-13", USD="1.30")
    assert record(merchant, euros("100.00")) == [Verdict.APPLIED]
    assert standing()[0] == "130.00"


def test_the_day_is_that_of_utc(merchant, wine):
    load_rates("2026-03-14", USD="1.10")
    load_rates("2026-03-15", USD="1.20")
    late = NOW.replace(hour=23, minute=30).astimezone(tz=None)
    record(merchant, euros("100.00", late))
    assert standing()[0] == "110.00"


def test_a_currency_without_a_dollar_of_the_same_day_has_no_rate():
    ExchangeRate.objects.create(day="2026-03-14", currency="GBP", per_eur="0.85", source="test")
    assert rates.find({("GBP", date(2026, 3, 14))}) == {}


def test_many_observations_are_converted_in_one_statement(merchant, wine, django_assert_num_queries):
    load_rates("2026-03-10", USD="1.10", GBP="0.85")
    many = [euros("100.00", NOW + n * HOUR, "GBP") for n in range(50)] + [
        euros("90.00", NOW - n * HOUR) for n in range(50)
    ]
    with django_assert_num_queries(1):
        converted = rates.convert(many)
    assert [seen.price_usd for seen in converted] == [Decimal("129.41")] * 50 + [Decimal("99.00")] * 50
    with django_assert_num_queries(0):
        rates.convert([seen("1.00")] * 50)


# --- A rate is no price change ----------------------------------------------------------------------------------


def test_the_same_price_is_unchanged_however_the_rate_moved(merchant, wine):
    load_rates("2026-03-14", USD="1.10")
    record(merchant, euros("100.00"))
    load_rates("2026-03-15", USD="0.70")
    assert record(merchant, euros("100.00", NOW + DAY)) == [Verdict.UNCHANGED]
    assert standing()[0] == "110.00"
    assert len(published()) == 1
    assert Offer.objects.get().seen_at == NOW + DAY


def test_and_needs_no_rate_at_all(merchant, wine):
    load_rates("2026-03-14", USD="1.10")
    record(merchant, euros("100.00"))
    assert record(merchant, euros("100.00", NOW + 20 * DAY)) == [Verdict.UNCHANGED]


def test_another_price_is_a_change_at_the_rate_of_its_own_day(merchant, wine):
    load_rates("2026-03-14", USD="1.10")
    record(merchant, euros("100.00"))
    load_rates("2026-03-15", USD="1.20")
    assert record(merchant, euros("99.00", NOW + DAY)) == [Verdict.APPLIED]
    assert standing() == ("118.80", "EUR", "99.00")


def test_who_begins_to_ask_in_other_money_for_the_same_dollars_changes_no_price(merchant, wine):
    load_rates("2026-03-14", USD="1.10")
    record(merchant, seen("110.00"))
    assert record(merchant, euros("100.00", NOW + HOUR)) == [Verdict.UNCHANGED]
    assert standing() == ("110.00", "EUR", "100.00")
    assert record(merchant, euros("100.00", NOW + 2 * HOUR)) == [Verdict.UNCHANGED]


def test_a_jump_is_one_in_the_merchants_own_money(merchant, wine):
    """Where the money is the same, no rate can make a price suspect, nor hide that it is."""
    load_rates("2026-03-14", USD="1.10", TRY="40")
    record(merchant, euros("1000.00", currency="TRY"))
    load_rates("2026-03-15", USD="1.10", TRY="800")
    assert record(merchant, euros("1100.00", NOW + DAY, "TRY")) == [Verdict.APPLIED]
    assert record(merchant, euros("110000.00", NOW + DAY + HOUR, "TRY")) == [Verdict.HELD]
    assert record(merchant, euros("1.60", NOW + DAY + HOUR)) == [Verdict.APPLIED]  # in other money: dollars


# --- Without a rate ---------------------------------------------------------------------------------------------


def test_what_has_no_rate_is_held_with_the_reason_and_released_when_the_rate_comes(merchant, wine):
    assert record(merchant, euros("100.00")) == [Verdict.NO_RATE]
    held = HeldPrice.objects.get()
    assert (held.cause, held.price_usd, str(held.native_price), held.native_currency) == (
        "no_rate",
        None,
        "100.00",
        "EUR",
    )
    assert "No exchange rate of EUR" in held.reason
    assert published() == []
    assert holds.release_convertible(now=NOW) == 0
    load_rates("2026-03-14", USD="1.10")
    assert holds.release_convertible(now=NOW) == 1
    assert standing() == ("110.00", "EUR", "100.00")
    assert Offer.objects.get().occurred_at == NOW
    assert published()[0]["attributes"] == {"request_id": "r"}
    assert not HeldPrice.objects.exists()


def test_all_that_waited_is_recorded_in_its_order_and_the_last_stands(merchant, wine):
    for hours, price in enumerate(["100.00", "90.00", "90.00", "100.00", "100.00"]):
        record(merchant, euros(price, NOW + hours * HOUR))
    record(merchant, euros("95.00", NOW + 3.5 * HOUR))
    assert HeldPrice.objects.count() == 4  # what was only said again is not held again
    load_rates("2026-03-14", USD="1.10")
    assert holds.release_convertible(now=NOW) == 4
    assert standing() == ("110.00", "EUR", "100.00")
    assert Offer.objects.get().seen_at == NOW + 4 * HOUR
    prices = [str(message["body"]["new_price_usd"]) for message in published()]
    assert prices == ["110.00", "99.00", "110.00", "104.50", "110.00"]


def test_many_are_released_in_several_transactions_and_still_in_their_order(merchant, wine, monkeypatch):
    monkeypatch.setattr(holds, "AT_ONCE", 1)
    for hours in (2, 0, 1):
        record(merchant, euros(f"{100 + hours}.00", NOW + hours * HOUR))
    load_rates("2026-03-14", USD="1.10")
    assert holds.release_convertible(now=NOW) == 3
    assert [message["type"] for message in published()] == ["wine.price_changed"] * 3
    assert standing() == ("112.20", "EUR", "102.00")


def test_a_nightly_feed_without_a_rate_holds_each_price_once(merchant, wine):
    for night in range(5):
        record(merchant, euros("100.00", NOW + night * DAY, "GEL"))
    held = HeldPrice.objects.get()
    assert (held.occurred_at, held.seen_at) == (NOW, NOW + 4 * DAY)


def test_what_came_after_it_stands_and_the_released_one_is_late(merchant, wine):
    record(merchant, euros("100.00"))
    record(merchant, seen("150.00", NOW + HOUR))
    load_rates("2026-03-14", USD="1.10")
    holds.release_convertible(now=NOW)
    assert standing() == ("150.00", "", None)
    assert [message["type"] for message in published()] == ["wine.price_changed", "wine.late_price_observed"]


def test_a_released_price_that_jumps_is_held_for_that(merchant, wine):
    record(merchant, seen("150.00"))
    record(merchant, euros("10000.00", NOW + HOUR))
    load_rates("2026-03-14", USD="1.10")
    holds.release_convertible(now=NOW)
    assert HeldPrice.objects.get().cause == "jump"
    load_rates("2026-03-13", USD="1.10")
    assert holds.release_convertible(now=NOW) == 0


def test_a_wine_retired_meanwhile_keeps_nobody_elses_price(merchant, wine):
    other = cast.wine("4418")
    record(merchant, euros("100.00"), Observation.of(other.pk, Decimal(100), "EUR", NOW))
    type(wine).objects.filter(pk=wine.pk).update(retired_at=NOW)
    load_rates("2026-03-14", USD="1.10")
    assert holds.release_convertible(now=NOW) == 1
    assert Offer.objects.get().wine == other
    assert HeldPrice.objects.get().wine == wine


def test_a_person_releases_it_at_the_last_rate_however_old(merchant, wine):
    load_rates("2025-01-02", USD="1.03")
    record(merchant, euros("100.00"))
    outcome = holds.release(held_id=HeldPrice.objects.get().pk, by="7", now=NOW)
    assert outcome.verdict is Verdict.APPLIED
    assert standing() == ("103.00", "EUR", "100.00")
    assert published()[0]["attributes"] == {"request_id": "r", "released_by": "7"}


def test_without_any_rate_not_even_a_person_can(merchant, wine):
    record(merchant, euros("100.00", currency="GEL"))
    outcome = holds.release(held_id=HeldPrice.objects.get().pk, by="7", now=NOW)
    assert outcome.verdict is Verdict.NO_RATE
    assert HeldPrice.objects.get().native_currency == "GEL"


def test_less_than_a_cent_is_held_and_stays_so(merchant, wine):
    load_rates("2026-03-14", USD="1.10", IDR="18000")
    assert record(merchant, euros("1.00", currency="IDR")) == [Verdict.NO_RATE]
    assert holds.release_convertible(now=NOW) == 0
    assert HeldPrice.objects.count() == 1


# --- The command ------------------------------------------------------------------------------------------------


def load(tmp_path, capsys, text=CSV):
    path = tmp_path / "eurofxref.csv"
    path.write_text(text)
    call_command("load_rates", str(path))
    return capsys.readouterr().out


def test_the_command_says_what_it_did_and_again_changes_nothing(tmp_path, capsys):
    assert "rates added: 3, corrected: 0, known already: 0" in load(tmp_path, capsys)
    assert "1 days, 2026-03-13 to 2026-03-13" in load(tmp_path, capsys)
    before = list(ExchangeRate.objects.order_by("id").values())
    assert "rates added: 0, corrected: 0, known already: 3" in load(tmp_path, capsys)
    assert list(ExchangeRate.objects.order_by("id").values()) == before
    assert "rates added: 0, corrected: 1, known already: 2" in load(tmp_path, capsys, CSV.replace("0.85", "0.86"))
    assert str(ExchangeRate.objects.get(currency="GBP").per_eur) == "0.86000000"


def test_the_command_releases_what_waited(tmp_path, capsys, merchant, wine):
    record(merchant, euros("100.00", currency="GBP"))
    assert "held prices released: 1" in load(tmp_path, capsys)
    assert standing() == ("129.41", "GBP", "100.00")
    assert "held prices released: 0" in load(tmp_path, capsys)


def test_a_bad_file_is_told_with_its_line_and_loads_nothing(tmp_path, capsys):
    with pytest.raises(CommandError, match="line 3, USD: 'x' is no rate"):
        load(tmp_path, capsys, "Date,USD\n2026-03-12,1.1\n2026-03-13,x\n")
    with pytest.raises(CommandError, match="No such file"):
        call_command("load_rates", str(tmp_path / "none.csv"))
    assert not ExchangeRate.objects.exists()
