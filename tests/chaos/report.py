"""What a run came to: a table for the terminal, and a section of docs/chaos.md."""

from __future__ import annotations

import os
import platform
import re
from datetime import UTC, datetime
from pathlib import Path

from tests.chaos import plan
from tests.chaos.run import ORPHAN_PATIENCE, TARGET_RATIO, Result
from winecellar.embedded import ROOT

PAGE = ROOT / "docs" / "chaos.md"
NAMES = {
    "kill_worker": "worker killed by SIGKILL (F3)",
    "stop_postgres": "Postgres stopped and started (F8, F9)",
    "end_backends": "three sessions ended (F6)",
    "tell_worker_to_stop": "worker told to stop by SIGTERM (F4)",
    "pause_worker": "worker paused past its lease (F5)",
    "cancel_backends": "running statements cancelled (F7)",
    "short_patience": "statements and locks limited to 50–500 ms (F7)",
    "break_network": "network broken (F2, F10)",
    "take_all_slots": "connection slots exhausted (F11)",
    "read_only": "database read-only (F14)",
    "fill_disk": "the log's disk full (F13)",
    "deadlock": "rows locked in the other order (F15)",
    "lock_a_wine": "a wine locked for seconds (F16)",
    "pin_horizon": "xmin pinned by an open snapshot (F17)",
    "no_vacuum": "autovacuum off (F18)",
    "kill_scheduler": "scheduler killed (F22, F23)",
    "kill_web": "web server killed",
    "kill_watchman": "watchman killed",
    "provider": "mail provider misbehaves (F25)",
    "redrive": "dead letters redriven, by two clicks at once (F30)",
    "rude_client": "client aborts or drips (F34)",
    "few_files": "a worker without free file descriptors (F35)",
    "erase_account": "account erased while its mails are under way (F36)",
    "payments": "payment provider misbehaves (F26)",
    "freeze_payments": "payment provider frozen (F26)",
    "repeat_reports": "payment reports again, twice each, in any order (F26)",
    "operator": "purchase undone or resumed, by two clicks at once (F26)",
}


def rows(result: Result) -> list[tuple[str, str]]:
    """What was done, what was found."""
    c, o = result.counts, result.options
    told = [
        ("messages in the log", f"{c['messages']:,}"),
        ("of them acknowledged", f"{c['acknowledged']:,}"),
        ("deliveries applied", f"{c['deliveries applied']:,}"),
        ("dead letters", f"{c['dead letters']:,}"),
        ("letters redriven", f"{c['redriven']:,}"),
        ("mails taken", f"{c['mails']:,}"),
        (
            "purchases, and how they ended",
            f"{c['purchases']:,}: "
            + ", ".join(f"{c[name]:,} {name.split()[1]}" for name in sorted(c) if name.startswith("purchases ")),
        ),
        ("reservations that ran out", f"{c['reservations run out']:,}"),
        (
            "money moved",
            f"{c['money charge']:,} charges, {c['money refund']:,} refunds, {c['money returned']:,} of them came back",
        ),
        ("answers that said nothing", f"{sum(n for name, n in c.items() if name.endswith(' unknown')):,}"),
        (
            "poisonous messages",
            f"{sum(result.poison.values()):,}: " + ", ".join(f"{n} {k}" for k, n in sorted(result.poison.items())),
        ),
        (
            "effects a second, before and after",
            f"{result.before:,.0f} and {result.after:,.0f}: {result.ratio:.0%} (asked: {TARGET_RATIO:.0%})",
        ),
        (
            "orphans of a killed worker ran again after",
            ", ".join(f"{each:.1f} s" for each in result.orphans) + f" (asked: {o.lease + ORPHAN_PATIENCE:g} s)",
        ),
    ]
    return [
        *told,
        *((name, "0" if not found else f"{len(found):,}: {found[0]}") for name, found in result.violations.items()),
    ]


def faults(result: Result, *, has_disk: bool) -> list[tuple[str, str]]:
    found = []
    for fault in plan.RHYTHM:
        modes = ", ".join(
            f"{count} {name.partition(': ')[2]}"
            for name, count in sorted(result.struck.items())
            if name.startswith(f"{fault}: ")
        )
        times = f"{result.struck[fault]:,}" + (f" ({modes})" if modes else "")
        found.append(
            (NAMES[fault], times if has_disk or fault != "fill_disk" else "not here: it takes the right to mount")
        )
    return found


def verdict(result: Result) -> str:
    if not result.is_right:
        broken = [name for name, found in result.violations.items() if found] + result.broken
        broken += [] if result.orphans_in_time and result.orphans else ["an orphan came late, or never"]
        return f"BROKEN: {'; '.join(broken)}. Play it again with SEED={result.options.seed}."
    if not result.is_fast_again:
        return "All promises were kept, but the rate has not come back."
    return "All promises were kept."


def in_words(result: Result, *, has_disk: bool) -> str:
    table = [("", ""), *faults(result, has_disk=has_disk), ("", ""), *rows(result)]
    width = max(len(name) for name, _ in table)
    lines = [f"  {name:<{width}}  {said}".rstrip() for name, said in table]
    return "\n".join(
        [f"Chaos for {result.options.seconds:g} s, seed {result.options.seed}", *lines, "", verdict(result)]
    )


def write(result: Result, *, has_disk: bool) -> None:
    """Into the page, between its marks."""
    o = result.options
    head = (
        f"`make chaos SECONDS={o.seconds:g} SEED={o.seed} RATE={o.rate:g}` on {datetime.now(UTC):%Y-%m-%d},"
        f" {describe_machine()}; lease {o.lease:g} s; {result.seconds / 60:.0f} minutes with start and check."
        f" **{verdict(result)}**"
    )
    lines = [head, "", "| fault | times |", "| --- | --- |"]
    lines += [f"| {name} | {said} |" for name, said in faults(result, has_disk=has_disk)]
    lines += ["", "| what | found |", "| --- | --- |", *(f"| {name} | {said} |" for name, said in rows(result))]
    put("run", "\n".join(lines))


def put(mark: str, text: str, page: Path = PAGE) -> None:
    """Replace what stands between a mark's begin and end."""
    begin, end = f"<!-- {mark}: written by tests/chaos -->", f"<!-- end of {mark} -->"
    before = page.read_text()
    after = re.sub(
        f"{re.escape(begin)}.*?{re.escape(end)}", lambda _: f"{begin}\n\n{text}\n\n{end}", before, flags=re.DOTALL
    )
    if begin not in before:
        raise ValueError(f"{page} has no place for {mark}")
    page.write_text(after)


def describe_machine() -> str:
    return f"{os.cpu_count()} cores, {platform.system()}"
