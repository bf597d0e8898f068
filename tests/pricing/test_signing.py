"""Signing secrets: made or taken, kept sealed, listed, revoked, sealed anew."""

import base64
import io
import re
from datetime import timedelta
from io import StringIO

import pytest
from django.contrib.admin.models import LogEntry
from django.core.management import CommandError, call_command
from django.urls import reverse
from django.utils import timezone

from jobs import standard_webhooks
from jobs.standard_webhooks import Signed
from pricing import keys, sealing, signing
from pricing.models import SigningSecret
from tests import cast
from tests.cast import NOW
from tests.pricing.test_admin import act, changelist, staff

pytestmark = pytest.mark.django_db(transaction=True)
DAY = timedelta(days=1)
BODY = b"{}"
GIVEN = "whsec_" + base64.b64encode(b"a merchant's own secret!").decode()


def make(merchant, **options):
    return signing.create_secret(merchant=merchant, note="", now=NOW, **options)


def lets_in(text, merchant_id="mch_082", now=NOW):
    timestamp = str(int(now.timestamp()))
    signature = standard_webhooks.sign(standard_webhooks.read_secret(text), Signed("m", timestamp, ""), BODY)
    signed = Signed("m", timestamp, signature)
    try:
        merchant = signing.authenticate(merchant_id=merchant_id, signed=signed, body=BODY, now=now)
    except standard_webhooks.SignatureError:
        return False
    assert merchant.pk == merchant_id
    return True


def test_a_secret_is_random_and_kept_sealed(merchant):
    kept, text = make(merchant)
    other = make(merchant)[1]
    assert text != other
    secret = standard_webhooks.read_secret(text)
    assert len(secret) == 32
    assert sealing.unseal(kept.sealed) == secret
    assert text[6:] not in str(SigningSecret.objects.values())
    assert lets_in(text)
    assert lets_in(other)


def test_a_secret_the_sender_made_is_taken(merchant):
    kept, text = make(merchant, text=GIVEN)
    assert text == GIVEN
    assert sealing.unseal(kept.sealed) == b"a merchant's own secret!"
    assert lets_in(GIVEN)


@pytest.mark.parametrize(
    ("text", "complaint"),
    [
        ("", "starts with whsec_"),
        (GIVEN[6:], "starts with whsec_"),
        ("whsec_%%%%", "not base64"),
        ("whsec_é", "not base64"),
        ("whsec_" + base64.b64encode(b"x" * 23).decode(), "24 to 64 bytes, this one 23"),
        ("whsec_" + base64.b64encode(b"x" * 65).decode(), "24 to 64 bytes, this one 65"),
    ],
)
def test_what_is_no_secret_is_refused_in_words(merchant, text, complaint):
    with pytest.raises(ValueError, match=complaint):
        make(merchant, text=text)
    assert not SigningSecret.objects.exists()


def test_a_secret_lives_until_it_expires_or_is_revoked(merchant):
    _, expiring = make(merchant, expires_at=NOW + DAY)
    assert lets_in(expiring, now=NOW + DAY - timedelta(seconds=1))
    assert not lets_in(expiring, now=NOW + DAY)
    kept, revoked = make(merchant)
    assert signing.revoke_secret(secret=kept, now=NOW)
    assert not signing.revoke_secret(secret=kept, now=NOW + DAY)
    assert SigningSecret.objects.get(pk=kept.pk).revoked_at == NOW
    assert not lets_in(revoked)


def test_a_merchant_has_two_live_secrets_and_no_third_whatever_keys_it_has(merchant):
    keys.create_key(merchant=merchant, note="", now=NOW)
    make(merchant)
    make(merchant)
    with pytest.raises(keys.TooManyKeysError, match=r"Merchant X has 2 live signing secrets.*revoke"):
        make(merchant)
    make(cast.merchant("083", "Merchant Y"))
    keys.create_key(merchant=merchant, note="", now=NOW)


def test_an_unknown_merchant_lets_nobody_in_and_one_without_secrets_neither(merchant):
    _, text = make(merchant)
    assert not lets_in(text, "mch_nobody")
    cast.merchant("083", "Merchant Y")
    assert not lets_in(text, "mch_083")


# --- The commands -----------------------------------------------------------------------------------------------


def run(*arguments):
    out, err = StringIO(), StringIO()
    call_command(*arguments, stdout=out, stderr=err)
    return out.getvalue()


def test_the_command_prints_a_secret_that_works(merchant):
    text = run("create_signing_secret", merchant.id, "--note", "nightly", "--expires-in-days", "30").strip()
    assert lets_in(text, now=timezone.now())
    kept = SigningSecret.objects.get()
    assert kept.note == "nightly"
    assert timedelta(days=29) < kept.expires_at - timezone.now() <= timedelta(days=30)


def test_the_command_takes_a_secret_from_standard_input_and_does_not_repeat_it(merchant, monkeypatch):
    monkeypatch.setattr("sys.stdin", io.StringIO(f"{GIVEN}\n"))
    said = run("create_signing_secret", merchant.id, "--given")
    assert said == f"Kept as {SigningSecret.objects.get().prefix}.\n"
    assert lets_in(GIVEN)


