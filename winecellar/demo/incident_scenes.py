"""The scenes of `make demo-incident`: detect, diagnose, decide, redrive; each a few lines of the real thing's answers.

Guarantee: whatever it starts is ended. Raises FailedError where the story does not come out as the course tells it.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from datetime import timedelta
from pathlib import Path

from django.core.management import call_command
from django.db import connection
from django.utils import timezone

from jobs.alarms import evaluation
from jobs.dead_letters import preflight, selectors, services, store
from jobs.dead_letters.cli import counted
from jobs.dead_letters.models import Decision, Redrive
from jobs.dead_letters.selection import Selection, siblings
from jobs.models import DeadLetter, Incident
from pricing.models import Merchant, PriceHistory
from winecellar.accounts.models import User
from winecellar.demo import catalogue, ports
from winecellar.demo.broken_release import BROKEN, MESSAGES, release_the_broken_adapter
from winecellar.demo.children import ChildDiedError, Children
from winecellar.demo.stop import StopWish
from winecellar.demo.voice import Voice

SECONDS = 90.0
ON_CALL = "price-pipeline on-call"


class FailedError(Exception):
    """The story did not come out as it is told."""


def play(*, port: int, folder: Path, stop: StopWish) -> None:
    say = Voice()
    with (folder / "lock").open("w") as lock:
        children = Children(folder, lock)
        try:
            children.start_postgres()
            _fresh_database()
            environment = {"WORKER_LANES": "2"}
            children.start("worker", ["manage.py", "run_worker"], environment)
            gunicorn = ["-m", "gunicorn", "winecellar.wsgi", "-c", "winecellar/gunicorn_conf.py"]
            children.start("web server", [*gunicorn, "--bind", f"{ports.HOST}:{port}"], environment)
            Scenes(say, stop, children, f"http://{ports.HOST}:{port}").play()
        except ChildDiedError as error:
            raise FailedError(str(error)) from error
        finally:
            connection.close()
            children.stop(lambda: not stop.urgent)


def _fresh_database() -> None:
    """Its own, from the last time: emptied, the queue's tables too. The audit log stays, as it must."""
    call_command("migrate", verbosity=0)
    call_command("flush", verbosity=0, interactive=False)
    with connection.cursor() as cursor:
        cursor.execute("TRUNCATE jobs_message, jobs_delivery, processed_messages")
    Merchant.objects.create(id="mch_082", name="Merchant X")
    operator = catalogue.OPERATOR
    User.objects.create_superuser(operator.email, operator.password)


