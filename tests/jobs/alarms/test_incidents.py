"""Alarms from the database's facts to incidents, told once; and what one judge's failure does to the others."""

import threading
from datetime import timedelta
from typing import Any

import pytest
from django.core import mail
from django.db import connection

from jobs.alarms import evaluation, facts, incidents, notices
from jobs.alarms.rules import Condition, Severity
from jobs.alarms.watchman import Watchman
from jobs.errors import PermanentError
from jobs.models import Incident, JobRun, Process
from jobs.schedule import store
from tests.jobs.schedule.conftest import DAY, HOUR, MINUTE, Held, T, known_since, only, schedule, scheduler
from tests.jobs.schedule.under_test import acts

__all__ = ["schedule"]
AWAY = Condition("scheduler-silent", "scheduler", Severity.PAGE, "No scheduler runs.")


@pytest.fixture
def all_beat(schedule: Any) -> None:
    store.beat("scheduler", "host:1")
    store.beat("watchman", "host:2")


def opened() -> list[tuple[str, str, str]]:
    return [(i.alarm, i.subject, i.state) for i in Incident.objects.order_by("alarm", "id")]


def bury(name: str, age: timedelta) -> None:
    with connection.cursor() as cursor:
        cursor.execute(
            "INSERT INTO jobs_deadletter (subscription_name, message_id, event_id, message_type, key, body, attributes,"
            " cause, error_class, reason, traceback, failures, receive_count, published_at, dead_lettered_at,"
            " waits_from) VALUES (%s, 1, 'e', 't', 'k', '{}', '{}', 'permanent', 'E', 'r', '', '[]', 1, now(), %s, %s)",
            [name, store.now() - age, store.now() - age],
        )


def test_all_well_is_silence(all_beat: None) -> None:
    assert evaluation.evaluate(store.now())
    assert opened() == []


