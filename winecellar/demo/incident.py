"""`python -m winecellar.demo.incident`: the course's 341 dead letters, from the alarm to the redrive, in your terminal.

A database server of its own, a real worker and the admin; each scene waits for Enter on a terminal, so that you can
look at the same thing in the browser, and decide there instead. `make demo-incident` calls it. Uses DATABASE_URL never.
"""

from __future__ import annotations

import argparse
import os
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from winecellar.demo.stop import StopWish


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m winecellar.demo.incident", description=__doc__.split("\n")[0])
    parser.add_argument("--port", type=int, default=8010, help="of the admin (default: 8010)")
    port = parser.parse_args().port
    stop = StopWish()
    stop.install()
    os.environ.pop("DATABASE_URL", None)  # it empties its database first: never somebody's own
    os.environ.update(WINECELLAR_PG_NAME="demo-incident", STAFF_NEED_SECOND_FACTOR="false", LOG_LEVEL="CRITICAL")
    os.environ.setdefault("DJANGO_SETTINGS_MODULE", "winecellar.settings")

    import django  # noqa: PLC0415

    django.setup()
    from winecellar.demo import ports  # noqa: PLC0415
    from winecellar.demo.incident_scenes import FailedError, play  # noqa: PLC0415

    if not ports.is_free(port):
        print(f"Port {port} is taken by another program. Choose another one: make demo-incident PORT=…")
        return 2
    with _folder() as folder:
        try:
            play(port=port, folder=folder, stop=stop)
        except FailedError as failure:
            print(f"\n{failure}")
            return 1
        except KeyboardInterrupt:
            return 130
    return 130 if stop.requested else 0


@contextmanager
def _folder() -> Iterator[Path]:
    with tempfile.TemporaryDirectory(prefix="winecellar-incident-") as name:
        yield Path(name)


if __name__ == "__main__":
    sys.exit(main())
