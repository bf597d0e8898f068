"""The no-op of the peers that are Django task backends."""

import shape
from django_tasks import task


@task()
def noop(number: int) -> None:
    shape.seen(number)
