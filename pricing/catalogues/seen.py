"""Which ids a file had before: a set of texts that holds the digest of each, a sixth of what Python's own set takes.

Guarantee: an id that was added is known; one that was not is new, but for two ids in a file with one 96-bit digest,
which for two million happens once in 10^16 files. Pure; used by reading.py.
"""

from hashlib import blake2b

DRAWERS = 1 << 16  # by a digest's first two bytes; of two million ids each holds thirty
REST = 10  # bytes of a digest that are kept in its drawer


class Seen:
    def __init__(self) -> None:
        self._drawers = [b""] * DRAWERS

    def add(self, text: str) -> bool:
        """Whether it was new."""
        digest = blake2b(text.encode(), digest_size=2 + REST).digest()
        number, rest = digest[0] << 8 | digest[1], digest[2:]
        drawer = self._drawers[number]
        place = drawer.find(rest)
        while place > 0 and place % REST:  # the end of one digest and the beginning of the next
            place = drawer.find(rest, place + 1)
        if place >= 0:
            return False
        self._drawers[number] = drawer + rest
        return True
