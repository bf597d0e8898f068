"""Fixtures of the feed's tests: a merchant with a key, a way to post, and the real web server."""

import json
from collections.abc import Iterator
from typing import Any

import pytest
from django.http import HttpResponse
from django.test import Client
from django.utils import timezone

from jobs.models import DeadLetter
from pricing import keys
from pricing.models import FeedAnswer, HeldPrice, Merchant, Offer, RawBody, Wine
from tests import cast
from tests.feeds.server import Server
from tests.pricing.observed import published

ADDRESS = "/feeds/v1/price-changes"


@pytest.fixture
def merchant(db: None) -> Merchant:
    return cast.merchant()


@pytest.fixture
def wine(db: None) -> Wine:
    return cast.wine()


@pytest.fixture
def key(merchant: Merchant) -> str:
    return keys.create_key(merchant=merchant, note="", now=timezone.now())[1]


class Feed:
    """Posts as the merchant does. `body` is bytes as they are, or a value to be sent as JSON."""

    def __init__(self, key: str) -> None:
        self.key = key
        self.client = Client(raise_request_exception=True)

    def post(
        self, body: Any, *, content_type: str = "application/json", address: str = ADDRESS, **headers: str | None
    ) -> HttpResponse:
        """Headers by keyword, `_` for `-`; None leaves one out."""
        data = body if isinstance(body, bytes) else json.dumps(body).encode()
        sent = {
            "Authorization": f"Bearer {self.key}",
            **{name.replace("_", "-"): value for name, value in headers.items()},
        }
        sent = {name: value for name, value in sent.items() if value is not None}
        # Django's client leaves both out when there is nothing to send.
        always = {"CONTENT_LENGTH": str(len(data)), "CONTENT_TYPE": content_type}
        return self.client.generic("POST", address, data, content_type, headers=sent, **always)


@pytest.fixture
def feed(key: str) -> Feed:
    return Feed(key)


def observation(price: Any = "189.00", **fields: Any) -> dict[str, Any]:
    """A good observation; a field given as `...` is left out."""
    good = {"wine_id": "wn_4417", "price": price, "currency": "USD", "occurred_at": "2026-03-14T09:12:04Z", **fields}
    return {name: value for name, value in good.items() if value is not ...}


def nothing_written() -> bool:
    stored = any(model.objects.exists() for model in (Offer, HeldPrice, FeedAnswer, RawBody, DeadLetter))
    return not stored and published() == []


def refusal(response: HttpResponse) -> tuple[int, str, str | None]:
    """Status, code and field of an answer in the feed's error shape."""
    answer = json.loads(response.content)
    assert set(answer) == {"error"}
    assert set(answer["error"]) == {"code", "message", "field", "request_id"}
    assert answer["error"]["request_id"] == response["X-Request-ID"]
    assert response["Content-Type"] == "application/json"
    return response.status_code, answer["error"]["code"], answer["error"]["field"]


def unreadable(response: HttpResponse) -> tuple[str, str | None]:
    """Code and field of what could not be read of a signed webhook, whose sender is told that all is well."""
    answer = json.loads(response.content)
    assert (response.status_code, answer["accepted"], answer["event_ids"]) == (202, 0, [])
    assert RawBody.objects.filter(pk=DeadLetter.objects.get().attributes["raw_body"]).exists()
    return answer["unreadable"]["code"], answer["unreadable"]["field"]


@pytest.fixture(scope="session")
def _server(django_db_setup: None, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    server = Server(tmp_path_factory.mktemp("server") / "stderr.log")
    yield server
    server.stop()


@pytest.fixture
def server(_server: Server, transactional_db: None) -> Server:
    assert _server.running(), _server.log.read_text()[-2000:]
    return _server
