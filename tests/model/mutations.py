"""The table of bugs that are planted in the real code, each with the scenario that must notice it.

docs/mutations.md is this table in prose. `name` is a line there; `rule` begins the message of the failure that the
scenario must end in, so that a mutation which merely breaks a statement's syntax does not count as noticed.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Any
from uuid import uuid4

import pytest
from django.db import Error as DatabaseError
from django.db import connection, transaction
from django.db.backends.base.base import BaseDatabaseWrapper

from alerts import mail
from jobs import failures, lanes, queue
from jobs.apply import Application, first_of_each
from jobs.dead_letters import redrive, store
from jobs.errors import LeaseLostError
from jobs.frontier import Frontier
from jobs.messages import Message, NewMessage
from jobs.queue import Partition
from pricing import offers, rules
from pricing.feeds import single
from tests.model import redriving
from tests.model import scenarios_around as around
from tests.model import scenarios_claim as claims
from tests.model import scenarios_redrive as redrives
from tests.model import scenarios_settling as settling
from tests.model.planting import ACKS, CLAIMS, Plant, edited, in_source, in_sql, instead

LEDGER = """    INSERT INTO processed_messages (consumer_name, event_id)
    SELECT %(consumer)s, event_id FROM gone
"""
FENCE = " AND lease_token = %(token)s"


@dataclass(frozen=True)
class Mutation:
    name: str
    rule: str
    scenario: Callable[[], None]
    plant: Plant


# --- Bugs that need more than an edit --------------------------------------------------------------------------------

# As many queues write it. The subquery may be run again for each row it is compared with, and lock further ones.
CLAIM_BY_SUBQUERY = """
WITH token AS MATERIALIZED (SELECT %(holder)s + nextval('jobs_lease_token') AS value),
claimed AS (
    UPDATE jobs_delivery d
    SET visible_at = clock_timestamp() + %(lease)s * interval '1 second', lease_token = token.value,
        receive_count = d.receive_count + 1
    FROM token
    WHERE d.subscription_id = %(subscription)s AND d.part = %(part)s AND d.id IN (
        SELECT id FROM jobs_delivery
        WHERE subscription_id = %(subscription)s AND part = %(part)s AND visible_at <= clock_timestamp()
          AND %(mark)s <= id AND %(window)s > 0 AND %(blocked)s::text[] IS NOT NULL
        LIMIT %(batch)s FOR UPDATE SKIP LOCKED
    )
    RETURNING d.id, d.message_id, d.published_at, d.receive_count
)
SELECT NULL::bigint AS id, NULL::bigint, NULL, NULL, NULL, NULL, NULL, NULL, NULL::int,
       token.value, 0, NULL::bigint, NULL::text[], 0, 0, false
FROM token
UNION ALL
SELECT claimed.id, m.id, m.event_id, m.type, m.key, m.body::text, NULL, m.published_at::text, claimed.receive_count,
       NULL, NULL, NULL, NULL, NULL, NULL, NULL
