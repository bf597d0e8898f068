"""Secrets go in at every door, and things fail: none of them is in any log, answer or error page."""

import http.client
import json
import logging
import os
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from django.conf import settings
from django.db import connection
from django.test import Client
from django.utils import timezone

from pricing.keys import create_key
from tests.cast import alert, merchant, person, price, wine
from tests.feeds.server import Server
from tests.processes.conftest import Processes, database_url, wait_until

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.processes]
# Words that are in no code, so that whoever finds one has found a leak.
PASSWORD, WRONG, DATABASE, MAIL, COOKIE, KEY_IN_PATH, SECRET_KEY, HOOK = (
    f"sentinel{word}{word[::-1]}x7Q"
    for word in ("password", "wrong", "database", "mail", "cookie", "link", "secretkey", "hook")
)
ALL = (PASSWORD, WRONG, DATABASE, MAIL, COOKIE, KEY_IN_PATH, SECRET_KEY, HOOK)
FORM = "application/x-www-form-urlencoded"


@pytest.fixture
def server(tmp_path: Path, transactional_db: None) -> Iterator[Server]:
    made = Server(
        tmp_path / "web.log",
        SECRET_KEY=SECRET_KEY * 3,
        MAIL_WEBHOOK_SECRET=HOOK,
        EMAIL_URL=f"smtp://somebody:{MAIL}@127.0.0.1:1",
        SITE_URL="http://127.0.0.1",
    )
    yield made
    made.stop()


def ask(server: Server, method: str, path: str, body: str = "", **headers: str) -> str:
    """All that comes back, as text."""
    connection_ = http.client.HTTPConnection("127.0.0.1", server.port, timeout=30)
    try:
        named = {name.replace("_", "-"): value for name, value in headers.items()}
        connection_.request(method, path, body.encode() or None, named)
        answer = connection_.getresponse()
        return f"{answer.status} {answer.getheaders()} {answer.read().decode(errors='replace')}"
    finally:
        connection_.close()


def answers_to_requests(server: Server, key: str) -> Iterator[str]:
    """What the web server says to requests that fail in one way or another, each with a secret in it."""
    (token,) = set(re.findall(r"csrftoken=(\w+)", ask(server, "GET", "/sign-in")))
    body = f"login=alice%40winecellar.example&password={WRONG}&csrfmiddlewaretoken={token}"
    yield ask(server, "POST", "/sign-in", body, Content_Type=FORM, Cookie=f"csrftoken={token}")
    yield ask(server, "POST", "/sign-in", body, Content_Type=FORM)  # without its cookie
    yield ask(server, "GET", "/alerts", Cookie=f"sessionid={COOKIE}; csrftoken={COOKIE}")
    yield ask(server, "GET", f"/new-password/1-{KEY_IN_PATH}")
    yield ask(server, "GET", f"/unsubscribe/{KEY_IN_PATH}")
    yield ask(server, "POST", "/mail/reports/resend", "{", Content_Type="application/json", svix_signature=HOOK)
    feed = {"Content_Type": "application/json"}
    for document in ("{", json.dumps({"wine_id": "wn_0", "note": PASSWORD, "price": "x"})):
        yield ask(server, "POST", "/feeds/v1/price-changes", document, Authorization=f"Bearer {key}", **feed)
    yield ask(server, "POST", f"/feeds/v1/price-changes?key={key}", "{}", **feed)


def test_no_secret_is_in_any_log_or_answer_whatever_fails(server: Server, processes: Processes, tmp_path: Path) -> None:
    key = create_key(merchant=merchant(), note="", now=timezone.now())[1]
    wine()
    alert("160.00")
    price("154.00", at=merchant())
    said = list(answers_to_requests(server, key))
    with connection.cursor() as cursor:
        cursor.execute("ALTER TABLE pricing_feedkey RENAME TO pricing_feedkey_gone")  # now our own code fails
    try:
        failing = list(answers_to_requests(server, key))
    finally:
        with connection.cursor() as cursor:
            cursor.execute("ALTER TABLE pricing_feedkey_gone RENAME TO pricing_feedkey")
    assert any(answer.startswith("500") for answer in failing), [answer[:60] for answer in failing]
    assert "Traceback" in server.log.read_text(), "what failed is in the log"

    # A worker whose mail server is away, and commands whose database or mail is.
    worker = processes.start(
        "manage.py",
        "run_worker",
        "--until-empty",
        SECRET_KEY=SECRET_KEY * 3,
        EMAIL_URL=f"smtp://me:{MAIL}@127.0.0.1:1",
        LOG_LEVEL="DEBUG",
    )
    wait_until(lambda: worker.poll() is not None, seconds=90, what="the worker has tried")
    commands = []
    for more in (
        {"DATABASE_URL": f"postgres://me:{DATABASE}@127.0.0.1:1/none"},
        {"EMAIL_URL": f"resend://{MAIL}@127.0.0.1:1/?tls=false"},
        {"EMAIL_URL": f"smtp://me:{MAIL}@127.0.0.1:1"},
    ):
        environment = {**os.environ, "SECRET_KEY": SECRET_KEY * 3, "DATABASE_URL": database_url(), **more}
        done = subprocess.run(
            [sys.executable, "manage.py", "doctor"],
            cwd=settings.BASE_DIR,
            env=environment,
            capture_output=True,
            text=True,
            check=False,
        )
        assert done.returncode in (1, 2), done.stderr
        commands.append(done.stdout + done.stderr)

    places = {"web's log": server.log.read_text(), "worker's log": processes.log(worker)}
    places |= {f"command {n}": each for n, each in enumerate(commands)}
    places |= {f"answer {n}": each for n, each in enumerate([*said, *failing])}
    secrets = {*ALL, key, key.rpartition("_")[2]}
    assert [(place, secret) for place, text in places.items() for secret in secrets if secret in text] == []


@pytest.fixture
def lines(caplog: pytest.LogCaptureFixture) -> pytest.LogCaptureFixture:
    caplog.set_level(logging.INFO)
    return caplog


def test_signing_in_and_what_opens_an_account_is_logged_by_number(
    lines: pytest.LogCaptureFixture, settings: Any
) -> None:
    settings.PASSWORD_HASHERS = ["django.contrib.auth.hashers.MD5PasswordHasher"]
    alice = person("alice")
    alice.set_password(PASSWORD)
    alice.save(update_fields=["password"])
    client = Client()
    for password in (WRONG, PASSWORD):
        client.post("/sign-in", {"login": alice.email, "password": password})
    client.post("/sign-out")
    events = [
        record.msg
        for record in lines.records
        if isinstance(record.msg, dict) and "account." in str(record.msg.get("event"))
    ]
    assert [(each["event"], each.get("user")) for each in events] == [
        ("account.sign_in_failed", None),
        ("account.signed_in", alice.pk),
        ("account.signed_out", alice.pk),
    ]
    told = "\n".join(str(record.msg) for record in lines.records)
    assert not any(secret in told for secret in (PASSWORD, WRONG, alice.email))


def test_nobody_writes_a_line_of_their_own_into_the_log() -> None:
    """As production writes it: whatever is in a field, an event is one line of JSON."""
    program = (
        "from winecellar.logs import configure_logging; import structlog\n"
        "configure_logging(json=True, level='INFO')\n"
        "structlog.get_logger('x').info('request', path='/a\\n{\"event\": \"account.signed_in\"}\\r\\u2028')\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", program], cwd=settings.BASE_DIR, capture_output=True, text=True, check=True
    )
    (line,) = done.stderr.splitlines()
    assert json.loads(line)["event"] == "request"
