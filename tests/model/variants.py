"""The ways to break the protocol, each a switch of the model. The checker must notice every one of them."""

from enum import StrEnum


class Broken(StrEnum):
    """The words are those of docs/mutations.md."""

    # The claim
    CLAIM_BY_OLD_SNAPSHOT = "claim without the second look at visibility"
    CLAIM_IGNORES_LOCKS = "claim without SKIP LOCKED"
    CLAIM_AFTER_A_SKIPPED_ROW = "claim goes on after a skipped row of its key"
    CLAIM_UNCOUNTED = "claim without receive_count + 1"
    CLAIM_SUSPECTS_TOGETHER = "suspects claimed together"
    CLAIM_BY_WORKERS_CLOCK = "reclaim by the worker's clock"
    HEAD_IGNORES_BACKOFF = "head check ignoring rows in backoff"
    HEAD_IGNORES_LEASED = "head check ignoring rows in flight"
    # The fence
    TOKEN_PER_WORKER = "token of the worker, not of the claim"
    ACK_WITHOUT_TOKEN = "ack without token"
    PUT_BACK_WITHOUT_TOKEN = "put back without token"
    BURY_WITHOUT_TOKEN = "bury without token"
    GIVE_BACK_WITHOUT_TOKEN = "give back without token"
    RESCUE_UNGUARDED = "rescue unguarded"
    PART_OF_BATCH_LOST = "ack that finds rows lost goes on with the rest"
    LATER_ONES_GO_ON = "later messages of a failed one's key go on"
    LOST_BURY_GOES_ON = "bury that finds its row lost lets the key go on"
    # One transaction
    EFFECT_BEFORE_ACK = "effect committed before ledger and ack"
    ACK_BEFORE_EFFECT = "ledger and ack committed before the effect"
    LEDGER_BEFORE_EFFECT = "ledger row written before the effect"
    LEDGER_MISSING = "no ledger row"
    LEDGER_BY_MESSAGE_ONLY = "ledger keyed by message only"
    BURY_DELETES_FIRST = "bury as two transactions, delete first"
    BURY_INSERTS_FIRST = "bury as two transactions, insert first"
    OUTBOX_ON_COMMIT = "outbox insert via on_commit"
    SAID_BEFORE_COMMIT = "202 sent before COMMIT"
    # The low-water mark
    MARK_UNGATED = "low-water mark not gated by the snapshot"
    MARK_IS_A_CURSOR = "id-cursor reader"
    XID_AFTER_ID = "id drawn before the transaction has its own"
    ID_BEFORE_LOCK = "sequence drawn before the lock"
    # Redrive
    REDRIVE_CLEARS_LEDGER = "redrive that clears the ledger"
    REDRIVE_KEEPS_COUNT = "redrive that keeps the old count"
    REDRIVE_REUSES_ID = "redrive that reuses the delivery's id"
