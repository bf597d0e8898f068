"""When a redrive sends, waits, stops and ends; business days; fingerprints; departures from a schema. All pure."""

from datetime import UTC, datetime, timedelta
from decimal import Decimal

import pytest
from hypothesis import given
from hypothesis import strategies as st

from jobs.dead_letters.fingerprint import fingerprint, normalised
from jobs.dead_letters.rules import Done, Move, Send, Stop, Wait, business_days, next_move
from jobs.dead_letters.schema_diff import compare
from jobs.dead_letters.selection import Selection

PACE = {"rate": 50, "stop_share": 0.1, "sample": 10, "stop_asked_by": "", "may_send": True}


@pytest.mark.parametrize(
    ("counts", "changed", "expected"),
    [
        ({"queued": 341}, {}, Send(10)),  # the first ten go alone ...
        ({"queued": 331, "sent": 10}, {}, Wait()),  # ... and are waited for
        ({"queued": 331, "sent": 9, "applied": 1}, {}, Wait()),
        ({"queued": 331, "applied": 10}, {}, Send(50)),
        ({"queued": 331, "applied": 9, "refused": 1}, {}, Send(50)),  # a tenth is not more than a tenth
        ({"queued": 331, "applied": 8, "failed_again": 2}, {}, Stop("2 of the first 10 failed again, more than 10%")),
        ({"queued": 200, "applied": 10, "sent": 100}, {}, Wait()),  # two seconds' worth are under way
        ({"queued": 200, "applied": 10, "sent": 70}, {}, Send(30)),
        ({"queued": 5, "applied": 10}, {}, Send(5)),
        ({"queued": 5, "applied": 10}, {"may_send": False}, Wait()),
        ({"queued": 3}, {"sample": 10}, Send(3)),
        ({"queued": 1, "failed_again": 3}, {}, Send(1)),  # fewer than the sample in all: the last may still tell
        ({"sent": 2, "applied": 8}, {}, Wait()),
        ({"applied": 8, "failed_again": 2}, {}, Done()),  # nothing left to spare
        ({}, {}, Done()),
        ({"queued": 5, "sent": 5}, {"stop_asked_by": "x"}, Stop("stopped by hand")),
        ({"sent": 5}, {"stop_asked_by": "x"}, Wait()),
    ],
)
def test_what_a_redrive_does_next(counts: dict[str, int], changed: dict[str, object], expected: Move) -> None:
    assert next_move(counts, **{**PACE, **changed}) == expected  # type: ignore[arg-type]


@given(st.dictionaries(st.sampled_from(["queued", "sent", "applied", "failed_again", "refused"]), st.integers(0, 500)))
def test_it_never_sends_more_than_is_queued_nor_more_than_two_seconds_worth(counts: dict[str, int]) -> None:
    move = next_move(counts, **PACE)  # type: ignore[arg-type]
    if isinstance(move, Send):
        assert 0 < move.count <= counts.get("queued", 0)
        assert move.count + counts.get("sent", 0) <= 100
    if isinstance(move, Done):
        assert not counts.get("queued") and not counts.get("sent")


FRIDAY = datetime(2026, 3, 13, 12, tzinfo=UTC)


@pytest.mark.parametrize(
    ("until", "expected"),
    [
        (FRIDAY, 0),
        (FRIDAY + timedelta(hours=12), 0.5),
        (FRIDAY + timedelta(days=2), 0.5),  # the weekend counts for nothing
        (FRIDAY + timedelta(days=3), 1),
        (FRIDAY + timedelta(days=7), 5),
    ],
)
def test_business_days_leave_out_the_weekend(until: datetime, expected: float) -> None:
    assert business_days(FRIDAY, until) == expected


def test_letters_of_one_kind_share_a_fingerprint_whatever_their_particulars() -> None:
    alike = [
        "wine wn_4417: price 154.00 above 1,000",
        "wine wn_0001: price 2 above 3.5",
    ]
    assert len({fingerprint("s", "t", "E", reason) for reason in alike}) == 1
    assert normalised("currency 'USD ' not ISO-4217") == normalised("currency 'EURO' not ISO-4217")
    different = {
        ("s", "t", "E", "a"),
        ("x", "t", "E", "a"),
        ("s", "x", "E", "a"),
        ("s", "t", "X", "a"),
        ("s", "t", "E", "b"),
    }
    assert len({fingerprint(*kind) for kind in different}) == 5


SCHEMA = {
    "required": ["price", "currency"],
    "properties": {
        "price": {"type": "number", "exclusiveMinimum": 0, "multipleOf": 0.01, "x-stability": "contract"},
        "currency": {"type": "string", "const": "USD"},
        "name": {"type": ["string", "null"], "maxLength": 5},
        "old": {"anyOf": [{"type": "number", "exclusiveMinimum": 0}, {"type": "null"}]},
    },
}


@pytest.mark.parametrize(
    ("body", "wrong"),
    [
        ({"price": Decimal("1.10"), "currency": "USD", "name": None}, {}),
        ({"currency": "USD "}, {"price": "missing", "currency": "not 'USD'"}),
        ({"price": True, "currency": 3}, {"price": "not number", "currency": "not string"}),
        ({"price": Decimal(0), "currency": "USD", "name": "longer"}, {"price": "not above 0", "name": "too long"}),
        ({"price": Decimal("1.005"), "currency": "USD"}, {"price": "not a multiple of 0.01"}),
        ({"price": 1, "currency": "USD", "old": None}, {}),
        ({"price": 1, "currency": "USD", "old": Decimal(-1)}, {"old": "not above 0"}),
        (["no", "object"], {"(the body)": "not an object"}),
    ],
)
def test_departures_from_the_schema_are_named_field_by_field(body: object, wrong: dict[str, str]) -> None:
    assert {field.name: field.wrong for field in compare(SCHEMA, body) if field.wrong} == wrong


def test_a_selection_survives_its_query_string() -> None:
    chosen = Selection(ids=(3, 5), origin="mch_1", since=FRIDAY, up_to=9, decision="open")
    assert Selection.from_query(chosen.as_query()) == chosen


@pytest.mark.parametrize(
    "query",
    [
        {"ids": "1,x"},
        {"ids": "-1"},
        {"since": "yesterday"},
        {"until": "2026-01-01T00:00"},
        {"up_to": "9" * 30},
        {"ids": ",".join(map(str, range(1, 1_500)))},
    ],
)
def test_what_no_selection_means_is_refused_and_names_the_field(query: dict[str, str]) -> None:
    with pytest.raises(ValueError, match=f"{next(iter(query))}: .* is not understood"):
        Selection.from_query(query)
