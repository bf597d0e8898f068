"""Rules that past mistakes taught, checked over the source."""

import re
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from jobs.alarms import queue_rules as queue_alarms
from jobs.alarms import rules as alarms
from jobs.alarms.judges import product_judges
from jobs.dead_letters.acts import ACTS
from jobs.schedule.rules import Outcome

ROOT = Path(__file__).resolve().parents[2]
SOURCE = ["winecellar", "alerts", "pricing", "jobs"]
# The only modules that speak SQL to the queue's tables; the census only counts, the journey only reads.
QUEUE_SQL = {
    "jobs/queue.py",
    "jobs/catalog.py",
    "jobs/dead_letters/store.py",
    "jobs/gauges/census.py",
    "jobs/journey/store.py",
}


def modules() -> Iterator[Path]:
    for folder in SOURCE:
        yield from (path for path in (ROOT / folder).rglob("*.py") if "migrations" not in path.parts)


def test_only_four_modules_speak_sql_to_the_queues_tables() -> None:
    speaks = re.compile(
        r"\b(INTO|FROM|UPDATE|JOIN|TABLE)\s+(jobs_(message|delivery|deadletter|subscription)|processed_messages)\b"
    )
    found = {str(path.relative_to(ROOT)) for path in modules() if speaks.search(path.read_text())}
    # The demo counts what happened, and changes nothing.
    assert found - {"winecellar/demo/standing.py"} == QUEUE_SQL


def test_the_census_changes_nothing_of_the_queue() -> None:
    text = (ROOT / "jobs/gauges/census.py").read_text()
    changed = set(re.findall(r"(?:INSERT INTO|UPDATE|DELETE FROM)\s+(\w+)", text)) - {"SET"}
    assert changed == {"jobs_census", "jobs_minute", "jobs_occurrence", "jobs_sampler"}


def test_only_one_module_speaks_sql_to_the_schedules_tables() -> None:
    speaks = re.compile(r"\b(INTO|FROM|UPDATE|JOIN|TABLE)\s+jobs_(job|run|lock|process|incident)\b")
    said = {str(path.relative_to(ROOT)): {what for _, what in speaks.findall(path.read_text())} for path in modules()}
    assert {module for module, tables in said.items() if tables} == {"jobs/schedule/store.py", "jobs/queue.py"}
    assert said["jobs/queue.py"] == {"process"}, "one statement: whose the lease was that ran out"
    assert not re.search(r"(INTO|UPDATE)\s+jobs_process", (ROOT / "jobs/queue.py").read_text()), "it is read there"


@pytest.mark.parametrize(
    "name",
    [
        *(f"jobs/gauges/{name}.py" for name in ("buckets", "figures", "tally", "words", "chart")),
        "jobs/alarms/queue_rules.py",
        *("jobs/words.py", "jobs/schedule/cron.py", "jobs/schedule/rules.py", "jobs/alarms/rules.py"),
        *(
            "jobs/breaker_rules.py",
            "jobs/mail/answers.py",
            "winecellar/mail_provider.py",
            "winecellar/database_url.py",
            "winecellar/demo/mail_script.py",
        ),
        *("jobs/retry.py", "jobs/messages.py", "jobs/errors.py", "alerts/rules.py", "pricing/rules.py"),
        *("pricing/sizes.py", "pricing/titles.py", "pricing/codes.py", "pricing/matching.py"),
        *(f"winecellar/cellars/{name}.py" for name in ("rules", "holdings", "words")),
        *(
            f"winecellar/cellars/files/{name}.py"
            for name in ("table", "lots", "numbers", "cellartracker", "ours", "reader")
        ),
        *(f"pricing/catalogues/{name}.py" for name in ("rows", "errors", "options", "inflate", "decode", "stream")),
        *(f"pricing/catalogues/{name}.py" for name in ("columns", "delimited", "xml_rows", "google", "wine_searcher")),
        *(f"pricing/catalogues/{name}.py" for name in ("vivino", "sniff", "sales", "reading", "numbers", "prices")),
        *(f"pricing/catalogues/{name}.py" for name in ("availability", "interpret")),
        *("jobs/journey/lanes.py", "jobs/standard_webhooks.py"),
        *(f"jobs/dead_letters/{name}.py" for name in ("rules", "fingerprint", "selection", "schema_diff", "events")),
        *(f"winecellar/purchases/{name}.py" for name in ("rules", "saga", "events", "facts", "money", "words")),
        *("winecellar/payment_provider.py", "winecellar/demo/payments_script.py"),
        *("pricing/ecb.py", "pricing/exchange.py", "pricing/timeline.py", "pricing/chart.py"),
        *("pricing/daily.py", "pricing/folding.py", "pricing/search_text.py"),
    ],
)
def test_what_is_called_pure_imports_no_django(name: str) -> None:
    assert not re.search(r"^(from|import) django", (ROOT / name).read_text(), re.MULTILINE)


