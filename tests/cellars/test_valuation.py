"""The nightly valuation on Postgres: which prices count, once per cellar and day, resumed, fenced, in nobody's way."""

import random
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import timedelta
from decimal import Decimal

import psycopg
import pytest
from django.conf import LazySettings
from django.db import connection, transaction

from jobs.errors import LockLostError
from pricing.models import Availability, ExchangeRate, Offer
from tests.cast import merchant, wine
from tests.cellars.cast import NIGHT, SLOT, bottle, cellar, history, offered, unfenced, valuation, value
from winecellar.cellars import rates, selectors
from winecellar.cellars import valuation as nightly
from winecellar.cellars.models import Night, NightPrice, Valuation, ValuationLines
from winecellar.cellars.rules import Basis, Line, Money, Offered, Source, worth

D = Decimal
RATES = {"USD": D(1), "EUR": D("0.8123456789"), "JPY": D("151.3")}

pytestmark = pytest.mark.django_db


@pytest.fixture
def rated(monkeypatch: pytest.MonkeyPatch) -> dict[str, Decimal]:
    """The night's rates, which a test may change."""
    kept = dict(RATES)
    for module in (rates, nightly):
        monkeypatch.setattr(module, "rates_on", lambda day: dict(kept))
    return kept


def lines() -> dict[int, Line]:
    return {line.bottle_id: line for line in selectors.lines_of(valuation())}


# --- Which prices count ----------------------------------------------------------------------------------------


def test_a_cellar_is_worth_its_best_offers_times_its_bottles() -> None:
    offered("170.00")
    offered("160.00", by=merchant("083", "La Cave"))
    bottle(wine(), quantity=3)
    assert value().cellars == 1
    assert (valuation().value, valuation().bottles, valuation().without_value) == (D("480.00"), 3, 0)


def test_a_price_that_came_after_the_slot_does_not_count_and_the_one_before_it_does() -> None:
    one, x = wine(), merchant()
    history("150.00", of=one, by=x, hours=40)
    history("155.00", of=one, by=x, hours=10)
    history("1.00", of=one, by=x, hours=5, late=True)
    offered("99.00", hours=-0.1, seen=-0.1)
    bottle(one)
    value()
    assert valuation().value == D("155.00")


def test_a_wine_first_offered_after_the_slot_has_no_offer_that_night() -> None:
    offered("99.00", hours=-1, seen=-1)
    mine = bottle(wine(), paid="50")
    value()
    assert lines()[mine.pk].source is Source.PAID


def test_an_offer_that_nobody_confirmed_for_long_counts_as_the_last_one_known_with_its_day() -> None:
    offered("99.00", hours=24 * 50, seen=24 * 40)
    offered("120.00", by=merchant("083", "La Cave"), hours=24 * 50, seen=24 * 35)
    mine = bottle(wine())
    value()
    line = lines()[mine.pk]
    assert (line.unit, line.source, line.seen_on) == (D("120.00"), Source.LAST_OFFER, NIGHT - timedelta(days=35))


def test_a_withdrawn_offer_counts_as_the_last_one_known_from_the_day_it_went() -> None:
    offered("100.00", hours=200)
    offered("120.00", by=merchant("083", "La Cave"), hours=200)
    Offer.objects.filter(merchant=merchant()).update(withdrawn_at=SLOT - timedelta(days=3))
    mine = bottle(wine())
    value()
    assert (lines()[mine.pk].unit, lines()[mine.pk].source) == (D("120.00"), Source.OFFER)
    Offer.objects.update(withdrawn_at=SLOT - timedelta(days=2))
    Offer.objects.filter(merchant=merchant()).update(withdrawn_at=SLOT + timedelta(days=1, hours=-3))
    value(SLOT + timedelta(days=1))
    line = selectors.lines_of(valuation(slot=SLOT + timedelta(days=1)))[0]
    assert (line.unit, line.source, line.seen_on) == (D("100.00"), Source.LAST_OFFER, NIGHT)


def test_a_gap_that_has_closed_since_is_a_gap_for_the_nights_in_it() -> None:
    offered("100.00", hours=200)
    gone, back = SLOT - timedelta(days=2), SLOT + timedelta(hours=5)
    for at, price in ((gone, None), (back, D("100.00"))):
        Availability.objects.create(
            wine=wine(), merchant_id=merchant().pk, price_usd=price, observed_at=at, event_id=f"evt_{at}"
        )
    mine = bottle(wine())
    value()
    assert (lines()[mine.pk].source, lines()[mine.pk].seen_on) == (Source.LAST_OFFER, gone.date())
    value(SLOT + timedelta(days=1))
    assert selectors.lines_of(valuation(slot=SLOT + timedelta(days=1)))[0].source is Source.OFFER


