"""procrastinate: an async worker, 20 jobs at once over a pool of 10, jobs deleted when they succeed."""

import procrastinate
import shape

app = procrastinate.App(connector=procrastinate.PsycopgConnector(conninfo=shape.URL, min_size=2, max_size=10))


@app.task(queue="bench", name="noop")
async def noop(number: int) -> None:
    shape.seen(number)


class Procrastinate:
    async def setup(self) -> None:
        async with app.open_async():
            await app.schema_manager.apply_schema_async()

    async def connect(self) -> None:
        await app.open_async()

    async def add_many(self, numbers: range) -> None:
        await noop.batch_defer_async(*[{"number": number} for number in numbers])

    async def add(self, number: int) -> None:
        await noop.defer_async(number=number)

    async def work(self) -> None:
        async with app.open_async():
            await app.run_worker_async(queues=["bench"], concurrency=20, delete_jobs="successful")


shape.main(Procrastinate())
