"""What goes wrong in a run, and when: a pure function of seed and length, so that a failure can be played again.

A strike says when, which fault, and every choice that it needs (which victim, for how long, in which way) as numbers
that were drawn here. faults.py carries strikes out; it draws nothing.
"""

from __future__ import annotations

import random
from collections.abc import Iterator
from dataclasses import dataclass

# Seconds between two strikes of a fault, on average, and how long one lasts at most. F numbers: docs/chaos.md.
# The first three give, in half an hour, 360 killed workers, 72 stopped servers and well over 300 ended backends.
RHYTHM: dict[str, tuple[float, float]] = {
    "kill_worker": (5.0, 0.0),  # F3
    "stop_postgres": (25.0, 3.0),  # F8, F9
    "end_backends": (5.0, 0.0),  # F6
    "tell_worker_to_stop": (45.0, 0.0),  # F4
    "pause_worker": (60.0, 2.0),  # F5: past its lease by so much
    "cancel_backends": (20.0, 0.0),  # F7
    "short_patience": (120.0, 3.0),  # F7
    "break_network": (30.0, 6.0),  # F2, F10
    "take_all_slots": (120.0, 3.0),  # F11
    "read_only": (150.0, 3.0),  # F14
    "fill_disk": (180.0, 3.0),  # F13, where a file system of its own can be had
    "deadlock": (40.0, 0.5),  # F15
    "lock_a_wine": (40.0, 4.0),  # F16
    "pin_horizon": (90.0, 20.0),  # F17
    "no_vacuum": (200.0, 30.0),  # F18
    "kill_scheduler": (120.0, 0.0),  # F22, F23
    "kill_web": (90.0, 0.0),
    "kill_watchman": (300.0, 0.0),
    "provider": (25.0, 15.0),  # F25
    "redrive": (15.0, 0.0),  # F30
    "rude_client": (8.0, 5.0),  # F34
    "few_files": (120.0, 5.0),  # F35
    "erase_account": (20.0, 0.0),  # F36
    "payments": (12.0, 0.0),  # F26, as are those below: payment_faults.py
    "freeze_payments": (120.0, 8.0),
    "repeat_reports": (30.0, 0.0),
    "operator": (15.0, 0.0),
}

MODES: dict[str, tuple[str, ...]] = {
    "stop_postgres": ("fast", "immediate", "kill -9"),
    "break_network": ("lose replies", "reset", "slow", "byte by byte", "black hole"),
    "kill_worker": ("worker", "worker", "worker", "supervisor"),
    "provider": (
        "500*20",
        "429:2*5, 503:1*5",
        "hang:8*4",
        "taken-hang:8*4",
        "taken-reset*6",
        "reset*6",
        "drip*2",
        "garbage*4",
        "brownout:10",
    ),
    # payments_script.py; what nobody asks for stays until the next one comes. A hang is longer than PAYMENT_TIMEOUT.
    "payments": (
        "confirm: decline*4",
        "open: hang:12*2; confirm: hang:12*3; look: hang:12",
        "open: taken-hang:12*2; confirm: taken-hang:12*3",
        "open: reset*3; confirm: reset*5; look: reset*2; cancel: reset",
        "open: taken-reset*3; confirm: taken-reset*5; refund: taken-reset*2",
        "open: 500*2; confirm: 500*4; look: 500*2; refund: 500",
        "open: taken-error*3; confirm: taken-error*5; refund: taken-error*2",
        "open: 429:2*3; confirm: 503:1*5; look: 401",
        "confirm: pending*6; refund: pending*2",
        "confirm: taken-reset*4; look: 503*8; refund: refund-fails*2",
    ),
    "operator": ("compensate", "compensate", "resume"),
    "rude_client": ("slow loris", "stops in the body", "does not wait", "does not wait"),
}
# Poison: how many of each kind in a hundred. What takes its worker with it costs five workers and five leases, what
# loops a processor for as long; the rest may be frequent.
POISON: dict[str, float] = {
    "permanent": 25,
    "transient": 20,
    "unknown": 15,
    "malformed": 10,
    "mendable": 19,
    "recursion": 4,
    "memory": 4,
    "sys.exit": 1,
    "exit": 0.9,
    "segfault": 0.8,
    "loop": 0.3,
}
POISON_SECONDS = 1.4  # between two, on average: 1,280 in half an hour


@dataclass(frozen=True)
class Strike:
    """`at` and `seconds` in seconds since the faults began; `choice` in [0, 1) picks a victim; `mode` a way."""

    at: float
    fault: str
    choice: float
    seconds: float
    mode: str = ""
    number: int = 0


@dataclass(frozen=True)
class Dose:
    """One poisonous message."""

    at: float
    kind: str


def strikes(seed: int, seconds: float) -> list[Strike]:
    """All strikes of a run in their order. In a short run, too, each fault strikes once and each mode is met early."""
    made = [strike for fault in RHYTHM for strike in _of(fault, seed, seconds)]
    return sorted(made, key=lambda strike: (strike.at, strike.fault))


def _of(fault: str, seed: int, seconds: float) -> Iterator[Strike]:
    source = random.Random(f"{seed}:{fault}")
    between, longest = RHYTHM[fault]
    modes = list(MODES.get(fault, ("",)))
    between = min(between, 0.8 * seconds / min(len(modes), 3))
    at = source.uniform(0.1, 0.9) * between
    number = 0
    while at < seconds:
        if number % len(modes) == 0:
            source.shuffle(modes)
        length = min(source.uniform(0.3, 1.0) * longest, seconds / 4)
        yield Strike(round(at, 3), fault, source.random(), round(length, 3), modes[number % len(modes)], number)
        number += 1
        at += source.uniform(0.5, 1.5) * between


def doses(seed: int, seconds: float) -> list[Dose]:
    """All poison of a run: first one of each kind, then by their shares."""
    source = random.Random(f"{seed}:poison")
    kinds = list(POISON)
    source.shuffle(kinds)
    at, made = 0.0, []
    first = min(POISON_SECONDS, 0.3 * seconds / len(kinds))
    for kind in kinds:
        at += first
        made.append(Dose(round(at, 3), kind))
    while (at := at + source.uniform(0.5, 1.5) * POISON_SECONDS) < seconds:
        made.append(Dose(round(at, 3), source.choices(list(POISON), list(POISON.values()))[0]))
    return made
