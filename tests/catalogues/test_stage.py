"""What is between the reader and the comparison: which ids were there before, and the rows as they are staged."""

from types import SimpleNamespace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pricing.catalogues import seen, stage
from pricing.catalogues.rows import Raw
from pricing.catalogues.seen import Seen

# What CSV quotes, what COPY's other form escapes, what ends COPY's input, what would be NULL in either.
TRAPS = (
    '"',
    '""',
    'a "b", c',
    "a,b",
    "one\ntwo",
    "one\rtwo",
    "one\r\ntwo",
    "\r",
    "\n",
    "\\.",
    "\\N",
    "NULL",
    "\t",
    " a ",
    "é€𝄞",
    "",
)


@given(st.lists(st.text(max_size=3)))
def test_an_id_is_new_once(ids: list[str]) -> None:
    known, ours = set[str](), Seen()
    for each in ids:
        assert ours.add(each) == (each not in known)
        known.add(each)


def test_the_end_of_one_digest_and_the_beginning_of_the_next_are_no_id(monkeypatch: pytest.MonkeyPatch) -> None:
    digests = {b"a": b"..1abcdefghi", b"b": b"..j123456789", b"c": b"..abcdefghij"}
    monkeypatch.setattr(seen, "blake2b", lambda text, digest_size: SimpleNamespace(digest=lambda: digests[text]))
    ours = Seen()
    assert [ours.add(each) for each in "abcabc"] == [True, True, True, False, False, False]


@pytest.mark.django_db(transaction=True)
def test_whatever_stands_in_a_cell_is_staged_as_it_is() -> None:
    table = f"{stage.PREFIX}0_test"
    rows = [(n, Raw(n, f"id {n}", *[trap] * (len(Raw._fields) - 2))) for n, trap in enumerate(TRAPS, start=1)]
    stage.create(table)
    try:
        stage.copy(table, [*rows, (None, Raw(99, "unread", ""))])
        assert stage.rows(table, range(100)) == rows
        assert stage.count(table) == len(rows)
    finally:
        stage.drop(table)
