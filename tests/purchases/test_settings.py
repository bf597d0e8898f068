"""What a deployment must not get wrong about payments is found by `manage.py check`, and said in words."""

from datetime import timedelta
from typing import Any

import pytest

from winecellar import payment_provider
from winecellar.purchases import checks, saga


def ids(found: Any) -> list[str]:
    return [message.id for message in found]


def test_the_url_names_the_provider_and_its_key() -> None:
    live = payment_provider.read("stripe://sk_live_a%2Fb@")
    assert live is not None
    assert (live.secret_key, live.api_base) == ("sk_live_a/b", "https://api.stripe.com")
    assert "sk_live" not in repr(live), "the key is in no log"
    here = payment_provider.read("stripe://sk_test@127.0.0.1:8027/?tls=false")
    assert here is not None
    assert here.api_base == "http://127.0.0.1:8027"
    assert payment_provider.read("") is None


@pytest.mark.parametrize(
    ("url", "says"), [("paypal://key@", "paypal:// is no payment provider"), ("stripe://", "needs the secret key")]
)
def test_a_url_that_is_none_is_refused_in_words(url: str, says: str) -> None:
    with pytest.raises(ValueError, match=says):
        payment_provider.read(url)


def test_the_checks_find_what_is_half_configured(settings: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    everything = (
        checks.what_cannot_be_undone_comes_last,
        checks.an_exchange_has_time_to_fail,
        checks.the_secret_key_is_not_sent_in_the_clear,
        checks.the_providers_reports_are_heard,
    )
    settings.PAYMENTS = payment_provider.read("stripe://sk@127.0.0.1:1/?tls=false")
    settings.PAYMENTS_WEBHOOK_SECRET = "whsec_x"
    assert [ids(check()) for check in everything] == [[], [], [], []]
    settings.PAYMENTS = payment_provider.read("stripe://sk@pay.example/?tls=false")
    settings.PAYMENTS_WEBHOOK_SECRET = ""
    settings.PAYMENT_TIMEOUT = timedelta(seconds=16)
    monkeypatch.setattr(saga, "SAGA", (saga.RESERVE, saga.NOTIFY, saga.CHARGE))
    assert [ids(check()) for check in everything] == [
        ["purchases.E001"],
        ["purchases.E002"],
        ["purchases.E003"],
        ["purchases.W001"],
    ]
    settings.PAYMENTS = None
    assert ids(checks.the_secret_key_is_not_sent_in_the_clear()) == []
    assert ids(checks.the_providers_reports_are_heard()) == []
