"""The stages of catalogue files are tables that come and go: made and dropped by their owner, for whoever takes a file.

Nothing else can be made or dropped through these: a stage's name is a prefix, a file's number and a lease's token.
"""

from django.db import migrations

FORWARD = """
CREATE FUNCTION pricing_stage_checked(name text) RETURNS text LANGUAGE plpgsql IMMUTABLE AS $$
BEGIN
    IF name !~ '^pricing_stage_[0-9]+_[a-z0-9]+$' THEN
        RAISE EXCEPTION '% is no stage of a catalogue file', name USING ERRCODE = 'insufficient_privilege';
    END IF;
    RETURN name;
END $$;

-- The columns are `n` and those of Raw in pricing/catalogues/rows.py, in its order.
CREATE FUNCTION pricing_stage_create(name text) RETURNS void
LANGUAGE plpgsql SECURITY DEFINER SET search_path = public, pg_temp AS $$
BEGIN
    PERFORM pricing_stage_checked(name);
    EXECUTE format('DROP TABLE IF EXISTS %I', name);
    EXECUTE format(
        'CREATE UNLOGGED TABLE %I (
            n integer, line integer NOT NULL, source_id text NOT NULL, title text NOT NULL, size text NOT NULL,
            vintage text NOT NULL, gtin text NOT NULL, lwin text NOT NULL, wine_id text NOT NULL, price text NOT NULL,
            currency text NOT NULL, availability text NOT NULL, url text NOT NULL
        ) WITH (autovacuum_enabled = off)', name);
END $$;

CREATE FUNCTION pricing_stage_finish(name text) RETURNS void
LANGUAGE plpgsql SECURITY DEFINER SET search_path = public, pg_temp AS $$
BEGIN
    PERFORM pricing_stage_checked(name);
    EXECUTE format('CREATE UNIQUE INDEX ON %I (n)', name);
    EXECUTE format('ANALYZE %I', name);
END $$;

CREATE FUNCTION pricing_stage_drop(name text) RETURNS void
LANGUAGE plpgsql SECURITY DEFINER SET search_path = public, pg_temp AS $$
BEGIN
    PERFORM pricing_stage_checked(name);
    EXECUTE format('DROP TABLE IF EXISTS %I', name);
END $$;

REVOKE EXECUTE ON FUNCTION pricing_stage_create(text), pricing_stage_finish(text), pricing_stage_drop(text) FROM PUBLIC;
"""

BACKWARD = """
DROP FUNCTION pricing_stage_drop(text);
DROP FUNCTION pricing_stage_finish(text);
DROP FUNCTION pricing_stage_create(text);
DROP FUNCTION pricing_stage_checked(text);
"""


class Migration(migrations.Migration):
    dependencies = [("pricing", "0009_tax_words_turns")]
    operations = [migrations.RunSQL(FORWARD, BACKWARD)]
