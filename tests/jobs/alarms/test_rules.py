"""When an alarm's condition holds, and an incident's life by hysteresis: the tables."""

from dataclasses import replace
from datetime import UTC, datetime, timedelta

import pytest

from jobs.alarms import rules
from jobs.alarms.rules import JobFacts, Known, LetterFacts, Limits, RunFacts, Step

NOW = datetime(2026, 3, 15, 5, 0, tzinfo=UTC)
S, M, H, D = timedelta(seconds=1), timedelta(minutes=1), timedelta(hours=1), timedelta(days=1)
LIMITS = Limits(
    late_after=5 * M,
    grace=20 * S,
    slow_factor=3,
    slow_floor=M,
    silent_after=3 * M,
    letters_warn_after=5 * M,
    letters_page_after=15 * M,
    letters_kept=14 * D,
    letters_warn_expiry=2 * D,
    letters_decide_within=5,
)
WELL = JobFacts(
    name="nightly",
    heartbeat=26 * H,
    time_limit=H,
    first_seen_at=NOW - 90 * D,
    paused_at=None,
    ran_at=NOW - 3 * H,
    running=None,
    last=RunFacts(NOW - 3 * H, "ran", NOW - 3 * H, NOW - 3 * H + 4 * M),
    usual=4 * M,
    samples=20,
    unnoticed=None,
)


def running(began: timedelta, lock: timedelta = timedelta(0) + M) -> RunFacts:
    return RunFacts(NOW - began, "running", NOW - began, None, lock_expires_at=NOW + lock)


@pytest.mark.parametrize(
    ("changes", "expected"),
    [
        ({}, []),
        # Not completed within its limit, which for the nightly one is 26 hours.
        ({"ran_at": NOW - 26 * H}, []),
        ({"ran_at": NOW - 26 * H - S}, [("job-overdue", "page", "Not completed for 26 h, limit 26 h")]),
        ({"ran_at": None}, [("job-overdue", "page", "never completed since 2025-12-15 05:00 UTC")]),
        ({"ran_at": None, "first_seen_at": NOW - 2 * H}, []),
        ({"ran_at": NOW - 2 * D, "paused_at": NOW - D}, [("job-overdue", "page", "paused since 2026-03-14")]),
        # Started and never finished.
        ({"running": running(4 * M)}, []),
        ({"running": running(4 * M, -10 * S)}, []),  # a scheduler is about to find it
        ({"running": running(4 * M, -M)}, [("job-stuck", "page", "no sign of life since")]),
        ({"running": running(2 * H), "usual": None}, [("job-stuck", "page", "its time limit is 1 h")]),
        # Much longer than usual.
        ({"running": running(12 * M)}, []),
        ({"running": running(13 * M)}, [("job-slow", "warn", "runs for 13 min; usual: 4 min")]),
        ({"running": running(13 * M), "samples": 4}, []),
        ({"running": running(50 * S), "usual": S, "last": None}, []),  # below the floor nobody cares
        (
            {"last": RunFacts(NOW - 3 * H, "ran", NOW - 3 * H, NOW - 3 * H + 13 * M)},
            [("job-slow", "warn", "took 13 min")],
        ),
        # The last one came to nothing.
        (
            {"last": RunFacts(NOW - H, "failed", NOW - H, NOW - H + M, "no rate for CHF")},
            [("job-failed", "warn", "CHF")],
        ),
        ({"last": RunFacts(NOW - H, "crashed", NOW - H, NOW - H + M, "its lock")}, [("job-failed", "warn", "crashed")]),
        ({"unnoticed": NOW - H}, [("slot-unnoticed", "page", "No scheduler has noticed the slot of 2026-03-15 04:00")]),
    ],
)
def test_a_jobs_alarms(changes: dict[str, object], expected: list[tuple[str, str, str]]) -> None:
    found = list(rules.judge_job(replace(WELL, **changes), NOW, LIMITS))
    assert [(c.alarm, c.severity) for c in found] == [(alarm, severity) for alarm, severity, _ in expected]
    for condition, (_, _, words) in zip(found, expected, strict=True):
        assert words in condition.summary
        assert condition.subject == "nightly"


@pytest.mark.parametrize(
    ("beats", "expected"),
    [
        ({"scheduler": NOW - 50 * S, "watchman": NOW}, []),
        ({"scheduler": NOW - 70 * S, "watchman": NOW}, ["scheduler-silent"]),
        ({"scheduler": NOW}, ["watchman-silent"]),
        ({}, ["scheduler-silent", "watchman-silent"]),
    ],
)
def test_a_process_that_is_silent_or_does_not_run(beats: dict[str, datetime], expected: list[str]) -> None:
    assert [c.alarm for c in rules.judge_processes(beats, NOW, LIMITS)] == expected


W, U, E = "dead-letters-waiting", "dead-letters-undecided", "dead-letters-expiring"
V = "dead-letters-overdue"


@pytest.mark.parametrize(
    ("age", "expected"),
    [
        (5 * M - S, []),
        (5 * M, [W]),
        (15 * M, [W]),
        (15 * M + S, [W, U]),
        (8 * D + 5 * H, [W, U]),  # since the Saturday before last: five business days
        (8 * D + 5 * H + S, [W, U, V]),  # and a second of a Friday
        (12 * D, [W, U, V]),
        (12 * D + S, [W, U, V, E]),
    ],
)
def test_dead_letters_warn_at_five_minutes_page_after_fifteen_and_warn_two_days_before_they_go(
    age: timedelta, expected: list[str]
) -> None:
    found = list(rules.judge_letters([LetterFacts("mails", 3, NOW - age, NOW - age)], NOW, LIMITS))
    assert [c.alarm for c in found] == expected
    assert [c.severity for c in found] == [{W: "warn", U: "page", V: "page", E: "warn"}[alarm] for alarm in expected]
    assert all(c.subject == "mails" for c in found)
    assert all("3 dead letters" in c.summary for c in found if c.alarm != E)


SUSPECTED = Known(since=NOW - 2 * M, last_true_at=NOW - S, opened=False)
OPEN = Known(since=NOW - H, last_true_at=NOW - S, opened=True)


@pytest.mark.parametrize(
    ("known", "holds", "opens_after", "expected"),
    [
        (None, True, 0 * M, Step.OPEN),
        (None, True, 3 * M, Step.SUSPECT),
        (SUSPECTED, True, 3 * M, Step.SUSPECT),
        (SUSPECTED, True, 2 * M, Step.OPEN),
        (SUSPECTED, False, 3 * M, Step.FORGET),
        (OPEN, True, 3 * M, Step.KEEP),
        (OPEN, False, 3 * M, Step.WAIT),  # it may come back; that is not another incident
        (replace(OPEN, last_true_at=NOW - 5 * M + S), False, 3 * M, Step.WAIT),
        (replace(OPEN, last_true_at=NOW - 5 * M), False, 3 * M, Step.CLOSE),
    ],
)
def test_an_incident_opens_when_its_condition_lasts_and_closes_when_it_stays_away(
    known: Known | None, holds: bool, opens_after: timedelta, expected: Step
) -> None:
    assert rules.step(known, holds=holds, now=NOW, opens_after=opens_after, closes_after=5 * M) is expected
