"""`make test`: every check, then every test. Stops the Postgres it started; exits non-zero on any failure.

Environment: PG=18|16 chooses the embedded server, DATABASE_URL another one, JOBS the number of test processes.
"""

import os
import subprocess
import sys
import time
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
BIN = Path(sys.executable).parent

# Settings as a deployment has them; the values only have to be well-formed.
PRODUCTION = {
    "WINECELLAR_ENV": "production",
    "SECRET_KEY": "check-only-" + "0123456789abcdefghijklmnopqrstuvwxyz-ABCDEFGHIJ" * 2,
    "ALLOWED_HOSTS": "winecellar.example",
    "SITE_URL": "https://winecellar.example",
    "EMAIL_URL": "smtp://localhost:25",
}

CHECKS: list[tuple[str, list[str], dict[str, str]]] = [
    ("format", [str(BIN / "ruff"), "format", "--check", "."], {}),
    ("lint", [str(BIN / "ruff"), "check", "."], {}),
    ("types", [str(BIN / "mypy"), "winecellar", "alerts", "pricing", "jobs", "manage.py"], {}),
    ("imports", [str(BIN / "lint-imports")], {}),
    ("migrations", [sys.executable, "manage.py", "makemigrations", "--check", "--dry-run"], {}),
    ("deploy", [sys.executable, "manage.py", "check", "--deploy", "--fail-level", "WARNING"], PRODUCTION),
]


def main(arguments: list[str]) -> int:
    os.chdir(ROOT)
    environment = {
        **os.environ,
        "WINECELLAR_PG_NAME": os.environ.get("WINECELLAR_PG_NAME", "postgres-test"),
        "WINECELLAR_PG_MAJOR": os.environ.get("PG", os.environ.get("WINECELLAR_PG_MAJOR", "18")),
    }
    os.environ.update(environment)
    from winecellar import embedded

    started = embedded.start_unless_external()
    try:
        failed = [name for name, command, extra in CHECKS if not _passes(name, command, {**environment, **extra})]
        if "--checks-only" not in arguments:
            spread = ["-n", os.environ.get("JOBS", "2")]  # which test goes where: tests/conftest.py
            command = [sys.executable, "-m", "pytest", "--create-db", *spread, *arguments]
            if subprocess.run(command, env=environment, check=False).returncode:
                failed.append("tests")
    finally:
        if started:
            embedded.default().stop()
    if failed:
        print(f"failed: {', '.join(failed)}", file=sys.stderr)
    return 1 if failed else 0


def _passes(name: str, command: list[str], environment: dict[str, str]) -> bool:
    began = time.monotonic()
    done = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)
    print(f"{name:<12}{'ok' if done.returncode == 0 else 'FAILED'}  {time.monotonic() - began:.1f} s", flush=True)
    if done.returncode:
        print(done.stdout + done.stderr)
    return done.returncode == 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
