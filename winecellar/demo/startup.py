"""Starts the site for the demo, one step after the other, each said in a line: Postgres, tables, catalogue, processes.

Guarantee: when it returns, the web server answers, worker, scheduler and watchman work, and no queue waits.
Called by orchestra.py.
"""

from __future__ import annotations

import http.client
import json
import os
import secrets
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from django.conf import settings
from django.core.management import call_command
from django.utils import timezone

from jobs.schedule import store
from jobs.schedule.declared import load_schedule
from winecellar import embedded
from winecellar.demo import catalogue, ports
from winecellar.demo.children import Child, Children
from winecellar.demo.credentials import fresh_keys
from winecellar.demo.load import load_catalogue
from winecellar.demo.standing import is_alive, waiting_deliveries
from winecellar.demo.waiting import Waiting
from winecellar.deployment.grants import make_roles
from winecellar.deployment.roles import Role, name

READY_SECONDS = 60.0
MAIL_PORT = 8025  # if it is free
GUNICORN_CONF = Path("winecellar/gunicorn_conf.py")


class NotReadyError(Exception):
    """Something that was started did not become ready in time; the message says what, and where to look."""


@dataclass(frozen=True)
class Site:
    """Where everything is. `keys` are the merchants' feed keys."""

    port: int
    address: str
    mail_address: str
    mail_log: Path
    keys: dict[str, str]


def start_site(
    *, port: int, children: Children, waiting: Waiting, say: Callable[[str, str], None], by_api: bool = False
) -> Site:
    """Start all of it. Raises NotReadyError, ChildDiedError or ToldToStopError; the caller ends what was started."""
    address = f"http://{ports.HOST}:{port}"
    _postgres(children, waiting, say)
    _catalogue(waiting, say)
    keys = fresh_keys(now=timezone.now())
    mail_log = children.folder / "mail.jsonl"
    mail = _mail_sink(mail_log, children, waiting)
    say("Mail sink", f"an API on port {mail['api_port']}" if by_api else f"on port {mail['smtp_port']}")
    secret = f"whsec_{secrets.token_hex(16)}"
    payments = _payment_provider(f"{address}/payments/reports", secret, children, waiting)
    say("Payments", f"a simulated provider on port {payments['port']}")
    environment = {
        "PAYMENTS_URL": str(payments["url"]),
        "PAYMENTS_WEBHOOK_SECRET": secret,
        "DJANGO_SETTINGS_MODULE": "winecellar.settings",
        "SITE_URL": address,
        "EMAIL_URL": f"resend://demo@{ports.HOST}:{mail['api_port']}/?tls=false"
        if by_api
        else f"smtp://{ports.HOST}:{mail['smtp_port']}",
        "LOG_LEVEL": "INFO",
        # Its operator's password stands on the screen, and a demo that needs a phone is none.
        "STAFF_NEED_SECOND_FACTOR": "false",
        # Its market does in a minute what another does in a month.
        "ALERT_COOLDOWN_MINUTES": "0",
    }
    for_web, for_work = {**environment, **_as(Role.WEB)}, {**environment, **_as(Role.WORKER)}
    web = children.start("web server", _gunicorn(port), for_web)
    worker = children.start("worker", ["manage.py", "run_worker"], for_work)
    before = store.now()
    scheduler = children.start("scheduler", ["manage.py", "run_scheduler"], for_work)
    watchman = children.start("watchman", ["manage.py", "run_watchman"], for_work)
    _wait_for(web, lambda: _answers(port), waiting)
    say("Web server", f"on port {port}")
    _wait_for(worker, lambda: waiting_deliveries() == 0, waiting)
    say("Worker", "has caught up")
    _wait_for(scheduler, lambda: is_alive("scheduler", since=before), waiting)
    say("Scheduler", f"keeps {len(load_schedule())} jobs")
    _wait_for(watchman, lambda: is_alive("watchman", since=before), waiting)
    say("Watchman", "watches them and the dead letters")
    return Site(port, address, f"http://{ports.HOST}:{mail['web_port']}", mail_log, keys)


