"""Each fault that strikes: what is done to the site. It heals itself before it returns, whatever happens meanwhile.

All that varies comes with the strike (plan.py). Where the victim is gone already, or the server away, nothing is done:
the history says so, and the report counts what was.
"""

from __future__ import annotations

import random
import resource
import signal
import socket
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path

import psycopg
from django.db import Error as DatabaseError
from django.db import connection
from django.utils import timezone

from jobs.dead_letters import services
from jobs.dead_letters.fingerprint import fingerprint
from jobs.dead_letters.models import Decision
from jobs.dead_letters.selection import Selection
from tests.chaos.cluster import DATABASE
from tests.chaos.fill import MERCHANTS, WINES, Filled, wine_id
from tests.chaos.history import History
from tests.chaos.load import PRICES, prices_of, send_prices
from tests.chaos.load import Site as Connection
from tests.chaos.plan import Strike
from tests.chaos.routes import POISONED
from tests.chaos.site import Kept, Site, descendants, send
from winecellar.accounts.models import User
from winecellar.accounts.services import erase
from winecellar.demo.mail_script import Script

DONE, NOTHING = "ok", "fail"
FEW_FILES = 64
PATIENCE = 20.0  # seconds for which a strike waits for a server that another one has stopped
UNLIMITED = "-c default_transaction_read_only=off -c statement_timeout=0 -c lock_timeout=5s"
AWAY = (psycopg.OperationalError, psycopg.InterfaceError)
MENDABLE = fingerprint("chaos-strict", POISONED, "PermanentError", "chaos: broken until somebody mends it")
OTHERS = "datname = current_database() AND pid <> pg_backend_pid() AND backend_type = 'client backend'"


class NothingDoneError(Exception):
    """The victim was gone, or the server away."""


@dataclass
class Scene:
    """What a fault may touch; `stopping` ends every pause."""

    site: Site
    history: History
    filled: Filled
    seed: int
    stopping: threading.Event = field(default_factory=threading.Event)
    has_disk: bool = False
    lock: threading.Lock = field(default_factory=threading.Lock)
    rude: threading.Lock = field(default_factory=threading.Lock)  # one merchant's prices come one after the other
    always: threading.Event = field(default_factory=threading.Event)  # never set: whoever waits for an answer gets it

    def pause(self, seconds: float) -> None:
        self.stopping.wait(seconds)

    @contextmanager
    def superuser(self) -> Iterator[psycopg.Connection]:
        try:
            with self._session() as session:
                yield session
        except AWAY as error:
            raise NothingDoneError(str(error)[:80]) from error

    def _session(self) -> psycopg.Connection:
        """As soon as the server takes one; it may be down for the sake of another strike."""
        deadline = time.monotonic() + PATIENCE
        while True:
            try:
                return self.site.server.connect(options=UNLIMITED)
            except AWAY:
                if time.monotonic() > deadline or self.stopping.is_set():
                    raise
            self.pause(0.2)

    @contextmanager
    def whole_server(self) -> Iterator[None]:
        """One at a time changes the server as a whole."""
        with self.site.alone:
            yield


# --- Processes --------------------------------------------------------------------------------------------------


def kill_worker(scene: Scene, strike: Strike) -> None:
    """The process that works, or its supervisor, whose worker then ends by itself."""
    kept = scene.site.named("worker", strike.choice)
    _kill(_pid(kept) if strike.mode == "supervisor" else _working(kept))


def tell_worker_to_stop(scene: Scene, strike: Strike) -> None:
    _signal(_pid(scene.site.named("worker", strike.choice)), signal.SIGTERM)


def pause_worker(scene: Scene, strike: Strike) -> None:
    pid = _working(scene.site.named("worker", strike.choice))
    _signal(pid, signal.SIGSTOP)
    try:
        scene.pause(scene.site.lease + strike.seconds)
    finally:
        send(pid, signal.SIGCONT)


