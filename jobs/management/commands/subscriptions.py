from argparse import ArgumentParser
from datetime import datetime, timedelta
from typing import Any

from django.core.management.base import BaseCommand, CommandError
from django.utils import timezone

from jobs import breaker, catalog, control
from jobs.gauges.reading import subscriptions
from jobs.models import Breaker, Subscription
from jobs.schedule import store

LIMITS = ("batch", "concurrency", "rate_per_second")


class Command(BaseCommand):
    help = (
        "Show the subscriptions, or change one: pause, resume, retry, limit, repartition, replay. No restart is needed."
    )

    def add_arguments(self, parser: ArgumentParser) -> None:
        actions = parser.add_subparsers(dest="action", title="actions", metavar="")
        for action, text in [("pause", "stop handing out its deliveries"), ("resume", "hand them out again")]:
            actions.add_parser(action, help=text).add_argument("name")
        retry = actions.add_parser("retry", help="try another side again at once that is away, such as mail")
        retry.add_argument("breaker")
        limit = actions.add_parser("limit", help="set a limit; 'route' leaves it to the code")
        limit.add_argument("name")
        limit.add_argument("--batch", type=_whole)
        limit.add_argument("--concurrency", type=_whole)
        limit.add_argument("--rate-per-second", type=_number)
        partitions = actions.add_parser("repartition", help="spread its keys over more partitions, keeping their order")
        partitions.add_argument("name")
        partitions.add_argument("partitions", type=int)
        replay = actions.add_parser("replay", help="queue what the log holds since a time and it has not applied")
        replay.add_argument("name")
        replay.add_argument("--since", required=True, type=_time, help="for example 2026-03-14T00:00Z")

    def handle(self, *, action: str | None, **options: Any) -> None:
        name = options.get("name")
        if name and not Subscription.objects.filter(name=name).exists():
            known = ", ".join(Subscription.objects.values_list("name", flat=True))
            raise CommandError(f"No such subscription: {name}. There are: {known}.")
        try:
            self._act(action, options)
        except ValueError as error:
            raise CommandError(str(error)) from None
        self._show()

    def _act(self, action: str | None, options: dict[str, Any]) -> None:
        match action:
            case "pause":
                control.pause(name=options["name"])
            case "resume":
                control.resume(name=options["name"])
            case "retry":
                if not breaker.close(options["breaker"]):
                    raise ValueError(f"Nothing is known to be away by the name of {options['breaker']}.")
            case "limit":
                given = {f: options[f] for f in LIMITS if options[f] is not None}
                control.limit(name=options["name"], **{f: None if v == "route" else v for f, v in given.items()})
            case "repartition":
                moved = control.repartition(name=options["name"], partitions=options["partitions"])
                self.stdout.write(f"{moved} waiting deliveries moved")
            case "replay":
                queued = control.replay(name=options["name"], since=options["since"], progress=self._progress)
                self.stdout.write(f"{queued} messages queued")

    def _show(self) -> None:
        gauges = {gauge.name: gauge for gauge in subscriptions(store.now())}
        for s in Subscription.objects.order_by("name"):
            gauge = gauges[s.name]
            age = f"oldest {gauge.age.total_seconds():.0f} s" if gauge.depth else "empty"
            limits = ", ".join(f"{field} {value}" for field in LIMITS if (value := getattr(s, field)) is not None)
            self.stdout.write(
                f"{s.name:<24}{'paused' if s.paused_at else 'active':<8}{gauge.depth:>9} waiting  "
                f"{gauge.total('in_flight'):>6} in flight  {age:<16}{s.partitions:>4} partitions  {limits}"
            )

        for b in Breaker.objects.filter(opened_at__isnull=False):
            self.stdout.write(
                f"{b.name} is away since {b.opened_at:%H:%M:%S}, tried again {b.probe_at:%H:%M:%S} UTC: {b.reason}"
            )
        for type_, count in catalog.unsubscribed(timezone.now() - timedelta(days=1)).items():
            self.stdout.write(
                f"{count} messages of type {type_} in the last day have no subscription; the log has them"
            )

    def _progress(self, queued: int) -> None:
        self.stderr.write(f"{queued} queued")


def _whole(text: str) -> int | str:
    return text if text == "route" else int(text)


def _number(text: str) -> float | str:
    return text if text == "route" else float(text)


def _time(text: str) -> datetime:
    value = datetime.fromisoformat(text.replace("Z", "+00:00"))
    if value.tzinfo is None:
        raise ValueError("a time needs its zone, for example 2026-03-14T00:00Z")
    return value
