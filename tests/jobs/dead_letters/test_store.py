"""Pages touch a bounded number of rows whatever the filters; the tally agrees with the letters."""

import json
from datetime import timedelta
from typing import Any

import pytest
from django.db import connection
from django.utils import timezone

from jobs.dead_letters import store
from jobs.dead_letters.selection import Selection
from jobs.models import DeadLetter, Tally
from tests.jobs.dead_letters.conftest import letter

pytestmark = pytest.mark.django_db

FILL = """
INSERT INTO jobs_deadletter (subscription_name, message_id, event_id, message_type, key, body, attributes, cause,
    error_class, reason, traceback, failures, receive_count, published_at, dead_lettered_at, waits_from, origin,
    fingerprint)
SELECT 's' || n % 3, n, 'evt_' || n, 't', 'k', '{}', '{}', 'permanent', 'E' || n % 7, 'r', '', '[]', 1, at, at, at,
       'mch_' || n % 11, 'f' || n % 50
FROM (SELECT n, now() - n * interval '1 second' AS at FROM generate_series(1, %s) n) filled
"""


def fill(count: int) -> None:
    with connection.cursor() as cursor:
        cursor.execute(FILL.replace("% ", "%% "), [count])
        cursor.execute("ANALYZE jobs_deadletter")


def rows_touched(selection: Selection) -> float:
    """The most rows that any step of the page's plan read, those it threw away included."""
    sql, parameters = store.page_statement(selection, None)
    with connection.cursor() as cursor:
        cursor.execute("EXPLAIN (ANALYZE, FORMAT JSON) " + sql, parameters)
        (plan,) = cursor.fetchone()

    def walk(node: dict[str, Any]) -> float:
        own = (node["Actual Rows"] + node.get("Rows Removed by Filter", 0)) * node["Actual Loops"]
        return max([own, *(walk(child) for child in node.get("Plans", []))])

    return walk((plan if isinstance(plan, list) else json.loads(plan))[0]["Plan"])


@pytest.mark.parametrize(
    "selection",
    [
        Selection(),
        Selection(decision="open"),
        Selection(decision="discard"),
        Selection(subscription="s1"),
        Selection(origin="mch_3"),
        Selection(fingerprint="f2", error="no such class"),
        Selection(origin="mch_3", decision="quarantine"),
        Selection(error="no such class"),
        Selection(subscription="s1", origin="mch_3", error="E1"),
    ],
)
def test_a_page_touches_no_more_rows_than_it_says_whatever_it_is_asked_for(selection: Selection, settings: Any) -> None:
    settings.DEAD_LETTER_LOOK, settings.DEAD_LETTER_PAGE = 200, 10
    fill(20_000)
    # Every eleventh letter is of one origin, every third of one subscription: so many may be passed over by age.
    passed_over = 11 if selection.origin else 3
    assert rows_touched(selection) <= 200 * passed_over, "an index in the order of the list, and few beside it"


def test_going_from_page_to_page_shows_each_letter_once_although_they_share_their_time(settings: Any) -> None:
    settings.DEAD_LETTER_LOOK, settings.DEAD_LETTER_PAGE = 7, 3
    at = timezone.now()
    made = {letter(n, dead_lettered_at=at - timedelta(hours=n // 9), origin=f"m{n % 2}").pk for n in range(40)}
    odd = set(DeadLetter.objects.filter(origin="m1", pk__in=made).values_list("pk", flat=True))
    for selection, expected in ((Selection(), made), (Selection(error="PermanentError", origin="m1"), odd)):
        seen: list[int] = []
        before, pages = None, 0
        while pages < 50:
            page = store.page(selection, before)
            seen += page.ids
            pages += 1
            before = page.older
            if before is None:
                break
        assert (len(seen), set(seen)) == (len(expected), expected)


def test_the_tally_agrees_with_the_letters_whatever_is_done_to_them() -> None:
    fill(500)
    with connection.cursor() as cursor:
        cursor.execute(
            "UPDATE jobs_deadletter SET decision = 'discard', decided_at = now(), decided_by = 'x', note = 'n',"
            " waits_from = NULL WHERE id %% 3 = 0",
            [],
        )
        cursor.execute("DELETE FROM jobs_deadletter WHERE origin IN ('mch_1', 'mch_2')")
        cursor.execute("UPDATE jobs_deadletter SET assigned_to = 'somebody'")
        cursor.execute(
            "SELECT fingerprint, date_trunc('hour', dead_lettered_at), origin, count(*), count(waits_from)"
            " FROM jobs_deadletter GROUP BY 1, 2, 3"
        )
        counted = set(cursor.fetchall())
    assert set(Tally.objects.values_list("fingerprint", "hour", "origin", "letters", "waiting")) == counted


def test_a_decided_letter_without_a_name_or_a_reason_cannot_be_written() -> None:
    from django.db import IntegrityError, transaction

    for wrong in ({"decided_by": ""}, {"note": ""}, {"decided_at": None}, {"waits_from": timezone.now()}):
        facts = {
            "decision": "discard",
            "decided_by": "x",
            "note": "n",
            "decided_at": timezone.now(),
            "waits_from": None,
        }
        with pytest.raises(IntegrityError), transaction.atomic():
            letter(1, **{**facts, **wrong})


def test_the_alarm_counts_what_waits_now_and_remembers_what_will_go() -> None:
    now = timezone.now()
    asleep = letter(
        1,
        subscription_name="a",
        dead_lettered_at=now - timedelta(days=9),
        decision="quarantine",
        decided_at=now,
        decided_by="x",
        note="n",
        waits_from=now + timedelta(days=1),
    )
    awake = letter(2, subscription_name="a")
    letter(3, subscription_name="b", decision="discard", decided_at=now, decided_by="x", note="n", waits_from=None)
    [(name, count, oldest, first)] = store.waiting(now)
    assert (name, count, oldest, first) == ("a", 1, awake.waits_from, asleep.dead_lettered_at)


def test_a_role_of_its_own_may_add_to_the_audit_log_and_neither_change_it_nor_take_off_its_guard() -> None:
    """As docs/decisions/0026 advises; the role goes with the test's transaction."""
    from django.db import ProgrammingError, transaction

    insert = "INSERT INTO jobs_audit (by, action, selection, letter_ids, note) VALUES ('x', 'comment', 's', '{1}', 'n')"
    with connection.cursor() as cursor:
        cursor.execute("CREATE ROLE cellar_app_of_a_test")
        cursor.execute(
            "GRANT SELECT, INSERT, UPDATE, DELETE ON ALL TABLES IN SCHEMA public TO cellar_app_of_a_test;"
            "GRANT USAGE ON ALL SEQUENCES IN SCHEMA public TO cellar_app_of_a_test;"
            "REVOKE UPDATE, DELETE ON jobs_audit FROM cellar_app_of_a_test"
        )
        cursor.execute("SET LOCAL ROLE cellar_app_of_a_test")
        cursor.execute(insert)
        for sql, refused in {
            "UPDATE jobs_audit SET note = 'other'": "permission denied",
            "DELETE FROM jobs_audit": "permission denied",
            "TRUNCATE jobs_audit": "permission denied",
            "ALTER TABLE jobs_audit DISABLE TRIGGER ALL": "must be owner",
            "DROP FUNCTION jobs_audit_is_append_only() CASCADE": "must be owner",
        }.items():
            with pytest.raises(ProgrammingError, match=refused), transaction.atomic():
                cursor.execute(sql)
        cursor.execute("RESET ROLE")
