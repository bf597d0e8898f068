"""The tables Django's schema editor cannot express: a partitioned log, and a delivery table tuned for churn."""

from django.db import migrations

FORWARD = """
CREATE SEQUENCE jobs_message_id;
-- A plain sequence, not an identity: partitioned tables have identity columns from Postgres 17 on only.
CREATE TABLE jobs_message (
    id            bigint      NOT NULL DEFAULT nextval('jobs_message_id'),
    published_at  timestamptz NOT NULL DEFAULT clock_timestamp(),
    event_id      text        NOT NULL,
    type          text        NOT NULL,
    key           text        NOT NULL,
    body          jsonb       NOT NULL,
    attributes    jsonb       NOT NULL DEFAULT '{}',
    PRIMARY KEY (published_at, id)
) PARTITION BY RANGE (published_at);
ALTER SEQUENCE jobs_message_id OWNED BY jobs_message.id;
CREATE INDEX jobs_message_event ON jobs_message (event_id);
-- Catches what comes when nobody made the next month's partition in time: late is an alarm, lost is not an option.
CREATE TABLE jobs_message_default PARTITION OF jobs_message DEFAULT;

CREATE SEQUENCE jobs_delivery_id;
CREATE TABLE jobs_delivery (
    subscription_id   smallint    NOT NULL,
    part              smallint    NOT NULL,
    id                bigint      NOT NULL DEFAULT nextval('jobs_delivery_id'),
    message_id        bigint      NOT NULL,
    published_at      timestamptz NOT NULL,
    event_id          text        NOT NULL,
    key               text        NOT NULL,
    visible_at        timestamptz NOT NULL DEFAULT clock_timestamp(),
    receive_count     smallint    NOT NULL DEFAULT 0 CHECK (receive_count >= 0),
    lease_token       bigint,
    first_received_at timestamptz,
    failures          jsonb,
    -- The claim's window, and the only index: a claim changes none of its columns, so its updates stay HOT.
    PRIMARY KEY (subscription_id, part, id)
) WITH (
    fillfactor = 70,
    autovacuum_vacuum_scale_factor = 0.01,
    autovacuum_vacuum_threshold = 1000,
    autovacuum_analyze_scale_factor = 0.1
);
ALTER SEQUENCE jobs_delivery_id OWNED BY jobs_delivery.id;
-- A lease token is per claim, never reused, and drawn by the server: no two claims of any worker share one.
CREATE SEQUENCE jobs_lease_token;

-- The ledger, as in the course.
CREATE TABLE processed_messages (
    consumer_name text        NOT NULL,
    event_id      text        NOT NULL,
    processed_at  timestamptz NOT NULL DEFAULT now(),
    PRIMARY KEY (consumer_name, event_id)
);
"""

BACKWARD = """
DROP TABLE processed_messages;
DROP SEQUENCE jobs_lease_token;
DROP TABLE jobs_delivery;
DROP TABLE jobs_message;
"""


class Migration(migrations.Migration):
    dependencies = [("jobs", "0001_initial")]
    operations = [migrations.RunSQL(FORWARD, BACKWARD)]
