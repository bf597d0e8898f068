"""awa: its Rust engine under Python handlers, queue storage, 1,000 jobs at once claimed 500 at a time, COPY to add."""

import asyncio
from dataclasses import dataclass
from urllib.parse import parse_qs, urlsplit

import awa
import shape

_parts = urlsplit(shape.URL)
# Its driver wants a host in front of the database, and takes the socket's folder as a parameter.
URL = f"postgresql://{_parts.username}@localhost{_parts.path}?host={parse_qs(_parts.query)['host'][0]}"


@dataclass
class Noop:
    number: int


class Awa:
    async def setup(self) -> None:
        await self.connect()
        await self.client.migrate()
        await self.client.install_queue_storage(schema="awa")

    async def connect(self) -> None:
        self.client = awa.AsyncClient(URL, max_connections=20)

    async def add_many(self, numbers: range) -> None:
        await self.client.enqueue_many_copy([Noop(number) for number in numbers], queue="bench")

    async def add(self, number: int) -> None:
        await self.client.insert(Noop(number), queue="bench")

    async def work(self) -> None:
        await self.connect()

        @self.client.task(Noop, queue="bench")
        async def noop(job) -> None:  # type: ignore[no-untyped-def]
            shape.seen(job.args.number)

        await self.client.start([{"name": "bench", "max_workers": 1000, "claim_batch_size": 500}], poll_interval_ms=50)
        await asyncio.Event().wait()


shape.main(Awa())
