"""`make audit`: an SBOM of what is pinned, and what the vulnerability database knows about it.

The SBOM (CycloneDX) needs no network. Where the database cannot be reached, the audit is skipped and says so; a known
hole is a failure. Only what a deployment installs is looked at, requirements.txt.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
PINS = ROOT / "requirements.txt"
BIN = Path(sys.executable).parent
SECONDS = 180
# What pip-audit says when it got no answer, or one that is not of the database.
UNREACHABLE = ("ConnectionError", "Could not connect", "ServiceError", "HTTPError", "JSONDecodeError", "Max retries")


def write_sbom(to: Path) -> None:
    to.parent.mkdir(parents=True, exist_ok=True)
    command = [BIN / "cyclonedx-py", "requirements", PINS, "--output-reproducible", "--of", "JSON", "-o", to]
    subprocess.run(command, check=True, capture_output=True)


def audit() -> int:
    command = [BIN / "pip-audit", "--require-hashes", "--disable-pip", "-r", PINS, "--progress-spinner", "off"]
    try:
        done = subprocess.run(
            [*command, "--timeout", "15", "--format", "json"],
            capture_output=True,
            text=True,
            check=False,
            timeout=SECONDS,
        )
        packages = json.loads(done.stdout)["dependencies"]
    except subprocess.TimeoutExpired:
        return skipped("it does not answer")
    except json.JSONDecodeError:
        if any(word in done.stderr for word in UNREACHABLE):
            return skipped(done.stderr.strip().splitlines()[-1][:100])
        print(done.stderr)
        return 1
    if all("skip_reason" in package for package in packages):
        return skipped("whoever answers knows none of our packages, so it is a mirror without it")
    holes = [(package["name"], package["version"], hole) for package in packages for hole in package.get("vulns", [])]
    for name, version, hole in holes:
        print(f"{name} {version}: {hole['id']}, mended in {', '.join(hole['fix_versions']) or 'no version yet'}")
    print(f"audit: {len(holes)} known holes in {len(packages)} packages")
    return 1 if holes else 0


def skipped(why: str) -> int:
    print(f"audit: skipped, the vulnerability database cannot be asked: {why}")
    return 0


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.audit", description=__doc__.split("\n")[0])
    parser.add_argument("--to", type=Path, default=ROOT / "var" / "sbom.cdx.json")
    parser.add_argument("--sbom-only", action="store_true")
    options = parser.parse_args()
    write_sbom(options.to)
    print(f"sbom: {options.to}")
    return 0 if options.sbom_only else audit()


if __name__ == "__main__":
    sys.exit(main())
