import hashlib
import hmac
import re
import threading
from datetime import timedelta
from io import StringIO

import pytest
from django.core.management import CommandError, call_command
from django.db import connection, transaction
from django.test.utils import CaptureQueriesContext
from django.utils import timezone

from pricing import keys
from pricing.models import FeedKey
from tests import cast
from tests.cast import NOW
from tests.pricing.test_order import DEADLINE, until, waiting_for_a_lock

pytestmark = pytest.mark.django_db
DAY = timedelta(days=1)


def make(merchant, **options):
    return keys.create_key(merchant=merchant, note="", now=NOW, **options)


def test_a_key_lets_its_merchant_in(merchant):
    other = cast.merchant("083", "Merchant Y")
    _, text = make(merchant)
    _, others = make(other)
    assert keys.authenticate(f"Bearer {text}", now=NOW)[0] == merchant
    assert keys.authenticate(f"bearer  {others}", now=NOW)[0] == other


def test_a_key_is_a_prefix_and_256_random_bits_of_which_only_the_hash_is_kept(merchant):
    key, text = make(merchant)
    mark, prefix, secret = re.fullmatch(r"(wck)_([0-9a-z]{8})_([A-Za-z0-9_-]{43})", text).groups()
    assert mark == "wck"
    assert (key.prefix, key.secret_sha256) == (prefix, hashlib.sha256(secret.encode()).hexdigest())
    stored = str(FeedKey.objects.values().get())
    assert secret not in stored
    assert text not in stored


def bad_headers(merchant):
    _, text = make(merchant)
    old, revoked = make(merchant)
    keys.revoke_key(key=old, now=NOW)
    _, expired = make(merchant, expires_at=NOW)
    flipped = text[:-1] + ("A" if text[-1] != "A" else "B")
    return {
        "row 2 wrong scheme": f"Basic {text}",
        "row 3 unknown key": f"Bearer wck_00000000_{'a' * 43}",
        "row 4 wrong secret": f"Bearer {flipped}",
        "row 5 revoked": f"Bearer {revoked}",
        "row 6 expired": f"Bearer {expired}",
        "row 8 trailing space": f"Bearer {text} ",
        "row 8 NUL": f"Bearer {text}\x00",
        "row 8 100 kB": f"Bearer {text}{'a' * 100_000}",
        "no scheme": text,
        "two keys": f"Bearer {text}, Bearer {text}",
        "upper case": f"Bearer {text.upper()}",
        "newline": f"Bearer {text}\n",
        "other digits": f"Bearer {text[:4]}٤{text[5:]}",
    }


def test_whatever_lets_nobody_in_is_refused_with_one_error(merchant):
    for name, header in bad_headers(merchant).items():
        with pytest.raises(keys.InvalidCredentialsError) as refusal:
            keys.authenticate(header, now=NOW)
        assert str(refusal.value) == "invalid credentials", name


@pytest.mark.parametrize("header", [None, ""])
def test_no_header_is_another_thing_than_a_wrong_one(header):
    with pytest.raises(keys.MissingCredentialsError):
        keys.authenticate(header, now=NOW)


def test_unknown_wrong_revoked_and_expired_keys_cost_the_same_work(merchant, monkeypatch):
    compared = []

    def compare(ours, stored):
        compared.append((len(ours), len(stored)))
        return hmac_compare(ours, stored)

    hmac_compare = hmac.compare_digest
    headers = bad_headers(merchant)
    monkeypatch.setattr("pricing.keys.hmac.compare_digest", compare)
    for row in ("row 3 unknown key", "row 4 wrong secret", "row 5 revoked", "row 6 expired"):
        with CaptureQueriesContext(connection) as queries, pytest.raises(keys.InvalidCredentialsError):
            keys.authenticate(headers[row], now=NOW)
        assert len(queries) == 1, row
    assert compared == [(64, 64)] * 4


def test_a_key_expires_at_its_time(merchant):
    _, text = make(merchant, expires_at=NOW + DAY)
    assert keys.authenticate(f"Bearer {text}", now=NOW + DAY - timedelta(seconds=1))[0] == merchant
    with pytest.raises(keys.InvalidCredentialsError):
        keys.authenticate(f"Bearer {text}", now=NOW + DAY)


