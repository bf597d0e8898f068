"""Kill a process at every statement: count the points, fork a child per point, end it there without a word.

A point is the moment before or after one SQL statement, one COMMIT, or one call of a provider. Or the statement was
carried out and its answer is lost: the connection breaks, the process lives on and knows nothing. The parent checks
what is left, lets the work be done again, and checks the end; it stops at the first child that meets no point.

To die after one point is to die before the next, for nothing is between them but the memory of who dies. So "before"
is tried at the first point alone, and "after" at each. And what only reads leaves nothing behind: to die, or to lose
the server, around it is to do so after the point before it. So of the reads that the ORM makes the first of a row is
tried, and the others are counted.
"""

import os
import re
import signal
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

from django.db import Error as DatabaseError
from django.db import OperationalError, connection, connections
from django.db.backends.base.base import BaseDatabaseWrapper

CRASHED, FINISHED, FAILED, LOST = 137, 0, 3, 4
WAYS = ("before", "after", "reply lost")


def ways(number: int) -> tuple[str, ...]:
    """In which ways a run ends at this point that no other point's run has."""
    return WAYS if number == 1 else WAYS[1:]


# What Django's ORM sends for a read, and nothing else: no lock, no function of ours, no statement within.
A_READ = re.compile(r'SELECT (?:DISTINCT )?(?:"|1 AS|\(1\) AS|COUNT\()(?!.*\bFOR (?:NO KEY )?UPDATE\b)', re.DOTALL)


class Points:
    """Counts points in the child, and ends it, or its connection, at the chosen one. `met`: it was there."""

    def __init__(self, number: int, when: str) -> None:
        self.number = number
        self.when = when
        self.seen = 0
        self.met = False
        self.reads: list[bool] = []  # of each point: whether it is a read of the ORM's

    def reach(self, when: str) -> None:
        if when == "before":
            self.seen += 1
        if self.seen == self.number and self.when == when:
            os._exit(CRASHED)

    def around(self, call: Callable[[], Any], lose: Callable[[], Any] | None = None, sql: object = "") -> Any:
        """`lose`: how its answer is lost, where that is to be."""
        self.reads.append(isinstance(sql, str) and bool(A_READ.match(sql)))
        self.reach("before")
        point = self.seen
        result = call()
        self.reach("after")
        if point == self.number and self.when == "reply lost" and not self.met:
            self.met = True
            (lose or _cut_off)()
        return result


def _cut_off() -> None:
    """As a network does that ends between the server's answer and us."""
    connection.connection.pgconn.finish()
    connection.errors_occurred = True
    raise OperationalError("the answer was lost")


@contextmanager
def counted(points: Points) -> Iterator[None]:
    """Every statement and every COMMIT of this process's connection is a point."""
    commit = BaseDatabaseWrapper._commit  # COMMIT does not pass through execute wrappers

    def counted_commit(self: BaseDatabaseWrapper) -> Any:
        return points.around(lambda: commit(self))

    def statement(execute: Callable[..., Any], sql: str, params: Any, many: bool, context: Any) -> Any:
        return points.around(lambda: execute(sql, params, many, context), sql=sql)

    BaseDatabaseWrapper._commit = counted_commit  # type: ignore[method-assign]
    try:
        with connection.execute_wrapper(statement):
            yield
    finally:
        BaseDatabaseWrapper._commit = commit  # type: ignore[method-assign]


def to_try(reads: list[bool]) -> list[int]:
    """The numbers of the points at which a run may end as no other does: all but a read that follows a read."""
    return [n for n, is_read in enumerate(reads, start=1) if not (is_read and n > 1 and reads[n - 2])]


def run_child(act: Callable[[Points], None], number: int, when: str) -> int:
    """Run `act` in a forked child that dies at the given point; its exit status."""
    connections.close_all()  # the child must not share our socket
    pid = os.fork()
    if pid == 0:
        signal.alarm(60)
        status = FAILED
        try:
            points = Points(number, when)
            with counted(points):
                try:
                    act(points)
                except DatabaseError:
                    if not points.met:
                        raise
            status = LOST if points.met else FINISHED
        except BaseException:
            import traceback

            traceback.print_exc()
        finally:
            os._exit(status)
    _, status = os.waitpid(pid, 0)
    return os.waitstatus_to_exitcode(status)


def points_of(act: Callable[[Points], None]) -> list[bool]:
    """Of each point of a run that ends well, in a child as all others are: whether it is a read of the ORM's."""
    told, tells = os.pipe()

    def tell(points: Points) -> None:
        act(points)
        os.write(tells, bytes(points.reads))

    status = run_child(tell, 0, "")
    os.close(tells)
    with os.fdopen(told, "rb") as kinds:
        assert status == FINISHED, f"the child failed by itself: {status}"
        return [bool(each) for each in kinds.read()]


def sweep(
    *,
    prepare: Callable[[], object],
    act: Callable[[Points], None],
    check_after_crash: Callable[[], None],
    recover: Callable[[], object],
    check_end: Callable[[str], None],
) -> int:
    """End a run at every point, in every way that leaves what no other does; returns how many points there were. Raises
    on the first broken invariant."""
    prepare()
    reads = points_of(act)
    count = len(reads)
    for number in [*to_try(reads), count + 1]:
        for when in ways(number):
            prepare()
            status = run_child(act, number, when)
            where = f"{when} point {number}"
            assert status in (CRASHED, LOST, FINISHED), f"the child failed by itself at {where}: {status}"
            assert (status == FINISHED) == (number > count), f"{where} of {count}: {status}"
            check_after_crash()
            recover()
            check_end(where)
    return count
