"""Whether a port is free, and another one that is. Pure but for the sockets."""

import socket

HOST = "127.0.0.1"
WAYS_TO_GO = 100


def is_free(port: int) -> bool:
    """Whether a server of ours could listen there now."""
    with socket.socket() as probe:
        # As servers do: connections of an earlier run that are still closing are no obstacle.
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind((HOST, port))
            probe.listen(1)
        except OSError:
            return False
    return True


def next_free(port: int) -> int | None:
    """The first free port after this one, if any is near."""
    return next((other for other in range(port + 1, min(port + WAYS_TO_GO, 65_536)) if is_free(other)), None)