def test_rotation_has_two_keys_alive_and_no_third(merchant):
    first, old = make(merchant)
    _, new = make(merchant)
    for text in (old, new):
        assert keys.authenticate(f"Bearer {text}", now=NOW)[0] == merchant
    with pytest.raises(keys.TooManyKeysError, match=r"Merchant X has 2 live keys.*revoke"):
        make(merchant)
    assert keys.revoke_key(key=first, now=NOW)
    make(merchant)
    assert keys.authenticate(f"Bearer {new}", now=NOW)[0] == merchant


def test_expired_keys_and_other_merchants_keys_do_not_count(merchant):
    make(merchant, expires_at=NOW - DAY)
    make(merchant)
    make(merchant)
    make(cast.merchant("083", "Merchant Y"))
    assert FeedKey.objects.count() == 4


def test_revoking_again_keeps_the_first_time(merchant):
    key, _ = make(merchant)
    assert keys.revoke_key(key=key, now=NOW)
    assert not keys.revoke_key(key=key, now=NOW + DAY)
    assert FeedKey.objects.get().revoked_at == NOW


def test_a_keys_state_in_words(merchant):
    assert keys.state(FeedKey(), now=NOW) == "live"
    assert keys.state(FeedKey(expires_at=NOW + DAY), now=NOW) == "live until 2026-03-15 09:12 UTC"
    assert keys.state(FeedKey(expires_at=NOW), now=NOW) == "expired 2026-03-14 09:12 UTC"
    assert keys.state(FeedKey(revoked_at=NOW, expires_at=NOW + DAY), now=NOW) == "revoked 2026-03-14 09:12 UTC"


@pytest.mark.django_db(transaction=True)
def test_two_people_creating_keys_at_once_cannot_exceed_the_limit(merchant):
    make(merchant)
    made, may_commit, refusals = threading.Event(), threading.Event(), []

    def first():
        try:
            with transaction.atomic():
                make(merchant)
                made.set()
                assert may_commit.wait(DEADLINE)
        finally:
            connection.close()

    def second():
        try:
            make(merchant)
        except keys.TooManyKeysError as error:
            refusals.append(error)
        finally:
            connection.close()

    people = [threading.Thread(target=first, daemon=True), threading.Thread(target=second, daemon=True)]
    people[0].start()
    assert made.wait(DEADLINE)
    people[1].start()
    until(lambda: waiting_for_a_lock() == 1, "the second person to wait for the first")
    may_commit.set()
    for person in people:
        person.join(DEADLINE)
    assert len(refusals) == 1
    assert FeedKey.objects.count() == 2


# --- The commands -----------------------------------------------------------------------------------------------


def run(*arguments):
    out, err = StringIO(), StringIO()
    call_command(*arguments, stdout=out, stderr=err)
    return out.getvalue()


def test_the_command_prints_a_key_that_works(merchant):
    text = run("create_feed_key", merchant.id, "--note", "nightly", "--expires-in-days", "30").strip()
    assert keys.authenticate(f"Bearer {text}", now=timezone.now())[0] == merchant
    key = FeedKey.objects.get()
    assert key.note == "nightly"
    assert key.expires_at - timezone.now() > timedelta(days=29)


def test_the_command_refuses_in_words(merchant):
    with pytest.raises(CommandError, match="No merchant has the id mch_nobody"):
        run("create_feed_key", "mch_nobody")
    with pytest.raises(CommandError, match="at least one day"):
        run("create_feed_key", merchant.id, "--expires-in-days", "0")
    run("create_feed_key", merchant.id)
    run("create_feed_key", merchant.id)
    with pytest.raises(CommandError, match="live keys"):
        run("create_feed_key", merchant.id)
    assert FeedKey.objects.count() == 2


def test_keys_are_listed_without_their_secrets_and_revoked_by_prefix(merchant):
    text = run("create_feed_key", merchant.id, "--note", "nightly").strip()
    _, prefix, secret = text.split("_", 2)
    listed = run("list_feed_keys")
    assert re.fullmatch(rf"{prefix} +mch_082 +live +nightly\n", listed)
    assert secret not in listed
    assert run("revoke_feed_key", prefix) == f"Revoked {prefix} of mch_082.\n"
    assert "revoked 20" in run("list_feed_keys")
    with pytest.raises(keys.InvalidCredentialsError):
        keys.authenticate(f"Bearer {text}", now=timezone.now())
    with pytest.raises(CommandError, match="revoked before"):
        run("revoke_feed_key", prefix)
    with pytest.raises(CommandError, match="No feed key has the prefix"):
        run("revoke_feed_key", "nobody")
