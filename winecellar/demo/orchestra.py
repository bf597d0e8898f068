"""The demo from its first line to its last: start everything, let prices travel, say what came of it, end everything.

Guarantee: nothing that was started outlives `run`, however it ends. Django must be set up. Called by __main__.py.
"""

from __future__ import annotations

import secrets
import time
from dataclasses import dataclass

from django.conf import settings
from django.db import connection

from pricing.keys import TooManyKeysError
from winecellar import embedded
from winecellar.demo import catalogue, ports, standing, summary
from winecellar.demo.children import ChildDiedError, Children
from winecellar.demo.feed_client import FeedClient
from winecellar.demo.feeding import SECONDS_BETWEEN_NIGHTS, Feeding
from winecellar.demo.folder import alone_in, run_folder
from winecellar.demo.load import endings
from winecellar.demo.mail_log import MailLog, MailTaken
from winecellar.demo.reckoning import latencies, reckon
from winecellar.demo.screen import Names, Screen, mail_line, open_screen
from winecellar.demo.startup import NotReadyError, Site, start_site
from winecellar.demo.stop import StopWish
from winecellar.demo.tally import Tally
from winecellar.demo.voice import Voice
from winecellar.demo.waiting import ToldToStopError, Waiting

WELL, FAILED, UNUSABLE, INTERRUPTED = 0, 1, 2, 130
DRAIN_SECONDS = 20.0
FRAME_SECONDS = 0.2


@dataclass(frozen=True)
class Options:
    """`seconds` None: until told to stop. `rate`: ordinary price changes per second. `seed` None: any."""

    port: int
    seconds: float | None
    seed: int | None
    rate: float


def run(options: Options, stop: StopWish) -> int:
    """Run the demo. The exit code: 0 well, 1 something failed, 2 it cannot start, 130 stopped before its end."""
    say = Voice()
    if settings.PRODUCTION:
        say("The demo brings people with known passwords, so it does not run with WINECELLAR_ENV=production.")
        return UNUSABLE
    folder = run_folder()
    with alone_in(folder) as lock:
        if lock is None:
            say("A demo is running here already, or just ending. Stop it first, with Ctrl-C where it runs.")
            return UNUSABLE
        if not ports.is_free(options.port):
            other = ports.next_free(options.port)
            say(f"Port {options.port} is taken by another program. Choose another one: make demo PORT={other or '…'}")
            return UNUSABLE
        return Demo(options, stop, say, Children(folder, lock)).run()