def test_an_offer_in_other_money_is_worth_itself_in_a_cellar_of_that_money_whatever_the_rate_was() -> None:
    for day, rate in ((NIGHT - timedelta(days=3), "1.25"), (NIGHT - timedelta(days=1), "1.10")):
        ExchangeRate.objects.create(currency="EUR", day=day, per_eur=1, source="ecb")
        ExchangeRate.objects.create(currency="USD", day=day, per_eur=D(rate), source="ecb")
    offered("125.00", hours=72)
    Offer.objects.update(native_price=D("100.00"), native_currency="EUR")
    bottle(wine(), inside=cellar(currency="EUR"), quantity=3)
    bottle(wine(), inside=cellar("bob", currency="USD"))
    value()
    assert (valuation().value, valuation().usd_rate) == (D("300.00"), D("0.9090909091"))
    assert valuation(cellar("bob")).value == D("110.00")


@pytest.mark.parametrize(
    ("days", "expected"),
    [(-1, {"USD": D(1)}), (0, {"USD": D(1), "EUR": D("0.8")}), (3, {"USD": D(1), "EUR": D("0.8")})],
)
def test_the_rate_of_a_day_is_the_last_published_on_it_or_before(days: int, expected: dict[str, Decimal]) -> None:
    for code, rate in (("EUR", 1), ("USD", D("1.25"))):
        ExchangeRate.objects.create(currency=code, day=NIGHT, per_eur=rate, source="ecb")
        ExchangeRate.objects.create(currency=code, day=NIGHT + timedelta(days=9), per_eur=rate, source="ecb")
    ExchangeRate.objects.create(currency="CHF", day=NIGHT + timedelta(days=9), per_eur=D("0.9"), source="ecb")
    assert rates.rates_on(NIGHT + timedelta(days=days)) == expected


def test_bottles_without_any_value_are_counted_and_left_out_never_0() -> None:
    offered("100.00")
    bottle(wine())
    unknown = bottle(quantity=5)
    value()
    assert (valuation().value, valuation().bottles, valuation().without_value) == (D("100.00"), 6, 5)
    assert lines()[unknown.pk] == Line(unknown.pk, 5, None, Source.NONE)


def test_what_is_drunk_does_not_count_and_an_empty_cellar_is_worth_nothing() -> None:
    offered("100.00")
    bottle(wine(), quantity=0)
    value()
    assert (valuation().value, valuation().bottles) == (D("0.00"), 0)
    assert lines() == {}


def test_the_nights_rate_is_frozen_in_the_row(rated: dict[str, Decimal]) -> None:
    offered("100.00")
    bottle(wine(), inside=cellar(currency="EUR"))
    value()
    rated["EUR"] = D("0.5")
    assert (valuation().currency, valuation().usd_rate, valuation().value) == ("EUR", D("0.8123456789"), D("81.23"))


def test_a_cellar_whose_currency_has_no_rate_is_not_valued_and_others_are(rated: dict[str, Decimal]) -> None:
    del rated["JPY"]
    cellar("bob", currency="JPY")
    cellar("alice")
    assert value().cellars == 1
    assert not Valuation.objects.filter(cellar=cellar("bob")).exists()


def test_the_statement_and_the_rule_agree_on_every_kind_of_bottle(rated: dict[str, Decimal]) -> None:
    """Six hundred bottles with every combination of what may be known, in three currencies: SQL against the rule."""
    dice = random.Random(45)
    fresh, old, gone = (wine(str(n), name=f"Wine {n}", size_ml=750) for n in (1, 2, 3))
    magnum = wine("4", name="Wine 4", size_ml=1500)
    offered("133.37", of=fresh)
    offered("0.01", of=magnum)
    offered("71.05", of=old, hours=24 * 90, seen=24 * 45)
    asked = {
        fresh.pk: Offered(D("133.37"), 750),
        magnum.pk: Offered(D("0.01"), 1500),
        old.pk: Offered(D("71.05"), 750, NIGHT - timedelta(days=45)),
    }
    owners = [cellar(name, currency=code, scales_by_size=scales) for name, code, scales in (
        ("alice", "USD", True), ("bob", "EUR", False), ("charlie", "JPY", True))]  # fmt: skip
    for _ in range(600):
        money = [(str(dice.randrange(1, 30_000) / 100), dice.choice(["USD", "EUR", "JPY", "XAF"])) for _ in range(2)]
        known = {"size_ml": dice.choice([375, 750, 1500, 187]), "quantity": dice.randrange(1, 30)}
        if dice.random() < 0.3:
            known |= {"own_value": money[0][0], "own_currency": money[0][1]}
        if dice.random() < 0.6:
            known |= {"paid": money[1][0], "paid_currency": money[1][1]}
        of = dice.choice([fresh, old, gone, magnum, None])
        bottle(of, inside=dice.choice(owners), **known)
    value()
    seen = set()
    for owner in owners:
        basis, total = Basis(owner.currency, rated, owner.scales_by_size), D(0)
        found = {line.bottle_id: line for line in selectors.lines_of(valuation(owner))}
        for one in owner.bottles.all():
            expected = worth(
                basis=basis,
                size_ml=one.size_ml,
                own=Money(one.own_value, one.own_currency) if one.own_value else None,
                offered=asked.get(one.wine_id or ""),
                paid=Money(one.paid, one.paid_currency) if one.paid else None,
            )
            line = found.pop(one.pk)
            assert (line.unit, line.source, line.seen_on) == (expected.amount, expected.source, expected.seen_on)
            assert line.quantity == one.quantity
            total += (expected.amount or 0) * one.quantity
            seen.add((owner.currency, expected.source))
        assert found == {}
        assert valuation(owner).value == total
    assert len(seen) == 3 * len(Source)


