"""The night as a run of the schedule: `run_job value-cellars`, for days that were missed, through the real fence."""

import io
from datetime import timedelta
from typing import Any

import pytest
from django.core.management import call_command

from jobs.schedule.models import JobRun
from tests.cast import wine
from tests.cellars.cast import NIGHT, SLOT, bottle, cellar, offered
from winecellar.cellars.models import Valuation

pytestmark = pytest.mark.django_db(transaction=True)


@pytest.fixture(autouse=True)
def _clean_schedule() -> Any:
    yield
    JobRun.objects.all().delete()


def test_days_that_were_missed_are_valued_by_hand_each_as_of_its_own_slot(settings: Any) -> None:
    settings.VALUATION_CHUNK = 1
    offered("100.00", hours=12)
    bottle(wine(), quantity=2)
    bottle(wine(), inside=cellar("bob"), quantity=7)
    out = io.StringIO()
    first = NIGHT - timedelta(days=1)
    call_command("run_job", "value-cellars", "--from", str(first), "--to", str(NIGHT), stdout=out)
    found = Valuation.objects.filter(cellar=cellar()).values_list("day", "value", "without_value")
    # The offer came twelve hours before the second slot: on the first day nothing was known.
    assert [(day, str(value), without) for day, value, without in found] == [(first, "0.00", 2), (NIGHT, "200.00", 0)]
    runs = list(JobRun.objects.order_by("scheduled_for"))
    assert [run.scheduled_for for run in runs] == [SLOT - timedelta(days=1), SLOT]
    # What it came to is on the run, which the admin shows.
    assert [(run.done, run.total, run.counts["bottles"]) for run in runs] == [(2, 2, 9), (2, 2, 9)]
    assert "2" in out.getvalue()


def test_running_a_night_again_changes_nothing() -> None:
    offered("100.00")
    bottle(wine())
    for _ in range(2):
        call_command("run_job", "value-cellars", "--for", str(NIGHT), stdout=io.StringIO())
    assert Valuation.objects.count() == 1