def test_the_command_takes_a_shops_secret(merchant, monkeypatch):
    monkeypatch.setattr("sys.stdin", io.StringIO("a secret of a shop\n"))
    run("create_signing_secret", merchant.id, "--for", "shopify", "--given")
    kept = SigningSecret.objects.get()
    assert (kept.kind, sealing.unseal(kept.sealed)) == ("shopify", b"a secret of a shop")
    made = run("create_signing_secret", merchant.id, "--for", "woocommerce").strip()
    assert sealing.unseal(SigningSecret.objects.get(kind="woocommerce").sealed) == made.encode()


def test_the_command_refuses_in_words(merchant, monkeypatch):
    with pytest.raises(CommandError, match="No merchant has the id mch_nobody"):
        run("create_signing_secret", "mch_nobody")
    with pytest.raises(CommandError, match="at least one day"):
        run("create_signing_secret", merchant.id, "--expires-in-days", "0")
    monkeypatch.setattr("sys.stdin", io.StringIO("hunter2\n"))
    with pytest.raises(CommandError, match="starts with whsec_"):
        run("create_signing_secret", merchant.id, "--given")
    run("create_signing_secret", merchant.id)
    run("create_signing_secret", merchant.id)
    with pytest.raises(CommandError, match="live signing secrets"):
        run("create_signing_secret", merchant.id)


def test_secrets_are_listed_without_themselves_and_revoked_by_name(merchant):
    text = run("create_signing_secret", merchant.id, "--note", "nightly").strip()
    name = SigningSecret.objects.get().prefix
    listed = run("list_signing_secrets")
    assert re.fullmatch(rf"{name} +mch_082 +standard +live +nightly\n", listed)
    assert run("revoke_signing_secret", name) == f"Revoked {name} of mch_082.\n"
    assert "revoked 20" in run("list_signing_secrets")
    assert not lets_in(text, now=timezone.now())
    with pytest.raises(CommandError, match="revoked before"):
        run("revoke_signing_secret", name)
    with pytest.raises(CommandError, match="No signing secret has the name"):
        run("revoke_signing_secret", "nobody")


def test_secrets_outlive_their_secret_key_when_they_are_sealed_anew_in_time(merchant, settings):
    old = settings.SECRET_KEY
    _, text = make(merchant)
    settings.SECRET_KEY, settings.SECRET_KEY_FALLBACKS = "new-key-" * 8, [old]
    assert run("reseal_signing_secrets") == "resealed: 1\n"
    settings.SECRET_KEY_FALLBACKS = []
    assert lets_in(text)
    settings.SECRET_KEY = "third-key-" * 8
    with pytest.raises(CommandError, match="1 cannot be read"):
        run("reseal_signing_secrets")


# --- The admin --------------------------------------------------------------------------------------------------


def add(client, merchant, **fields):
    data = {
        "merchant": merchant.id,
        "kind": "standard",
        "secret": "",
        "note": "",
        "expires_at_0": "",
        "expires_at_1": "",
        **fields,
    }
    return client.post(reverse("admin:pricing_signingsecret_add"), data, follow=True)


def test_a_secret_is_shown_once_when_it_is_made_in_the_admin(client, merchant):
    staff(client, "view_signingsecret", "add_signingsecret")
    page = add(client, merchant).content.decode()
    text = re.search(r"whsec_[A-Za-z0-9+/]{43}=", page).group()
    assert lets_in(text, now=timezone.now())
    kept = SigningSecret.objects.get()
    for address in (changelist(SigningSecret), reverse("admin:pricing_signingsecret_change", args=[kept.pk])):
        shown = client.get(address).content.decode()
        assert kept.prefix in shown
        assert text not in shown
        assert kept.sealed not in shown
    assert text not in LogEntry.objects.get().get_change_message()


def test_a_given_secret_is_taken_in_the_admin_and_never_shown(client, merchant):
    staff(client, "view_signingsecret", "add_signingsecret")
    assert GIVEN not in add(client, merchant, secret=GIVEN).content.decode()
    assert lets_in(GIVEN)
    assert "not base64" in add(client, merchant, secret="whsec_%").content.decode()
    add(client, merchant)
    assert "2 live signing secrets" in add(client, merchant).content.decode()
    assert SigningSecret.objects.count() == 2


def test_a_shops_secret_is_taken_in_the_admin_and_counted_by_itself(client, merchant):
    make(merchant)
    make(merchant)
    staff(client, "view_signingsecret", "add_signingsecret")
    assert "16 to 200 letters" in add(client, merchant, kind="shopify", secret="short").content.decode()
    for secret in ("a secret of a shop", "the next one of a shop"):
        add(client, merchant, kind="shopify", secret=secret)
    assert "2 live signing secrets" in add(client, merchant, kind="shopify").content.decode()
    assert SigningSecret.objects.filter(kind="shopify").count() == 2


def test_a_secret_cannot_be_edited_or_deleted_and_revoking_needs_its_permission(client, merchant):
    kept, text = make(merchant)
    staff(client, "view_signingsecret", "add_signingsecret", "delete_signingsecret")
    address = reverse("admin:pricing_signingsecret_change", args=[kept.pk])
    assert client.post(address, {"note": "after"}).status_code == 403
    assert client.post(reverse("admin:pricing_signingsecret_delete", args=[kept.pk]), {"post": "y"}).status_code == 403
    act(client, SigningSecret, "revoke", kept)
    assert lets_in(text)
    act(staff(client, "view_signingsecret", "change_signingsecret"), SigningSecret, "revoke", kept)
    assert not lets_in(text)
    assert LogEntry.objects.get().get_change_message() == "Revoked."
