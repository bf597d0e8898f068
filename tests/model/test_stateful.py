"""The real queue on real Postgres against the reference in memory, in histories that hypothesis makes up."""

import os
from collections.abc import Iterator
from datetime import timedelta
from typing import Any

import pytest
from django.db import connection
from hypothesis import HealthCheck
from hypothesis import settings as profile
from hypothesis.stateful import run_state_machine_as_test

from jobs.models import Subscription
from tests.model.machine import COUNTS, KEYS, LatePublisher, QueueMachine

# The same histories each time, so that nobody's change fails by chance. MODEL_EXAMPLES=2000 looks for new ones.
LOOKING = os.environ.get("MODEL_EXAMPLES")
EXAMPLES = profile(
    max_examples=int(LOOKING or 100),
    stateful_step_count=40,
    deadline=None,
    derandomize=not LOOKING,
    database=None,
    suppress_health_check=list(HealthCheck),
)


@pytest.fixture
def machine_db(queue_db: None, settings: Any) -> Iterator[None]:
    settings.VISIBILITY_TIMEOUT = timedelta(hours=1)
    settings.MAX_RECEIVES = 3
    Subscription.objects.update(partitions=1)
    QueueMachine.late_publisher = LatePublisher()
    with connection.cursor() as cursor:
        cursor.execute("DROP TABLE IF EXISTS model_effect, model_key")
        cursor.execute(
            "CREATE TABLE model_effect (id bigint GENERATED ALWAYS AS IDENTITY, consumer text, event_id text)"
        )
        cursor.execute("CREATE TABLE model_key (key text PRIMARY KEY)")
        cursor.executemany("INSERT INTO model_key VALUES (%s)", [(key,) for key in KEYS])
        cursor.execute("SET synchronous_commit = off")  # nobody pulls the plug here
    yield
    QueueMachine.late_publisher.close()
    with connection.cursor() as cursor:
        cursor.execute("RESET synchronous_commit")
        cursor.execute("DROP TABLE model_effect, model_key")
        cursor.execute("DELETE FROM jobs_deadletter")


@pytest.mark.django_db(transaction=True)
def test_whatever_happens_the_queue_holds_what_the_reference_holds(
    machine_db: None, capsys: pytest.CaptureFixture[str]
) -> None:
    COUNTS.clear()
    run_state_machine_as_test(QueueMachine, settings=EXAMPLES)
    with capsys.disabled():
        print(f"\nstateful: {dict(COUNTS)}")
    for kind in (
        "late commits",
        "suspects",
        "silent deaths",
        "zombies refused",
        "redrives",
        "claims past blocked keys",
    ):
        assert COUNTS[kind] > 0, f"no history had any {kind}"
