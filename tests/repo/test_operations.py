"""Alarms, runbooks and the monitoring files name only what there is."""

import json
import re
import shutil
import subprocess
from pathlib import Path
from typing import Any

import pytest
import yaml
from django.core.management import get_commands, load_command_class

from jobs.alarms import evaluation
from jobs.alarms.pages import page_of
from jobs.gauges import export
from jobs.gauges.figures import Pause
from jobs.gauges.reading import LETTER_AGES, Alive, Heartbeat, Reading
from jobs.gauges.server import Holder, Replica, Server, Table
from jobs.models import Breaker
from tests.jobs.gauges.test_arithmetic import MINUTE, NOW, of, partition

ROOT = Path(__file__).resolve().parents[2]
PAGES = sorted((ROOT / "docs" / "runbooks").glob("*.md"))
MONITORING = ROOT / "docs" / "monitoring"
ALARMS = [alarm for judge in evaluation.judges() for alarm in judge.alarms]


@pytest.mark.parametrize("alarm", ALARMS)
def test_every_alarm_has_a_runbook_that_names_it(alarm: str) -> None:
    text = (ROOT / page_of(alarm)).read_text()
    assert f"`{alarm}`" in text


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.stem)
def test_every_command_and_page_in_a_runbook_exists(page: Path) -> None:
    text = page.read_text()
    known = get_commands()
    for name, rest in re.findall(r"manage\.py ([a-z_]+)((?: +[^\s`|;]+)*)", text):
        assert name in known, f"manage.py {name}"
        if name in ("subscriptions", "incidents", "dead_letters"):
            parser = load_command_class(known[name], name).create_parser("manage.py", name)
            (actions,) = [action.choices for action in parser._actions if isinstance(action.choices, dict)]
            word = next(iter(rest.split()), "")
            if word and not word.startswith(("#", "(", ",", "…")):
                assert word.strip(".,)") in actions, f"manage.py {name}{rest}"
    for linked in re.findall(r"\]\(([\w-]+\.md)\)", text):
        assert (page.parent / linked).exists(), linked
    assert len(text.splitlines()) < 85, "somebody reads this at three in the morning"


def a_full_reading() -> Reading:
    """One of everything, so that each metric has a sample."""
    held = partition(0, depth=1, waits=MINUTE)
    s = of(held, partition(1))
    s = s.__class__(**{
        **s.__dict__, "paused_at": NOW, "applied": {3: 1}, "errors": {"E": 1}, "unknown_types": {"t": 1},
        "pause": Pause(NOW, MINUTE, 1), "dead": (1,) * len(LETTER_AGES),
        "partitions": [p.__class__(p.counted, p.flows.__class__(1, 1, 1), p.minutes, p.now) for p in s.partitions],
    })  # fmt: skip
    batch = {"subscription": "s", "part": 0, "messages": 1, "seconds": 1.0}
    facts = {"memory_bytes": 1, "quiet_seconds": 0.5, "batches": [batch]}
    server = Server(
        Holder("session", 7, "", "active", MINUTE, 1, "SELECT ?"), [Table("t", 1, 1, None)], 0.0, 1, 100, 0,
        [Replica("r", 0.0, 0)],
    )  # fmt: skip
    return Reading(
        now=NOW, counted_at=NOW, is_sampled=True, subscriptions=[s], unsubscribed={"t": 1},
        processes=[Alive("worker", "h:1", NOW, NOW, facts)], jobs=[Heartbeat("j", NOW, NOW, MINUTE, NOW, None)],
        away=[Breaker(name="mail", opened_at=NOW)], incidents={"page": 0}, server=server,
    )  # fmt: skip


@pytest.fixture(scope="module")
def exported() -> set[str]:
    return set(re.findall(r"^(jobs_\w+)", export.text(a_full_reading()).decode(), re.MULTILINE))


def expressions() -> dict[str, str]:
    board = json.loads((MONITORING / "dashboard.json").read_text())
    rules = yaml.safe_load((MONITORING / "alerts.yml").read_text())
    found = {f"{p['title']} {t['refId']}": t["expr"] for p in board["panels"] for t in p["targets"]}
    return found | {r["alert"]: r["expr"] for group in rules["groups"] for r in group["rules"]}


def test_dashboard_and_rules_ask_only_for_metrics_that_are_exported_and_the_dashboard_shows_all(
    exported: set[str],
) -> None:
    asked = {name: set(re.findall(r"\bjobs_\w+", text)) for name, text in expressions().items()}
    assert {name: names - exported for name, names in asked.items() if names - exported} == {}
    never = exported - set().union(*asked.values())
    assert never == set(), "exported, and on no panel"


def test_every_exported_metric_has_a_sample_in_the_full_reading() -> None:
    text = export.text(a_full_reading()).decode()
    families = set(re.findall(r"^# TYPE (\w+) ", text, re.MULTILINE))
    sampled = set(re.findall(r"^(jobs_\w+)[{ ]", text, re.MULTILINE))
    assert families == sampled


def test_the_rules_runbooks_exist_and_their_labels_are_known() -> None:
    rules: Any = yaml.safe_load((MONITORING / "alerts.yml").read_text())
    for rule in (rule for group in rules["groups"] for rule in group["rules"]):
        assert (ROOT / rule["annotations"]["runbook"]).exists(), rule["alert"]
        assert rule["labels"]["severity"] in {"warn", "page"}


def test_prometheus_itself_takes_the_rules() -> None:
    promtool = shutil.which("promtool")
    if promtool is None:
        pytest.skip("promtool is not installed (Debian: prometheus)")
    done = subprocess.run(
        [promtool, "check", "rules", MONITORING / "alerts.yml"], capture_output=True, text=True, timeout=60, check=False
    )
    assert done.returncode == 0, done.stdout + done.stderr


def test_prometheus_itself_reads_what_is_exported() -> None:
    promtool = shutil.which("promtool")
    if promtool is None:
        pytest.skip("promtool is not installed (Debian: prometheus)")
    done = subprocess.run(
        [promtool, "check", "metrics"],
        input=export.text(a_full_reading()),
        capture_output=True,
        timeout=60,
        check=False,
    )
    assert b"error" not in done.stderr.lower(), done.stderr
