"""What a deployment's answers and settings say, as WINECELLAR_ENV=production has them in a process of its own."""

import json
import os
import subprocess
import sys
from typing import Any

import pytest
from django.conf import settings
from django.test import Client

from tests.cast import person, wine
from tests.deployment.conftest import PREFIX
from tests.jobs.conftest import rows
from tests.run import PRODUCTION
from winecellar.deployment.roles import Role, name

SAY = """
import django, json
django.setup()
from django.conf import settings
names = [n for n in dir(settings) if n.startswith(("SESSION_", "CSRF_", "SECURE_")) or n in ("DEBUG", "DATABASES")]
print(json.dumps({n: getattr(settings, n) for n in names}, default=str))
"""


def in_production(*command: str) -> "subprocess.CompletedProcess[str]":
    environment = {**os.environ, **PRODUCTION, "DJANGO_SETTINGS_MODULE": "winecellar.settings"}
    return subprocess.run(
        [sys.executable, *command], env=environment, cwd=settings.BASE_DIR, capture_output=True, text=True, check=False
    )


@pytest.fixture(scope="module")
def deployed() -> dict[str, Any]:
    done = in_production("-c", SAY)
    assert done.returncode == 0, done.stderr
    said: dict[str, Any] = json.loads(done.stdout)
    return said


def test_a_deployments_cookies_are_for_this_host_over_tls_alone(deployed: dict[str, Any]) -> None:
    for cookie in ("SESSION", "CSRF"):
        assert deployed[f"{cookie}_COOKIE_NAME"].startswith("__Host-")
        # What the prefix demands, or browsers take no such cookie.
        assert (deployed[f"{cookie}_COOKIE_SECURE"], deployed[f"{cookie}_COOKIE_PATH"]) == (True, "/")
        assert deployed[f"{cookie}_COOKIE_DOMAIN"] is None
        assert deployed[f"{cookie}_COOKIE_HTTPONLY"] is True
        assert deployed[f"{cookie}_COOKIE_SAMESITE"] == "Lax"
    assert deployed["DEBUG"] is False


@pytest.mark.django_db
def test_a_page_comes_with_all_that_a_browser_should_hold_to(deployed: dict[str, Any], settings: Any) -> None:
    for name_, value in deployed.items():
        if name_.startswith("SECURE_"):
            setattr(settings, name_, value)
    headers = Client().get("/", secure=True).headers
    assert headers["Strict-Transport-Security"] == "max-age=31536000; includeSubDomains; preload"
    assert headers["Content-Security-Policy"].startswith("default-src 'none'; ")
    assert "frame-ancestors 'none'" in headers["Content-Security-Policy"]
    assert headers["X-Content-Type-Options"] == "nosniff"
    assert headers["Referrer-Policy"] == "same-origin"
    assert headers["Content-Type"] == "text/html; charset=utf-8"
    assert "Access-Control-Allow-Origin" not in headers
    plain = Client().get("/")
    assert (plain.status_code, plain.headers["Location"]) == (301, "https://testserver/")


@pytest.mark.django_db
def test_what_somebody_signed_in_sees_is_kept_by_nobody() -> None:
    wine()
    client = Client()
    assert "no-store" not in client.get("/wines/wn_4417").headers.get("Cache-Control", "")
    client.force_login(person("alice"))
    for page in ("/", "/alerts", "/wines/wn_4417", "/account"):
        assert "no-store" in client.get(page).headers["Cache-Control"], page


@pytest.mark.django_db
def test_where_to_write_about_a_hole_is_said_where_one_looks(settings: Any) -> None:
    assert Client().get("/.well-known/security.txt").status_code == 404
    settings.SECURITY_CONTACT = "security@cellar.example"
    said = Client().get("/.well-known/security.txt").content.decode()
    assert said.startswith("Contact: mailto:security@cellar.example\nExpires: 20")


@pytest.mark.django_db(transaction=True)
def test_a_web_servers_statement_ends(roles: None) -> None:
    web = name(PREFIX, Role.WEB)
    ((options,),) = rows(
        "SELECT setconfig FROM pg_db_role_setting s JOIN pg_roles r ON r.oid = s.setrole WHERE rolname = %s", web
    )
    assert options == ["statement_timeout=25000"]


def test_the_demo_refuses_production() -> None:
    done = in_production("-m", "winecellar.demo", "--seconds", "1")
    assert done.returncode == 2
    assert "does not run with WINECELLAR_ENV=production" in done.stdout
