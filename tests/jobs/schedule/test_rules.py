"""What becomes of each slot, and of a failed attempt: the tables."""

from datetime import UTC, datetime, timedelta

import pytest

from jobs.schedule import rules
from jobs.schedule.rules import CatchUp, Origin, Outcome, Overlap, Standing

MINUTE = timedelta(minutes=1)
T = datetime(2026, 3, 14, 2, 0, tzinfo=UTC)
NIGHTS = [T - timedelta(days=n) for n in (3, 2, 1, 0)]
FREE = Standing(paused=False, running=None)
BUSY = Standing(paused=False, running=T - timedelta(days=9))

R, C, M, S, P = "run", "caught up", "missed", "skipped", "paused"
WORDS = {
    (Outcome.WAITING, Origin.SLOT): R,
    (Outcome.WAITING, Origin.CAUGHT_UP): C,
    (Outcome.MISSED, Origin.SLOT): M,
    (Outcome.SKIPPED, Origin.SLOT): S,
    (Outcome.PAUSED, Origin.SLOT): P,
}


@pytest.mark.parametrize(
    ("late", "overlap", "catch_up", "standing", "expected"),
    [
        # Four nights were due. The last is on time, or the scheduler came back long after it.
        (1, Overlap.SKIP, CatchUp.skip(), FREE, [M, M, M, R]),
        (30, Overlap.SKIP, CatchUp.skip(), FREE, [M, M, M, M]),
        (1, Overlap.SKIP, CatchUp.latest(), FREE, [M, M, M, R]),  # `latest` fires once
        (30, Overlap.SKIP, CatchUp.latest(), FREE, [M, M, M, C]),
        (1, Overlap.QUEUE, CatchUp.latest(), FREE, [M, M, M, R]),
        (1, Overlap.QUEUE, CatchUp.each(2), FREE, [M, C, C, R]),
        (30, Overlap.QUEUE, CatchUp.each(2), FREE, [M, M, C, C]),
        (30, Overlap.SKIP, CatchUp.each(9), FREE, [C, C, C, C]),
        (1, Overlap.SKIP, CatchUp.each(0), FREE, [M, M, M, R]),
        # Another run is under way.
        (1, Overlap.SKIP, CatchUp.latest(), BUSY, [M, M, M, S]),
        (30, Overlap.SKIP, CatchUp.latest(), BUSY, [M, M, M, S]),
        (1, Overlap.QUEUE, CatchUp.latest(), BUSY, [M, M, M, R]),
        (1, Overlap.QUEUE, CatchUp.each(1), BUSY, [M, M, C, R]),
        # Paused.
        (1, Overlap.QUEUE, CatchUp.each(9), Standing(paused=True, running=None), [P, P, P, P]),
    ],
)
def test_each_slot_gets_its_answer(
    late: int, overlap: Overlap, catch_up: CatchUp, standing: Standing, expected: list[str]
) -> None:
    on_time = late <= 5
    back = catch_up.most - (0 if on_time else 1)
    noted = rules.note(
        NIGHTS,
        newest=T,
        caught_up_from=T - timedelta(days=back),
        now=T + late * MINUTE,
        late_after=5 * MINUTE,
        overlap=overlap,
        catch_up=catch_up,
        standing=standing,
    )
    assert [n.slot for n in noted] == NIGHTS
    assert [WORDS[n.outcome, n.origin] for n in noted] == expected
    assert all(bool(n.reason) == (n.outcome is not Outcome.WAITING) for n in noted), "what does not run says why"


@pytest.mark.parametrize(
    ("attempt", "minutes_later", "overlap", "catch_up", "expected"),
    [
        (1, 5, Overlap.SKIP, CatchUp.latest(), True),
        (3, 5, Overlap.SKIP, CatchUp.latest(), False),  # that was the last
        (1, 59, Overlap.SKIP, CatchUp.skip(), True),
        (1, 60, Overlap.SKIP, CatchUp.skip(), False),  # its successor stands for it
        (1, 60, Overlap.SKIP, CatchUp.latest(), False),
        (1, 60, Overlap.SKIP, CatchUp.each(1), True),  # each counts
        (1, 60, Overlap.QUEUE, CatchUp.latest(), True),
        (3, 60, Overlap.QUEUE, CatchUp.each(1), False),
    ],
)
def test_a_failed_attempt_is_followed_by_another_unless_it_was_the_last_or_its_successor_came(
    attempt: int, minutes_later: int, overlap: Overlap, catch_up: CatchUp, expected: bool
) -> None:
    again = rules.goes_again(
        attempt=attempt,
        attempts=3,
        next_slot=T + 60 * MINUTE,
        now=T + minutes_later * MINUTE,
        overlap=overlap,
        catch_up=catch_up,
    )
    assert again is expected
