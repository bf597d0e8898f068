"""A simulated payment provider for each test; its log of requests and its books are there to be asked."""

from collections.abc import Iterator
from types import SimpleNamespace
from typing import Any

import pytest

from winecellar import payment_provider
from winecellar.demo.payments_api import PaymentServer

SECRET = "whsec_of_the_tests"


@pytest.fixture
def provider(settings: Any, monkeypatch: pytest.MonkeyPatch) -> Iterator[PaymentServer]:
    # What is put back waits as long as it may: not so short that it comes again within one `work()`.
    monkeypatch.setattr("jobs.perform.random", SimpleNamespace(uniform=lambda low, high: high))
    server = PaymentServer().start()
    settings.PAYMENTS = payment_provider.read(server.url)
    settings.PAYMENTS_WEBHOOK_SECRET = SECRET
    yield server
    server.shutdown()
    server.server_close()
