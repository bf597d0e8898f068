from tests.jobs.conftest import queue_db, send

__all__ = ["queue_db", "send"]