@pytest.mark.parametrize(
    "name",
    ["canonical", "ndjson", "cloudevents", "formats", "parse", "shops", "shopify", "woocommerce"],
)
def test_a_feeds_adapter_imports_no_models_and_no_database(name: str) -> None:
    text = (ROOT / "pricing" / "feeds" / f"{name}.py").read_text()
    assert not re.search(r"^(from|import) (django\.db|pricing\.models|pricing\.services)", text, re.MULTILINE)


def test_leases_are_never_made_with_a_frozen_clock() -> None:
    """`now()` stands still in a long transaction. Naming a month's partition may use it, a lease may not."""
    for name in ("jobs/queue.py", "jobs/schedule/store.py"):
        text = re.sub(r"def now\(\)", "", (ROOT / name).read_text().replace("`now()`", ""))
        assert not re.search(r"(?<![_a-z.])now\(\)", text), name


def test_every_alarm_has_a_paragraph_for_operators_and_every_outcome_its_meaning() -> None:
    text = (ROOT / "docs/schedule.md").read_text()
    monitoring = (ROOT / "docs/monitoring.md").read_text()
    for alarm in (*queue_alarms.QUEUE_ALARMS, *queue_alarms.SERVER_ALARMS):
        assert f"`{alarm}`" in monitoring, alarm
    products = [alarm for judge in product_judges() for alarm in judge.alarms]
    for alarm in (*alarms.JOB_ALARMS, *alarms.PROCESS_ALARMS, *alarms.LETTER_ALARMS, *alarms.AWAY_ALARMS, *products):
        assert f"`{alarm}`" in text, alarm
    for judge in product_judges():
        for alarm in judge.alarms:
            assert f"`{alarm}`" in (ROOT / f"docs/runbooks/{judge.runbook}.md").read_text(), alarm
    runbook = (ROOT / "docs/runbooks/dead-letters.md").read_text()
    for alarm in alarms.LETTER_ALARMS:
        assert f"`{alarm}`" in runbook, alarm
    for act in ACTS:
        assert f"dead_letters {act}" in runbook, act
    for outcome in Outcome:
        assert f"| {outcome.value}" in text, outcome


def test_every_module_says_what_it_is_for() -> None:
    silent = [
        str(path.relative_to(ROOT))
        for path in modules()
        if path.read_text().strip()
        and not path.read_text().startswith('"""')
        and path.name not in {"apps.py", "__init__.py"}
        and "management" not in path.parts
    ]
    assert silent == []


def test_no_admin_action_is_open_to_staff_who_may_only_look() -> None:
    """Django offers an action without `permissions` to everybody who may view."""
    for path in modules():
        for decorator in re.findall(r"@admin\.action\((.*?)\)\n", path.read_text(), re.DOTALL):
            assert "permissions=" in decorator, path


def test_the_documents_name_only_files_that_exist() -> None:
    missing = []
    for document in [
        ROOT / "README.md",
        ROOT / "ARCHITECTURE.md",
        ROOT / "CONTRIBUTING.md",
        *(ROOT / "docs").rglob("*.md"),
    ]:
        for name in re.findall(r"`((?:winecellar|alerts|pricing|jobs|tests|docs)/[\w/.-]*\w)", document.read_text()):
            if not (ROOT / name).exists():
                missing.append(f"{document.name}: {name}")
    assert missing == []


def test_everything_installed_is_pinned_with_a_hash() -> None:
    for name in ("requirements.txt", "requirements-dev.txt"):
        lines = (ROOT / name).read_text().splitlines()
        pins = [line for line in lines if re.match(r"^[a-z0-9]", line)]
        assert pins
        assert all("==" in line and line.endswith("\\") for line in pins), name


def test_make_help_lists_every_target_in_a_line() -> None:
    text = (ROOT / "Makefile").read_text()
    (phony,) = re.findall(r"^\.PHONY: (.+)$", text, re.MULTILINE)
    told = subprocess.run(["make", "-s", "help"], cwd=ROOT, capture_output=True, text=True, check=True).stdout
    assert {line.split()[0] for line in told.splitlines()} == set(phony.split())
