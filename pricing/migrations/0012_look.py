"""What a single price is judged by, read by one call that goes by the indexes however small the tables were."""

from django.db import migrations

# A function for the sake of its settings: they hold whenever its statement is planned, and nowhere else. A plan made
# while the tables fit a page would read all of them, and be kept while they grow; planning it for each request costs
# more than running it. `xmin` is the version of a row; where there is no such wine its version is NULL.
FORWARD = """
CREATE FUNCTION pricing_look(
    of_merchant text, of_wine text, of_key text,
    OUT used boolean, OUT raw_body bigint, OUT name text, OUT vintage int, OUT wine_version text,
    OUT offer_version text, OUT price_usd numeric, OUT occurred_at timestamptz, OUT seen_at timestamptz,
    OUT event_id text, OUT updated_at timestamptz, OUT native_price numeric, OUT native_currency text,
    OUT withdrawn_at timestamptz, OUT tax text
)
LANGUAGE plpgsql SET enable_seqscan = off SET enable_bitmapscan = off SET plan_cache_mode = force_generic_plan AS $$
BEGIN
    SELECT EXISTS (SELECT FROM pricing_feedanswer a WHERE a.merchant_id = of_merchant AND a.key = of_key),
           nextval('pricing_rawbody_id_seq'), w.name, w.vintage, w.xmin::text,
           o.xmin::text, o.price_usd, o.occurred_at, o.seen_at,
           o.event_id, o.updated_at, o.native_price, o.native_currency, o.withdrawn_at, o.tax
    INTO used, raw_body, name, vintage, wine_version,
         offer_version, price_usd, occurred_at, seen_at,
         event_id, updated_at, native_price, native_currency, withdrawn_at, tax
    FROM pricing_wine w LEFT JOIN pricing_offer o ON o.wine_id = w.id AND o.merchant_id = of_merchant
    WHERE w.id = of_wine AND w.retired_at IS NULL;
END $$;
"""
BACKWARD = "DROP FUNCTION pricing_look(text, text, text);"


class Migration(migrations.Migration):
    dependencies = [("pricing", "0011_words_of_names")]
    operations = [migrations.RunSQL(FORWARD, BACKWARD)]