def _postgres(children: Children, waiting: Waiting, say: Callable[[str, str], None]) -> None:
    waiting.go_on()
    began = time.monotonic()
    started = children.start_postgres()
    took = f"{time.monotonic() - began:.1f} s"
    if not _is_ours():
        say("Postgres", "the one that DATABASE_URL names")
    else:
        say(f"Postgres {embedded.default().major}", f"started in {took}" if started else "was running")
    waiting.go_on()
    began = time.monotonic()
    call_command("migrate", verbosity=0, interactive=False)
    say("Tables", f"up to date in {time.monotonic() - began:.1f} s")
    if _is_ours():
        make_roles(settings.DATABASE_ROLES)
        say("Roles", "one for web, one for workers, and neither owns a table")


def _is_ours() -> bool:
    """Whether the server is the embedded one. What roles another server has is its owner's business."""
    return not os.environ.get("DATABASE_URL")


def _as(role: Role) -> dict[str, str]:
    """What has a process connect as this role."""
    if not _is_ours():
        return {}
    return {"DATABASE_URL": embedded.default().url(role=name(settings.DATABASE_ROLES, role))}


def _catalogue(waiting: Waiting, say: Callable[[str, str], None]) -> None:
    waiting.go_on()
    loaded = load_catalogue(now=timezone.now())
    offers = sum(len(wine.sold_by) for wine in catalogue.wines())
    facts = f"{len(catalogue.wines())} wines, {len(catalogue.MERCHANTS)} merchants, {offers} offers"
    say("Catalogue", f"{facts}, {loaded.past_prices:,} past prices loaded" if loaded.offers else f"{facts}, as it was")


def _mail_sink(log: Path, children: Children, waiting: Waiting) -> dict[str, int]:
    """Start it; its ports, as it says them."""
    log.unlink(missing_ok=True)
    log.with_suffix(".keys.jsonl").unlink(missing_ok=True)
    command = ["-m", "winecellar.demo.mail_sink", "--web-port", str(MAIL_PORT), "--or-any", "--log", str(log)]
    sink = children.start("mail sink", command)
    _wait_for(sink, lambda: sink.log.read_bytes().endswith(b"}\n"), waiting)
    listening: dict[str, int] = json.loads(sink.log.read_text().splitlines()[-1])
    return listening


def _payment_provider(report_to: str, secret: str, children: Children, waiting: Waiting) -> dict[str, object]:
    """Start it; its port, and its address as PAYMENTS_URL."""
    log = children.folder / "money.jsonl"
    log.unlink(missing_ok=True)
    command = ["-m", "winecellar.demo.payments_api", "--log", str(log), "--report-to", report_to, "--secret", secret]
    provider = children.start("payment provider", command)
    _wait_for(provider, lambda: provider.log.read_bytes().endswith(b"}\n"), waiting)
    listening: dict[str, object] = json.loads(provider.log.read_text().splitlines()[-1])
    return listening


def _gunicorn(port: int) -> list[str]:
    return ["-m", "gunicorn", "winecellar.wsgi", "-c", str(GUNICORN_CONF), "--bind", f"{ports.HOST}:{port}"]


def _answers(port: int) -> bool:
    """Whether our site, and not another's, answers there."""
    connection = http.client.HTTPConnection(ports.HOST, port, timeout=5)
    try:
        connection.request("GET", "/")
        response = connection.getresponse()
    except (OSError, http.client.HTTPException):
        return False
    else:
        return response.status < 500 and "X-Request-ID" in response.headers
    finally:
        connection.close()


def _wait_for(child: Child, ready: Callable[[], bool], waiting: Waiting) -> None:
    if not waiting.until(ready, seconds=READY_SECONDS):
        raise NotReadyError(
            f"The {child.name} was not ready after {READY_SECONDS:.0f} seconds. The end of {child.log}:\n{child.tail()}"
        )
