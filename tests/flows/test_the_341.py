"""The course's incident from the alarm to the redrive: 341 price events that a broken feed adapter spoiled."""

from collections import Counter
from datetime import timedelta
from typing import Any

import pytest
from django.db import connection, transaction
from django.utils import timezone

from alerts.models import Notification
from jobs.alarms import evaluation
from jobs.dead_letters import preflight, redrive, selectors, services
from jobs.dead_letters.models import AuditEntry, Decision, Redrive
from jobs.dead_letters.selection import Selection, siblings
from jobs.dead_letters.services import NeedsTellingError, RefusedError
from jobs.models import DeadLetter, Delivery, Incident
from jobs.worker import drain
from pricing.models import Offer, PriceHistory, Wine
from tests.cast import alert, merchant
from winecellar.demo.broken_release import MESSAGES, release_the_broken_adapter

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.publishes_malformed_events]
ON_CALL = {"by": "price-pipeline on-call", "note": "feed adapter 4.1 dropped new_price_usd; 4.2 is deployed"}


FEW = 25


@pytest.fixture
def spoiled(settings: Any, request: pytest.FixtureRequest) -> list[str]:
    """What the broken release made has been received once, and dead-lettered: all 341, or a few."""
    settings.RETRY_BACKOFF_BASE = timedelta(hours=10)
    event_ids = release_the_broken_adapter(merchant(), count=getattr(request, "param", FEW))
    drain(["price-history"])
    return event_ids


HISTORY = Selection(subscription="price-history")


def carry_on(run: Redrive | None, *subscriptions: str, steps: int = 200) -> Redrive:
    """Let the redrive and the workers take turns, and time pass between two portions, until it is at its end."""
    assert run is not None
    for _ in range(steps):
        if not redrive.step(run.pk).more:
            run.refresh_from_db()
            return run
        drain(subscriptions or ["price-history"])
        Redrive.objects.filter(pk=run.pk).update(next_at=timezone.now() - timedelta(seconds=1))
    raise AssertionError(f"not at its end after {steps} steps: {Redrive.objects.get(pk=run.pk).counts}")


@pytest.mark.parametrize("spoiled", [MESSAGES], indirect=True)
def test_the_341_are_detected_diagnosed_decided_and_redriven(spoiled: list[str]) -> None:
    # Detect: nobody has looked for a quarter of an hour.
    assert evaluation.evaluate(timezone.now() + timedelta(minutes=16))
    opened = {i.alarm: i for i in Incident.objects.filter(subject="price-history")}
    assert set(opened) == {"dead-letters-waiting", "dead-letters-undecided"}
    assert "341 dead letters" in opened["dead-letters-undecided"].summary

    # Diagnose, without consuming: body, reason, receive count, siblings, the raw body.
    [group] = selectors.groups(now=timezone.now())
    assert (group.count, group.waiting, group.some_origins, sum(group.spark)) == (341, 341, ["mch_082"], 341)
    letter = DeadLetter.objects.get(event_id=spoiled[100])
    assert letter.receive_count == 1
    assert letter.reason == "new_price_usd required; currency 'USD ' not ISO-4217"
    case = selectors.case_file(letter, now=timezone.now())
    assert {f.name: f.wrong for f in case.fields if f.wrong} == {
        "new_price_usd": "missing",
        "currency": "not 'USD'",
    }
    assert case.siblings_open == MESSAGES, "it and 340 more: an incident about a release, not about a message"
    assert case.raw is not None
    assert '"price": 154.0' in case.raw.text
    assert DeadLetter.objects.count() == MESSAGES

    # Decide: as they are all would fail again; from their raw bodies 338 pass.
    near = siblings("mch_082", letter.dead_lettered_at, timedelta(minutes=20))
    as_is = preflight.look(near, kind=Decision.REDRIVE, now=timezone.now())
    assert (as_is.total, as_is.would_pass) == (341, 0)
    mended = preflight.look(near, kind=Decision.READAPT, now=timezone.now())
    assert mended.in_words == (
        "338 of 341 would pass now; 3 would fail again, because 2: the raw body has no price of this wine; "
        "1: its raw body is no longer kept."
    )

    # Redrive: 338 rows of history, and the three wait with their reason.
    asked = services.redrive(selection=near, kind=Decision.READAPT, stop_share=0.5, now=timezone.now(), **ON_CALL)
    run = carry_on(asked.redrive)
    assert (run.state, run.counts) == (Redrive.State.DONE, {"applied": 338, "refused": 3})
    assert PriceHistory.objects.count() == 338
    assert set(PriceHistory.objects.values_list("event_id", flat=True)) == set(spoiled[3:])
    waiting = DeadLetter.objects.filter(waits_from__isnull=False)
    assert Counter(waiting.values_list("note", flat=True)) == {
        "the raw body has no price of this wine": 2,
        "its raw body is no longer kept": 1,
    }
    acts = AuditEntry.objects.filter(letter_ids__contains=[letter.pk], action="readapt")
    assert {act.by for act in acts} == {"price-pipeline on-call"}


