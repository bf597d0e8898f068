"""Stored answers are kept for as long as a merchant may repeat a request, and no longer."""

from datetime import timedelta
from io import StringIO

import pytest
from django.core.management import call_command

from jobs.models import JobRun
from jobs.schedule import store
from pricing.feeds import answers
from pricing.models import FeedAnswer
from tests.cast import merchant


@pytest.mark.django_db(transaction=True)
def test_answers_past_their_time_go_in_chunks_and_the_others_stay(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(answers, "PURGE_BATCH", 2)
    seller = merchant()
    for days in (1, 13, 15, 16, 17):
        made = FeedAnswer.objects.create(merchant=seller, key=f"d{days}", body_sha256="0" * 64)
        FeedAnswer.objects.filter(pk=made.pk).update(created_at=store.now() - timedelta(days=days))
    call_command("run_job", "feed-answers", stdout=StringIO(), stderr=StringIO())
    assert set(FeedAnswer.objects.values_list("key", flat=True)) == {"d1", "d13"}
    run = JobRun.objects.get(job="feed-answers")
    assert (run.outcome, run.counts) == ("ran", {"answers removed": 3})
