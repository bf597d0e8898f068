"""A payment provider's HTTP API on this machine, in the shape of Stripe's, behaving as a script says. For tests, demo.

`python -m winecellar.demo.payments_api --log var/money.jsonl --script "confirm: taken-hang:30, ok"` prints its port as
one JSON line. It has the page on which a card is chosen (no numbers are typed), and sends its reports, signed, to
--report-to. The bank's books are payments_bank.py's. Listens on 127.0.0.1. Imports no Django.
"""

from __future__ import annotations

import argparse
import hashlib
import hmac
import html
import json
import signal
import sys
import threading
import time
import urllib.request
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from queue import SimpleQueue
from typing import Any, Protocol
from urllib.parse import parse_qsl, urlsplit

from winecellar.demo.mail_script import Behaviour
from winecellar.demo.payments_bank import Bank, Document, NotPossible
from winecellar.demo.payments_script import PaymentScript, has_effect

LARGEST = 100_000
Answer = tuple[int, Document]
# What the card page offers: the last four digits, and how its bank answers.
CARDS = {
    "4242": ("A card that works", ""),
    "9995": ("A card without enough money", "insufficient_funds"),
    "0069": ("A card that has expired", "expired_card"),
}


class HasNext(Protocol):
    def next(self, request: str) -> Behaviour: ...


@dataclass
class _Known:
    digest: str
    answer: Answer | None = None  # None: the first request is still at work


class PaymentServer(ThreadingHTTPServer):
    """`requests` is what came, in order, as (kind, key); `script` may be replaced while it runs."""

    daemon_threads = True
    request_queue_size = 256

    def __init__(self, port: int = 0, bank: Bank | None = None, script: HasNext | None = None) -> None:
        super().__init__(("127.0.0.1", port), _Api)
        self.bank = bank or Bank()
        self.script: HasNext = script or PaymentScript()
        self.requests: list[tuple[str, str]] = []
        self.keys: dict[str, _Known] = {}
        self.keys_lock = threading.Lock()

    @property
    def port(self) -> int:
        return int(self.server_address[1])

    @property
    def url(self) -> str:
        """As PAYMENTS_URL."""
        return f"stripe://sk_test_here@127.0.0.1:{self.port}?tls=false"

    def start(self) -> PaymentServer:
        threading.Thread(target=self.serve_forever, kwargs={"poll_interval": 0.05}, daemon=True).start()
        return self

    def handle_error(self, request: Any, client_address: Any) -> None:
        """Whoever sent it did not wait: that is what it is for."""


