"""pgqueuer: asyncpg and uvloop, batches of 500, its durable default; the fastest of the settings its docs name."""

from datetime import timedelta

import asyncpg
import shape
import uvloop
from pgqueuer import PgQueuer
from pgqueuer.db import AsyncpgDriver
from pgqueuer.queries import Queries

uvloop.install()


class Pgqueuer:
    async def setup(self) -> None:
        await self.connect()
        await self.queries.install()

    async def connect(self) -> None:
        self.queries = Queries(AsyncpgDriver(await asyncpg.connect(shape.URL)))

    async def add_many(self, numbers: range) -> None:
        await self.queries.enqueue(["noop"] * len(numbers), [b"%d" % n for n in numbers], [0] * len(numbers))

    async def add(self, number: int) -> None:
        await self.queries.enqueue("noop", b"%d" % number)

    async def work(self) -> None:
        consumer = PgQueuer(AsyncpgDriver(await asyncpg.connect(shape.URL)))

        @consumer.entrypoint("noop")
        async def noop(job) -> None:  # type: ignore[no-untyped-def]
            shape.seen(int(job.payload))

        await consumer.run(batch_size=500, dequeue_timeout=timedelta(seconds=30))


shape.main(Pgqueuer())
