"""docs/security.md: every test that it names is there, and every item of the standard has its answer."""

import ast
import json
import re
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
PAGE = (ROOT / "docs" / "security.md").read_text()
# How many items of levels 1 and 2 each section of ASVS 5.0.0 has, and where they are not simply 1 to that number.
SECTIONS = {
    1: {1: 2, 2: 9, 3: 11, 4: 3, 5: 2},
    2: {1: 3, 2: 3, 3: 4, 4: 1},
    3: {2: 2, 3: 4, 4: 6, 5: 5, 7: 2},
    4: {1: 3, 2: 1, 3: 2, 4: 4},
    5: {1: 1, 2: 3, 3: 2, 4: 3},
    6: {1: 3, 2: 12, 3: 4, 4: 4, 5: 5, 6: 3, 8: 4},
    7: {1: 3, 2: 4, 3: 2, 4: 5, 5: 2, 6: 2},
    8: {1: 2, 2: 3, 3: 1, 4: 1},
    9: {1: 3, 2: 4},
    10: {1: 2, 2: 2, 3: 4, 4: 11, 5: 5, 6: 2, 7: 3},
    11: {1: 2, 2: 3, 3: 3, 4: 4, 5: 1, 6: 1},
    12: {1: 3, 2: 2, 3: 4},
    13: {1: 1, 2: 5, 3: 2, 4: 5},
    14: {1: 2, 2: 4, 3: 3},
    15: {1: 3, 2: 3, 3: 7},
    16: {1: 1, 2: 5, 3: 4, 4: 3, 5: 3},
    17: {1: 1, 2: 4, 3: 2},
}


def test_every_test_that_the_page_names_is_there() -> None:
    named = set(re.findall(r"`(tests/[\w/]+\.py)(?:::(\w+))?`", PAGE))
    assert len(named) > 80
    missing = []
    for file, test in sorted(named):
        path = ROOT / file
        if not path.exists():
            missing.append(file)
        elif test and test not in functions(path):
            missing.append(f"{file}::{test}")
    assert missing == []


def functions(path: Path) -> set[str]:
    return {node.name for node in ast.walk(ast.parse(path.read_text())) if isinstance(node, ast.FunctionDef)}


def test_every_item_of_the_standard_has_its_answer_and_one_alone() -> None:
    wanted = {
        f"V{chapter}.{section}.{item}"
        for chapter, sections in SECTIONS.items()
        for section, items in sections.items()
        for item in range(1, items + 1)
    }
    assert len(wanted) == 253
    answered: list[str] = []
    for row in re.findall(r"^\| (V[\dV. ]+) \|", PAGE, re.MULTILINE):
        for name in row.split():
            of_a_section = [item for item in wanted if item.startswith(f"{name}.")]
            answered += of_a_section or [name]
    assert sorted(set(answered)) == sorted(wanted)
    assert len(answered) == len(set(answered)), "one item, one answer"


def test_an_sbom_lists_every_pinned_package(tmp_path: Path) -> None:
    done = subprocess.run(
        [sys.executable, "-m", "tests.audit", "--sbom-only", "--to", str(tmp_path / "sbom.cdx.json")],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    sbom = json.loads((tmp_path / "sbom.cdx.json").read_text())
    listed = {component["name"].lower(): component["version"] for component in sbom["components"]}
    pins = dict(
        re.findall(r"^([a-z0-9][a-z0-9._-]*)==([^\s;\\]+)", (ROOT / "requirements.txt").read_text(), re.MULTILINE)
    )
    assert listed == pins
