"""Bottles as a person looks at them: ready or not, chosen, sorted, grouped."""

from decimal import Decimal
from typing import Any

import pytest

from winecellar.cellars.holdings import Choice, Held, Ready, drink_now, group, readiness
from winecellar.cellars.rules import Source

D = Decimal
PLAIN = Held(1, "Ch. Montrose", "Château Montrose", 2016, False, 750, "red", "France", "Saint-Estèphe, Bordeaux", 2,
             "Cellar", "A1", None, None, "wn_4417", D("10.00"), Source.OFFER)  # fmt: skip


def held(**fields: Any) -> Held:
    return PLAIN._replace(**fields)


@pytest.mark.parametrize(
    ("first", "last", "expected"),
    [
        (None, None, Ready.UNKNOWN),
        (2027, None, Ready.EARLY),
        (2026, None, Ready.NOW),
        (2020, 2030, Ready.NOW),
        (None, 2027, Ready.NOW),
        (2020, 2026, Ready.LAST_YEAR),
        (2026, 2026, Ready.LAST_YEAR),
        (2020, 2025, Ready.PAST),
        (None, 2025, Ready.PAST),
        (2027, 2030, Ready.EARLY),
    ],
)
def test_both_ends_of_a_window_are_inside_it(first: int | None, last: int | None, expected: Ready) -> None:
    assert readiness(held(drink_from=first, drink_until=last), 2026) is expected


def test_the_drink_now_list_begins_with_the_most_urgent_and_leaves_out_what_is_not_ready() -> None:
    windows = {1: (2020, 2040), 2: (2027, 2030), 3: (2010, 2020), 4: (None, None), 5: (2020, 2026), 6: (2024, None)}
    rows = [held(id=id_, drink_from=first, drink_until=last) for id_, (first, last) in windows.items()]
    assert [row.id for row in drink_now(rows, 2026)] == [3, 5, 1, 6]


ROWS = [
    held(id=1),
    held(id=2, name="Krug", producer="Krug", vintage=None, non_vintage=True, region="Champagne", unit=D("99.00")),
    held(
        id=3,
        name="Anon",
        vintage=None,
        region="",
        size_ml=1500,
        location="Attic",
        wine_id=None,
        unit=None,
        source=Source.NONE,
        quantity=5,
    ),
    held(id=4, name="Ältester", vintage=1990, drink_from=2000, drink_until=2010, unit=None, source=None),
]


@pytest.mark.parametrize(
    ("choice", "expected"),
    [
        (Choice(), [4, 3, 1, 2]),
        (Choice(search="MONTROSE estephe"), [4, 1]),
        (Choice(search="krug nv"), [2]),
        (Choice(region="Bordeaux"), [4, 1]),
        (Choice(region="France"), [3]),
        (Choice(vintage="NV"), [2]),
        (Choice(vintage="1990"), [4]),
        (Choice(size="1500"), [3]),
        (Choice(location="Attic"), [3]),
        (Choice(show="ready"), [4]),
        (Choice(show="unvalued"), [3]),
        (Choice(show="unlinked"), [3]),
        (Choice(show="nonsense", sort="nonsense"), [4, 3, 1, 2]),
        (Choice(sort="value"), [2, 1, 4, 3]),
        (Choice(sort="vintage"), [4, 1, 3, 2]),
        (Choice(sort="drink"), [4, 3, 1, 2]),
        (Choice(sort="location"), [3, 4, 1, 2]),
    ],
)
def test_bottles_are_chosen_and_sorted(choice: Choice, expected: list[int]) -> None:
    assert [row.id for row in choice.of(ROWS, 2026)] == expected


def test_groups_count_what_has_no_value_and_add_nothing_for_it() -> None:
    groups = group(ROWS, lambda row: row.wide_region, most=8)
    assert [(one.label, one.bottles, one.without_value, one.value) for one in groups] == [
        ("Champagne", 2, 0, D("198.00")),
        ("Bordeaux", 4, 2, D("20.00")),
        ("France", 5, 5, D(0)),
    ]
    assert sum(one.percent for one in groups) == 100


def test_what_is_beyond_the_largest_groups_is_put_together() -> None:
    rows = [held(id=n, name=str(n), unit=D(n)) for n in range(1, 6)]
    groups = group(rows, lambda row: row.name, most=3)
    assert [(one.label, one.value) for one in groups] == [("5", D(10)), ("4", D(8)), ("others", D(12))]


def test_a_cellar_without_any_value_has_groups_of_no_part() -> None:
    (one,) = group([held(unit=None, source=Source.NONE)], lambda row: "x", most=8)
    assert (one.value, one.percent) == (D(0), D(0))
