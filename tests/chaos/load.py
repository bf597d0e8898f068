"""Who uses the site while it breaks: merchants, direct publishers, people. Each is a thread with one thing under way.

Guarantee: whatever a client does is in the history before it is asked and after it is answered. Where asking again
under the same id is safe (a merchant's idempotency key) it asks until it knows; where it is not (a transaction of a
publisher's own) the outcome stays unknown, and the checker asks the log.
"""

from __future__ import annotations

import http.client
import json
import random
import threading
import time
import traceback
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any
from urllib.parse import urlencode

import psycopg

from jobs.messages import NewMessage, dumps
from jobs.queue import INSERT_MESSAGES
from pricing.events import PRICE_CHANGED
from tests.chaos.cluster import ChaosCluster
from tests.chaos.fill import HIGHEST, KEYS, LOWEST, MERCHANTS, WINES, Filled, wine_id
from tests.chaos.history import History
from tests.chaos.plan import Dose
from tests.chaos.routes import COUNTED, NAPPED, POISONED

PRICES = "/feeds/v1/price-changes"
NOT_NOW = {429, 503}
KEYS_AT_ONCE, PUBLISHERS, PEOPLE_AT_ONCE = 10, 2, 2
BETWEEN_TRIES = 0.25
ANSWER_SECONDS = 20.0
# Any text of 32 letters is a token of Django's, if the cookie says the same.
CSRF = "chaoschaoschaoschaoschaoschaosch"
LOCK_KEYS = "SELECT key, seq FROM chaos_key WHERE key = ANY(%s) ORDER BY key FOR UPDATE"
MOVE_KEYS = """
UPDATE chaos_key k SET seq = m.seq FROM jsonb_to_recordset(%s::jsonb) AS m (key text, seq bigint) WHERE k.key = m.key
"""


@dataclass(frozen=True)
class Target:
    """Where the load goes. `rate`: messages a second, half by the feed and half published directly; `feed`: whether any
    go by the feed."""

    server: ChaosCluster
    history: History
    filled: Filled
    ports: Sequence[int]
    rate: float
    feed: bool = True
    purchases: float = 0.0

    @property
    def batch(self) -> int:
        """Messages in a request or a transaction: some requests a second, so that the rate is even."""
        return int(min(max(self.rate / 8, 20), 200)) // KEYS_AT_ONCE * KEYS_AT_ONCE


class Client(threading.Thread):
    """`step` does one thing, every `between` seconds; what was missed in a bad time is not made up for."""

    between = 1.0

    def __init__(self, name: str, target: Target, seed: int) -> None:
        super().__init__(name=name, daemon=True)
        self.target, self.history = target, target.history
        self.source = random.Random(f"{seed}:{name}")
        self.stopping = threading.Event()
        self.count = 0
        self.broken = ""  # a fault of the client's own, which nobody could hold against the site

    def run(self) -> None:
        try:
            self.go()
        except Exception:
            self.broken = f"{self.name}: {traceback.format_exc(limit=-3)}"
        finally:
            self.end()

    def go(self) -> None:
        due = time.monotonic()
        while not self.stopping.is_set():
            self.count += 1
            self.step()
            due = max(due + self.between, time.monotonic())
            self.stopping.wait(max(due - time.monotonic(), 0))

    def step(self) -> None:
        raise NotImplementedError

    def end(self) -> None:
        pass


class Site:
    """One kept connection to whichever of the web servers answers."""

    def __init__(self, ports: Sequence[int], first: int = 0) -> None:
        self._ports, self._next = ports, first
        self._connection: http.client.HTTPConnection | None = None

    def post(self, path: str, body: bytes, headers: dict[str, str]) -> tuple[int, bytes]:
        answer, said = self.ask("POST", path, body, headers)
        return answer.status, said

    def ask(
        self, method: str, path: str, body: bytes | None, headers: dict[str, str]
    ) -> tuple[http.client.HTTPResponse, bytes]:
        """Raises OSError where there is no whole answer; the next goes to the other server."""
        if self._connection is None:
            port = self._ports[self._next % len(self._ports)]
            self._connection = http.client.HTTPConnection("127.0.0.1", port, timeout=ANSWER_SECONDS)
        try:
            self._connection.request(method, path, body, headers)
            answer = self._connection.getresponse()
            return answer, answer.read()
        except (OSError, http.client.HTTPException) as error:
            self.close()
            raise ConnectionError(str(error)) from error

    def close(self) -> None:
        self._next += 1
        if self._connection:
            self._connection.close()
        self._connection = None


class MerchantClient(Client):
    """Sends batches of prices, one at a time, each again under its key until the answer is there."""

    def __init__(self, number: int, target: Target, seed: int) -> None:
        super().__init__(f"mch_{number}", target, seed)
        self.between = target.batch * MERCHANTS / max(target.rate / 2, 1e-9)
        self.site = Site(target.ports, number)

    def step(self) -> None:
        key = self.target.filled.keys[self.name]
        body, prices, headers = prices_of(self.name, key, self.source, self.count, self.target.batch)
        send_prices(self.site, self.history, self.name, body, prices, headers, self.stopping)

    def end(self) -> None:
        self.site.close()


