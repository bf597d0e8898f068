"""Whatever bytes come, a parser reads them or refuses them in the way it has declared, and soon. See `make fuzz`."""

import os

import pytest

from tests.fuzz.run import FoundError, feed, fuzz
from tests.fuzz.targets import TARGETS, Target

# A new place each day would find more, and fail for who changed nothing: that is what `make fuzz` is for.
SEED = int(os.environ.get("FUZZ_SEED", "2026"))
INPUTS = 1_500


@pytest.mark.parametrize("target", TARGETS, ids=lambda target: target.name)
def test_a_parser_reads_what_is_nearly_right_or_refuses_it_as_declared(target: Target) -> None:
    read, refused = fuzz(target, count=INPUTS, seed=SEED)
    assert read or target.name == "catalogue gzip", "all was refused: the inputs do not reach the parser's inside"
    assert refused or not target.declared or target.name == "words", "nothing was refused: the inputs are too tame"


@pytest.mark.parametrize("target", TARGETS, ids=lambda target: target.name)
def test_what_inputs_are_made_of_is_itself_read(target: Target) -> None:
    assert all(feed(target, seed, called="a seed") for seed in target.seeds)


def test_an_undeclared_error_and_a_hang_are_found() -> None:
    """The net has no holes of its own."""

    def breaks(data: bytes) -> None:
        raise KeyError("a bug")

    def hangs(data: bytes) -> None:
        while True:
            pass

    for feed_it in (breaks, hangs):
        with pytest.raises(FoundError):
            fuzz(Target("broken", [b"x"], feed_it, (ValueError,)), count=1, seed=1)
