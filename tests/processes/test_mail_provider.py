"""Real workers and a scripted provider over HTTP: killed between its yes and our commit, and a brownout of seconds."""

import json
import os
import signal
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from alerts.models import Notification
from jobs.models import DeadLetter, Delivery
from jobs.worker import drain
from pricing.models import PriceHistory
from tests.cast import alert, merchant, price, wine
from tests.processes.conftest import Processes, wait_until
from winecellar.demo.mail_api import ApiServer, Taken
from winecellar.demo.mail_script import Script

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.processes]


@pytest.fixture
def provider(tmp_path: Path) -> Iterator[Callable[..., ApiServer]]:
    servers: list[ApiServer] = []

    def start(script: str, **options: Any) -> ApiServer:
        servers.append(ApiServer(0, Taken(tmp_path / "taken.jsonl"), Script(script, **options)).start())
        return servers[-1]

    yield start
    for server in servers:
        server.shutdown()
        server.server_close()


def environment(server: ApiServer) -> dict[str, str]:
    return {
        "DJANGO_SETTINGS_MODULE": "tests.processes.mail_settings",
        "EMAIL_URL": f"resend://re_key@127.0.0.1:{server.port}/?tls=false",
    }


def mails_to_send(count: int) -> None:
    for number in range(count):
        bottle = wine(f"9{number}")
        alert("160.00", wine=bottle)
        price("154.00", of=bottle, at=merchant())


def keys(tmp_path: Path) -> list[str]:
    log = tmp_path / "taken.jsonl"
    return [json.loads(line)["key"] for line in log.read_text().splitlines()] if log.exists() else []


def expected_keys() -> list[str]:
    sent = Notification.objects.values_list("alert_id", "event_id")
    return sorted(f"alert-{alert_id}.{event_id}@winecellar.example" for alert_id, event_id in sent)


def test_a_worker_killed_between_the_providers_yes_and_its_commit_sends_no_mail_twice(
    processes: Processes, provider: Callable[..., ApiServer], tmp_path: Path
) -> None:
    server = provider("taken-hang:60*8")
    mails_to_send(20)
    drain(["alert-matching"])
    victim = processes.worker("notification-delivery", "--unsupervised", **environment(server))
    wait_until(lambda: len(keys(tmp_path)) == 8, what="eight are taken, and the worker does not know")
    assert not Notification.objects.filter(state="sent").exists()
    os.kill(victim.pid, signal.SIGKILL)
    victim.wait()
    processes.worker("notification-delivery", "--unsupervised", **environment(server))
    wait_until(lambda: Notification.objects.filter(state="sent").count() == 20, what="all are sent", seconds=60)
    assert sorted(keys(tmp_path)) == expected_keys()
    assert len(server.requests) >= 28, "the eight were handed over again, under the same keys"
    assert not DeadLetter.objects.exists()


def test_a_brownout_loses_nothing_storms_nowhere_and_keeps_the_history_waiting_for_nothing(
    processes: Processes, provider: Callable[..., ApiServer], tmp_path: Path
) -> None:
    server = provider("brownout:600", hangs=0.3)
    workers = [processes.worker(**environment(server)) for _ in range(2)]
    mails_to_send(60)

    def said(what: str) -> int:
        return sum(processes.log(worker).count(what) for worker in workers)

    wait_until(lambda: said("breaker.opened"), what="a worker opens the breaker")
    before = PriceHistory.objects.count()
    price("150.00", of=wine("90"), at=merchant(), minutes=1)
    wait_until(lambda: PriceHistory.objects.count() > before, what="a price is written down meanwhile")
    wait_until(lambda: said("breaker.still_open") >= 4, what="it is tried again and again")
    tried, probes = len(server.requests), said("breaker.still_open")
    server.script = Script()
    wait_until(lambda: not Delivery.objects.exists(), seconds=90, what="all are sent")
    assert not DeadLetter.objects.exists()
    assert sorted(keys(tmp_path)) == expected_keys()
    # Sixteen are under way when it begins, and sixteen more before both workers have heard.
    assert tried <= 32 + 8 + probes, f"{tried} tries, {probes} of them probes"
    assert said("breaker.closed") == 1
