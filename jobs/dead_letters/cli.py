"""What `manage.py dead_letters` understands and says. Everything it does is a call of services or selectors."""

from __future__ import annotations

import time
from argparse import ArgumentParser
from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from jobs.dead_letters import preflight, selectors, services, store
from jobs.dead_letters.acts import ACTS, Act
from jobs.dead_letters.models import DeadLetter, Redrive
from jobs.dead_letters.selection import Selection
from jobs.messages import dumps
from jobs.words import span, utc

Say = Callable[[str], object]
SELECTING = {
    "ids": "letters by number, for example 12,13",
    "fingerprint": "letters of one kind, as `groups` shows it",
    "subscription": "of one subscription",
    "origin": "from one origin, such as a merchant",
    "error": "of one class of error",
    "event_id": "of one event",
    "since": "dead-lettered from this time on, for example 2026-03-14T09:00Z",
    "until": "dead-lettered up to this time",
}
ASKED: dict[str, tuple[Callable[[str], Any], str]] = {
    "told": (str, "who knows that letters older than the ledger will be processed again"),
    "rate_per_second": (int, "letters a second"),
    "stop_share": (float, "stop by itself when more than this share fails again"),
    "wake_at": (lambda text: Selection.from_query({"since": text}).since, "when it is to be decided, with its zone"),
    "to": (str, "who is to decide"),
}


def add_arguments(parser: ArgumentParser) -> None:
    parser.add_argument("--json", action="store_true", help="answer in JSON, one document")
    commands = parser.add_subparsers(dest="what", required=True, metavar="")
    groups = commands.add_parser("groups", help="the kinds of letters, those seen last first")
    groups.add_argument("--all", action="store_true", help="also those that nobody needs to decide about")
    _selecting(commands.add_parser("list", help="letters, newest first"), decision=True)
    commands.add_parser("show", help="one letter's case file").add_argument("letter", type=int)
    for act in ACTS.values():
        one = commands.add_parser(act.name, help=act.meaning)
        _selecting(one)
        one.add_argument("--dry-run", action="store_true", help="say what would be done, and do nothing")
        one.add_argument("--by", default="", help="who decides")
        one.add_argument("--note", default="", help="why")
        for name in act.asks:
            read, words = ASKED[name]
            one.add_argument(f"--{name.replace('_', '-')}", type=_reader(read), help=words)
        if act.redrives:
            one.add_argument("--wait", action="store_true", help="show its progress until it ends")
    for name, words in (("progress", "follow a redrive until it ends"), ("stop", "send no more of a redrive")):
        one = commands.add_parser(name, help=words)
        one.add_argument("redrive", type=int)
        if name == "stop":
            one.add_argument("--by", default="", help="who stops it")
            one.add_argument("--note", default="", help="why")


def _reader(read: Callable[[str], Any]) -> Callable[[str], Any]:
    def reader(text: str) -> Any:
        return read(text)

    reader.__name__ = "value"  # argparse says “invalid value”
    return reader


def _selecting(parser: ArgumentParser, *, decision: bool = False) -> None:
    for name, words in SELECTING.items():
        parser.add_argument(f"--{name.replace('_', '-')}", default="", help=words)
    if decision:
        parser.add_argument("--decision", default="open", help="open, or one of the decisions; 'any' for all")