def test_whoever_was_owed_a_mail_gets_it_once_after_the_redrive(spoiled: list[str]) -> None:
    wine = Wine.objects.get(pk="wn_7020")
    waiting = alert("160.00", wine=wine)
    drain(["alert-matching"])
    both = Selection(event_id=spoiled[20])
    assert preflight.look(both, kind=Decision.READAPT, now=timezone.now()).subscriptions == {
        "price-history": 1,
        "alert-matching": 1,
    }
    run = services.redrive(selection=both, kind=Decision.READAPT, now=timezone.now(), **ON_CALL).redrive
    carry_on(run, "price-history", "alert-matching")
    assert [n.event_id for n in Notification.objects.filter(alert=waiting)] == [spoiled[20]]
    assert PriceHistory.objects.filter(event_id=spoiled[20]).count() == 1, "each consumer got its own, once"


def test_redriving_before_the_fix_is_deployed_stops_after_the_first_ten(spoiled: list[str]) -> None:
    run = carry_on(services.redrive(selection=HISTORY, kind=Decision.REDRIVE, now=timezone.now(), **ON_CALL).redrive)
    assert run.state == Redrive.State.STOPPED
    assert run.counts == {"refused": 10}
    assert run.stopped_because == "10 of the first 10 failed again, more than 10%; 15 were not sent"
    assert DeadLetter.objects.filter(waits_from__isnull=False).count() == FEW, "all of them wait again"
    assert not Delivery.objects.filter(subscription__name="price-history").exists()


def test_a_message_goes_the_whole_way_through_the_queue_in_the_background(spoiled: list[str], settings: Any) -> None:
    services.redrive(
        selection=Selection(
            ids=tuple(DeadLetter.objects.filter(event_id__in=spoiled[10:15]).values_list("pk", flat=True))
        ),
        kind=Decision.READAPT,
        now=timezone.now(),
        **ON_CALL,
    )
    for _ in range(20):
        drain(["dead-letter-redrive", "price-history"])
        with connection.cursor() as cursor:
            cursor.execute("UPDATE jobs_delivery SET visible_at = clock_timestamp()")
    run = Redrive.objects.get()
    assert (run.state, run.counts) == (Redrive.State.DONE, {"applied": 5})


def test_what_the_ledger_knows_is_suppressed_and_changes_nothing(spoiled: list[str]) -> None:
    with connection.cursor() as cursor:
        cursor.execute("INSERT INTO processed_messages VALUES ('price-history', %s)", [spoiled[15]])
    one = Selection(event_id=spoiled[15])
    assert preflight.look(one, kind=Decision.READAPT, now=timezone.now()).in_ledger == 1
    run = carry_on(services.redrive(selection=one, kind=Decision.READAPT, now=timezone.now(), **ON_CALL).redrive)
    assert run.counts == {"suppressed": 1}
    assert not PriceHistory.objects.exists()


def test_a_double_click_and_two_operators_have_one_effect(spoiled: list[str]) -> None:
    first = services.redrive(selection=HISTORY, kind=Decision.READAPT, stop_share=1, now=timezone.now(), **ON_CALL)
    again = services.redrive(selection=HISTORY, kind=Decision.READAPT, stop_share=1, now=timezone.now(), **ON_CALL)
    other = services.discard(selection=HISTORY, by="somebody else", note="noise", now=timezone.now())
    assert (len(first.ids), len(again.ids), len(other.ids)) == (FEW, 0, 0)
    carry_on(first.redrive)
    carry_on(first.redrive)
    assert PriceHistory.objects.count() == FEW - 3
    assert Redrive.objects.count() == 1


def test_a_redrive_can_be_stopped_and_what_was_not_sent_waits_again(spoiled: list[str]) -> None:
    run = services.redrive(
        selection=HISTORY, kind=Decision.READAPT, stop_share=1, now=timezone.now(), **ON_CALL
    ).redrive
    assert run is not None
    redrive.step(run.pk)
    assert services.stop(redrive_id=run.pk, now=timezone.now(), **ON_CALL)
    assert not services.stop(redrive_id=run.pk, now=timezone.now(), **ON_CALL), "the second click finds it stopping"
    run = carry_on(run)
    assert run.state == Redrive.State.STOPPED
    assert "15 were not sent" in run.stopped_because
    refused = run.counts.get("refused", 0)
    assert DeadLetter.objects.filter(waits_from__isnull=False).count() == 15 + refused
    assert PriceHistory.objects.count() == 10 - refused