def test_a_nightly_job_not_completed_for_26_hours_is_an_incident_until_it_completes(
    schedule: Any, all_beat: None, settings: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    job = schedule["nightly"].__class__(
        **{**schedule["nightly"].__dict__, "heartbeat": settings.NIGHTLY_HEARTBEAT_LIMIT}
    )
    monkeypatch.setattr(evaluation, "load_schedule", lambda: {"nightly": job})
    monkeypatch.setattr(facts, "beats", lambda: {"scheduler": T + 40 * DAY, "watchman": T + 40 * DAY})
    known_since("nightly", T)
    store.write_noted("nightly", [], until=T + 40 * DAY)
    evaluation.evaluate(T + 26 * HOUR)
    assert opened() == []
    evaluation.evaluate(T + 26 * HOUR + MINUTE)
    evaluation.evaluate(T + 27 * HOUR)
    assert opened() == [("job-overdue", "nightly", "open")]
    incident = Incident.objects.get()
    assert incident.summary == "Not completed for 27 h, limit 26 h; never completed since 2026-03-14 02:00 UTC."
    assert incidents.acknowledge(incident_id=incident.pk, by="charlie")
    assert not incidents.acknowledge(incident_id=incident.pk, by="dora"), "somebody has"
    evaluation.evaluate(T + 28 * HOUR - MINUTE)
    claimed = store.begin_asked(job, T, owner="o", by="x")
    assert claimed
    store.finish(claimed, store.Outcome.RAN)
    JobRun.objects.update(ended_at=T + 28 * HOUR)
    evaluation.evaluate(T + 28 * HOUR + MINUTE)
    assert opened() == [("job-overdue", "nightly", "acknowledged")], "not closed before it stays away"
    evaluation.evaluate(T + 28 * HOUR + 6 * MINUTE)
    assert opened() == [("job-overdue", "nightly", "closed")]
    evaluation.evaluate(T + 60 * HOUR)
    assert opened() == [("job-overdue", "nightly", "closed"), ("job-overdue", "nightly", "open")], "a new one"


def test_failed_stuck_and_unnoticed_are_found_in_the_tables(schedule: Any, all_beat: None) -> None:
    now = store.now()
    known_since("nightly", now - DAY)
    acts["nightly"] = lambda run: (_ for _ in ()).throw(PermanentError("no rate for CHF"))
    scheduler(only(schedule, "nightly")).step(now)
    known_since("hourly", now - HOUR)
    scheduler(only(schedule, "hourly"), Held()).step(now)
    with connection.cursor() as cursor:
        cursor.execute("UPDATE jobs_lock SET expires_at = %s WHERE job = 'hourly'", [now - HOUR])
    known_since("queued", now - 3 * HOUR)
    evaluation.evaluate(store.now())
    assert opened() == [
        ("job-failed", "nightly", "open"),
        ("job-stuck", "hourly", "open"),
        ("slot-unnoticed", "queued", "open"),
    ]
    assert "no rate for CHF" in Incident.objects.get(alarm="job-failed").summary


def test_a_run_much_longer_than_usual_is_said_while_it_runs(schedule: Any, all_beat: None) -> None:
    now = store.now()
    for n in range(6):
        claimed = store.begin_asked(schedule["nightly"], T + n * DAY, owner="o", by="x")
        assert claimed
        store.finish(claimed, store.Outcome.RAN)
    known_since("nightly", now - DAY)
    run = store.begin_asked(schedule["nightly"], T + 9 * DAY, owner="o", by="x")
    assert run
    run_of_all = Incident.objects
    evaluation.evaluate(now + 59 * MINUTE / 60)
    assert not run_of_all.filter(alarm="job-slow").exists()
    evaluation.evaluate(now + 2 * MINUTE)
    assert run_of_all.get(alarm="job-slow").subject == "nightly"


def test_a_silent_scheduler_is_one_incident_after_a_while_and_a_restart_is_none(schedule: Any, settings: Any) -> None:
    now = store.now()
    known_since("nightly", now - 3 * DAY)  # its slots are unnoticed, too
    store.beat("watchman", "host:2")
    evaluation.evaluate(now)
    assert opened() == [("scheduler-silent", "scheduler", "suspected")]
    Process.objects.update(beat_at=now + 10 * MINUTE)
    evaluation.evaluate(now + settings.PROCESS_SILENT_AFTER)
    assert opened() == [("scheduler-silent", "scheduler", "open")]
    Incident.objects.update(opened_at=None)
    store.beat("scheduler", "host:1")
    known_since("nightly", now)
    evaluation.evaluate(now)
    assert opened() == [], "it came back before it was an incident"


def test_dead_letters_are_incidents_by_subscription(all_beat: None) -> None:
    bury("mails", 16 * MINUTE)
    bury("mails", 1 * MINUTE)
    bury("history", 6 * MINUTE)
    bury("fresh", 4 * MINUTE)
    evaluation.evaluate(store.now())
    assert opened() == [
        ("dead-letters-undecided", "mails", "open"),
        ("dead-letters-waiting", "history", "open"),
        ("dead-letters-waiting", "mails", "open"),
    ]
    with connection.cursor() as cursor:
        cursor.execute("DELETE FROM jobs_deadletter")
    Incident.objects.all().delete()
    bury("old", 13 * DAY)
    evaluation.evaluate(store.now())
    assert ("dead-letters-expiring", "old", "open") in opened()


def test_a_flapping_condition_is_one_incident_and_one_mail(schedule: Any, settings: Any) -> None:
    settings.ALARM_MAIL_TO = ["ops@winecellar.example"]
    judged = ["scheduler-silent"]
    for minute in range(20):
        now = T + minute * MINUTE
        incidents.record([AWAY] if minute % 3 else [], judged=judged, now=now, opens_after={}, closes_after=5 * MINUTE)
        notices.tell(now)
    assert Incident.objects.count() == 1
    (message,) = mail.outbox
    assert message.subject == "Page: scheduler-silent, scheduler"
    assert message.to == ["ops@winecellar.example"]
    assert f"/admin/jobs/incident/{Incident.objects.get().pk}/change/" in message.body
    assert message.extra_headers["Message-ID"].startswith(f"<incident-{Incident.objects.get().pk}@")


def test_a_mail_that_cannot_be_sent_is_tried_again_a_minute_later_under_the_same_id(
    schedule: Any, settings: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    settings.ALARM_MAIL_TO = ["ops@winecellar.example"]
    incidents.record([AWAY], judged=[AWAY.alarm], now=T, opens_after={}, closes_after=5 * MINUTE)
    real = notices.mail.compose

    def broken(incident: Incident, turn: str) -> Any:
        raise OSError("no mail server")

    monkeypatch.setattr(notices.mail, "compose", broken)
    assert notices.tell(T) == 0
    monkeypatch.setattr(notices.mail, "compose", real)
    assert notices.tell(T + MINUTE / 2) == 0, "another may be at it"
    assert notices.tell(T + 2 * MINUTE) == 1
    assert notices.tell(T + 9 * MINUTE) == 0
    assert len(mail.outbox) == 1


def test_two_watchmen_open_one_incident_and_send_one_mail(schedule: Any, settings: Any) -> None:
    settings.ALARM_MAIL_TO = ["ops@winecellar.example"]
    bury("mails", 6 * MINUTE)
    now = store.now()
    barrier = threading.Barrier(2)
    errors: list[BaseException] = []

    def watch(n: int) -> None:
        try:
            for _ in range(10):
                barrier.wait(timeout=30)
                Watchman(owner=f"host:{n}").step(now)
        except BaseException as error:
            errors.append(error)
            barrier.abort()
        finally:
            connection.close()

    threads = [threading.Thread(target=watch, args=(n,)) for n in range(2)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert errors == []
    assert Incident.objects.filter(alarm="dead-letters-waiting").count() == 1
    assert len([m for m in mail.outbox if "dead-letters-waiting" in m.subject]) == 1


def test_a_judge_that_fails_hides_no_other_and_closes_nothing_of_its_own(
    schedule: Any, all_beat: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    bury("mails", 6 * MINUTE)
    evaluation.evaluate(store.now())

    def broken() -> Any:
        raise KeyError("a bug")

    monkeypatch.setattr(facts, "letters", broken)
    known_since("queued", store.now() - 3 * HOUR)
    Incident.objects.update(last_true_at=store.now() - HOUR)
    assert not evaluation.evaluate(store.now()), "whoever asked is told"
    assert ("dead-letters-waiting", "mails", "open") in opened()
    assert ("slot-unnoticed", "queued", "open") in opened()


def test_the_watchman_pings_the_outside_monitor_each_minute_and_at_once_when_it_fails(
    schedule: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    heard: list[str] = []
    monkeypatch.setattr("jobs.monitor._ping", heard.append)
    watchman = Watchman(owner="host:2")
    for _ in range(3):
        watchman.step(store.now())
    assert heard == ["watchman"]
    watchman.failed()
    watchman.step(store.now())
    assert heard == ["watchman", "watchman/fail"]
    watchman.close()
    assert not Process.objects.filter(kind="watchman").exists()
