"""What only the tables' owner may do, as functions that the processes' own roles may call: months of the log, ANALYZE.

Where one role owns and runs everything they change nothing. Where the processes have roles of their own
(docs/security.md), these are all the changes of the schema that a worker can bring about.
"""

from django.db import migrations

# A month is named after its first day; the bounds are UTC midnights. Rights are held on the log, not on its months:
# what the owner's default privileges give on a new table is taken back, or a month could be rewritten by its own name.
FORWARD = """
CREATE FUNCTION jobs_make_months(ahead integer) RETURNS void
LANGUAGE plpgsql SECURITY DEFINER SET search_path = public, pg_temp AS $$
DECLARE
    month timestamptz := date_trunc('month', now(), 'UTC');
    upper timestamptz;
    name text;
    role text;
BEGIN
    IF ahead NOT BETWEEN 0 AND 24 THEN
        RAISE EXCEPTION 'jobs_make_months makes 0 to 24 months ahead, not %', ahead;
    END IF;
    FOR i IN 0..ahead LOOP
        upper := date_trunc('month', month + interval '32 days', 'UTC');
        name := 'jobs_message_' || to_char(month AT TIME ZONE 'UTC', 'YYYY_MM');
        IF to_regclass(name) IS NULL THEN
            EXECUTE format('CREATE TABLE IF NOT EXISTS %I PARTITION OF jobs_message FOR VALUES FROM (%L) TO (%L)',
                           name, month, upper);
            FOR role IN SELECT DISTINCT grantee::regrole::text FROM pg_class, aclexplode(relacl)
                        WHERE oid = name::regclass AND grantee NOT IN (0, relowner) LOOP
                EXECUTE format('REVOKE ALL ON %I FROM %s', name, role);
            END LOOP;
        END IF;
        month := upper;
    END LOOP;
END $$;

-- Drops the months that ended before this time; returns their names. A month of which a message still waits in some
-- queue is kept, however old, and so is, whoever calls, every month that ended less than 31 days ago.
CREATE FUNCTION jobs_drop_months(older_than timestamptz) RETURNS SETOF text
LANGUAGE plpgsql SECURITY DEFINER SET search_path = public, pg_temp AS $$
DECLARE
    name text;
BEGIN
    FOR name IN
        SELECT relname FROM (
            SELECT c.relname, (replace(right(c.relname, 7), '_', '-') || '-01T00:00Z')::timestamptz AS month
            FROM pg_inherits i JOIN pg_class c ON c.oid = i.inhrelid
            WHERE i.inhparent = 'jobs_message'::regclass AND c.relname ~ '^jobs_message_[0-9]{4}_[0-9]{2}$') months
        WHERE month + interval '1 month' <= least(older_than, clock_timestamp() - interval '31 days')
          AND NOT EXISTS (SELECT FROM jobs_delivery d
                          WHERE d.published_at >= month AND d.published_at < month + interval '1 month')
        ORDER BY 1
    LOOP
        EXECUTE format('DROP TABLE %I', name);
        RETURN NEXT name;
    END LOOP;
END $$;

CREATE FUNCTION jobs_analyze(tables regclass[]) RETURNS void
LANGUAGE plpgsql SECURITY DEFINER SET search_path = public, pg_temp AS $$
DECLARE
    one regclass;
BEGIN
    FOREACH one IN ARRAY tables LOOP
        EXECUTE format('ANALYZE %s', one);
    END LOOP;
END $$;

REVOKE EXECUTE ON FUNCTION jobs_make_months(integer), jobs_drop_months(timestamptz), jobs_analyze(regclass[])
    FROM PUBLIC;
"""

BACKWARD = """
DROP FUNCTION jobs_analyze(regclass[]);
DROP FUNCTION jobs_drop_months(timestamptz);
DROP FUNCTION jobs_make_months(integer);
"""


class Migration(migrations.Migration):
    dependencies = [("jobs", "0010_journeys")]
    operations = [migrations.RunSQL(FORWARD, BACKWARD)]
