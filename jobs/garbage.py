"""Work on very many small things without Python's garbage collector, which would go over them again and again.

For what is bounded and refers to itself nowhere: a chunk, a file. Called by whoever has such work, in any app.
"""

import gc
from collections.abc import Iterator
from contextlib import contextmanager


@contextmanager
def uncollected() -> Iterator[None]:
    """Collect nothing until the end. Threads that do so at once end with the collector as it was."""
    collects = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if collects:
            gc.enable()
