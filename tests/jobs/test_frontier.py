"""The low-water mark: it saves walking over dead rows, and must never pass a delivery that may still appear."""

import pytest

from jobs.frontier import Frontier
from jobs.queue import Look

P = (1, 0)


def test_the_mark_waits_until_no_transaction_of_the_first_look_is_left() -> None:
    frontier = Frontier()
    frontier.learn(P, Look(seen=5, blocked=None, first=100, xmin=50, xmax=60), claimed=5)
    assert frontier.mark(P) == 0
    frontier.learn(P, Look(seen=5, blocked=None, first=120, xmin=59, xmax=70), claimed=5)
    assert frontier.mark(P) == 0, "transaction 59 could still commit a lower id"
    frontier.learn(P, Look(seen=5, blocked=None, first=130, xmin=60, xmax=80), claimed=5)
    assert frontier.mark(P) == 100


def test_the_mark_never_passes_what_the_later_look_still_saw() -> None:
    frontier = Frontier()
    frontier.learn(P, Look(seen=5, blocked=None, first=100, xmin=50, xmax=60), claimed=5)
    frontier.learn(P, Look(seen=5, blocked=None, first=90, xmin=60, xmax=80), claimed=5)
    assert frontier.mark(P) == 90, "a late commit appeared below the candidate"


def test_an_empty_look_moves_nothing() -> None:
    frontier = Frontier()
    frontier.learn(P, Look(seen=0, blocked=None, first=None, xmin=50, xmax=60), claimed=0)
    assert frontier.mark(P) == 0


def test_what_fills_a_window_and_cannot_go_is_looked_past_until_the_next_sweep() -> None:
    frontier = Frontier()
    assert frontier.learn(P, Look(seen=10, first=1, blocked=["hot"], xmin=1, xmax=1), claimed=0)
    assert frontier.blocked(P) == ["hot"]
    frontier.look_from_the_front()
    assert frontier.blocked(P) == []


def test_a_look_past_blocked_keys_moves_no_mark() -> None:
    """Their rows are older than what it saw, and are still to be delivered."""
    frontier = Frontier()
    frontier.learn(P, Look(seen=10, first=1, blocked=["hot"], xmin=1, xmax=1), claimed=0)
    for xmin in range(10, 14):
        frontier.learn(P, Look(seen=5, blocked=None, first=500, xmin=xmin, xmax=xmin), claimed=5, partial=True)
    assert frontier.mark(P) < 500


def test_a_partition_is_held_by_one_lane_at_a_time_and_is_not_forgotten_when_announced_meanwhile() -> None:
    frontier = Frontier()
    frontier.announce([P])
    assert frontier.take() == P
    frontier.announce([P])
    assert frontier.take() is None, "another lane has it"
    frontier.release(P, more=False)
    assert frontier.take() == P, "it was announced while it was held"


def test_paused_subscriptions_are_forgotten() -> None:
    frontier = Frontier()
    frontier.announce([(1, 0), (2, 0)])
    frontier.restrict({2}, {})
    assert frontier.take() == (2, 0)
    assert frontier.take() is None
    frontier.announce([(1, 0)])
    assert frontier.take() is None, "a notification opens nothing that is paused"
    frontier.restrict({1, 2}, {})
    frontier.announce([(1, 0)])
    assert frontier.take() == (1, 0)


def test_no_more_partitions_of_a_subscription_are_held_at_once_than_its_limit() -> None:
    frontier = Frontier()
    frontier.announce([(1, 0), (1, 1), (1, 2), (2, 0)])
    frontier.restrict({1, 2}, {1: 2})
    taken = [frontier.take() for _ in range(4)]
    assert taken[3] is None
    assert sorted(p[0] for p in taken if p) == [1, 1, 2]
    held = next(p for p in taken if p and p[0] == 1)
    frontier.release(held, more=False)
    following = frontier.take()
    assert following is not None
    assert following[0] == 1


def test_what_was_learnt_of_a_server_is_not_believed_of_the_next_whose_ids_begin_lower() -> None:
    """After a failover that lost commits: a mark from before would hide the new messages, for ever or out of order."""
    frontier = Frontier()
    for xmin, xmax in ((50, 60), (60, 80)):
        frontier.learn(P, Look(seen=5, blocked=None, first=100, xmin=xmin, xmax=xmax), claimed=5)
    assert frontier.mark(P) == 100
    server = frontier.server
    frontier.begin_anew()
    assert frontier.mark(P) == 0
    for xmin, xmax in ((60, 80), (80, 90)):  # a lane that had claimed from the old one says it only now
        frontier.learn(P, Look(seen=5, blocked=None, first=100, xmin=xmin, xmax=xmax), claimed=5, server=server)
    assert frontier.mark(P) == 0
    for xmin, xmax in ((10, 20), (20, 30)):
        look = Look(seen=5, blocked=None, first=7, xmin=xmin, xmax=xmax)
        frontier.learn(P, look, claimed=5, server=frontier.server)
    assert frontier.mark(P) == 7


def test_a_notification_about_the_partitions_of_others_wakes_no_lane(monkeypatch: pytest.MonkeyPatch) -> None:
    frontier = Frontier()
    frontier.restrict({2}, {})
    monkeypatch.setattr(frontier._condition, "notify_all", lambda: pytest.fail("for nothing"))
    frontier.announce([])
    frontier.announce([(1, 0)])