def prices_of(
    merchant: str, key: str, source: random.Random, count: int, batch: int = 50
) -> tuple[bytes, dict[str, str], dict[str, str]]:
    """One request: some wines at other prices, as JSON or as NDJSON; and what it says, by wine."""
    now = datetime.now(UTC).isoformat()
    wines = source.sample(range(WINES), batch)
    prices = {wine_id(n): f"{source.randrange(100 * LOWEST, 100 * HIGHEST) / 100:.2f}" for n in wines}
    rows = [{"wine_id": wine, "price": price, "currency": "USD", "occurred_at": now} for wine, price in prices.items()]
    as_lines = count % 2 == 0
    body = "\n".join(map(json.dumps, rows)) if as_lines else json.dumps({"observations": rows})
    headers = {
        "Authorization": f"Bearer {key}",
        "Content-Type": "application/x-ndjson" if as_lines else "application/json",
        "Idempotency-Key": f"{merchant}-{count}",
    }
    return body.encode(), prices, headers


def send_prices(
    site: Site,
    history: History,
    by: str,
    body: bytes,
    prices: dict[str, str],
    headers: dict[str, str],
    stopping: threading.Event,
) -> None:
    """Until it is taken, refused, or nobody waits any more."""
    id_ = headers["Idempotency-Key"]
    history.note(by, "prices", "invoke", id_)
    while True:
        try:
            status, said = site.post(PRICES, body, headers)
        except OSError as error:
            history.note(by, "prices", "unknown", id_, why=str(error)[:80])
        else:
            if status == 202:
                answer = json.loads(said)
                history.note(
                    by, "prices", "ok", id_, event_ids=answer["event_ids"], prices=prices, again=answer["duplicate"]
                )
                return
            if status not in NOT_NOW:
                history.note(by, "prices", "fail", id_, status=status, said=said[:300].decode(errors="replace"))
                return
            history.note(by, "prices", "unknown", id_, why=str(status))
            site.close()
        if stopping.wait(BETWEEN_TRIES):
            return


