"""Scenarios of what stands before and after the queue: publishing, the feed's answer, the order of prices, the mail."""

from __future__ import annotations

import json
from datetime import timedelta

from django.db import OperationalError, connection, transaction
from django.test import Client
from django.utils import timezone

from alerts import mail
from alerts.models import Notification
from jobs.messages import NewMessage
from jobs.outbox import publish
from pricing import services
from pricing.keys import create_key
from pricing.models import FeedAnswer, HeldPrice, Offer
from tests import cast
from tests.jobs.conftest import rows
from tests.model.stage import Open, database_time, dies_at, elsewhere, promise
from tests.pricing.observed import seen


def a_delay_counts_from_when_it_was_published() -> None:
    with transaction.atomic():
        rows("SELECT pg_sleep(0.05)")
        began = database_time()
        publish([NewMessage("do_loosely", "a", {})], delay=timedelta(seconds=5))
    ((waits,),) = rows("SELECT extract(epoch FROM visible_at - %s) FROM jobs_delivery", began)
    promise(waits >= 5, "I7: a delayed message comes too soon")


def a_change_and_its_message_exist_together() -> None:
    """The publishing process is killed before and after each of its statements, its COMMIT among them."""

    def change_and_tell() -> None:
        with transaction.atomic():
            with connection.cursor() as cursor:
                cursor.execute("INSERT INTO test_effect (event_id) VALUES ('the change')")
            publish([NewMessage("do_loosely", "a", {})])

    for when in ("before", "after"):
        number, died = 0, True
        while died:
            number += 1
            _forget()
            died = dies_at(number, when, change_and_tell)
            (counts,) = rows("SELECT (SELECT count(*) FROM test_effect), (SELECT count(*) FROM jobs_delivery)")
            promise(counts in {(0, 0), (1, 1)}, f"I2: one without the other, after a death {when} statement {number}")
        promise(number >= 3, "the scenario itself: it has statements to die at")


def accepted_is_said_only_of_what_is_committed() -> None:
    """The COMMIT fails: a deferred trigger finds the disk full."""
    _forget()
    cast.wine("1")
    cast.wine("2")
    key = create_key(merchant=cast.merchant(), note="", now=timezone.now())[1]
    one, other = (
        {"wine_id": wine, "price": "154.00", "currency": "USD", "occurred_at": "2026-03-14T09:12:04Z"}
        for wine in ("wn_1", "wn_2")
    )
    bodies = {"one": one, "two": {"observations": [one, other]}}  # a single statement, and a transaction of several
    with connection.cursor() as cursor:
        cursor.execute(
            "CREATE OR REPLACE FUNCTION test_disk_full() RETURNS trigger LANGUAGE plpgsql AS"
            " $$ BEGIN RAISE EXCEPTION 'no space left' USING ERRCODE = '53100'; END $$"
        )
        cursor.execute(
            "CREATE CONSTRAINT TRIGGER test_disk_full AFTER INSERT ON pricing_offer DEFERRABLE INITIALLY DEFERRED"
            " FOR EACH ROW EXECUTE FUNCTION test_disk_full()"
        )
    try:
        answers = [
            Client().post(
                "/feeds/v1/price-changes",
                data=json.dumps(body),
                content_type="application/json",
                headers={"Authorization": f"Bearer {key}", "Idempotency-Key": name},
            )
            for name, body in bodies.items()
        ]
    finally:
        with connection.cursor() as cursor:
            cursor.execute("DROP TRIGGER test_disk_full ON pricing_offer")
            cursor.execute("DROP FUNCTION test_disk_full")
    promise(not Offer.objects.exists(), "the scenario itself: nothing was committed")
    promise(all(answer.status_code != 202 for answer in answers), "I1: acknowledged, and not there")


def prices_of_one_wine_draw_their_ids_one_after_another() -> None:
    _forget()
    cast.wine("1")
    at = seen("189.00").occurred_at

    def record(number: str, name: str) -> None:
        services.record_observations(
            merchant=cast.merchant(number, name),
            observations=[seen("189.00", at, "wn_1")],
            attributes={},
            now=at + timedelta(days=1),
        )

    cast.merchant("082", "Merchant X"), cast.merchant("083", "Merchant Y")
    with elsewhere() as other:
        first = Open(other, lambda: record("082", "Merchant X"))
        try:
            with transaction.atomic(), connection.cursor() as cursor:
                cursor.execute("SET LOCAL lock_timeout = '250ms'")
                record("083", "Merchant Y")
            waited = False
        except OperationalError:
            waited = True
        finally:
            first.end()
    promise(waited, "I5: a wine's second price has its id while the first may still commit")


def of_two_prices_with_one_time_the_first_stays() -> None:
    _forget()
    cast.wine("1")
    at = seen("189.00").occurred_at
    for amount in ("189.00", "150.00", "189.00", "150.00"):
        services.record_observations(
            merchant=cast.merchant(), observations=[seen(amount, at, "wn_1")], attributes={}, now=at + timedelta(days=1)
        )
    applied = rows("SELECT body->>'new_price_usd' FROM jobs_message WHERE type = 'wine.price_changed' ORDER BY id")
    promise(applied == [("189.00",)], "I5: the price flips with every repetition")


def each_try_of_a_mail_has_the_same_message_id() -> None:
    notification = Notification(alert_id=7, event_id="evt_1")
    promise(mail.message_id(notification) == mail.message_id(notification), "I3: a repeated mail is a second mail")


def _forget() -> None:
    for model in (HeldPrice, Offer, FeedAnswer):
        model.objects.all().delete()
    with connection.cursor() as cursor:
        for table in ("jobs_message", "jobs_delivery", "test_effect"):
            cursor.execute(f"DELETE FROM {table}")
