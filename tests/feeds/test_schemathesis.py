"""Schemathesis reads the OpenAPI document and sends what it says, and what it forbids, to the real WSGI application.

Nothing is a 5xx; status, headers and body of each answer are as described. Deterministic: each run sends the same.
"""

import base64
import hashlib
import hmac
import io
import json
import time
import zlib
from collections import Counter
from collections.abc import Callable, Iterator
from typing import Any

import pytest
import schemathesis
from django.core.wsgi import get_wsgi_application
from django.utils import timezone
from hypothesis import HealthCheck, settings
from schemathesis.checks import not_a_server_error
from schemathesis.specs.openapi.checks import (
    allow_header_conformance,
    content_type_conformance,
    response_headers_conformance,
    response_schema_conformance,
    status_code_conformance,
    unsupported_method,
)

from pricing import signing
from pricing.feeds import catalogue_views
from pricing.feeds.described.openapi import document
from pricing.models import CatalogueFile, Merchant, Wine
from tests.feeds import shops

EXAMPLES = 25  # for each address, on top of those that schemathesis works out from the limits
CHECKS = [
    not_a_server_error,
    status_code_conformance,
    content_type_conformance,
    response_headers_conformance,
    response_schema_conformance,
    unsupported_method,
    allow_header_conformance,
]
SECRET = b"k" * 32
RIGHT = "right"  # stands in a credential's header where Sender shall put the right one


class Sender:
    """The application, and before it a sender who has a key, and signs whatever body was generated."""

    def __init__(self) -> None:
        self.application = get_wsgi_application()
        self.key = ""
        self.answered: Counter[int] = Counter()

    def __call__(self, environ: dict[str, Any], start_response: Callable[..., Any]) -> Any:
        body = environ["wsgi.input"].read(int(environ.get("CONTENT_LENGTH") or 0))
        environ["wsgi.input"] = io.BytesIO(body)
        signed = f"{environ.get('HTTP_WEBHOOK_ID', '')}.{environ.get('HTTP_WEBHOOK_TIMESTAMP', '')}."
        digest = hmac.new(SECRET, signed.encode(errors="replace") + body, hashlib.sha256).digest()
        credentials = {
            "HTTP_AUTHORIZATION": f"Bearer {self.key}",
            "HTTP_WEBHOOK_SIGNATURE": "v1," + base64.b64encode(digest).decode(),
            "HTTP_X_SHOPIFY_HMAC_SHA256": shops.signature(body),
            "HTTP_X_WC_WEBHOOK_SIGNATURE": shops.signature(body),
        }
        environ |= {name: right for name, right in credentials.items() if environ.get(name, "").endswith(RIGHT)}

        def start(status: str, *rest: Any) -> Any:
            self.answered[int(status[:3])] += 1
            return start_response(status, *rest)

        return self.application(environ, start)


@schemathesis.serializer(*catalogue_views.MEDIA_TYPES)
def file(_: Any, value: Any) -> bytes:
    return value if isinstance(value, bytes) else str(value).encode(errors="replace")


@schemathesis.serializer("application/x-ndjson")
def lines(_: Any, value: Any) -> bytes:
    return "\n".join(json.dumps(row) for row in (value if isinstance(value, list) else [value])).encode()


def with_ids_that_exist() -> dict[str, Any]:
    """The document, but of ids it names those that nobody would guess, beside some that nobody has."""
    described: dict[str, Any] = json.loads(json.dumps(document()))
    shapes = described["components"]["schemas"]
    for fields in (shapes["Observation"], shapes["One"], shapes["CloudEvent"]["properties"]["data"]["anyOf"][1]):
        fields["properties"]["wine_id"] = {"enum": ["wn_4417", "wn_404"]}
        fields["properties"]["merchant_id"] = {"enum": ["mch_082", "mch_404"]}
    shapes["Currency"]["enum"] = ["USD", "EUR", "VND"]
    for operation in (each for operations in described["paths"].values() for each in operations.values()):
        for parameter in operation["parameters"]:
            if parameter["name"] == "file_id":
                parameter["schema"] = {"enum": [str(FILE), "404"]}
            if parameter["name"] == "merchant_id":
                parameter["schema"] = {"enum": ["mch_082", "mch_404"]}
            if parameter["name"] == "webhook-timestamp":
                parameter["schema"] = {"enum": [NOW, "7"]}
    return described


FILE = 4417
NOW = "1773479524"  # in the document; Sender would have to sign another
sender = Sender()
config = schemathesis.Config()
config.projects.default.generation.update(deterministic=True, with_security_parameters=False)
schema = schemathesis.openapi.from_dict(with_ids_that_exist(), config=config)
schema.app = sender


PRICES = {202, 401, 405, 415, 422}
HEARD = {
    "/feeds/v1/price-changes": PRICES,
    "/feeds/v1/price-changes/{merchant_id}": PRICES,
    "/feeds/v1/shopify/{merchant_id}": {202, 401},  # what is signed and cannot be read is a 202
    "/feeds/v1/woocommerce/{merchant_id}": {200, 202, 401},
    "/feeds/v1/catalogues": {202, 401, 422},
    "/feeds/v1/catalogues/{file_id}": {200, 401, 404},
}


def endpoint_of(name: str) -> str:
    """The address in the name of a test, such as test_…[GET /feeds/v1/…]."""
    return name.partition(" ")[2].removesuffix("]")


@pytest.fixture
def known(
    request: pytest.FixtureRequest, transactional_db: None, merchant: Merchant, wine: Wine, key: str
) -> Iterator[None]:
    """What the ids and credentials above stand for. Each address was then heard to say yes, and many a no."""
    sender.key = key
    sender.answered.clear()
    Merchant.objects.filter(pk=merchant.pk).update(currency="USD")
    whsec = "whsec_" + base64.b64encode(SECRET).decode()
    for kind, secret in (("standard", whsec), ("shopify", shops.SECRET), ("woocommerce", shops.SECRET)):
        signing.create_secret(merchant=merchant, note="", now=timezone.now(), text=secret, kind=kind)
    now = timezone.now()
    CatalogueFile.objects.create(pk=FILE, merchant=merchant, name="stock.csv", as_of=now, received_at=now)
    yield
    assert HEARD[endpoint_of(request.node.name)] <= set(sender.answered), sender.answered


@pytest.mark.django_db(transaction=True)
@pytest.mark.usefixtures("known")
@schema.parametrize()
@settings(
    max_examples=EXAMPLES, derandomize=True, database=None, deadline=None, suppress_health_check=list(HealthCheck)
)
def test_whatever_is_sent_is_answered_as_described(case: schemathesis.Case) -> None:
    # By the body, so that a case that is sent again is sent the same. A file may be any text and its report has none:
    # there the bodies are few, so in turns.
    in_turn = "/catalogues" in case.operation.path
    draw = sum(sender.answered.values()) if in_turn else zlib.crc32(repr(case.body).encode())
    if draw % 8:  # the others have no credentials, or those that were made up
        signs = "merchant_id" in case.path_parameters and draw % 2
        case.headers["webhook-signature" if signs else "Authorization"] = RIGHT if signs else f"Bearer {RIGHT}"
        case.headers["X-Shopify-Hmac-Sha256"] = case.headers["X-WC-Webhook-Signature"] = RIGHT
    if case.headers.get("webhook-timestamp") == NOW:
        case.headers["webhook-timestamp"] = str(int(time.time()))
    case.call_and_validate(checks=CHECKS)
