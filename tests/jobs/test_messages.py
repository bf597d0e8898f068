"""Event ids and bodies."""

from decimal import Decimal
from unittest import mock

from jobs.messages import NewMessage, dumps, is_command, new_event_id


def test_event_ids_are_unique_short_and_sort_by_time() -> None:
    with mock.patch("jobs.messages.time.time_ns", side_effect=lambda: next(clock)):
        clock = iter(range(1_700_000_000_000_000_000, 1_900_000_000_000_000_000, 10**14))
        ids = [new_event_id() for _ in range(1_000)]
    assert ids == sorted(ids)
    assert len(set(ids)) == 1_000
    assert all(len(i) == 30 and i.startswith("evt_") for i in ids)


def test_ids_of_one_millisecond_differ() -> None:
    assert len({new_event_id() for _ in range(10_000)}) == 10_000


def test_money_is_written_with_all_its_digits() -> None:
    row = NewMessage("t", "k", {"price": Decimal("189.00"), "big": Decimal("12345678.90")}).as_row()
    assert dumps(row["body"]) == '{"price":189.00,"big":12345678.90}'


def test_commands_and_events_are_told_apart_by_their_names() -> None:
    assert is_command("send_alert_email")
    assert not is_command("wine.price_changed")