class Publisher(Client):
    """Publishes numbered messages of some keys in a transaction of its own, holding those keys' rows."""

    def __init__(self, number: int, target: Target, seed: int) -> None:
        super().__init__(f"publisher-{seed}-{number}", target, seed)
        share = 0.5 if target.feed else 1.0
        self.between = target.batch * PUBLISHERS / max(target.rate * share, 1e-9)
        self.connection: psycopg.Connection | None = None

    def step(self) -> None:
        keys = [f"key-{n:03}" for n in sorted(self.source.sample(range(1, KEYS + 1), KEYS_AT_ONCE))]
        self.publish(keys, f"{self.name}-{self.count}")

    def publish(self, keys: list[str], id_: str) -> None:
        try:
            self.connection = self.connection or self.target.server.connect()
            with self.connection.transaction():
                numbers = dict(self.connection.execute(LOCK_KEYS, [keys]).fetchall())
                messages = []
                for _ in range(self.target.batch // len(keys)):
                    for key in keys:
                        numbers[key] += 1
                        messages.append(NewMessage(COUNTED, key, {"seq": numbers[key]}))
                event_ids = [message.event_id for message in messages]
                self.history.note(self.name, "publish", "invoke", id_, event_ids=event_ids)
                insert(self.connection, messages)
                self.connection.execute(MOVE_KEYS, [dumps([{"key": k, "seq": n} for k, n in numbers.items()])])
        except psycopg.Error as error:
            self.history.note(self.name, "publish", "unknown", id_, why=f"{error.sqlstate} {error}"[:80])
            self.end()
        else:
            self.history.note(self.name, "publish", "ok", id_, event_ids=event_ids)

    def end(self) -> None:
        if self.connection:
            self.connection.close()
        self.connection = None


def insert(connection: psycopg.Connection, messages: Sequence[NewMessage]) -> None:
    connection.execute(INSERT_MESSAGES, {"messages": dumps([message.as_row() for message in messages]), "delay": 0})


class Poisoner(Client):
    """Publishes each dose when it is due, under a key of its own."""

    def __init__(self, target: Target, seed: int, doses: Sequence[Dose]) -> None:
        super().__init__("poisoner", target, seed)
        self.doses = list(doses)
        self.began = time.monotonic()

    def go(self) -> None:
        self.began = time.monotonic()
        for number, dose in enumerate(self.doses):
            if self.stopping.wait(max(self.began + dose.at - time.monotonic(), 0)):
                return
            self.give(dose, number)

    def give(self, dose: Dose, number: int) -> None:
        message = poison(dose.kind, number)
        connection = self._connected()
        if connection is None:
            return
        self.history.note(self.name, "poison", "invoke", dose.kind, event_ids=[message.event_id])
        try:
            with connection:
                insert(connection, [message])
        except psycopg.Error as error:
            self.history.note(self.name, "poison", "unknown", dose.kind, why=str(error)[:80])
        else:
            self.history.note(self.name, "poison", "ok", dose.kind, event_ids=[message.event_id])

    def _connected(self) -> psycopg.Connection | None:
        """As soon as the server takes one."""
        while not self.stopping.is_set():
            try:
                return self.target.server.connect()
            except psycopg.Error:
                self.stopping.wait(BETWEEN_TRIES)
        return None


def poison(kind: str, number: int) -> NewMessage:
    if kind == "malformed":  # for the product's own handlers: a price event without a price
        body = {"wine_id": f"wn_poison-{number}", "new_price_usd": "n/a", "occurred_at": "yesterday", "currency": "USD"}
        return NewMessage(PRICE_CHANGED, f"wn_poison-{number}", body)
    return NewMessage(POISONED, f"poison-{number}", {"fault": kind})


def nap(server: ChaosCluster, seconds: float) -> str:
    """Publish a message whose handler sleeps; its id."""
    message = NewMessage(NAPPED, "nap", {"seconds": seconds})
    with server.connect() as connection:
        insert(connection, [message])
    return message.event_id


def headers_of(target: Target, user: int) -> dict[str, str]:
    """The headers of a person's forms."""
    session = target.filled.sessions.get(user, "")  # somebody may have been erased just now
    return {
        "Cookie": f"sessionid={session}; csrftoken={CSRF}",
        "Content-Type": "application/x-www-form-urlencoded",
    }


class Person(Client):
    """Signed in as one after the other: has itself told of a wine, and takes some of it back."""

    between = 0.5

    def __init__(self, number: int, target: Target, seed: int) -> None:
        super().__init__(f"person-{number}", target, seed)
        self.site = Site(target.ports, number)
        self.mine: list[tuple[int, int]] = []

    def step(self) -> None:
        self.mine = [(user, alert) for user, alert in self.mine if user in self.target.filled.sessions]
        if len(self.mine) > 20 and self.source.random() < 0.5:
            user, alert = self.mine.pop(self.source.randrange(len(self.mine)))
            self.ask(user, f"/alerts/{alert}/delete", {}, "delete alert", str(alert))
            return
        user = self.source.choice(list(self.target.filled.sessions))
        wine = wine_id(self.source.randrange(WINES))
        target = f"{100 + self.source.randrange(100) / 100:.2f}"
        found = self.ask(user, f"/wines/{wine}", {"target": target}, "create alert", f"{user}:{wine}:{target}")
        if found:
            self.mine.append((user, found))

    def ask(self, user: int, path: str, form: dict[str, str], what: str, id_: str) -> int | None:
        """Once; what is answered by a page of its own has an id in its address."""
        headers = headers_of(self.target, user)
        body = urlencode({**form, "csrfmiddlewaretoken": CSRF}).encode()
        self.history.note(self.name, what, "invoke", id_, user=user)
        try:
            status, location = self.redirect(path, body, headers)
        except OSError as error:
            self.history.note(self.name, what, "unknown", id_, why=str(error)[:80])
            return None
        if status in NOT_NOW:
            self.history.note(self.name, what, "unknown", id_, why=str(status))
            self.site.close()
            return None
        if status != 302:
            self.history.note(self.name, what, "fail", id_, status=status)
            return None
        number = location.rpartition("/")[2]
        signed_in = "login" not in location
        facts: dict[str, Any] = {"alert": int(number)} if number.isdigit() else {}
        self.history.note(self.name, what, "ok" if signed_in else "fail", id_, user=user, **facts)
        return facts.get("alert") if signed_in else None

    def redirect(self, path: str, body: bytes, headers: dict[str, str]) -> tuple[int, str]:
        port = self.target.ports[self.count % len(self.target.ports)]
        connection = http.client.HTTPConnection("127.0.0.1", port, timeout=ANSWER_SECONDS)
        try:
            connection.request("POST", path, body, headers)
            answer = connection.getresponse()
            answer.read()
            return answer.status, answer.headers.get("Location", "")
        except http.client.HTTPException as error:
            raise ConnectionError(str(error)) from error
        finally:
            connection.close()


class Load:
    """All clients of a run, but for the poisoner, who is there only while things break."""

    def __init__(self, target: Target, seed: int) -> None:
        self.clients: list[Client] = [Publisher(number, target, seed) for number in range(PUBLISHERS)]
        if target.feed:
            self.clients += [MerchantClient(number, target, seed) for number in range(MERCHANTS)]
            self.clients += [Person(number, target, seed) for number in range(PEOPLE_AT_ONCE)]

    def start(self) -> None:
        for client in self.clients:
            client.start()

    def stop(self) -> None:
        """A merchant that waits for an answer gets it first."""
        stop(self.clients)


def stop(clients: Sequence[Client]) -> None:
    for client in clients:
        client.stopping.set()
    for client in clients:
        client.join()
