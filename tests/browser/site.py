"""The whole site for a browser: a database of its own, web server, worker and mail sink, as real processes.

On this machine only, on ports that were free; ended by process id. One site serves all browser tests of a run.
"""

from __future__ import annotations

import http.client
import json
import os
import socket
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime
from decimal import Decimal
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit, urlunsplit

import psycopg

from tests.processes.conftest import ROOT, Processes, wait_until
from winecellar import embedded
from winecellar.demo.feed_client import FeedClient, Observation, write_body

HOST = "127.0.0.1"


@dataclass
class Mail:
    number: int  # in the sink, from 1
    to: list[str]
    subject: str


@dataclass
class Site:
    address: str
    mail_address: str
    mail_log: Path
    database_url: str
    environment: dict[str, str]
    keys: dict[str, str] = field(default_factory=dict)

    def mails_to(self, address: str) -> list[Mail]:
        """In the order in which they came."""
        lines = self.mail_log.read_text().splitlines() if self.mail_log.exists() else []
        mails = [Mail(number, line["to"], line["subject"]) for number, line in enumerate(map(json.loads, lines), 1)]
        return [mail for mail in mails if address in mail.to]

    def wait_for_mail(self, address: str, count: int) -> Mail:
        """The mail that is this person's n-th."""
        wait_until(lambda: len(self.mails_to(address)) >= count, seconds=60, what=f"mail {count} to {address}")
        return self.mails_to(address)[count - 1]

    def ask(self, sql: str, *parameters: Any) -> Any:
        with psycopg.connect(self.database_url, autocommit=True) as there:
            row = there.execute(sql, parameters).fetchone()
        return row[0] if row else None

    def price_now(self, wine_id: str, merchant_id: str) -> Decimal:
        price = self.ask(
            "SELECT price_usd FROM pricing_offer WHERE (wine_id, merchant_id) = (%s, %s)", wine_id, merchant_id
        )
        assert isinstance(price, Decimal)
        return price

    def merchant_sends(self, merchant_id: str, wine_id: str, price: Decimal) -> None:
        """As merchants do: over HTTP, with their key."""
        if merchant_id not in self.keys:
            self.keys[merchant_id] = self.manage("create_feed_key", merchant_id).strip()
        client = FeedClient(host=HOST, port=urlsplit(self.address).port or 0, key=self.keys[merchant_id])
        now = datetime.now(UTC)
        body = write_body([Observation(wine_id, price, now)])
        answer = client.post(body, idempotency_key=f"{wine_id}-{now.timestamp()}")
        client.close()
        assert answer.status == 202, answer.complaint

    def manage(self, *command: str) -> str:
        done = subprocess.run(
            [sys.executable, "manage.py", *command],
            cwd=ROOT,
            env={**os.environ, **self.environment},
            capture_output=True,
            text=True,
            check=False,
        )
        assert done.returncode == 0, done.stderr
        return done.stdout


@contextmanager
def running_site(folder: Path, name: str) -> Iterator[Site]:
    with own_database(name) as url:
        processes = Processes(folder)
        try:
            yield start(processes, folder, url)
        finally:
            processes.end()


def start(processes: Processes, folder: Path, url: str) -> Site:
    log = folder / "mail.jsonl"
    sink = processes.start("-m", "winecellar.demo.mail_sink", "--log", str(log))
    wait_until(lambda: processes.log(sink).endswith("}\n"), what="the mail sink listens")
    listening = json.loads(processes.log(sink).splitlines()[-1])
    port = free_port()
    bank = processes.start(
        *("-m", "winecellar.demo.payments_api", "--secret", "whsec_browser"),
        *("--report-to", f"http://{HOST}:{port}/payments/reports"),
    )
    wait_until(lambda: processes.log(bank).endswith("}\n"), what="the payment provider listens")
    site = Site(
        address=f"http://{HOST}:{port}",
        mail_address=f"http://{HOST}:{listening['web_port']}",
        mail_log=log,
        database_url=url,
        environment={
            "DATABASE_URL": url,
            "DJANGO_SETTINGS_MODULE": "winecellar.settings",
            "SITE_URL": f"http://{HOST}:{port}",
            "PAYMENTS_URL": json.loads(processes.log(bank).splitlines()[-1])["url"],
            "PAYMENTS_WEBHOOK_SECRET": "whsec_browser",
            "EMAIL_URL": f"smtp://{HOST}:{listening['smtp_port']}",
            "BIND": f"{HOST}:{port}",
            "WEB_CONCURRENCY": "1",
            "PYTHONWARNINGS": "ignore",
        },
    )
    site.manage("migrate", "-v", "0")
    site.manage("load_demo_catalogue")
    web = processes.start("-m", "gunicorn", "-c", "winecellar/gunicorn_conf.py", "winecellar.wsgi", **site.environment)
    worker = processes.start("manage.py", "run_worker", **site.environment)
    wait_until(lambda: web.poll() is None and answers(port), seconds=60, what="the web server answers")
    wait_until(lambda: "worker.started" in processes.log(worker), seconds=60, what="the worker starts")
    waiting = "SELECT count(*) FROM jobs_delivery"
    wait_until(lambda: site.ask(waiting) == 0, seconds=60, what="the worker has compared the demo's alerts")
    return site


@contextmanager
def own_database(name: str) -> Iterator[str]:
    """Made on the tests' server, and dropped. The tests' own is emptied after each test."""
    parts = urlsplit(os.environ.get("DATABASE_URL") or embedded.default().url())
    with psycopg.connect(urlunsplit(parts), autocommit=True) as there:
        there.execute(f'DROP DATABASE IF EXISTS "{name}" WITH (FORCE)')
        there.execute(f'CREATE DATABASE "{name}"')
    try:
        yield urlunsplit(parts._replace(path=f"/{name}"))
    finally:
        with psycopg.connect(urlunsplit(parts), autocommit=True) as there:
            there.execute(f'DROP DATABASE IF EXISTS "{name}" WITH (FORCE)')


def answers(port: int) -> bool:
    connection = http.client.HTTPConnection(HOST, port, timeout=5)
    try:
        connection.request("GET", "/")
        return connection.getresponse().status == 200
    except OSError:
        return False
    finally:
        connection.close()


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind((HOST, 0))
        return int(probe.getsockname()[1])
