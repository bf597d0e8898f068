"""Texts as they are searched: words without accents, what is indexed of a wine, and queries for Postgres. Pure.

Everything here is letters and digits once it is folded, so that no query can hold an operator. Used by search.py.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence

from pricing.folding import fold

LONGEST_SEARCH = 200  # letters of a search that are looked at
MOST_WORDS = 8
LONGEST_WORD = 60
IN_NAME = "="  # no letter and no digit, so nobody types it
LONGEST_NAME = 120  # letters of a name that count for the order: an index entry may hold 2,700 bytes
_WORD = re.compile(r"[^\W_]+")
# Either is found by the other.
SHORT = {"ch": "chateau", "dom": "domaine", "st": "saint", "ste": "sainte", "mt": "mont", "vyd": "vineyard"}
_ALIKE = SHORT | {long: short for short, long in SHORT.items()}


def words(text: str) -> list[str]:
    """“Ch. Léoville-Barton” is ch, leoville, barton."""
    return [word[:LONGEST_WORD] for word in _WORD.findall(fold(text))]


def searched(text: str) -> list[str]:
    """The words of what somebody typed, as far as they are looked at."""
    return words(text[:LONGEST_SEARCH])[:MOST_WORDS]


def vintage_words(vintage: int | None) -> list[str]:
    """2016 is also found as '16, and no vintage as NV."""
    return ["nv"] if vintage is None else [str(vintage), f"{vintage % 100:02d}"]


def vector(*, name: str, producer: str, vintage: int | None, places: str) -> str:
    """A tsvector's text: A for the name and vintage, B for the producer, C for where it is from.

    What stands in the name is there a second time, marked: weights are not in the index, words are.
    """
    weights: dict[str, str] = {}
    for weight, found in (
        ("A", [*words(name), *vintage_words(vintage)]),
        ("B", words(producer)),
        ("C", words(places)),
    ):
        for word in found:
            for each in (word, _ALIKE.get(word)):
                if each and weight not in weights.get(each, ""):
                    weights[each] = weights.get(each, "") + weight
    everywhere = [
        f"'{word}':" + ",".join(f"{position}{weight}" for position, weight in enumerate(held, 1))
        for word, held in weights.items()
    ]
    return " ".join([*everywhere, *(f"'{IN_NAME}{word}'" for word, held in weights.items() if "A" in held)])


def query(searched_words: Iterable[str], *, weights: str = "", whole: bool = False, in_name: bool = False) -> str:
    """A tsquery's text: each word, or one that begins with it, in the name or in a part of one of these weights."""
    mark = IN_NAME if in_name else ""
    return " & ".join(
        f"'{mark}{word}':{'' if whole or not _may_go_on(word) else '*'}{weights}" for word in searched_words
    )


def _may_go_on(word: str) -> bool:
    """“mont” may be the start of Montrose; a single letter, or '16, stands for itself."""
    return len(word) > (2 if word.isdigit() else 1)


def place(*, name: str, vintage: int | None, size_ml: int, wine_id: str) -> str:
    """Sorts, byte by byte, as a list of wines should; no two wines share one."""
    folded = " ".join(fold(name)[:LONGEST_NAME].split())
    return f"{folded}\t{vintage or 0:04d}\t{size_ml:05d}\t{wine_id}"


# --- Misspellings ----------------------------------------------------------------------------------------------

SHORTEST_MENDED = 4  # shorter words are each other's misspellings
LONGEST_MENDED = 24


def may_be_mistyped(word: str) -> bool:
    return SHORTEST_MENDED <= len(word) <= LONGEST_MENDED and word.isalpha()


def parts(word: str) -> list[str]:
    """What a word shares with its misspellings: its trigrams, and itself with one letter left out.

    Two words that differ by one letter, or by two that changed places, share one of the latter at least.
    """
    padded = f" {word} "
    trigrams = {padded[at : at + 3] for at in range(len(padded) - 2)}
    return sorted(trigrams | set(shortened(word)))


def shortened(word: str) -> list[str]:
    """A word with each one of its letters left out, and whole."""
    return sorted({word} | {word[:at] + word[at + 1 :] for at in range(len(word))})


def allowed_slips(word: str) -> int:
    """How many letters of a word may be wrong for another one to be meant."""
    return 1 if len(word) < 7 else 2


def with_meant(typed: Sequence[str], meant: dict[str, str]) -> str:
    return " ".join(meant.get(word, word) for word in typed)
