"""How fast single prices are taken, and how the site stands a burst, with real processes.

python -m tests.benchmarks.intake                 all three; about a quarter of an hour
python -m tests.benchmarks.intake --only single   one of single, burst, promise
python -m tests.benchmarks.intake --scale 0.1     the burst's four minutes in a tenth of the time, at the same rate

single   4 senders, each with one price per request, as fast as they can: ours, and a bare Django view that does one
         INSERT and commits, in turns; the bare view in this project, and in a Django without any middleware
burst    four minutes at 50 times 90,000 changes a day, and at ten times that, while workers drain: the feed's p99
promise  the burst while the mail provider has its brownouts: from the 202 to the mail, against the five minutes
"""

from __future__ import annotations

import argparse
import json
import signal
import sys
import tempfile
import time
from datetime import datetime
from pathlib import Path
from statistics import median

from tests.benchmarks import server, site
from tests.benchmarks.sending import Sent, Task, send_all

PRICES = "/feeds/v1/price-changes"
SENDERS, WINES = 4, 4_000
PER_SECOND = 50 * 90_000 / 86_400  # 52
BURST_SECONDS = 240.0
ALERTS = 80  # of the wines, one in fifty is watched
PROMISE_SECONDS = 300.0


def percentile(values: list[float], part: float) -> float:
    return sorted(values)[min(int(len(values) * part), len(values) - 1)]


def figures(sent: list[Sent]) -> dict[str, float]:
    refused = [text for each in sent for text in each.refused]
    if refused:
        raise RuntimeError(f"{len(refused)} requests were refused, such as {refused[0]}")
    latencies = [latency for each in sent for latency in each.latencies]
    return {
        "rate": len(latencies) / max(each.seconds for each in sent),
        "p50": percentile(latencies, 0.5),
        "p99": percentile(latencies, 0.99),
        "longest": max(latencies),
        "count": len(latencies),
    }


def wines_of(sender: int) -> list[str]:
    """Each sender has wines of its own: what waits for a wine's lock is not what is measured."""
    return [f"wn_{number}" for number in range(sender, WINES, SENDERS)]


# --- Single prices ---------------------------------------------------------------------------------------------


OURS, BARE, BARER = "ours", "bare view", "bare, no middleware"


def single(runs: int, seconds: float) -> float:
    """Returns the median of the runs' ratios to the bare view in the same project."""
    keys = site.fill(WINES, ALERTS)
    found: list[dict[str, dict[str, float]]] = []
    with (
        site.web("winecellar.wsgi", PRICES) as our_port,
        site.web("tests.benchmarks.bare_in_project", "/") as bare_port,
        site.web("tests.benchmarks.bare", "/") as barer_port,
    ):
        turns = [
            (BARER, barer_port, "/bare", True),
            (BARE, bare_port, "/bare", True),
            (OURS, our_port, PRICES, True),
            (f"{OURS}, without an id", our_port, PRICES, False),
        ]
        for _, port, path, idempotent in turns:  # warm
            _single(port, path, keys, 1.0, idempotent=idempotent)
        print(f"{'':28}{'per second':>12}{'p50 ms':>9}{'p99 ms':>9}{'longest':>9}")
        for run in range(runs):
            found.append({})
            for name, port, path, idempotent in turns:
                shown = found[-1][name] = figures(_single(port, path, keys, seconds, idempotent=idempotent))
                line = f"run {run + 1}  {name:21}{shown['rate']:>12,.0f}{shown['p50']:>9.2f}{shown['p99']:>9.2f}"
                print(f"{line}{shown['longest']:>9.1f}", flush=True)
    for name in (BARE, BARER):
        ratio = median(run[OURS]["rate"] / run[name]["rate"] for run in found)
        print(f"single intake: {ratio:.2f} × {name}" + (" (bar: 0.5)" if name == BARE else ""))
    print()
    return median(run[OURS]["rate"] / run[BARE]["rate"] for run in found)


def _single(port: int, path: str, keys: list[str], seconds: float, *, idempotent: bool) -> list[Sent]:
    return send_all(
        [
            Task(port, path, keys[sender], wines_of(sender), seconds, idempotent=idempotent, seed=sender)
            for sender in range(SENDERS)
        ]
    )


# --- The burst -------------------------------------------------------------------------------------------------