class _Api(BaseHTTPRequestHandler):
    server: PaymentServer
    protocol_version = "HTTP/1.1"
    disable_nagle_algorithm = True

    def do_GET(self) -> None:
        self._route("GET")

    def do_POST(self) -> None:
        self._route("POST")

    def _route(self, method: str) -> None:
        length = min(int(self.headers.get("Content-Length", 0)), LARGEST)
        content = self.rfile.read(length)
        if len(content) < length:  # whoever sent it died in the middle: it was no request
            self.close_connection = True
            return None
        body = content.decode()
        place = urlsplit(self.path)
        asked = _nested([*parse_qsl(place.query), *parse_qsl(body)])
        parts = place.path.strip("/").split("/")
        if parts[0] == "pay":
            return self._card_page(parts[-1], asked, choose=method == "POST")
        if not self.headers.get("Authorization", "").startswith("Bearer sk_"):
            return self._say(401, {"error": {"type": "invalid_request_error", "message": "no key"}})
        try:
            kind, do = self._meant(method, parts[1:], asked)
        except NotPossible as error:
            return self._say(error.status, error.document)
        self.server.requests.append((kind, self.headers.get("Idempotency-Key", "")))
        return self._behave(self.server.script.next(kind), do, method + self.path + body)

    def _meant(self, method: str, parts: list[str], asked: Document) -> tuple[str, Callable[[Behaviour], Document]]:
        bank = self.server.bank
        match method, *parts:
            case "POST", "payment_intents":
                return "open", lambda how: bank.open(asked)
            case "POST", "payment_intents", pk, "confirm":
                return "confirm", lambda how: bank.confirm(
                    pk, declined=how.kind == "decline", pending=how.kind == "pending"
                )
            case "POST", "payment_intents", pk, "cancel":
                return "cancel", lambda how: bank.cancel(pk)
            case "POST", "refunds":
                return "refund", lambda how: bank.refund(
                    asked["payment_intent"], fails=how.kind == "refund-fails", pending=how.kind == "pending"
                )
            case "GET", "payment_intents":
                return "look", lambda how: _listed(bank.intents_of(asked["customer"]))
            case "GET", "payment_intents", pk:
                return "look", lambda how: bank._intent(pk)
            case "POST", "customers":
                return "card", lambda how: bank.add_customer(asked.get("metadata", {}))
            case "POST", "checkout", "sessions":
                return "card", lambda how: self._session(asked)
            case "GET", "checkout", "sessions", pk:
                return "card", lambda how: self._found_session(pk)
        raise NotPossible(404, "invalid_request_error", "unknown_address")

    def _behave(self, how: Behaviour, do: Callable[[Behaviour], Document], request: str) -> None:
        key = self.headers.get("Idempotency-Key")
        digest = hashlib.sha256(request.encode()).hexdigest()
        if key:
            with self.server.keys_lock:
                known = self.server.keys.get(key)
                if known is None:
                    self.server.keys[key] = _Known(digest)
            if known is not None:
                return self._again(known, digest)
        status, document = self._done(how, do)
        # A request that hangs before it does anything is still at work: the same key finds it so.
        if how.kind == "hang":
            time.sleep(how.seconds or 0.0)
        if key:
            with self.server.keys_lock:
                if how.kind in {"hang", "reset"} or status == 429:
                    del self.server.keys[key]  # it never came to its work
                else:
                    self.server.keys[key].answer = status, document
        if how.kind == "taken-hang":
            time.sleep(how.seconds or 0.0)
        if how.kind in {"hang", "reset", "taken-reset"}:
            self.close_connection = True
            return None
        return self._say(status, document, retry_after=how.seconds if how.status else None)

    def _done(self, how: Behaviour, do: Callable[[Behaviour], Document]) -> Answer:
        if not has_effect(how):
            return how.status or 500, {"error": {"type": "api_error", "message": "scripted"}}
        try:
            document = json.loads(json.dumps(do(how)))
        except NotPossible as error:
            return error.status, error.document
        if how.kind == "taken-error":
            return 500, {"error": {"type": "api_error", "message": "scripted"}}
        return 200, document

    def _again(self, known: _Known, digest: str) -> None:
        if known.digest != digest:
            return self._say(400, {"error": {"type": "idempotency_error", "message": "another request's key"}})
        if known.answer is None:
            error = {"type": "idempotency_error", "code": "idempotency_key_in_use", "message": "still at work"}
            return self._say(409, {"error": error})
        return self._say(*known.answer, replayed=True)

    def _say(
        self, status: int, document: Document, *, retry_after: float | None = None, replayed: bool = False
    ) -> None:
        content = json.dumps(document).encode()
        self.send_response(status)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(content)))
        if retry_after is not None:
            self.send_header("Retry-After", f"{retry_after:g}")
        if replayed:
            self.send_header("Idempotent-Replayed", "true")
        self.end_headers()
        self.wfile.write(content)

    # --- The page for cards -------------------------------------------------------------------------------------

    def _session(self, asked: Document) -> Document:
        pk = self.server.bank.new_id("cs")
        self.server.bank.customers.setdefault(asked["customer"], {"id": asked["customer"]})  # of an earlier run
        self.server.bank.sessions[pk] = session = {
            "id": pk,
            "object": "checkout.session",
            "customer": asked["customer"],
            "status": "open",
            "setup_intent": None,
            "success_url": asked["success_url"].replace("{CHECKOUT_SESSION_ID}", pk),
            "url": f"http://127.0.0.1:{self.server.port}/pay/{pk}",
        }
        return session

    def _found_session(self, pk: str) -> Document:
        if pk not in self.server.bank.sessions:
            raise NotPossible(404, "invalid_request_error", "resource_missing", param="session")
        return self.server.bank.sessions[pk]

    def _card_page(self, pk: str, asked: Document, *, choose: bool) -> None:
        session = self.server.bank.sessions.get(pk)
        if session is None:
            return self._page(404, "<p>There is no such page.</p>")
        if not choose or asked.get("card") not in CARDS:
            buttons = "".join(
                f'<p><button name="card" value="{digits}">{html.escape(name)}, ending in {digits}</button></p>'
                for digits, (name, _) in CARDS.items()
            )
            return self._page(200, f'<h1>Simulated payment provider</h1><form method="post">{buttons}</form>')
        digits = asked["card"]
        card = self.server.bank.add_card(session["customer"], last4=digits, declines=CARDS[digits][1])
        session.update(
            status="complete",
            setup_intent={"id": f"seti_{pk}", "object": "setup_intent", "status": "succeeded", "payment_method": card},
        )
        self.send_response(303)
        self.send_header("Location", session["success_url"])
        self.send_header("Content-Length", "0")
        self.end_headers()
        return None

    def _page(self, status: int, content: str) -> None:
        page = '<!doctype html><html lang="en"><meta name="viewport" content="width=device-width"><title>Card</title>'
        data = (page + content).encode()
        self.send_response(status)
        self.send_header("Content-Type", "text/html; charset=utf-8")
        self.send_header("Content-Length", str(len(data)))
        self.end_headers()
        self.wfile.write(data)

    def log_message(self, format: str, *args: object) -> None:
        """The bank's books are enough."""


