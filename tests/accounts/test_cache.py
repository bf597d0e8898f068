"""The cache in the database: what allauth relies on for its counts and its used codes."""

import threading
from datetime import timedelta
from io import StringIO

import pytest
from django.core.cache import cache
from django.core.management import call_command
from django.db import connection
from django.utils import timezone

from jobs.models import JobRun
from winecellar.accounts.models import CacheEntry

pytestmark = pytest.mark.django_db(transaction=True)


def expire(*keys: str) -> None:
    CacheEntry.objects.filter(key__in=[cache.make_key(key) for key in keys]).update(
        expires_at=timezone.now() - timedelta(seconds=1)
    )


@pytest.mark.parametrize("value", [True, "y", [1.5, 2.25], {"a": None}, 0, ""])
def test_a_value_comes_back_as_it_went_in(value: object) -> None:
    cache.set("a", value, 60)
    assert cache.get("a", "default") == value


def test_what_is_not_there_or_no_longer_good_is_the_default() -> None:
    assert cache.get("a") is None
    cache.set("a", 1, 60)
    expire("a")
    assert cache.get("a", "default") == "default"
    assert not cache.touch("a", 60)
    assert not cache.has_key("a")


def test_add_takes_only_a_free_key() -> None:
    assert cache.add("a", 1, 60)
    assert not cache.add("a", 2, 60)
    assert cache.get("a") == 1
    expire("a")
    assert cache.add("a", 3, 60)
    assert cache.get("a") == 3


def test_of_many_who_add_at_once_one_succeeds() -> None:
    barrier, won = threading.Barrier(8), []

    def add(number: int) -> None:
        try:
            barrier.wait(30)
            won.append(cache.add("lock", number, 60))
        finally:
            connection.close()

    for _ in range(5):
        cache.clear()
        won.clear()
        threads = [threading.Thread(target=add, args=(number,)) for number in range(8)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join(30)
        assert sorted(won) == [False] * 7 + [True]


def test_none_keeps_a_value_and_zero_keeps_none() -> None:
    cache.set("for-ever", 1, None)
    assert CacheEntry.objects.get().expires_at is None
    cache.set("never", 1, 0)
    assert cache.get("never") is None


def test_delete_and_touch_say_whether_there_was_anything() -> None:
    cache.set("a", 1, 60)
    assert cache.touch("a", 3_600)
    assert CacheEntry.objects.get().expires_at > timezone.now() + timedelta(minutes=50)
    assert cache.delete("a")
    assert not cache.delete("a")


def test_writing_takes_expired_rows_away_so_that_the_table_stays_small() -> None:
    for number in range(20):
        cache.set(f"old-{number}", 1, 60)
    expire(*[f"old-{number}" for number in range(20)])
    for number in range(10):
        cache.set(f"new-{number}", 1, 60)
    assert CacheEntry.objects.count() == 10


def test_the_schedule_takes_all_of_them_away() -> None:
    for number in range(5):
        cache.set(f"old-{number}", 1, 60)
    expire(*[f"old-{number}" for number in range(5)])
    call_command("run_job", "account-leftovers", stdout=StringIO(), stderr=StringIO())
    assert not CacheEntry.objects.exists()
    assert JobRun.objects.get(job="account-leftovers").counts["counts removed"] == 5
