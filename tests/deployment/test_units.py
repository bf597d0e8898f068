"""deploy/: what it starts exists, ends in time, may do no more than it needs, and systemd understands it."""

import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from django.conf import settings
from django.core.management import get_commands

from winecellar import gunicorn_conf

DEPLOY = Path(settings.BASE_DIR) / "deploy"
SERVICES = sorted((DEPLOY / "systemd").glob("*.service"))
PYTHON = "/srv/winecellar/.venv/bin/python "
# Above this systemd calls a service exposed (`systemd-analyze security`); its scale goes to 10.
MOST_EXPOSED = 2.0


def lines(unit: Path) -> dict[str, list[str]]:
    found: dict[str, list[str]] = {}
    for name, value in re.findall(r"^(\w+)=(.*)$", unit.read_text(), re.MULTILINE):
        found.setdefault(name, []).append(value)
    return found


def seconds(unit: str) -> int:
    return int(lines(DEPLOY / "systemd" / unit)["TimeoutStopSec"][0])


@pytest.mark.parametrize("unit", SERVICES, ids=lambda unit: unit.name)
def test_a_unit_starts_what_there_is_as_nobody_in_particular(unit: Path) -> None:
    said = lines(unit)
    (command,) = said["ExecStart"]
    assert command.startswith(PYTHON)
    what = command.removeprefix(PYTHON).split()
    if what[0] == "manage.py":
        assert what[1] in get_commands()
    else:
        assert what == ["-m", "gunicorn", "winecellar.wsgi", "-c", "winecellar/gunicorn_conf.py"]
        assert (Path(settings.BASE_DIR) / what[-1]).exists()
    assert said["User"] == ["winecellar"]
    assert said["CapabilityBoundingSet"] == [""]
    for hardening in ("NoNewPrivileges", "PrivateTmp", "PrivateDevices", "ProtectHome", "RestrictSUIDSGID"):
        assert said[hardening] == ["yes"], hardening


def test_a_process_that_is_told_to_stop_has_longer_than_it_asks_for() -> None:
    grace = settings.WORKER_GRACE.total_seconds()
    assert seconds("winecellar-worker@.service") > grace + settings.WORKER_WATCHDOG.total_seconds()
    assert seconds("winecellar-scheduler.service") > grace
    assert seconds("winecellar-web.service") > gunicorn_conf.graceful_timeout


def test_the_procfile_and_the_units_start_the_same() -> None:
    processes = dict(re.findall(r"^(\w+): python (.+)$", (DEPLOY / "Procfile").read_text(), re.MULTILINE))
    units = {unit.name: lines(unit)["ExecStart"][0].removeprefix(PYTHON) for unit in SERVICES}
    assert sorted(processes.values()) == sorted(units.values())


@pytest.fixture(scope="module")
def copies(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The units with programs that are here: systemd looks whether there are such."""
    if not shutil.which("systemd-analyze"):
        pytest.skip("systemd is not installed here; what does not need it is tested above")
    folder = tmp_path_factory.mktemp("units")
    for unit in (DEPLOY / "systemd").iterdir():
        (folder / unit.name).write_text(unit.read_text().replace(PYTHON, f"{sys.executable} "))
    return folder


def analyze(*arguments: str) -> str:
    done = subprocess.run(["systemd-analyze", *arguments], capture_output=True, text=True, check=False)
    return done.stdout + done.stderr


def test_systemd_understands_every_line(copies: Path) -> None:
    units = sorted(copies.iterdir())
    # It has a word about units of this machine too, and about documentation that is not on it.
    ours = [line for line in analyze("verify", *map(str, units)).splitlines() if str(copies) in line]
    assert ours == []
    (copies / "winecellar-broken.service").write_text("[Service]\nExecStart=/bin/true\nProtectSytem=strict\n")
    assert "ProtectSytem" in analyze("verify", str(copies / "winecellar-broken.service"))
    (copies / "winecellar-broken.service").unlink()


@pytest.mark.parametrize("name", [unit.name for unit in SERVICES])
def test_systemd_calls_no_service_exposed(copies: Path, name: str) -> None:
    told = analyze("security", "--offline=true", "--no-pager", str(copies / name))
    (level,) = re.findall(r"Overall exposure level for \S+: ([0-9.]+)", told)
    assert float(level) <= MOST_EXPOSED
