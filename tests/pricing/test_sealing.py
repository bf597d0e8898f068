"""Sealed secrets: readable by us alone, also while SECRET_KEY is replaced."""

import pytest

from pricing import sealing

OLD, NEW = "old-key-" * 8, "new-key-" * 8


def test_what_is_sealed_can_be_read_and_does_not_show_itself(settings):
    sealed = sealing.seal(b"hunter2hunter2")
    assert sealing.unseal(sealed) == b"hunter2hunter2"
    assert "hunter2" not in sealed
    assert sealing.seal(b"hunter2hunter2") != sealed


def test_without_its_secret_key_nothing_can_be_read(settings):
    sealed = sealing.seal(b"secret")
    settings.SECRET_KEY = NEW
    with pytest.raises(sealing.UnreadableError):
        sealing.unseal(sealed)
    with pytest.raises(sealing.UnreadableError):
        sealing.reseal(sealed)


@pytest.mark.parametrize("spoil", [lambda text: text[:-4], lambda text: text[:20] + "AAAA" + text[24:], lambda _: ""])
def test_what_was_changed_is_refused_and_not_misread(spoil):
    with pytest.raises(sealing.UnreadableError):
        sealing.unseal(spoil(sealing.seal(b"secret")))


def test_a_secret_key_can_be_replaced(settings):
    settings.SECRET_KEY = OLD
    sealed = sealing.seal(b"secret")
    settings.SECRET_KEY, settings.SECRET_KEY_FALLBACKS = NEW, [OLD]
    assert sealing.unseal(sealed) == b"secret"
    resealed = sealing.reseal(sealed)
    settings.SECRET_KEY_FALLBACKS = []
    assert sealing.unseal(resealed) == b"secret"
    with pytest.raises(sealing.UnreadableError):
        sealing.unseal(sealed)


def test_the_key_is_not_the_secret_key_itself(settings):
    """A text sealed with what others would derive from SECRET_KEY is none of ours."""
    import base64
    import hashlib

    from cryptography.fernet import Fernet

    plain = Fernet(base64.urlsafe_b64encode(hashlib.sha256(settings.SECRET_KEY.encode()).digest()))
    with pytest.raises(sealing.UnreadableError):
        sealing.unseal(plain.encrypt(b"secret").decode())