FROM claimed JOIN jobs_message m ON m.id = claimed.message_id
ORDER BY id NULLS FIRST
"""


# A chosen row is held if it was locked and has not moved since the window was read.
HELD = "count(*) = 2 AND min(tid) = max(tid)"
PREFIX_HELD = f"bool_and({HELD})\n                                OVER (PARTITION BY max(grp) ORDER BY id)"


def _by_id_then_by_place(patch: pytest.MonkeyPatch) -> None:
    """A row that has moved is locked where it is now, and then looked for where it was."""
    in_sql("d.ctid = ANY (ARRAY(SELECT tid FROM chosen))", "d.id IN (SELECT id FROM chosen)", *CLAIMS)(patch)
    in_sql("SELECT min(tid) AS tid", "SELECT min(tid) FILTER (WHERE grp IS NOT NULL) AS tid", *CLAIMS)(patch)
    in_sql(HELD, "count(*) = 2", *CLAIMS)(patch)


def _by_the_snapshot_alone(patch: pytest.MonkeyPatch) -> None:
    """Rows are found again by id, in whatever version they are by now, and not looked at a second time."""
    for old, new in (
        ("d.ctid = ANY (ARRAY(SELECT tid FROM chosen))", "d.id IN (SELECT id FROM chosen)"),
        (" AND d.visible_at <= clock_timestamp()\n", "\n"),
        ("SELECT tid FROM chosen WHERE", "SELECT id FROM chosen WHERE"),
        ("SELECT tid FROM (", "SELECT id FROM ("),
        ("SELECT min(tid) AS tid,", "SELECT id,"),
        (HELD, "count(*) = 2"),
        (
            "d.ctid = ANY (ARRAY(SELECT tid FROM taken))",
            "(d.subscription_id, d.part) = (%(subscription)s, %(part)s) AND d.id IN (SELECT id FROM taken)",
        ),
    ):
        in_sql(old, new, *CLAIMS)(patch)


def _by_a_fast_clock(patch: pytest.MonkeyPatch) -> None:
    """The worker says what time it is, and its clock is an hour ahead."""
    ahead = f"timestamptz '{datetime.now(UTC) + timedelta(hours=1)}'"
    in_sql("visible_at <= clock_timestamp()", f"visible_at <= {ahead}", *CLAIMS)(patch)
    in_sql("AND silent = 0", "", *CLAIMS)(patch)
    in_sql("visible AND silent > 0 AND", "false AND", *CLAIMS)(patch)


def _suspects_together(patch: pytest.MonkeyPatch) -> None:
    in_sql("AND silent = 0", "", *CLAIMS)(patch)
    in_sql("visible AND silent > 0 AND", "false AND", *CLAIMS)(patch)


def _by_a_cursor(frontier: Frontier, partition: Partition, *arguments: Any) -> tuple[queue.Claim, bool]:
    claim, again = claim_from(frontier, partition, *arguments)
    if claim.messages:
        frontier._state(partition).mark = claim.messages[-1].id + 1
    return claim, again


claim_from = lanes.claim_from


def _ack_then_effect(self: Application, messages: Sequence[Message]) -> None:
    with transaction.atomic():
        acked = queue.ack(self.claim, self.route.name, messages)
        if acked.gone < len(messages):
            raise LeaseLostError
    with transaction.atomic():
        self.handler(messages)


def _no_ledger_row(patch: pytest.MonkeyPatch) -> None:
    in_sql(LEDGER, "    SELECT DISTINCT event_id FROM gone WHERE %(consumer)s <> ''\n", *ACKS)(patch)
    in_sql("ON CONFLICT DO NOTHING RETURNING event_id", "", *(ack for ack in ACKS if ack != "ACK_RUN"))(patch)


def _effect_then_ack(self: Application, messages: Sequence[Message]) -> None:
    known = queue.already_processed(self.route.name, messages)
    with transaction.atomic():
        self.handler([message for message in messages if message.event_id not in known])
    with transaction.atomic():
        if queue.ack(self.claim, self.route.name, messages).gone < len(messages):
            raise LeaseLostError


def _ledger_then_effect(self: Application, messages: Sequence[Message]) -> None:
    with connection.cursor() as cursor:
        cursor.execute(
            "INSERT INTO processed_messages (consumer_name, event_id) SELECT %s, unnest(%s::text[])"
            " ON CONFLICT DO NOTHING RETURNING event_id",
            [self.route.name, [message.event_id for message in messages]],
        )
        fresh = {event for (event,) in cursor.fetchall()}
    with transaction.atomic():
        if queue.ack(self.claim, self.route.name, messages).gone < len(messages):
            raise LeaseLostError
        self.handler(first_of_each(messages, fresh))


def _bury_in_two(*, delete_first: bool) -> Callable[..., int | None]:
    """The same statement, cut in two that commit apart; the row is kept in memory between them."""
    insert = edited(queue.BURY, "DELETE FROM jobs_delivery", "SELECT * FROM kept").replace("    RETURNING *\n", "")

    def bury(claim: queue.Claim, consumer: str, message: Message, burial: queue.Burial) -> int | None:
        parameters = {
            "subscription": claim.partition[0],
            "part": claim.partition[1],
            "id": message.id,
            "token": claim.token,
            "consumer": consumer,
            **queue._as_parameters(burial),
        }
        where = (
            "WHERE subscription_id = %(subscription)s AND part = %(part)s AND id = %(id)s AND lease_token = %(token)s"
        )
        with connection.cursor() as cursor:
            cursor.execute("DROP TABLE IF EXISTS kept")
            cursor.execute(f"CREATE TEMPORARY TABLE kept AS SELECT * FROM jobs_delivery {where}", parameters)
            for sql in (f"DELETE FROM jobs_delivery {where}", insert)[:: 1 if delete_first else -1]:
                cursor.execute(sql, parameters)
            cursor.execute("DROP TABLE kept")
        return None

    return bury


def _rescue_by_id(self: lanes.EffectLane) -> None:
    if self._unsettled:
        ids = [message.id for message in self._unsettled.claim.messages]
        with connection.cursor() as cursor:
            sql = "UPDATE jobs_delivery SET lease_token = NULL, visible_at = clock_timestamp() WHERE id = ANY(%s)"
            cursor.execute(sql, [ids])


def _insert_after_commit(messages: Sequence[NewMessage], **how: Any) -> queue.Reached:
    transaction.on_commit(lambda: insert(messages, **how))
    return list


insert = queue.insert_messages


def _commit_unheard(self: BaseDatabaseWrapper) -> None:
    """Whoever waits for the COMMIT is told that all is well, whatever the server answers."""
    try:
        commit(self)
    except DatabaseError:
        self.connection.rollback()


commit = BaseDatabaseWrapper._commit  # type: ignore[attr-defined]


def _write_unheard(*args: Any, **told: Any) -> bool:
    """The same of a statement that is its own transaction."""
    with suppress(DatabaseError):
        write(*args, **told)
    return True


write = single.write


def _in_redrive(*edits: tuple[str, str]) -> Plant:
    def plant(patch: pytest.MonkeyPatch) -> None:
        text = redriving.REDRIVE
        for old, new in edits:
            text = edited(text, old, new)
        patch.setattr(redriving, "REDRIVE", text)

    return plant


# queue.redrive asks the ledger and sends only what is not in it; here it sends all, and what it sends is forgotten.
KNOWN = """    WHERE NOT EXISTS (
        SELECT FROM processed_messages p WHERE p.consumer_name = l.subscription_name AND p.event_id = l.event_id)