def burst(times: float, scale: float) -> float:
    """The feed's p99 in ms, while one worker drains and mails go out."""
    keys = site.fill(WINES, ALERTS)
    with (
        tempfile.TemporaryDirectory() as folder,
        site.mail_sink(Path(folder) / "mail.jsonl") as smtp_port,
        site.web("winecellar.wsgi", PRICES) as port,
        site.workers(1, smtp_port),
    ):
        sent = _at_rate(port, keys, times * PER_SECOND, BURST_SECONDS * scale)
        ended = time.monotonic()
        _drain()
    found = figures(sent)
    print(
        f"burst, {times * PER_SECOND:,.0f} a second for {BURST_SECONDS * scale:.0f} s: {found['count']:,.0f} prices, "
        f"p50 {found['p50']:.1f} ms, p99 {found['p99']:.1f} ms (bar: 100), longest {found['longest']:.0f} ms; "
        f"drained {time.monotonic() - ended:.1f} s after the last",
        flush=True,
    )
    return found["p99"]


def _at_rate(port: int, keys: list[str], rate: float, seconds: float) -> list[Sent]:
    """More senders than at full speed: one that waits for its answer must not slow down the others."""
    several = 2 * SENDERS
    return send_all(
        [
            Task(
                *(port, PRICES, keys[sender % SENDERS]),
                [f"wn_{number}" for number in range(sender, WINES, several)],
                seconds,
                rate=rate / several,
                seed=sender,
            )
            for sender in range(several)
        ]
    )


def _drain(seconds: float = 600.0) -> None:
    deadline = time.monotonic() + seconds
    with server.connect(site.DATABASE) as watcher:
        while (row := watcher.execute("SELECT count(*) FROM jobs_delivery").fetchone()) and row[0]:
            if time.monotonic() > deadline:
                raise RuntimeError(f"{row[0]} deliveries were left after {seconds:.0f} s")
            time.sleep(0.2)


# --- The promise -----------------------------------------------------------------------------------------------


def promise(scale: float) -> float:
    """The longest way from a 202 to its mail, in seconds; all mails that were due have come, and none is buried."""
    keys = site.fill(WINES, ALERTS)
    seconds = BURST_SECONDS * scale
    # A third of the burst, twice: every third mail hangs for eight seconds, and is then refused.
    brownouts = [
        "--brownout",
        f"{seconds * 0.1:.0f}:{seconds / 3:.0f}",
        "--brownout",
        f"{seconds * 0.6:.0f}:{seconds / 3:.0f}",
    ]
    with tempfile.TemporaryDirectory() as folder:
        log = Path(folder) / "mail.jsonl"
        with (
            site.mail_sink(log, *brownouts) as smtp_port,
            site.web("winecellar.wsgi", PRICES) as port,
            site.workers(2, smtp_port),
        ):
            sent = _at_rate(port, keys, PER_SECOND, seconds)
            _drain()
        mails = [json.loads(line) for line in log.read_text().splitlines()]
    accepted = {event_id: at for each in sent for event_id, at in each.events.items()}
    waits = [datetime.fromisoformat(mail["received_at"]).timestamp() - accepted[mail["event_id"]] for mail in mails]
    due, buried = (
        server.execute(sql, site.DATABASE)[0][0]
        for sql in (
            "SELECT count(*) FROM alerts_notification WHERE state <> 'unwanted'",
            "SELECT count(*) FROM jobs_deadletter",
        )
    )
    found = figures(sent)
    print(
        f"promise: {found['count']:,.0f} prices in {seconds:.0f} s with two brownouts of {seconds / 3:.0f} s; "
        f"{due} mails due, {len({mail['message_id'] for mail in mails})} came, {buried} buried; from 202 to mail "
        f"p50 {percentile(waits, 0.5):.1f} s, p99 {percentile(waits, 0.99):.1f} s, longest {max(waits):.1f} s "
        f"(bar: {PROMISE_SECONDS:.0f}); the feed's p99 {found['p99']:.1f} ms\n",
        flush=True,
    )
    if buried or due != len({mail["message_id"] for mail in mails}):
        raise RuntimeError("a mail that was due did not come")
    return max(waits)


def main() -> None:
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(1))  # what was started must end with us
    parser = argparse.ArgumentParser(prog="python -m tests.benchmarks.intake", description=__doc__)
    parser.add_argument("--only", choices=("single", "burst", "promise"))
    parser.add_argument("--runs", type=int, default=5, help="of single")
    parser.add_argument("--seconds", type=float, default=8.0, help="of each run of single")
    parser.add_argument("--scale", type=float, default=1.0, help="of the burst's four minutes")
    options = parser.parse_args()
    with server.running():
        if options.only in (None, "single"):
            single(options.runs, options.seconds)
        if options.only in (None, "burst"):
            burst(1, options.scale)
            burst(10, options.scale)
        if options.only in (None, "promise"):
            promise(options.scale)
        server.drop(site.DATABASE)


if __name__ == "__main__":
    main()