# --- Once, resumed, fenced -------------------------------------------------------------------------------------


def five_cellars() -> None:
    offered("100.00")
    for number in range(5):
        bottle(wine(), inside=cellar(f"owner{number}"), quantity=number + 1)


def result() -> list[tuple[object, ...]]:
    totals = Valuation.objects.order_by("cellar_id").values_list("cellar_id", "day", "value", "bottles", "usd_rate")
    return [*totals, *ValuationLines.objects.order_by("cellar_id").values_list("cellar_id", "unit_values", "sources")]


def test_two_runs_of_a_night_give_one_row_for_each_cellar_and_the_same_result() -> None:
    five_cellars()
    assert value().cellars == 5
    first = result()
    offered("1.00", hours=0.5)
    assert value().cellars == 0
    assert result() == first
    assert Valuation.objects.count() == 5


def test_a_cellar_made_after_the_run_is_valued_by_the_next_run_of_that_night_at_its_prices() -> None:
    five_cellars()
    value()
    offered("1.00", hours=0.5)
    bottle(wine(), inside=cellar("late"))
    assert value().cellars == 1
    assert valuation(cellar("late")).value == D("100.00")


@pytest.mark.parametrize("stops_after", range(6))
def test_a_run_that_stopped_anywhere_goes_on_there_and_comes_to_the_same_result(
    stops_after: int, settings: LazySettings
) -> None:
    settings.VALUATION_CHUNK = 2
    five_cellars()
    with transaction.atomic():
        value()
        expected = result()
        transaction.set_rollback(True)
    entered = 0

    @contextmanager
    def dies() -> Iterator[None]:
        nonlocal entered
        entered += 1
        with transaction.atomic():
            yield
            if entered > stops_after:
                raise LockLostError("taken over")

    told: list[tuple[int, int]] = []
    with pytest.raises(LockLostError):
        value(fenced=dies)
    # Chunks before the loss are kept, and the one in which it was noticed is not.
    assert Valuation.objects.count() == min(2 * max(stops_after - 1, 0), 5)
    offered("1.00", hours=0.5)  # the prices are frozen by the first run, if it came so far
    again = value(progress=lambda done, total, **_: told.append((done, total)))
    assert again.cellars == 5 - min(2 * max(stops_after - 1, 0), 5)
    assert told[-1:] in ([(5, 5)], [])
    if stops_after:
        assert result() == expected


def test_progress_says_how_far_it_is_and_what_is_in_doubt(settings: LazySettings) -> None:
    settings.VALUATION_CHUNK = 2
    five_cellars()
    bottle(inside=cellar("owner0"), quantity=7)
    told: list[tuple[object, ...]] = []
    value(progress=lambda done, total, **counts: told.append((done, total, counts["cellars"], counts["without_value"])))
    assert told == [(2, 5, 2, 7), (4, 5, 4, 7), (5, 5, 5, 7)]


def test_lines_and_prices_of_old_nights_go_and_totals_stay(settings: LazySettings) -> None:
    five_cellars()
    for day in range(10):
        value(SLOT + timedelta(days=day))
    oldest = NIGHT + timedelta(days=9) - settings.VALUATION_DETAIL_RETENTION
    assert {row.day for row in ValuationLines.objects.all()} == {oldest + timedelta(days=n) for n in range(9)}
    assert min(NightPrice.objects.values_list("day", flat=True)) == oldest
    assert Valuation.objects.count() == 50
    assert Night.objects.count() == 10


@pytest.mark.django_db(transaction=True)
def test_a_chunk_holds_no_lock_that_a_page_or_a_feed_waits_for() -> None:
    five_cellars()
    mine = cellar("owner0").bottles.get()
    parameters = connection.get_connection_params()
    parameters.pop("cursor_factory", None)
    parameters.pop("context", None)
    others = [
        f"UPDATE cellars_bottle SET quantity = 9, location = 'Attic' WHERE id = {mine.pk}",
        f"DELETE FROM cellars_bottle WHERE id = {mine.pk}",
        f"UPDATE cellars_cellar SET currency = 'EUR' WHERE id = {mine.cellar_id}",
        f"SELECT FROM cellars_cellar WHERE id = {mine.cellar_id} FOR NO KEY UPDATE",
        "SELECT FROM pricing_wine FOR NO KEY UPDATE",
        "UPDATE pricing_offer SET price_usd = 5",
        "SELECT count(*) FROM cellars_valuation",
    ]
    done = []

    @contextmanager
    def watched() -> Iterator[None]:
        with unfenced():
            yield
            # All is written, and nothing committed.
            with psycopg.connect(**parameters) as other:
                other.execute("SET lock_timeout = '2s'")
                for statement in others:
                    with other.transaction(force_rollback=True):
                        other.execute(statement)
                        done.append(statement)

    assert value(fenced=watched).cellars == 5
    assert set(done) == set(others)
    assert Offer.objects.get().price_usd == D("100.00")