def kill_scheduler(scene: Scene, strike: Strike) -> None:
    _kill(_pid(scene.site.named("scheduler", strike.choice)))


def kill_watchman(scene: Scene, strike: Strike) -> None:
    _kill(_pid(scene.site.named("watchman", strike.choice)))


def kill_web(scene: Scene, strike: Strike) -> None:
    """Of one of the two servers the process that answers; gunicorn's master starts another."""
    kept = scene.site.named("web", strike.choice)
    below = [pid for pid in descendants(_pid(kept)) if pid != kept.pid]
    _kill(below[0] if below else _pid(kept))


def few_files(scene: Scene, strike: Strike) -> None:
    """A worker that may open no further file or socket for a while."""
    pid = _working(scene.site.named("worker", strike.choice))
    try:
        before = resource.prlimit(pid, resource.RLIMIT_NOFILE)
        resource.prlimit(pid, resource.RLIMIT_NOFILE, (min(FEW_FILES, _open_files(pid)), before[1]))
    except (ProcessLookupError, FileNotFoundError) as error:
        raise NothingDoneError(str(error)) from error
    try:
        # Something it has open must be opened anew, or it would not notice.
        with suppress(NothingDoneError), scene.superuser() as session:
            session.execute(f"SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE {OTHERS} LIMIT 10")
        scene.pause(strike.seconds)
    finally:
        with suppress(ProcessLookupError):
            resource.prlimit(pid, resource.RLIMIT_NOFILE, before)


# --- The server -------------------------------------------------------------------------------------------------


def stop_postgres(scene: Scene, strike: Strike) -> None:
    site = scene.site
    with scene.whole_server():
        site.postgres_wanted.clear()
        try:
            if strike.mode == "kill -9":
                site.server.kill_all()
            else:
                site.server.stop(strike.mode)
            scene.pause(strike.seconds)
            site.server.start()
        finally:
            site.postgres_wanted.set()


def end_backends(scene: Scene, strike: Strike) -> None:
    """Three sessions of ours, whoever they are and whatever they do."""
    with scene.superuser() as session:
        session.execute("SELECT setseed(%s)", [strike.choice])
        session.execute(
            "SELECT pg_terminate_backend(pid) FROM"
            f" (SELECT pid FROM pg_stat_activity WHERE {OTHERS} ORDER BY random() LIMIT 3) chosen"
        )


def cancel_backends(scene: Scene, strike: Strike) -> None:
    with scene.superuser() as session:
        session.execute(f"SELECT pg_cancel_backend(pid) FROM pg_stat_activity WHERE {OTHERS} AND state = 'active'")


def short_patience(scene: Scene, strike: Strike) -> None:
    """Every new session's statements and waits are ended after 50 to 500 milliseconds."""
    limit = 50 + int(450 * strike.choice)
    with scene.whole_server():
        try:
            _set(scene, statement_timeout=f"{limit}ms", lock_timeout=f"{limit}ms")
            scene.pause(strike.seconds)
        finally:
            _reset(scene, "statement_timeout", "lock_timeout")


def read_only(scene: Scene, strike: Strike) -> None:
    with scene.whole_server():
        try:
            _set(scene, default_transaction_read_only="on")
            scene.pause(strike.seconds)
        finally:
            _reset(scene, "default_transaction_read_only")


def take_all_slots(scene: Scene, strike: Strike) -> None:
    """All sessions are ended, and whoever comes back finds no slot."""
    hoard: list[psycopg.Connection] = []
    with scene.whole_server(), scene.superuser() as session:
        try:
            session.execute(f"SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE {OTHERS}")
            with suppress(psycopg.Error):
                while len(hoard) < 200:
                    hoard.append(psycopg.connect(scene.site.server.url("postgres"), connect_timeout=5))
            scene.pause(strike.seconds)
        finally:
            for held in hoard:
                held.close()


