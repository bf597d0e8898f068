"""Break the site in every way for a while, then see whether it kept its promises: `make chaos`.

Exit code: 0 all is well, 1 something was broken, 2 the rate did not come back. A failure plays again from its seed.
"""

from __future__ import annotations

import argparse
import logging
import os
import shutil
import signal
import sys
from pathlib import Path

from tests.chaos.cluster import DATABASE, cluster
from winecellar.embedded import ROOT

LONG = 600.0  # seconds from which on a run has the product's own lease, and is worth a page


def options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m tests.chaos", description=__doc__)
    parser.add_argument("--seconds", type=float, default=90.0, help="how long things break (default: 90)")
    parser.add_argument("--seed", type=int, default=1, help="of the faults; the same seed breaks the same (default: 1)")
    parser.add_argument("--rate", type=float, default=400.0, help="messages a second (default: 400)")
    parser.add_argument("--purchases", type=float, default=3.0, help="a second (default: 3)")
    parser.add_argument("--lease", type=float, help="seconds (default: 30 in a long run, 4 in a short one)")
    parser.add_argument("--json", type=Path, help="where the result is written too")
    parser.add_argument("--report", action="store_true", help="write it into docs/chaos.md; a long run does so anyway")
    parser.add_argument("--scenarios", action="store_true", help="the nine scenarios of the public table instead")
    parser.add_argument("--control", action="store_true", help="show that the checker finds a loss where there is one")
    return parser.parse_args()


def main(chosen: argparse.Namespace) -> int:
    server = cluster("-scenarios" if chosen.scenarios else "")
    folder = ROOT / "var" / f"{server.name}-run"
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    os.environ.update(
        DATABASE_URL=server.url(DATABASE),
        DJANGO_SETTINGS_MODULE="tests.chaos.settings",
        EMAIL_URL="memorymail://",
        LOG_LEVEL="ERROR",
        WORKER_LISTEN="true",
    )
    lease = chosen.lease or (30.0 if chosen.seconds >= LONG else 4.0)
    os.environ["CHAOS_LEASE"] = str(lease)
    has_disk = server.create(small_disk=not chosen.scenarios)
    try:
        import django

        django.setup()
        # That a transaction cannot be rolled back on a server that is gone is what a run is about.
        logging.getLogger("psycopg").setLevel(logging.CRITICAL)
        if chosen.scenarios:
            from tests.chaos import scenarios

            return scenarios.main(server, folder, chosen)
        from tests.chaos import report
        from tests.chaos.run import Options, Run

        asked = Options(chosen.seconds, chosen.seed, lease, chosen.rate, chosen.purchases)
        result = Run(asked, server, folder).run(has_disk=has_disk)
        print("\n" + report.in_words(result, has_disk=has_disk))
        (chosen.json or folder / "report.json").write_text(result.as_json())
        if chosen.report or chosen.seconds >= LONG:
            report.write(result, has_disk=has_disk)
        return 1 if not result.is_right else 0 if result.is_fast_again else 2
    finally:
        server.destroy()


if __name__ == "__main__":
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(1))  # what was started must end with us
    what = options()
    if what.control:
        os.environ.setdefault("DJANGO_SETTINGS_MODULE", "winecellar.settings")
        import django

        django.setup()  # the clients' own imports need it
        from tests.chaos import control

        sys.exit(control.main())
    sys.exit(main(what))