@dataclass
class Answers:
    """Carries one command out. `say`: a line for people; `tell`: progress, apart from the answer."""

    json: bool
    say: Say
    tell: Say
    pause: Callable[[float], object] = time.sleep

    def run(self, what: str, options: dict[str, Any], now: datetime) -> None:
        """Raises ValueError in words."""
        match what:
            case "groups":
                self._groups(now, open_only=not options["all"])
            case "list":
                self._list({**options, "decision": "" if options["decision"] == "any" else options["decision"]})
            case "show":
                self._show(options["letter"], now)
            case "progress":
                self._follow(options["redrive"])
            case "stop":
                stopped = services.stop(redrive_id=options["redrive"], by=options["by"], note=options["note"], now=now)
                self._answer({"stopped": stopped}, "It stops." if stopped else "It is not running.")
            case _:
                self._act(ACTS[what], options, now)

    def _act(self, act: Act, options: dict[str, Any], now: datetime) -> None:
        # Whatever is buried from here on is not in it: what is counted is what is done.
        selection = Selection.from_query({**options, "up_to": store.last_id() or 1})
        if options["dry_run"]:
            self._dry_run(act, selection, now)
            return
        given = {name: options[name] for name in act.asks if options[name] is not None}
        done = act.do(selection=selection, by=options["by"], note=options["note"], now=now, **given)
        letters, left_out = len(done.ids), done.left_out
        while done.rest and not act.redrives:
            self.tell(f"{letters:,} letters; going on.")
            done = act.do(selection=done.rest, by=options["by"], note=options["note"], now=now, **given)
            letters, left_out = letters + len(done.ids), left_out + done.left_out
        answer = {"action": act.name, "letters": letters, "left_out": left_out}
        words = f"{act.label}: {letters:,} letters." + (f" {left_out:,} left out." if left_out else "")
        if done.redrive is None:
            self._answer(answer, words)
            return
        if done.rest:
            self.tell("There are more. When this one has ended, the same command takes the next ones.")
        if options["wait"]:
            self._follow(done.redrive.pk)
        else:
            more = f" It is redrive {done.redrive.pk}: `dead_letters progress {done.redrive.pk}` follows it."
            self._answer({**answer, "redrive": done.redrive.pk}, words + more)

    def _dry_run(self, act: Act, selection: Selection, now: datetime) -> None:
        if act.redrives:
            found = preflight.look(selection, kind=act.redrives, now=now)
            extra = [f"{found.superseded:,} are superseded"] * bool(found.superseded)
            extra += [f"{found.in_ledger:,} are in the ledger already"] * bool(found.in_ledger)
            extra += [f"{found.old:,} are older than the ledger"] * bool(found.old)
            self._answer(found.as_dict(), " ".join([found.in_words, *[f"{words}." for words in extra]]))
        else:
            count = store.count_open(selection, most=10**9)
            self._answer(
                {"action": act.name, "letters": count}, f"{act.label}: {count:,} letters wait. Nothing was done."
            )

    def _follow(self, redrive_id: int) -> None:
        said = ""
        while True:
            run = Redrive.objects.filter(pk=redrive_id).first()
            if run is None:
                raise ValueError(f"redrive: there is no redrive {redrive_id}.")
            if run.ended_at:
                break
            if said != (said := counted(run)):
                self.tell(said)
            self.pause(0.5)
        because = f" {run.stopped_because}." if run.stopped_because else ""
        facts = {"redrive": run.pk, "state": run.state, "counts": run.counts, "because": run.stopped_because}
        self._answer(facts, f"{counted(run)}: {run.get_state_display()}.{because}")

    def _groups(self, now: datetime, *, open_only: bool) -> None:
        found = selectors.groups(open_only=open_only, now=now)
        lines = [
            f"{g.fingerprint}  {g.waiting:>7,} of {g.count:,} wait  {g.subscription}  last {span(now - g.last)} ago  "
            f"from {', '.join(g.some_origins) or 'nobody named'}\n    {g.error_class}: {g.reason[:150]}"
            for g in found
        ]
        self._answer([g.as_dict() for g in found], "\n".join(lines) or "No dead letter waits for a decision.")

    def _list(self, options: dict[str, Any]) -> None:
        found = selectors.page(Selection.from_query(options)).letters
        lines = [
            f"{letter.pk:>8}  {utc(letter.dead_lettered_at)}  {letter.subscription_name}  {letter.event_id}  "
            f"{letter.get_decision_display() or 'waits'}  {letter.reason[:80]}"
            for letter in found
        ]
        rows = [
            {"id": x.pk, "event_id": x.event_id, "subscription": x.subscription_name, "decision": x.decision,
             "reason": x.reason, "origin": x.origin, "dead_lettered_at": x.dead_lettered_at.isoformat()}
            for x in found
        ]  # fmt: skip
        self._answer(rows, "\n".join(lines) or "No letter is like this.")

    def _show(self, letter_id: int, now: datetime) -> None:
        letter = DeadLetter.objects.filter(pk=letter_id).first()
        if letter is None:
            raise ValueError(f"letter: there is no dead letter {letter_id}.")
        case = selectors.case_file(letter, now=now)
        wrong = [f"  {f.name}: {f.wrong}; wanted {f.wanted}, found {f.found}" for f in case.fields if f.wrong]
        steps = [f"  {utc(at)}  {what}" for at, what in case.journey]
        facts = {
            "id": letter.pk, "event_id": letter.event_id, "subscription": letter.subscription_name,
            "reason": letter.reason, "receive_count": letter.receive_count, "failures": letter.failures,
            "body": case.body, "wrong": [vars(f) for f in case.fields if f.wrong], "decision": letter.decision,
            "raw_body": case.raw.text if case.raw else None, "superseded": case.superseded,
            "journey": [[at.isoformat(), what] for at, what in case.journey],
        }  # fmt: skip
        text = [f"{letter}", f"{letter.error_class}: {letter.reason}", f"Received {letter.receive_count} times.",
                case.body, "Departs from the schema:" if wrong else "", *wrong, "Journey:", *steps]  # fmt: skip
        self._answer(facts, "\n".join(line for line in text if line))

    def _answer(self, facts: Any, words: str) -> None:
        self.say(dumps(facts) if self.json else words)


def counted(run: Redrive) -> str:
    """“338 of 341: 328 applied, 10 in the queue”."""
    from_here = {name: count for name, count in sorted(run.counts.items()) if count}
    settled = sum(count for name, count in from_here.items() if name not in ("queued", "sent"))
    told = ", ".join(f"{count:,} {name.replace('_', ' ')}" for name, count in from_here.items())
    return f"{settled:,} of {run.total:,}" + (f": {told}" if told else "")
