"""`make fuzz N=1000000 SEED=7`: N inputs over all parsers. Ends with 1 when one did what it has not declared.

Goes on after a find, so that one run tells all; each is told once per kind of error and parser.
"""

from __future__ import annotations

import argparse
import os
import secrets
import sys
import time

PORTION = 500


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.fuzz", description=__doc__.split("\n")[0])
    parser.add_argument("-n", type=int, default=100_000, help="inputs over all parsers")
    parser.add_argument("--seed", type=int, default=None, help="any number; told, so that a run can be repeated")
    parser.add_argument("--only", default="", help="parsers whose name has this in it")
    options = parser.parse_args()
    os.environ.setdefault("DJANGO_SETTINGS_MODULE", "winecellar.settings")
    import django

    django.setup()
    from tests.fuzz.run import FoundError, feed, nth_input
    from tests.fuzz.targets import TARGETS

    seed = secrets.randbelow(1_000_000) if options.seed is None else options.seed
    targets = [target for target in TARGETS if options.only in target.name]
    each = max(options.n // len(targets), 1)
    print(f"{len(targets)} parsers, {each:,} inputs each, seed {seed}", flush=True)
    found: dict[tuple[str, str], str] = {}
    for target in targets:
        began, read = time.monotonic(), 0
        for n in range(each):
            try:
                read += feed(target, nth_input(target, seed, n), called=f"{target.name}, seed {seed}, input {n}")
            except FoundError as what:
                found.setdefault((target.name, type(what.__cause__).__name__), str(what))
        print(
            f"  {target.name:<22}{read:>9,} read{each - read:>9,} refused{time.monotonic() - began:>8.1f} s", flush=True
        )
    for what in found.values():
        print(f"\nFOUND {what}")
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
