"""The payment provider under chaos: the simulated one (winecellar/demo/payments_api.py) as a process of its own, whose
customers and cards are there from the beginning, whose answers of “pending” end, and whose reports come as they like.

`Payments` starts it and tells it on its standard input, a line each, how it behaves (payments_script.py), or to send
its last reports again. Guarantee: it keeps its books for the whole run, as a provider does; it ends with its input.
"""

from __future__ import annotations

import argparse
import heapq
import json
import random
import signal
import subprocess
import sys
import threading
import time
import urllib.request
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from pathlib import Path

from winecellar.demo.mail_script import Behaviour
from winecellar.demo.payments_api import HasNext, PaymentServer, signed
from winecellar.demo.payments_bank import Bank, Document
from winecellar.demo.payments_script import WELL, PaymentScript
from winecellar.embedded import ROOT

SECRET = "whsec_chaos"
LATE_SECONDS = 1.0  # after which the last of some reports comes; the first may be there before the answer
TWICE = 0.2  # so many of them come two times
LONGEST_WAIT = 5.0  # between two tries of a report that was not taken
REMEMBERED = 40  # reports that are sent again when somebody wants it so
PENDING_SECONDS = 3.0
NO, COMES_BACK = 0.25, 0.1  # shares: of what was pending, of refunds that seemed well


def customer(number: int) -> tuple[str, str]:
    """The ids of a person's customer and card."""
    return f"cus_{number}", f"pm_{number}"


def declines(number: int) -> str:
    """What the bank says of this card; "": it pays. A few never do."""
    return {13: "expired_card", 14: "insufficient_funds"}.get(number % 15, "")


class Reports:
    """Posts each event within a second: in no order, some twice, to one web server or the other, until it is taken."""

    def __init__(self, addresses: Sequence[str], source: random.Random) -> None:
        self._addresses, self._source = addresses, source
        self._due: list[tuple[float, int, int, Document]] = []  # when, number, tries, event
        self._last: list[Document] = []
        self._changed = threading.Condition()
        self._number = self._under_way = 0
        threading.Thread(target=self._run, daemon=True).start()

    def __call__(self, event: Document) -> None:
        with self._changed:
            self._last = [*self._last[1 - REMEMBERED :], event]
            for _ in range(2 if self._source.random() < TWICE else 1):
                self._put(event)

    def again(self) -> None:
        """The last ones once more, twice each."""
        with self._changed:
            for event in self._last * 2:
                self._put(event)

    def waiting(self) -> int:
        with self._changed:
            return len(self._due) + self._under_way

    def _put(self, event: Document, *, tries: int = 0) -> None:
        wait = min(self._source.random() * LATE_SECONDS * 2**tries, LONGEST_WAIT)
        self._number += 1
        heapq.heappush(self._due, (time.monotonic() + wait, self._number, tries, event))
        self._changed.notify()

    def _run(self) -> None:
        with ThreadPoolExecutor(8) as pool:
            while True:
                with self._changed:
                    wait = self._due[0][0] - time.monotonic() if self._due else None
                    if wait is None or wait > 0:
                        self._changed.wait(wait)
                        continue
                    _, number, tries, event = heapq.heappop(self._due)
                    self._under_way += 1
                pool.submit(self._post, number, tries, event)

    def _post(self, number: int, tries: int, event: Document) -> None:
        body, signature = signed(event, SECRET)
        headers = {"Content-Type": "application/json", "Stripe-Signature": signature}
        address = self._addresses[(number + tries) % len(self._addresses)]
        taken = False
        with suppress(OSError):  # a status above 400 is one too
            urllib.request.urlopen(urllib.request.Request(address, body, headers), timeout=10).close()
            taken = True
        with self._changed:
            self._under_way -= 1
            if not taken:
                self._put(event, tries=min(tries + 1, 5))


class Scripts:
    """What the provider does now, and before that what was put first. Threads may share it."""

    def __init__(self) -> None:
        self.first: HasNext = PaymentScript()
        self.then: HasNext = PaymentScript()

    def next(self, request: str) -> Behaviour:
        found = self.first.next(request)
        return found if found is not WELL else self.then.next(request)


