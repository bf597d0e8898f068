"""Who is measured: how each one's script is started, and what in its database says that nothing is left.

`gate`    the table that no claim gets past while the driver holds it locked: the clock starts when it lets go
`left`    SQL: whether of {count} jobs any is unfinished
`slow`    drained with at most so many jobs, since thousands a minute would take the whole evening
`package` its name in peers.txt or package.json; ours has none
"""

from __future__ import annotations

import sys
from dataclasses import dataclass
from pathlib import Path

from tests.benchmarks.install import HERE, NODE, NODE_HOME, PYTHON

OURS = "winecellar"
REFERENCE = "graphile-worker"
PLAIN_SQL = "plain SQL, one connection"


@dataclass(frozen=True)
class System:
    name: str
    script: str
    gate: str
    left: str
    package: str = ""
    slow: int | None = None
    no_bulk: bool = False  # it has no bulk call: single adds in one transaction stand for it

    @property
    def command(self) -> list[str]:
        if not self.package:
            return [sys.executable, "-m", "tests.benchmarks.ours"]
        if self.script.endswith(".mjs"):
            return [str(NODE), str(NODE_HOME / self.script)]
        return [str(PYTHON), str(HERE / "peers" / self.script)]

    def work(self, kind: str) -> list[str]:
        """The command of one worker process. Ours is the product's own."""
        return (
            [*self.command, "work"]
            if self.package
            else [sys.executable, "manage.py", "run_worker", "--unsupervised", kind]
        )

    @property
    def folder(self) -> Path:
        return HERE.parents[1] if not self.package else HERE / "peers"


def _unless(table: str, condition: str = "true") -> str:
    return f"SELECT EXISTS (SELECT FROM {table} WHERE {condition})"


SYSTEMS = {
    system.name: system
    for system in (
        System(OURS, "", gate="jobs_delivery", left=_unless("jobs_delivery")),
        System(
            REFERENCE,
            "run_graphile.mjs",
            package="graphile-worker",
            gate="graphile_worker._private_jobs",
            left=_unless("graphile_worker._private_jobs"),
        ),
        System(
            "pg-boss",
            "run_pgboss.mjs",
            package="pg-boss",
            gate="pgboss.job",
            left=_unless("pgboss.job", "name = 'bench' AND state < 'completed'"),
        ),
        System("pgqueuer", "run_pgqueuer.py", package="pgqueuer", gate="pgqueuer", left=_unless("pgqueuer")),
        System(
            "awa",
            "run_awa.py",
            package="awa-pg",
            gate="awa.queue_claim_heads",
            left="SELECT coalesce(sum(completed_count), 0) < {count} FROM awa.receipt_completion_batches",
            slow=20_000,
        ),
        System(
            "procrastinate",
            "run_procrastinate.py",
            package="procrastinate",
            gate="procrastinate_jobs",
            left=_unless("procrastinate_jobs", "status IN ('todo', 'doing')"),
            slow=4_000,
        ),
        System(
            "django-tasks-db",
            "run_django_tasks_db.py",
            package="django-tasks-db",
            gate="django_tasks_database_dbtaskresult",
            left=_unless("django_tasks_database_dbtaskresult", "status IN ('READY', 'NEW', 'RUNNING')"),
            slow=2_000,
            no_bulk=True,
        ),
        System(
            "django-ox",
            "run_django_ox.py",
            package="django-ox",
            gate="django_ox_oxtask",
            left=_unless("django_ox_oxtask", "status IN ('READY', 'RUNNING')"),
            slow=2_000,
        ),
    )
}