class Demo:
    """One run, for which `run` is called once."""

    def __init__(self, options: Options, stop: StopWish, say: Voice, children: Children) -> None:
        self._options, self._stop, self._say, self._children = options, stop, say, children
        self._seed = secrets.randbelow(1_000_000) if options.seed is None else options.seed
        self._waiting = Waiting(stop, self._children)
        self._tally = Tally()
        self._mails: list[MailTaken] = []
        self._early_mails: list[MailTaken] = []
        self._mail_log = MailLog(children.folder / "mail.jsonl")
        self._names = Names(standing.wine_names(), {merchant.id: merchant.name for merchant in catalogue.MERCHANTS})
        self._screen: Screen | None = None
        self._feeding: Feeding | None = None

    def run(self) -> int:
        try:
            return self._start_feed_conclude()
        except ToldToStopError:
            self._close_screen()
            return INTERRUPTED if self._feeding is None or self._options.seconds else self._take_leave()
        except (ChildDiedError, NotReadyError, TooManyKeysError) as failure:
            self._close_screen()
            self._say(f"\n{failure}")
            return FAILED
        finally:
            self._close_screen()
            self._end_everything()

    def _start_feed_conclude(self) -> int:
        self._say("winecellar demo", "bold")
        self._say()
        site = start_site(
            port=self._options.port,
            children=self._children,
            waiting=self._waiting,
            say=self._say.step,
        )
        before = standing.standing_now()
        self._introduce(site)
        self._mail_log.read_new()  # those of first checks answer no price
        began = time.monotonic()
        self._feed(site)
        seconds = time.monotonic() - began
        settled = self._waiting.until(self._settled, seconds=DRAIN_SECONDS)
        self._show()
        self._close_screen()
        return self._conclude(before, seconds, settled=settled)

    def _introduce(self, site: Site) -> None:
        collector, operator = catalogue.COLLECTOR, catalogue.OPERATOR
        self._say()
        self._say.step("The site", site.address)
        self._say.step("Sign in as", f"{collector.email}, password {collector.password}")
        self._say.step("The admin", f"{site.address}/admin/")
        self._say.step("Operate as", f"{operator.email}, password {operator.password}")
        self._say.step("Its mail", site.mail_address)
        self._say.step("Logs", f"{self._children.folder.relative_to(embedded.ROOT)}/")
        self._say()
        self._say(
            f"  {len(catalogue.MERCHANTS)} merchants send prices now. Every {SECONDS_BETWEEN_NIGHTS:.0f} seconds it is "
            "night, and one of them refreshes all it sells."
        )
        self._say("  The time beside an alert runs from the feed’s 202 to the mail server’s yes.")
        self._say()

    def _feed(self, site: Site) -> None:
        """Let the merchants send, and show it, for as long as it was asked for."""
        clients = {
            merchant_id: FeedClient(host=ports.HOST, port=site.port, key=key) for merchant_id, key in site.keys.items()
        }
        self._feeding = Feeding(
            seed=self._seed,
            rate=self._options.rate,
            listings=standing.listings_now(),
            endings=endings(),
            clients=clients,
            tally=self._tally,
        )
        self._screen = open_screen(self._say.console, self._say)
        self._feeding.start()
        self._waiting.until(self._show_frame, seconds=self._options.seconds or float("inf"), between=FRAME_SECONDS)
        self._feeding.finish()

    def _show_frame(self) -> bool:
        """For `until`: never the end of it."""
        self._show()
        return False

    def _settled(self) -> bool:
        """Whether every price was answered and every delivery acked."""
        self._show()
        return self._feeding is not None and not self._feeding.is_alive() and standing.waiting_deliveries() == 0

    def _show(self) -> None:
        new_mails = self._mail_log.read_new()
        self._mails += new_mails
        receipts = self._tally.new_receipts()
        # A mail may be faster than the 202 that is on its way to the merchant: then it is shown with the next frame.
        early = [mail for mail in new_mails if self._tally.accepted_at(mail.event_id) is None]
        ready = [*self._early_mails, *(mail for mail in new_mails if mail not in early)]
        self._early_mails = early
        if self._screen:
            prices = [line for receipt in receipts for line in self._names.lines(receipt)]
            mails = [mail_line(mail, self._tally.accepted_at(mail.event_id)) for mail in ready]
            self._screen.show(prices, mails, self._tally.totals(), len(self._mails))

    def _conclude(self, before: standing.Standing, seconds: float, *, settled: bool) -> int:
        alerts = standing.untouched_alerts(before)
        accepted = self._tally.accepted()
        figures = summary.Figures(
            seconds=seconds,
            seed=self._seed,
            totals=self._tally.totals(),
            acked=standing.acked_since(before.at),
            mails=len(self._mails),
            latencies=latencies(self._mails, {event_id: at for event_id, (_, at) in accepted.items()}),
            still_waiting=0 if settled else standing.waiting_deliveries(),
            dead_letters=standing.dead_letters_since(before.at),
            complaints=self._tally.complaints(),
        )
        result = reckon(
            alerts=alerts,
            prices=before.prices,
            acknowledged=accepted,
            log=standing.prices_in_log(before.at),
            superseded=standing.superseded_since(before.at, [alert.id for alert in alerts]),
            further_fall=settings.ALERT_FURTHER_FALL,
            mails=self._mails,
        )
        self._say()
        for line in summary.figures_in_words(figures):
            self._say(line)
        well, lines = summary.verdict_in_words(figures, result, before.owners, accepted)
        self._say()
        for line in lines:
            self._say(line, "bold green" if well else "bold red")
        return WELL if well else FAILED

    def _take_leave(self) -> int:
        """Ctrl-C is how an unbounded demo ends."""
        self._say()
        self._say(summary.totals_in_words(self._tally.totals(), len(self._mails)))
        return WELL

    def _close_screen(self) -> None:
        if self._screen:
            self._screen.close()
            self._screen = None

    def _end_everything(self) -> None:
        if self._feeding:
            self._feeding.abandon()
        connection.close()
        try:
            self._say("\nStopping what was started …", "dim")
        finally:  # even when nobody reads our output any more
            self._children.stop(patience=lambda: not self._stop.urgent)
        self._say("Stopped.", "dim")