class Banks:
    """Behind the provider the buyers' banks: what was pending ends well or not; some refunds come back days later."""

    def __init__(self, bank: Bank, source: random.Random) -> None:
        self._bank, self._source = bank, source
        self._since: dict[str, float] = {}  # when each was first seen pending
        self._sure: set[str] = set()  # refunds that stay what they are
        self.calm = False  # from now on all ends well

    def look(self) -> None:
        with self._bank.lock:
            for pk in [pk for pk, each in self._bank.intents.items() if each["status"] == "processing"]:
                if self._is_over(pk):
                    self._bank.fail(pk, "card_declined") if self._happens(NO) else self._bank.succeed(pk)
            for pk, refund in list(self._bank.refunds.items()):
                if refund["status"] == "pending" and self._is_over(pk):
                    self._sure.add(pk)
                    self._bank.end_refund(pk, "failed" if self._happens(NO) else "succeeded")
                elif refund["status"] == "succeeded" and pk not in self._sure and self._is_over(pk):
                    self._sure.add(pk)
                    if self._happens(COMES_BACK):
                        self._bank.end_refund(pk, "failed")

    def waiting(self) -> int:
        """How many things still can change."""
        with self._bank.lock:
            refunds = [pk for pk, each in self._bank.refunds.items() if each["status"] != "failed"]
            pending = sum(each["status"] == "processing" for each in self._bank.intents.values())
            return pending + sum(pk not in self._sure for pk in refunds)

    def _is_over(self, pk: str) -> bool:
        return time.monotonic() - self._since.setdefault(pk, time.monotonic()) > PENDING_SECONDS

    def _happens(self, share: float) -> bool:
        return not self.calm and self._source.random() < share


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m tests.chaos.bank", description=__doc__)
    parser.add_argument("--log", type=Path, required=True)
    parser.add_argument("--people", type=int, required=True)
    parser.add_argument("--report-to", nargs="+", required=True)
    parser.add_argument("--seed", default="")
    chosen = parser.parse_args()
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    reports = Reports(chosen.report_to, random.Random(f"{chosen.seed}:reports"))
    bank = Bank(chosen.log, on_event=reports)
    for number in range(chosen.people):
        owner, card = customer(number)
        bank.customers[owner] = {"id": owner}
        bank.cards[card] = {"id": card, "declines": declines(number)}
    banks = Banks(bank, random.Random(f"{chosen.seed}:banks"))
    scripts = Scripts()
    server = PaymentServer(0, bank, scripts).start()
    print(json.dumps({"url": server.url}), flush=True)
    threading.Thread(target=_watch, args=(banks,), daemon=True).start()
    for line in sys.stdin:
        command, _, rest = line.strip().partition(" ")
        match command:
            case "script":
                scripts.then = PaymentScript(rest)
            case "first":
                scripts.first = PaymentScript(rest)
            case "calm":
                scripts.first = scripts.then = PaymentScript()
                banks.calm = True
            case "again":
                reports.again()
            case "waiting":
                print(reports.waiting() + banks.waiting(), flush=True)


def _watch(banks: Banks) -> None:
    while True:
        time.sleep(0.2)
        banks.look()


class Payments:
    """The process, as the run has it. `log`: the provider's ledger."""

    def __init__(self, folder: Path, *, people: int, ports: Sequence[int], seed: str) -> None:
        self.log = folder / "money.jsonl"
        self._lock = threading.Lock()
        addresses = [f"http://127.0.0.1:{port}/payments/reports" for port in ports]
        command = ["-m", "tests.chaos.bank", "--log", str(self.log), "--people", str(people), "--seed", seed]
        with (folder / "payments.log").open("ab") as log:
            self.process = subprocess.Popen(
                [sys.executable, *command, "--report-to", *addresses],
                cwd=ROOT,
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=log,
                text=True,
                start_new_session=True,
            )
        assert self.process.stdout is not None
        self.url = str(json.loads(self.process.stdout.readline())["url"])

    def tell(self, line: str) -> None:
        with self._lock:
            self._write(line)

    def waiting(self) -> int:
        """What is still to come of it: reports that nobody took, payments and refunds that may still turn."""
        with self._lock:
            self._write("waiting")
            assert self.process.stdout is not None
            return int(self.process.stdout.readline())

    def stop(self) -> None:
        self.process.send_signal(signal.SIGCONT)
        self.process.terminate()
        self.process.wait()

    def _write(self, line: str) -> None:
        assert self.process.stdin is not None
        self.process.stdin.write(f"{line}\n")
        self.process.stdin.flush()


if __name__ == "__main__":
    main()
