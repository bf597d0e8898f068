"""The drill: a base backup and an archive, the server lost, restored to a time T by the commands of docs/backup.md, and
merchants who send again what they sent since. Nothing of before T is lost, and nothing takes effect twice."""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import psycopg
import pytest

from tests.chaos.cluster import DATABASE, ChaosCluster, cluster
from tests.failover.feed import WINES
from tests.processes.conftest import wait_until
from winecellar.embedded import ROOT, _server_user

pytestmark = pytest.mark.processes
PAGE = ROOT / "docs" / "backup.md"
PLACE = "/srv/winecellar"
BEFORE_T, LAST = 6, 10  # requests


def blocks(kind: str) -> dict[str, list[str]]:
    """The page's commands, by the heading they stand under."""
    found: dict[str, list[str]] = {}
    for section in PAGE.read_text().split("\n## ")[1:]:
        heading, _, text = section.partition("\n")
        found[heading] = re.findall(rf"```{kind}\n(.*?)```", text, re.DOTALL)
    return {heading: some for heading, some in found.items() if some}


class Drill:
    """The page's folder, in the place of /srv/winecellar, and the server's user in the place of ours."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        # The embedded server's own copy of this one program may not even say its version.
        told = subprocess.run([cluster().bin / "pg_verifybackup", "--version"], capture_output=True, check=False)
        self.verifies = told.returncode == 0
        user = _server_user()
        self.as_user: dict[str, Any] = {}
        if user:
            os.chown(folder, user.pw_uid, user.pw_gid)
            self.as_user = {"user": user.pw_uid, "group": user.pw_gid, "extra_groups": []}
        whose = os.environ.get("PYTEST_XDIST_WORKER", "main")
        conf = dict(
            line.split(" = ", maxsplit=1) for line in self.placed(blocks("conf")["Archive the log"][0]).splitlines()
        )
        self.run("mkdir -p archive")
        self.primary: ChaosCluster = replace(cluster(f"-drill-{whose}"), changed=tuple(conf.items()))
        self.primary.create()
        self.url = self.primary.url(DATABASE)
        self.restored = f"postgres://postgres@/{DATABASE}?host={folder}"

    def placed(self, text: str) -> str:
        if not self.verifies:
            text = text.replace("pg_verifybackup", "test -d")
        return text.replace(PLACE, str(self.folder))

    def run(self, commands: str, **variables: str) -> list[str]:
        """As an operator types them; the lines that they say."""
        # A file, not a pipe: the server that is started inherits it.
        with tempfile.TemporaryFile("w+") as output:
            done = subprocess.run(
                ["bash", "-euo", "pipefail", "-c", self.placed(commands)],
                cwd=self.folder,
                env={"PATH": f"{cluster().bin}:/usr/bin:/bin", "LC_ALL": "C", **variables},
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=subprocess.STDOUT,
                check=False,
                **self.as_user,
            )
            output.seek(0)
            said = output.read()
        assert done.returncode == 0, f"{commands}\n{said}"
        return said.splitlines()

    def page(self, heading: str, **variables: str) -> list[str]:
        return [line for block in blocks("sh")[heading] for line in self.run(block, **variables)]

    def python(self, *command: str, url: str) -> str:
        environment = {
            **os.environ,
            "DATABASE_URL": url,
            "DJANGO_SETTINGS_MODULE": "winecellar.settings",
            "EMAIL_URL": "memorymail://",
            "LOG_LEVEL": "WARNING",
        }
        done = subprocess.run(
            [sys.executable, *command], cwd=ROOT, env=environment, capture_output=True, text=True, check=False
        )
        assert done.returncode == 0, done.stdout + done.stderr
        return done.stdout

    def feed(self, *words: str, url: str) -> dict[str, int]:
        said: dict[str, int] = json.loads(
            self.python("-m", "tests.failover.feed", str(self.folder / "key"), *words, url=url)
        )
        return said

    def work(self, url: str) -> None:
        self.python("manage.py", "run_worker", "--until-empty", url=url)

    def ask(self, sql: str, *, url: str) -> Any:
        with psycopg.connect(url, autocommit=True) as session:
            row = session.execute(sql).fetchone()
            return row[0] if row else None

    def destroy(self) -> None:
        if (self.folder / "data" / "postmaster.pid").exists():
            self.run("pg_ctl -D data -m immediate -w stop")
        self.primary.destroy()


@pytest.fixture
def drill() -> Iterator[Drill]:
    # Not the test's own folder: the server's user must reach it, and a socket's path is short.
    folder = Path(tempfile.mkdtemp(prefix="winecellar-drill-"))
    made = Drill(folder)
    yield made
    made.destroy()
    shutil.rmtree(folder)


def test_restored_to_a_time_and_fed_again_everything_is_there_once(drill: Drill) -> None:
    drill.python("manage.py", "migrate", "-v", "0", url=drill.url)
    drill.feed("fill", url=drill.url)
    drill.page("Make a base backup", PRIMARY=drill.url)
    assert drill.feed("send", "1", str(BEFORE_T), url=drill.url) == {"taken": BEFORE_T, "duplicate": 0}
    drill.work(drill.url)
    at_t = drill.ask("SELECT clock_timestamp()::text", url=drill.url)
    drill.feed("send", str(BEFORE_T + 1), str(LAST), url=drill.url)
    drill.work(drill.url)
    assert drill.ask("SELECT count(*) FROM pricing_pricehistory", url=drill.url) == LAST * WINES
    last = drill.ask("SELECT pg_walfile_name(pg_switch_wal())", url=drill.url)
    wait_until((drill.folder / "archive" / last).exists, what="the last segment is archived")
    assert drill.page("Archive the log", PRIMARY=drill.url) == ["t"]
    drill.primary.kill_all()
    shutil.rmtree(drill.primary.data)

    options = f"-h '' -k {drill.folder}"
    drill.page("Restore to a time", T=at_t, OPTIONS=options, RESTORED=drill.restored)
    # As of T: all of before, nothing of after, and each effect with its ledger row.
    assert drill.ask("SELECT count(*) FROM pricing_pricehistory", url=drill.restored) == BEFORE_T * WINES
    assert drill.ask("SELECT max(price_usd) FROM pricing_offer", url=drill.restored) == 100 + BEFORE_T
    # The merchant sends all of it again: what is known is answered as it was, the rest is taken.
    again = drill.feed("send", "1", str(LAST), url=drill.restored)
    assert again == {"taken": LAST - BEFORE_T, "duplicate": BEFORE_T}
    drill.work(drill.restored)
    assert drill.ask("SELECT count(*) FROM pricing_pricehistory", url=drill.restored) == LAST * WINES
    assert drill.ask("SELECT count(DISTINCT (wine_id, price_usd)) FROM pricing_pricehistory", url=drill.restored) == (
        LAST * WINES
    )
    assert drill.ask("SELECT min(price_usd) FROM pricing_offer", url=drill.restored) == 100 + LAST
    assert drill.ask("SELECT count(*) FROM jobs_delivery", url=drill.restored) == 0
    assert drill.ask("SELECT count(*) FROM jobs_deadletter", url=drill.restored) == 0
    # One mail for each alert and event, and the dump is whole.
    twice = "SELECT count(*) - count(DISTINCT (alert_id, event_id)) FROM alerts_notification"
    assert drill.ask(twice, url=drill.restored) == 0
    copy = drill.restored.replace(f"/{DATABASE}?", "/winecellar_copy?")
    drill.page("A dump beside it", RESTORED=drill.restored, COPY=copy)
    assert drill.ask("SELECT count(*) FROM pricing_pricehistory", url=copy) == LAST * WINES


def test_every_command_of_the_page_is_run_by_the_drill() -> None:
    assert set(blocks("sh")) == {"Archive the log", "Make a base backup", "Restore to a time", "A dump beside it"}
    assert set(blocks("conf")) == {"Archive the log"}
