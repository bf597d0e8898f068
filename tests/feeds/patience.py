"""A sender that does what a 503 asks: the same again, after a moment. On a slow machine a twin may hold the row for
longer than FEED_LOCK_TIMEOUT, and saying so is right; losing the request or taking it twice is not."""

import time
from collections.abc import Callable
from typing import TypeVar

DEADLINE = 90.0
PAUSE = 0.1
Answer = TypeVar("Answer")


def until_taken(
    send: Callable[[], Answer], status: Callable[[Answer], int], asks_to_wait: Callable[[Answer], str | None]
) -> Answer:
    """The first answer that is not 503. Each 503 must say when to come again."""
    deadline = time.monotonic() + DEADLINE
    while True:
        answer = send()
        if status(answer) != 503:
            return answer
        assert int(asks_to_wait(answer) or 0) >= 1, "a 503 without Retry-After"
        assert time.monotonic() < deadline, "still 503"
        time.sleep(PAUSE)
