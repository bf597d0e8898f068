"""`python -m winecellar.demo`: watch prices become alerts and mail. `make demo` calls it.

Installs the signal handlers before anything slow is imported, gives the demo a database server of its own unless
DATABASE_URL names another, sets Django up, and hands over to orchestra.py.
"""

import argparse
import os
import sys

from winecellar.demo.stop import StopWish


def options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        prog="python -m winecellar.demo", description="Watch prices become alerts and mail."
    )
    parser.add_argument("--port", type=port, default=8000, help="of the web server (default: 8000)")
    parser.add_argument("--seconds", type=positive, help="end by itself after so long, and say whether all went well")
    parser.add_argument("--seed", type=int, help="of the market; the same seed moves prices alike (default: any)")
    parser.add_argument("--rate", type=positive, default=5.0, help="price changes per second (default: 5)")
    parser.add_argument("--mail", choices=["smtp", "api"], default="smtp", help="how mails are handed over")
    return parser.parse_args()


def positive(text: str) -> float:
    number = float(text)
    if not 0 < number < float("inf"):
        raise argparse.ArgumentTypeError("must be above 0")
    return number


def port(text: str) -> int:
    number = int(text)
    if not 1 <= number <= 65_535:
        raise argparse.ArgumentTypeError("must be 1 to 65535")
    return number


if __name__ == "__main__":
    chosen = options()
    stop = StopWish()
    stop.install()
    if not os.environ.get("DATABASE_URL"):
        os.environ.setdefault("WINECELLAR_PG_NAME", "demo")
    os.environ.setdefault("DJANGO_SETTINGS_MODULE", "winecellar.settings")
    os.environ["LOG_LEVEL"] = "WARNING"  # of this process: its terminal shows prices, not log lines

    import django

    django.setup()

    from winecellar.demo.orchestra import Options, run

    sys.exit(run(Options(chosen.port, chosen.seconds, chosen.seed, chosen.rate, chosen.mail == "api"), stop))