def fill_disk(scene: Scene, strike: Strike) -> None:
    if not scene.has_disk:
        raise NothingDoneError("the log has no disk of its own here")
    with scene.whole_server():
        scene.site.server.fill_disk(strike.seconds)
        scene.site.wait(scene.site.database_answers, 60, "Postgres answers after its disk was full")


def deadlock(scene: Scene, strike: Strike) -> None:
    """Takes the wines' rows in the order that nobody else takes them in."""
    last = int(strike.choice * (WINES - 60)) + 59
    with scene.superuser() as session, suppress(psycopg.errors.DeadlockDetected), session.transaction():
        for number in range(last, last - 60, -1):
            session.execute("SELECT FROM pricing_wine WHERE id = %s FOR NO KEY UPDATE", [wine_id(number)])
            time.sleep(strike.seconds / 60)


def lock_a_wine(scene: Scene, strike: Strike) -> None:
    """Merchants wait for it, longer than the feed lets them."""
    with scene.superuser() as session, session.transaction():
        session.execute("SELECT FROM pricing_wine WHERE id = %s FOR UPDATE", [wine_id(int(strike.choice * WINES))])
        scene.pause(strike.seconds)


def pin_horizon(scene: Scene, strike: Strike) -> None:
    with scene.superuser() as session:
        session.execute("BEGIN ISOLATION LEVEL REPEATABLE READ; SELECT pg_current_xact_id()")
        scene.pause(strike.seconds)
        session.execute("COMMIT")


def no_vacuum(scene: Scene, strike: Strike) -> None:
    tables = ("jobs_delivery", "pricing_offer")
    try:
        with scene.superuser() as session:
            for table in tables:
                session.execute(f"SET lock_timeout = '2s'; ALTER TABLE {table} SET (autovacuum_enabled = off)")
        scene.pause(strike.seconds)
    finally:
        _until_done(scene, *(f"ALTER TABLE {table} RESET (autovacuum_enabled)" for table in tables))


# --- Between processes ------------------------------------------------------------------------------------------


def break_network(scene: Scene, strike: Strike) -> None:
    with scene.lock:
        scene.site.network.break_(strike.mode)
        try:
            scene.pause(strike.seconds)
        finally:
            scene.site.network.heal()


def provider(scene: Scene, strike: Strike) -> None:
    """The mail provider follows another script, from its next request on."""
    scene.site.provider.script = Script(strike.mode, hangs=1.0)