class Scenes:
    def __init__(self, say: Voice, stop: StopWish, children: Children, address: str) -> None:
        self.say, self.stop, self.children = say, stop, children
        self.admin = f"{address}/admin/jobs/deadletter/"

    def play(self) -> None:
        for scene in (self.spoil, self.detect, self.diagnose, self.too_early, self.redrive, self.learn):
            if self.stop.requested:
                return
            scene()

    def spoil(self) -> None:
        operator = catalogue.OPERATOR
        self._title("A release goes wrong")
        self.say(
            f"  Feed adapter 4.1 is deployed. For twenty minutes it loses new_price_usd: {MESSAGES} events of mch_082."
        )
        release_the_broken_adapter(Merchant.objects.get(pk="mch_082"))
        self._until(lambda: self._buried() == MESSAGES, "all are dead-lettered")
        self.say(
            f"  price-history took each once, found it could never pass, and buried it: {self._buried()} dead letters."
        )
        self.say.step("\n  The admin", f"{self.admin} as {operator.email}, password {operator.password}")

    def detect(self) -> None:
        self._title("Detect")
        self.say("  A quarter of an hour passes.")
        evaluation.evaluate(timezone.now() + timedelta(minutes=16))
        for incident in Incident.objects.filter(subject="price-history", opened_at__isnull=False):
            self.say(f"  {incident.get_severity_display().upper():<8}{incident.alarm}: {incident.summary}")
        self._check(Incident.objects.filter(alarm="dead-letters-undecided").exists(), "nobody was paged")

    def diagnose(self) -> None:
        self._title("Diagnose, without consuming anything")
        letter = DeadLetter.objects.filter(subscription_name="price-history").earliest("id")
        case = selectors.case_file(letter, now=timezone.now())
        self.say(f"  {letter.event_id}, received {letter.receive_count} time: {letter.reason}")
        for field in case.fields:
            if field.wrong:
                self.say(f"    {field.name}: {field.wrong}; wanted {field.wanted}, found {field.found}")
        self.say(f"  From mch_082 within twenty minutes: {self._waiting():,} alike. Not a message: a release.")
        self.say(f"  Look: {self.admin}{letter.pk}/change/")

    def too_early(self) -> None:
        self._title("Redrive before the fix? It stops by itself")
        self.say(f"  {preflight.look(self._near, kind=Decision.REDRIVE, now=timezone.now()).in_words}")
        run = self._redrive(Decision.REDRIVE, "let us just try", share=0.1)
        self.say(f"  {counted(run)}. Stopped: {run.stopped_because}.")
        self._check(run.state == Redrive.State.STOPPED and self._waiting() == MESSAGES, "it did not stop")

    def redrive(self) -> None:
        self._title("Adapter 4.2 is deployed: read the raw bodies again, and redrive")
        found = preflight.look(self._near, kind=Decision.READAPT, now=timezone.now())
        self.say(f"  {found.in_words}")
        run = self._redrive(Decision.READAPT, "adapter 4.2 reads new_price_usd", share=0.5)
        self.say(f"  {counted(run)}: {run.get_state_display()}.")
        rows, applied = PriceHistory.objects.count(), run.counts.get("applied", 0)
        self.say(f"  {rows} prices in the history, each once; {self._waiting()} letters wait, each with its reason.")
        self._check(
            rows == applied == MESSAGES - BROKEN and self._waiting() == BROKEN, "the figures are not the course's"
        )

    def learn(self) -> None:
        self._title("And the three")
        waiting = Selection(subscription="price-history")
        done = services.discard(selection=waiting, by=ON_CALL, note="asked mch_082: sent again today", now=store.now())
        self.say(
            f"  Discarded with a record: {len(done.ids)}. They stay for the audit; retention removes them in 14 days."
        )
        self.say("  What to do when it is not a demo: docs/runbooks/dead-letters.md")

    @property
    def _near(self) -> Selection:
        letter = DeadLetter.objects.filter(subscription_name="price-history").earliest("id")
        near = siblings(letter.origin, letter.dead_lettered_at, timedelta(minutes=20))
        return Selection(subscription="price-history", origin=near.origin, since=near.since, until=near.until)

    def _redrive(self, kind: Decision, note: str, *, share: float) -> Redrive:
        done = services.redrive(
            selection=self._near, kind=kind, by=ON_CALL, note=note, stop_share=share, now=store.now()
        )
        self._check(done.redrive is not None, "none of them waits any more")
        assert done.redrive is not None
        run, said = done.redrive, ""

        def ended() -> bool:
            nonlocal said
            run.refresh_from_db()
            if counted(run) != said:
                said = counted(run)
                self.say(f"    {said}")
            return run.ended_at is not None

        self._until(ended, "the redrive ends")
        return run

    def _buried(self) -> int:
        return DeadLetter.objects.filter(subscription_name="price-history").count()

    def _waiting(self) -> int:
        return DeadLetter.objects.filter(subscription_name="price-history", waits_from__isnull=False).count()

    def _until(self, true: Callable[[], bool], what: str) -> None:
        deadline = timezone.now() + timedelta(seconds=SECONDS)
        while not true():
            self.children.check()
            if timezone.now() > deadline:
                raise FailedError(f"After {SECONDS:.0f} seconds it is still not so that {what}.")
            if self.stop.wait(0.2):
                raise KeyboardInterrupt

    def _check(self, true: bool, otherwise: str) -> None:
        if not true:
            raise FailedError(
                f"Not as the course tells it: {otherwise}. Did you decide in the admin? Then that is why."
            )

    def _title(self, text: str) -> None:
        if sys.stdin.isatty() and sys.stdout.isatty():
            self.say("\n  Enter goes on.")
            sys.stdin.readline()
        self.say(f"\n{text}", "bold")
