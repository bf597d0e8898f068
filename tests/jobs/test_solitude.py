"""Who may work at once in a process, and that a message which kills it is blamed alone."""

import threading

import pytest

from jobs.solitude import Solitude


def test_many_share_and_one_is_alone():
    solitude = Solitude()
    assert solitude.share(0)
    assert solitude.share(0)
    assert not solitude.seclude(0)
    solitude.leave()
    assert not solitude.seclude(0)
    solitude.leave()
    assert solitude.seclude(0)
    assert not solitude.share(0)
    assert not solitude.seclude(0), "and nobody else is alone at the same time"
    assert not solitude.share(0), "the vain attempt changed nothing"
    solitude.leave()
    assert solitude.share(0)


def test_whoever_wants_to_be_alone_goes_before_those_who_come_to_share():
    solitude = Solitude()
    assert solitude.share(0)
    alone = threading.Event()
    waiter = threading.Thread(target=lambda: solitude.seclude(30) and alone.set())
    waiter.start()
    while not solitude.is_wanted():
        pass
    assert not solitude.share(0)
    solitude.leave()
    waiter.join(30)
    assert alone.is_set()
    solitude.leave()
    assert solitude.share(0)


def test_a_failed_block_leaves():
    solitude = Solitude()
    for enter in (solitude.shared, solitude.secluded):
        with pytest.raises(ZeroDivisionError), enter(0) as may:
            assert may
            1 / 0  # noqa: B018
        assert solitude.seclude(0)
        solitude.leave()