def test_letters_older_than_the_ledger_need_somebody_to_be_told(spoiled: list[str]) -> None:
    old = DeadLetter.objects.filter(event_id__in=spoiled[10:12])
    old.update(published_at=timezone.now() - timedelta(days=8))
    selection = Selection(ids=tuple(old.values_list("pk", flat=True)))
    assert preflight.look(selection, kind=Decision.READAPT, now=timezone.now()).old == 2
    with pytest.raises(NeedsTellingError, match="2 of these are older than the ledger's 7 days"):
        services.redrive(selection=selection, kind=Decision.READAPT, now=timezone.now(), **ON_CALL)
    assert old.filter(waits_from__isnull=False).count() == 2, "nothing was decided"
    services.redrive(
        selection=selection, kind=Decision.READAPT, told="support, by phone", now=timezone.now(), **ON_CALL
    )
    entry = AuditEntry.objects.filter(letter_ids__contains=list(selection.ids), action="readapt").get()
    assert entry.details["told"] == "support, by phone"


def test_what_is_superseded_is_said_and_can_be_discarded_as_that(spoiled: list[str]) -> None:
    Offer.objects.filter(wine="wn_7020").update(occurred_at=timezone.now(), event_id="evt_newer")
    chosen = Selection(ids=tuple(DeadLetter.objects.filter(event_id__in=spoiled[20:22]).values_list("pk", flat=True)))
    assert preflight.look(chosen, kind=Decision.READAPT, now=timezone.now()).superseded == 1
    done = services.discard_superseded(selection=chosen, now=timezone.now(), **ON_CALL)
    assert (len(done.ids), done.left_out) == (1, 1)
    assert DeadLetter.objects.get(event_id=spoiled[20]).decision == Decision.SUPERSEDED
    assert DeadLetter.objects.get(event_id=spoiled[21]).decision == ""
    Offer.objects.filter(wine="wn_7021").update(occurred_at=timezone.now(), event_id="evt_newer")
    run = carry_on(services.redrive(selection=chosen, kind=Decision.READAPT, now=timezone.now(), **ON_CALL).redrive)
    assert run.counts == {"older": 1}, "it is history now, and was told apart"


def test_a_rebuild_of_the_history_counts_each_redriven_price_once(spoiled: list[str]) -> None:
    from jobs.catalog import applied_messages

    carry_on(
        services.redrive(selection=HISTORY, kind=Decision.READAPT, stop_share=1, now=timezone.now(), **ON_CALL).redrive
    )
    with applied_messages("price-history", None) as count:
        assert count == FEW - 3
    with applied_messages("alert-matching", None) as count:
        assert count == 0


def test_a_note_and_a_name_are_asked_for_and_everything_at_once_is_refused(spoiled: list[str]) -> None:
    now = timezone.now()
    with pytest.raises(RefusedError, match="note: say why"):
        services.discard(selection=HISTORY, by="x", note=" ", now=now)
    with pytest.raises(RefusedError, match="by: say who"):
        services.discard(selection=HISTORY, by="", note="n", now=now)
    with pytest.raises(RefusedError, match="choose letters"):
        services.discard(selection=Selection(decision="open", up_to=10**9), by="x", note="n", now=now)
    with pytest.raises(RefusedError, match="the oldest of these is removed at"):
        services.quarantine(selection=HISTORY, wake_at=now + timedelta(days=13), by="x", note="n", now=now)
    assert not DeadLetter.objects.exclude(decision="").exists()


def test_what_is_quarantined_pages_nobody_until_its_date(spoiled: list[str]) -> None:
    now = timezone.now()
    services.quarantine(selection=HISTORY, wake_at=now + timedelta(days=3), now=now, **ON_CALL)
    evaluation.evaluate(now + timedelta(days=2))
    assert not Incident.objects.filter(alarm="dead-letters-undecided").exists()
    evaluation.evaluate(now + timedelta(days=3, minutes=16))
    assert Incident.objects.filter(alarm="dead-letters-undecided", subject="price-history").exists()


def test_the_audit_log_refuses_to_be_changed_by_whoever_owns_it(spoiled: list[str]) -> None:
    services.comment(selection=Selection(event_id=spoiled[0]), now=timezone.now(), **ON_CALL)
    before = AuditEntry.objects.count()
    for sql in (
        "UPDATE jobs_audit SET note = ''",
        "DELETE FROM jobs_audit",
        "TRUNCATE jobs_audit",
        "SET LOCAL session_replication_role = replica; DELETE FROM jobs_audit",
    ):
        with pytest.raises(Exception, match="append-only"), transaction.atomic(), connection.cursor() as cursor:
            cursor.execute(sql)
    assert AuditEntry.objects.count() == before