"""
FORGOTTEN = """forgotten AS (
    DELETE FROM processed_messages p USING letter
    WHERE (p.consumer_name, p.event_id) = (letter.subscription_name, letter.event_id)
),
anew AS ("""


def _all(*plants: Plant) -> Plant:
    def plant(patch: pytest.MonkeyPatch) -> None:
        for one in plants:
            one(patch)

    return plant


# A step that is two transactions: the first half is committed under way.
SEND = "    sent, partitions = queue.redrive({id_: verdicts[id_].body for id_ in wanted})\n"
COMMITTED = "    connection.connection.commit()\n"
SAID_SENT = "    store.outcomes(run.pk, {id_: (Outcome.SENT.value, False) for id_ in wanted})\n"


# --- The table ----------------------------------------------------------------------------------------------------

MUTATIONS = [
    # The claim
    Mutation(
        "claim without the second look at visibility",
        "I6",
        claims.a_stalled_claim_takes_nothing_that_was_claimed_meanwhile,
        _by_the_snapshot_alone,
    ),
    Mutation(
        "claim without SKIP LOCKED",
        "I8",
        claims.a_claim_does_not_wait_for_anothers_handler,
        in_sql("FOR UPDATE SKIP LOCKED", "FOR UPDATE", *CLAIMS),
    ),
    Mutation(
        "claim by a subquery instead of a CTE",
        "I6",
        claims.a_claim_takes_no_more_than_its_batch_whatever_the_planner_does,
        instead(queue, "CLAIM_UNORDERED", CLAIM_BY_SUBQUERY),
    ),
    Mutation(
        "claim goes on after a skipped row of its key",
        "I5",
        claims.a_stalled_claim_leaves_the_later_messages_of_a_key_it_cannot_have,
        in_sql(PREFIX_HELD, HELD, *CLAIMS),
    ),
    Mutation(
        "claim locks rows by id and updates them by place",
        "I5",
        claims.a_stalled_claim_takes_a_key_from_its_first_message_on,
        _by_id_then_by_place,
    ),
    Mutation(
        "claim without receive_count + 1",
        "I7",
        claims.five_silent_workers_use_up_a_message,
        in_sql("receive_count = d.receive_count + 1", "receive_count = d.receive_count", *CLAIMS),
    ),
    Mutation(
        "suspects claimed together", "I7", claims.what_a_silent_worker_held_comes_back_one_by_one, _suspects_together
    ),
    Mutation(
        "who fell silent twice claimed in company",
        "I7",
        claims.who_fell_silent_twice_waits_for_a_lane_that_is_alone,
        in_sql("AND silent <= %(company)s", "AND %(company)s > 0", *CLAIMS),
    ),
    Mutation(
        "head check ignoring rows in backoff",
        "I5",
        claims.a_key_in_backoff_waits_as_a_whole,
        in_sql(
            "AND id >= %(mark)s",
            "AND id >= %(mark)s AND (lease_token IS NOT NULL OR visible_at <= clock_timestamp())",
            *CLAIMS,
        ),
    ),
    Mutation(
        "head check ignoring rows in flight",
        "I5",
        claims.a_key_in_flight_waits_as_a_whole,
        in_sql(
            "AND id >= %(mark)s",
            "AND id >= %(mark)s AND (lease_token IS NULL OR visible_at <= clock_timestamp())",
            *CLAIMS,
        ),
    ),
    Mutation(
        "reclaim by the worker's clock",
        "I6",
        claims.a_worker_whose_clock_is_wrong_takes_no_live_lease,
        _by_a_fast_clock,
    ),
    Mutation(
        "lease by now() instead of clock_timestamp()",
        "I6",
        claims.a_lease_taken_late_in_a_long_transaction_is_a_whole_one,
        in_sql("SET visible_at = clock_timestamp()", "SET visible_at = now()", *CLAIMS),
    ),
    Mutation(
        "renewal by now() instead of clock_timestamp()",
        "I6",
        claims.a_renewal_late_in_a_long_transaction_is_a_whole_one,
        in_sql("SET visible_at = clock_timestamp()", "SET visible_at = now()", "RENEW"),
    ),
    Mutation(
        "backoff by now() instead of clock_timestamp()",
        "I7",
        settling.a_wait_set_late_in_a_long_transaction_is_a_whole_one,
        in_sql("SET visible_at = clock_timestamp()", "SET visible_at = now()", "PUT_BACK"),
    ),
    Mutation(
        "delay by now() instead of clock_timestamp()",
        "I7",
        around.a_delay_counts_from_when_it_was_published,
        in_sql("clock_timestamp() + %(delay)s", "now() + %(delay)s", "INSERT_MESSAGES"),
    ),
    # The fence
    Mutation(
        "token of the worker, not of the claim",
        "I1",
        claims.a_claim_covers_what_an_ack_between_its_ends_may_not_touch,
        in_sql("nextval('jobs_lease_token')", "7::bigint", *CLAIMS),
    ),
    Mutation("ack without token", "I6", settling.a_sleepers_ack_touches_nothing, in_sql(FENCE, "", "ACK_RUN")),
    Mutation(
        "ack that tells what is new without token",
        "I6",
        settling.a_sleepers_telling_ack_touches_nothing,
        in_sql(FENCE, "", "ACK_RUN_TOLD"),
    ),
    Mutation(
        "ack of some without token",
        "I6",
        settling.a_sleepers_ack_of_some_touches_nothing,
        in_sql(FENCE, "", "ACK_SOME"),
    ),
    Mutation(
        "put back without token",
        "I6",
        settling.a_sleepers_put_back_touches_nothing,
        in_sql(" AND d.lease_token = %(token)s", "", "PUT_BACK"),
    ),
    Mutation(
        "renewal without token",
        "I6",
        settling.a_sleepers_renewal_touches_nothing,
        in_sql("     AND d.lease_token = h.token\n", "", "RENEW"),
    ),
    Mutation("bury without token", "I6", settling.a_sleepers_burial_touches_nothing, in_sql(FENCE, "", "BURY")),
    Mutation(
        "give back without token",
        "I6",
        settling.a_sleepers_give_back_touches_nothing,
        in_sql(" AND lease_token = %s", " AND %s > 0", "GIVE_BACK_CLAIM"),
    ),
    Mutation(
        "rescue unguarded",
        "I6",
        settling.a_lane_that_lost_its_connection_gives_back_only_what_is_its_own,
        instead(lanes.EffectLane, "recover", _rescue_by_id),
    ),
    Mutation(
        "ack that finds rows lost goes on with the rest",
        "I5",
        settling.of_a_batch_partly_lost_nothing_is_applied,
        in_source(Application, "_commit", "if acked.gone < len(messages):", "if not acked.gone:"),
    ),
    Mutation(
        "later messages of a failed one's key go on",
        "I5",
        settling.after_a_failure_its_keys_later_messages_go_back,
        in_source(Application, "_apply", "self._blocked.add(messages[0].key)", "pass"),
    ),
    Mutation(
        "bury that finds its row lost lets the key go on",
        "I5",
        settling.a_burial_that_finds_its_row_lost_lets_no_later_message_of_its_key_go,
        in_source(failures, "bury", "if buried is None:", "if False:"),
    ),
    # One transaction
    Mutation(
        "ledger and ack committed before the effect",
        "I1",
        settling.a_worker_may_die_at_any_statement,
        instead(Application, "_in_one_transaction", _ack_then_effect),
    ),
    Mutation(
        "effect committed before ledger and ack",
        "I3",
        settling.a_worker_may_die_at_any_statement,
        instead(Application, "_in_one_transaction", _effect_then_ack),
    ),
    Mutation(
        "ledger row written before the effect",
        "I1",
        settling.a_worker_may_die_at_any_statement,
        instead(Application, "_in_one_transaction", _ledger_then_effect),
    ),
    Mutation(
        "no ledger row",
        "I3",
        settling.an_event_delivered_twice_takes_effect_once,
        _no_ledger_row,
    ),
    Mutation(
        "ledger keyed by message only",
        "I1",
        settling.each_subscription_applies_an_event_once,
        in_sql("SELECT %(consumer)s, event_id", "SELECT left(%(consumer)s, 0), event_id", *ACKS),
    ),
    Mutation(
        "bury as two transactions, delete first",
        "I1",
        settling.a_worker_may_die_at_any_statement,
        instead(queue, "bury", _bury_in_two(delete_first=True)),
    ),
    Mutation(
        "bury as two transactions, insert first",
        "I1",
        settling.a_worker_may_die_at_any_statement,
        instead(queue, "bury", _bury_in_two(delete_first=False)),
    ),
    Mutation(
        "outbox insert via on_commit",
        "I2",
        around.a_change_and_its_message_exist_together,
        instead(queue, "insert_messages", _insert_after_commit),
    ),
    Mutation(
        "202 sent before COMMIT",
        "I1",
        around.accepted_is_said_only_of_what_is_committed,
        instead(BaseDatabaseWrapper, "_commit", _commit_unheard),
    ),
    Mutation(
        "202 sent whatever became of the single statement",
        "I1",
        around.accepted_is_said_only_of_what_is_committed,
        instead(single, "write", _write_unheard),
    ),
    # The low-water mark
    Mutation(
        "low-water mark not gated by the snapshot",
        "I5",
        claims.a_late_commit_keeps_its_keys_order,
        in_source(Frontier, "learn", "look.xmin >= state.candidate[1]", "True"),
    ),
    Mutation(
        "id-cursor reader", "I5", claims.a_late_commit_keeps_its_keys_order, instead(lanes, "claim_from", _by_a_cursor)
    ),
    Mutation(
        "low-water mark that never moves",
        "I8",
        claims.the_mark_moves_on_all_the_same,
        in_source(Frontier, "learn", "state.mark = max(state.mark, min(state.candidate[0], look.first))", "pass"),
    ),
    Mutation(
        "sequence drawn before the lock",
        "I5",
        around.prices_of_one_wine_draw_their_ids_one_after_another,
        instead(offers, "LOCK_WINES", offers.LOCK_WINES.replace("FOR NO KEY UPDATE", "")),
    ),
    # Redrive
    Mutation(
        "redrive that clears the ledger",
        "I3",
        settling.a_redrive_of_what_was_applied_changes_nothing,
        _in_redrive(
            (
                "\nINSERT INTO jobs_delivery",
                ", forgotten AS (DELETE FROM processed_messages p USING jobs_deadletter l"
                " WHERE l.id = %(letter)s AND (p.consumer_name, p.event_id) = (l.subscription_name, l.event_id))"
                "\nINSERT INTO jobs_delivery",
            )
        ),
    ),
    Mutation(
        "redrive that keeps the old count",
        "I7",
        settling.a_redriven_message_has_all_its_receives_again,
        _in_redrive(("event_id, key)", "event_id, key, receive_count)"), ("key\nFROM", "key, receive_count\nFROM")),
    ),
    Mutation(
        "redrive that reuses the delivery's id",
        "I1",
        settling.a_redriven_message_is_seen_by_every_worker,
        _in_redrive(
            ("(subscription_id,", "(id, subscription_id,"), ("SELECT subscription_id,", "SELECT 1, subscription_id,")
        ),
    ),
    # The redrive that operators use, over queue.redrive
    Mutation(
        "operators' redrive clears the ledger",
        "I3",
        redrives.a_letter_whose_event_was_applied_meanwhile_changes_nothing,
        _all(in_sql(KNOWN, "", "REDRIVE"), in_sql("anew AS (\n", f"{FORGOTTEN}\n", "REDRIVE")),
    ),
    Mutation(
        "operators' redrive does not ask the ledger",
        "I3",
        redrives.a_letter_whose_event_was_applied_meanwhile_changes_nothing,
        in_sql(KNOWN, "", "REDRIVE"),
    ),
    Mutation(
        "operators' redrive keeps the old count",
        "I7",
        redrives.a_redriven_letter_has_all_its_receives_again,
        _all(
            in_sql("l.attributes, s.id", "l.attributes, l.receive_count, s.id", "REDRIVE"),
            in_sql("letter.event_id,\n", "letter.event_id, letter.receive_count,\n", "REDRIVE"),
            in_sql("event_id, key)\n    SELECT sub", "event_id, key, receive_count)\n    SELECT sub", "REDRIVE"),
            in_sql("event_id, key\n    FROM routed", "event_id, key, receive_count\n    FROM routed", "REDRIVE"),
        ),
    ),
    Mutation(
        "letters that are decided are taken again",
        "I7",
        redrives.a_letter_is_decided_once_however_often_somebody_asks,
        in_source(store, "lock_open", "_where(selection, OPEN)", "_where(selection)"),
    ),
    Mutation(
        "redrive forgets what it has sent",
        "I7",
        redrives.a_letter_is_sent_once_however_many_steps_there_are,
        in_source(redrive, "_send", "store.outcomes(run.pk, became)", "pass"),
    ),
    Mutation(
        "two steps of a redrive at once",
        "I7",
        redrives.a_letter_is_sent_once_by_two_steps_at_once,
        _all(
            in_source(redrive, "step", "select_for_update(skip_locked=True).", ""),
            in_source(store, "queued", " FOR NO KEY UPDATE", ""),
        ),
    ),
    Mutation(
        "redrive as two transactions, mark first",
        "I1",
        redrives.whoever_redrives_may_die_at_any_statement,
        in_source(redrive, "_send", SEND, SAID_SENT + COMMITTED + SEND),
    ),
    Mutation(
        "redrive as two transactions, delivery first",
        "I7",
        redrives.whoever_redrives_may_die_at_any_statement,
        in_source(redrive, "_send", SEND, SEND + COMMITTED),
    ),
    # Around the queue
    Mutation(
        "stale guard off by the equals sign",
        "I5",
        around.of_two_prices_with_one_time_the_first_stays,
        in_source(
            rules, "judge", "observation.occurred_at <= standing.seen_at", "observation.occurred_at < standing.seen_at"
        ),
    ),
    Mutation(
        "email key per attempt instead of per crossing",
        "I3",
        around.each_try_of_a_mail_has_the_same_message_id,
        instead(mail, "message_id", lambda notification: f"<{uuid4()}@winecellar.example>"),
    ),
]