def rude_client(scene: Scene, strike: Strike) -> None:
    """A merchant that hangs up in every way; its prices must arrive once all the same, or not at all."""
    merchant = f"mch_{MERCHANTS}"
    source = random.Random(f"{scene.seed}:{strike.number}")
    port = scene.site.web_ports[int(strike.choice * 2)]
    with scene.rude:
        body, prices, headers = prices_of(merchant, scene.filled.keys[merchant], source, strike.number)
        head = "".join(f"{name}: {value}\r\n" for name, value in headers.items())
        length = f"Host: 127.0.0.1\r\nContent-Length: {len(body)}\r\n\r\n"
        whole = f"POST {PRICES} HTTP/1.1\r\n{head}{length}".encode() + body
        with suppress(OSError), socket.create_connection(("127.0.0.1", port), timeout=5) as client:
            if strike.mode == "slow loris":
                for byte in whole[:40]:
                    client.sendall(bytes([byte]))
                    scene.pause(strike.seconds / 40)
            elif strike.mode == "stops in the body":
                client.sendall(whole[: len(whole) // 2])
                scene.pause(min(strike.seconds, 1.0))
            else:
                client.sendall(whole)
        site = Connection(scene.site.web_ports)
        send_prices(site, scene.history, merchant, body, prices, headers, scene.always)
        site.close()


# --- People -----------------------------------------------------------------------------------------------------


def redrive(scene: Scene, strike: Strike) -> None:
    """Two clicks at once on what can be mended, and one on what nobody has to decide about any more."""
    clicks = [threading.Thread(target=redrive_once, args=(scene, f"operator-{n}")) for n in range(2)]
    for click in clicks:
        click.start()
    for click in clicks:
        click.join()


def redrive_once(scene: Scene, by: str) -> list[int] | None:
    """Letters that it was acknowledged for; None: nobody knows."""
    note = scene.history.note
    note(by, "redrive", "invoke")
    try:
        done = services.redrive(
            selection=Selection(fingerprint=MENDABLE),
            kind=Decision.REDRIVE,
            by=by,
            note="mended",
            now=timezone.now(),
            rate_per_second=500,
        )
    except DatabaseError as error:
        note(by, "redrive", "unknown", why=str(error)[:80])
        return None
    finally:
        close()
    note(by, "redrive", "ok", letters=done.ids)
    return done.ids


def erase_account(scene: Scene, strike: Strike) -> None:
    """Somebody has themselves forgotten, while mails of theirs may be under way."""
    with scene.lock:
        people = sorted(scene.filled.sessions)
        if len(people) < 20:
            raise NothingDoneError("few are left")
        user = people[int(strike.choice * len(people))]
        del scene.filled.sessions[user]
    by = f"user-{user}"
    try:
        person = User.objects.get(pk=user)
        scene.history.note(by, "erase", "invoke", str(user), email=person.email)
        erase(user=person)
    except DatabaseError as error:
        scene.history.note(by, "erase", "unknown", str(user), why=str(error)[:80])
    else:
        scene.history.note(by, "erase", "ok", str(user), email=person.email)
    finally:
        close()


# --- Around them ------------------------------------------------------------------------------------------------


def _pid(kept: Kept) -> int:
    if kept.pid is None:
        raise NothingDoneError(f"{kept.name} is not running")
    return kept.pid


def _working(kept: Kept) -> int:
    """Beneath a supervisor, the worker itself."""
    below = [pid for pid in descendants(_pid(kept)) if pid != kept.pid]
    if not below:
        raise NothingDoneError(f"{kept.name} is being started")
    return below[-1]


def _kill(pid: int) -> None:
    _signal(pid, signal.SIGKILL)


def _signal(pid: int, number: int) -> None:
    if not send(pid, number):
        raise NothingDoneError(f"{pid} is gone")


def _open_files(pid: int) -> int:
    return len(list(Path(f"/proc/{pid}/fd").iterdir()))


def _set(scene: Scene, **settings: str) -> None:
    """For every new session, and there are only new ones."""
    with scene.superuser() as session:
        for name, value in settings.items():
            session.execute(f"ALTER DATABASE {DATABASE} SET {name} = '{value}'")
        session.execute(f"SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE {OTHERS}")


def _reset(scene: Scene, *names: str) -> None:
    _until_done(scene, *(f"ALTER DATABASE {DATABASE} RESET {name}" for name in names))


def _until_done(scene: Scene, *statements: str) -> None:
    """What was changed is changed back, however long the server is away; sessions that know it end."""
    end = "SELECT count(pg_terminate_backend(pid)) FROM pg_stat_activity WHERE " + OTHERS

    def tried() -> bool:
        try:
            with scene.site.server.connect(options=UNLIMITED) as session:
                for statement in (*statements, end):
                    session.execute(statement)
        except psycopg.Error:
            return False
        return True

    scene.site.wait(tried, 120, "the server is as it was")


def close() -> None:
    with suppress(DatabaseError):
        connection.close()


FAULTS: dict[str, Callable[[Scene, Strike], None]] = {
    fault.__name__: fault
    for fault in (
        kill_worker,
        stop_postgres,
        end_backends,
        tell_worker_to_stop,
        pause_worker,
        cancel_backends,
        short_patience,
        break_network,
        take_all_slots,
        read_only,
        fill_disk,
        deadlock,
        lock_a_wine,
        pin_horizon,
        no_vacuum,
        kill_scheduler,
        kill_web,
        kill_watchman,
        provider,
        redrive,
        rude_client,
        few_files,
        erase_account,
    )
}
