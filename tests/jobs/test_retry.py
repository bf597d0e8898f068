"""The retry policy as a table, and its spread as statistics."""

import random
from collections import Counter

import pytest

from jobs.errors import PermanentError, TransientError
from jobs.retry import Bury, Cause, Kind, Retry, ceiling, classify, decide

MAX, BASE = 5, 1.0


def decided(kind: Kind, receive_count: int, *, retry_after: float = 0.0, chosen: float = 1.0) -> Retry | Bury:
    """With a jitter that picks the share `chosen` of its range."""
    return decide(
        kind,
        receive_count=receive_count,
        max_receives=MAX,
        base=BASE,
        retry_after=retry_after,
        uniform=lambda low, high: low + (high - low) * chosen,
    )


@pytest.mark.parametrize(("receive_count", "seconds"), [(1, 1), (2, 2), (3, 4), (4, 8), (5, 16)])
def test_the_longest_wait_doubles_from_one_second_to_sixteen(receive_count: int, seconds: int) -> None:
    assert ceiling(receive_count, base=BASE) == seconds


@pytest.mark.parametrize(
    ("kind", "receive_count", "retry_after", "expected"),
    [
        (Kind.PERMANENT, 1, 0.0, Bury(Cause.PERMANENT)),
        (Kind.TRANSIENT, 1, 0.0, Retry(1.0)),
        (Kind.TRANSIENT, 4, 0.0, Retry(8.0)),
        (Kind.TRANSIENT, 5, 0.0, Bury(Cause.EXHAUSTED)),
        (Kind.TRANSIENT, 2, 30.0, Retry(30.0)),
        (Kind.TRANSIENT, 4, 3.0, Retry(8.0)),
        (Kind.UNCLASSIFIED, 3, 0.0, Retry(4.0)),
        (Kind.UNCLASSIFIED, 5, 0.0, Bury(Cause.EXHAUSTED)),
        (Kind.CRASH, 4, 0.0, Retry(8.0)),
        (Kind.CRASH, 5, 0.0, Bury(Cause.WORKER_CRASH)),
    ],
)
def test_what_becomes_of_a_failure(kind: Kind, receive_count: int, retry_after: float, expected: Retry | Bury) -> None:
    assert decided(kind, receive_count, retry_after=retry_after) == expected


@pytest.mark.parametrize(
    ("error", "kind"),
    [
        (PermanentError("x"), Kind.PERMANENT),
        (TransientError("x"), Kind.TRANSIENT),
        (TimeoutError(), Kind.TRANSIENT),
        (ConnectionResetError(), Kind.TRANSIENT),
        (ValueError("503 Service Unavailable"), Kind.UNCLASSIFIED),
        (KeyError("x"), Kind.UNCLASSIFIED),
        (MemoryError(), Kind.CRASH),
        (RecursionError(), Kind.CRASH),
        (SystemExit(1), Kind.CRASH),
    ],
)
def test_failures_are_classified_by_class_and_never_by_their_text(error: Exception, kind: Kind) -> None:
    assert classify(error, is_away=lambda _: False) is kind


def test_a_database_that_is_away_is_transient() -> None:
    assert classify(RuntimeError("any"), is_away=lambda _: True) is Kind.TRANSIENT


def test_two_hundred_workers_do_not_retry_in_step() -> None:
    """A 90 s brownout meets 200 workers at once. In any tenth of a second, few of them come back together."""
    source = random.Random(20260314)
    arrivals: Counter[int] = Counter()
    for _ in range(200):
        at = 0.0
        for receive_count in range(1, MAX):
            decision = decide(
                Kind.TRANSIENT,
                receive_count=receive_count,
                max_receives=MAX,
                base=BASE,
                retry_after=0.0,
                uniform=source.uniform,
            )
            assert isinstance(decision, Retry)
            at += decision.delay
            arrivals[int(at * 10)] += 1
    without_jitter = 200
    assert max(arrivals.values()) < without_jitter / 4
    assert len(arrivals) > 80, "the waves are spread over many tenths of a second"