def _listed(rows: list[Document]) -> Document:
    return {"object": "list", "data": rows[::-1], "has_more": False, "url": "/v1/payment_intents"}


def _nested(pairs: list[tuple[str, str]]) -> Document:
    """`metadata[purchase]=x` → {"metadata": {"purchase": "x"}}; lists are not needed here."""
    found: Document = {}
    for name, value in pairs:
        outer, _, inner = name.partition("[")
        if inner:
            found.setdefault(outer, {})[inner.rstrip("]")] = value
        else:
            found[outer] = value
    return found


# --- Reports ----------------------------------------------------------------------------------------------------


def signed(event: Document, secret: str, at: int | None = None) -> tuple[bytes, str]:
    """A report's bytes and its Stripe-Signature."""
    body, at = json.dumps(event).encode(), int(time.time()) if at is None else at
    mac = hmac.new(secret.encode(), f"{at}.".encode() + body, hashlib.sha256).hexdigest()
    return body, f"t={at},v1={mac}"


class Reporter:
    """Posts each event to an address, from a thread of its own; every tenth twice, as providers do."""

    def __init__(self, address: str, secret: str) -> None:
        self._address, self._secret = address, secret
        self._events: SimpleQueue[Document] = SimpleQueue()
        threading.Thread(target=self._run, daemon=True).start()

    def __call__(self, event: Document) -> None:
        self._events.put(event)

    def _run(self) -> None:
        for number in range(1, sys.maxsize):
            event = self._events.get()
            for _ in range(2 if number % 10 == 0 else 1):
                body, signature = signed(event, self._secret)
                headers = {"Content-Type": "application/json", "Stripe-Signature": signature}
                with suppress(OSError):
                    urllib.request.urlopen(urllib.request.Request(self._address, body, headers), timeout=10).close()  # noqa: S310


def main(arguments: list[str]) -> int:
    parser = argparse.ArgumentParser(prog="python -m winecellar.demo.payments_api", description=__doc__)
    parser.add_argument("--port", type=int, default=0)
    parser.add_argument("--log", type=Path)
    parser.add_argument("--script", type=PaymentScript, default=PaymentScript())
    parser.add_argument("--report-to", default="", help="where reports are posted, signed with --secret")
    parser.add_argument("--secret", default="whsec_demo")
    chosen = parser.parse_args(arguments)
    bank = Bank(chosen.log)
    if chosen.report_to:
        bank.on_event = Reporter(chosen.report_to, chosen.secret)
    server = PaymentServer(chosen.port, bank, chosen.script).start()
    print(json.dumps({"port": server.port, "url": server.url}), flush=True)
    signal.sigwait({signal.SIGTERM, signal.SIGINT})
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
