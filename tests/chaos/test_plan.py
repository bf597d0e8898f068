"""What goes wrong is a pure function of the seed, enough of it in half an hour, and all of it in a minute."""

from collections import Counter

import pytest

from tests.chaos.nemesis import FAULTS
from tests.chaos.plan import MODES, POISON, RHYTHM, doses, strikes


def test_the_same_seed_breaks_the_same_and_another_seed_does_not() -> None:
    assert strikes(7, 90) == strikes(7, 90)
    assert doses(7, 90) == doses(7, 90)
    assert strikes(7, 90) != strikes(8, 90)
    assert doses(7, 90) != doses(8, 90)


@pytest.mark.parametrize("seed", [1, 2, 3])
def test_half_an_hour_has_as_much_of_everything_as_was_asked_for(seed: int) -> None:
    counts = Counter(strike.fault for strike in strikes(seed, 1_800))
    assert counts["kill_worker"] >= 300
    assert counts["stop_postgres"] >= 60
    assert 3 * counts["end_backends"] >= 300
    poison = Counter(dose.kind for dose in doses(seed, 1_800))
    assert poison.total() >= 1_000
    assert set(poison) == set(POISON)


@pytest.mark.parametrize("seed", range(5))
def test_a_minute_has_every_fault_each_way_to_stop_a_server_and_every_poison(seed: int) -> None:
    some = strikes(seed, 60)
    assert {strike.fault for strike in some} == set(RHYTHM) == set(FAULTS)
    assert {strike.mode for strike in some if strike.fault == "stop_postgres"} == set(MODES["stop_postgres"])
    assert all(0 <= strike.at < 60 and strike.seconds <= 15 for strike in some)
    assert some == sorted(some, key=lambda strike: (strike.at, strike.fault))
    early = [dose.kind for dose in doses(seed, 60) if dose.at <= 20]
    assert set(early) == set(POISON)


def test_several_faults_are_there_at_once() -> None:
    """F37: what lasts overlaps with what strikes meanwhile."""
    some = strikes(1, 1_800)
    lasting = [strike for strike in some if strike.seconds > 1]
    together = sum(
        any(a.fault != b.fault and a.at < b.at < a.at + a.seconds for b in some if b.at < a.at + 30) for a in lasting
    )
    assert together > len(lasting) / 2
