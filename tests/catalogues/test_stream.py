"""A file's text, whatever it is packed and encoded in, or the reason why not."""

import gzip
import io
import tracemalloc
import zlib

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pricing.catalogues.errors import UnreadableFileError
from pricing.catalogues.options import Limits
from pricing.catalogues.stream import open_stream
from tests.catalogues.files import LIMITS, Trickle, take, whole

CSV = "id;name;preis\n1;Château Léoville;12,50\n2;Müller “Kabinett”;9,00\n"
PACKED = gzip.compress(CSV.encode(), mtime=0)


def text_of(data: bytes, *, encoding: str = "", limits: Limits = LIMITS, at_most: int = 1 << 20) -> str:
    return "".join(open_stream(Trickle(data, at_most), encoding=encoding, limits=limits).pieces())


def fault_of(data: bytes, **options) -> UnreadableFileError:
    with pytest.raises(UnreadableFileError) as caught:
        text_of(data, **options)
    return caught.value


@pytest.mark.parametrize("encoding", ["utf-8", "utf-8-sig", "utf-16", "cp1252"])
@pytest.mark.parametrize("at_most", [1, 7, 1 << 20])
def test_a_file_is_text_in_whatever_encoding_and_however_it_arrives(encoding, at_most):
    assert text_of(CSV.encode(encoding), at_most=at_most) == CSV
    assert text_of(gzip.compress(CSV.encode(encoding)), at_most=at_most) == CSV


def test_utf_16_of_either_kind_is_known_by_its_mark():
    assert text_of(b"\xfe\xff" + CSV.encode("utf-16-be")) == CSV
    assert text_of(b"\xff\xfe" + CSV.encode("utf-16-le")) == CSV


@given(st.text(st.characters(exclude_characters="\0\ufeff", exclude_categories=["Cs"]), min_size=1), st.integers(1, 9))
def test_all_text_in_utf_8_comes_as_it_is(text, at_most):
    if text.strip():
        assert text_of(text.encode(), at_most=at_most) == text


def test_the_merchants_encoding_is_for_what_is_not_utf_8():
    assert text_of("id\nČerné víno\n".encode("cp1250"), encoding="cp1250") == "id\nČerné víno\n"
    assert text_of("id\nČerné víno\n".encode(), encoding="cp1250") == "id\nČerné víno\n"
    assert text_of("id\nВино\n".encode("cp1251"), encoding="cp1251") == "id\nВино\n"


@pytest.mark.parametrize(
    "data",
    [
        "id\n1\nChâteau Margaux\n".encode("mac-roman"),
        "id\n1\nGrande Présence\n".encode("mac-roman"),
        "id\n1\nGrüner Süßer\n".encode("cp850"),
        "id\n1\nКрасное вино\n".encode("cp1251"),
        "id\n1\nΟίνος ερυθρός\n".encode("cp1253"),
        "id\n1\n赤ワイン\n".encode("shift-jis"),
        b"id\n1\nCh\x81teau\n",  # no letter in cp1252
    ],
)
@pytest.mark.parametrize("at_most", [1, 1 << 20])
def test_what_is_not_western_text_is_not_taken_for_it(data, at_most):
    fault = fault_of(data, at_most=at_most)
    assert fault.line == 3
    assert "tell us its encoding" in fault.reason


def test_western_text_of_every_kind_is_plausible():
    western = "“Côtes” – l’Œuvre… 12 € · Weißer Würzburger · PEÑÍN · Ñandú · ÉMILION · Señorío · Straße\n"
    assert text_of(western.encode("cp1252")) == western


def test_a_file_that_changes_its_encoding_is_refused_where_it_does():
    fault = fault_of("id\nChâteau\n".encode() + "Ch\u00e2teau\n".encode("cp1252"))
    assert (fault.line, "no UTF-8" in fault.reason) == (3, True)
    assert fault_of("id\n".encode("utf-8-sig") + b"\xe2teau\n").line == 2


def test_utf_16_that_ends_within_a_character_is_refused():
    assert "UTF-16" in fault_of(CSV.encode("utf-16")[:-1]).reason


def test_what_is_no_text_is_refused_with_the_line():
    assert fault_of(b"id\n1\n\0\n").line == 3
    assert "NUL" in fault_of("id\n".encode("utf-16-le")).reason


@pytest.mark.parametrize(
    ("magic", "word"),
    [(b"PK\x03\x04rest", "workbook"), (b"%PDF-1.7 ", "PDF"), (b"BZh91AY", "bzip2"), (b"\xd0\xcf\x11\xe0\xa1", "Excel")],
)
def test_what_is_no_list_at_all_is_called_by_its_name(magic, word):
    assert word in fault_of(magic).reason
    assert word in fault_of(magic, at_most=1).reason


@pytest.mark.parametrize("data", [b"", b"\xef\xbb\xbf", b" \r\n\n", gzip.compress(b"", mtime=0)])
def test_an_empty_file_is_said_to_be_empty(data):
    assert fault_of(data).reason == "The file is empty."


# --- gzip -------------------------------------------------------------------------------------------------------


def test_gzip_in_several_members_and_filled_up_with_zeros_is_one_file():
    packed = b"".join(gzip.compress(part.encode()) for part in (CSV[:20], CSV[20:]))
    assert text_of(packed + b"\0" * 512) == CSV
    assert text_of(packed + b"\0" * 512, at_most=1) == CSV


@pytest.mark.parametrize("end", range(3, len(PACKED)))
def test_gzip_that_was_cut_off_anywhere_does_not_end_as_if_it_were_whole(end):
    assert "cut off" in fault_of(PACKED[:end]).reason


@pytest.mark.parametrize(
    ("rest", "why"),
    [
        *((rest, "Something follows") for rest in (b"<html>", b"\x1f", b"\0\0x")),
        *((rest, "cut off") for rest in (PACKED[:5], PACKED[:-1])),
    ],
)
@pytest.mark.parametrize("at_most", [1, 1 << 20])
def test_what_follows_the_end_of_gzip_is_not_passed_over(rest, why, at_most):
    assert why in fault_of(PACKED + rest, at_most=at_most).reason


def test_gzip_that_was_damaged_is_refused():
    damaged = bytearray(PACKED)
    damaged[-6] ^= 1  # in the check sum
    assert "damaged" in fault_of(bytes(damaged)).reason


def test_gzip_is_known_by_its_beginning_and_not_by_its_name():
    assert whole(PACKED, name="list.csv") == whole(CSV, name="list.csv.gz")


def test_a_bomb_is_ended_by_the_ratio_and_by_the_size():
    bomb = gzip.compress(b"id,name,price\n" + b"1,a,2\n" * 4_000_000)
    assert "200 times" in fault_of(bomb).reason
    few = Limits(text_bytes=1_000_000, inflation=10_000, rows=10)
    assert "1,000,000 bytes" in fault_of(bomb, limits=few).reason
    assert "1,000,000 bytes" in fault_of(b"x" * 1_000_001, limits=few).reason


class Endless(io.RawIOBase):
    """Bytes without end, packed or not."""

    def __init__(self, block: bytes, pieces: int, *, packed: bool) -> None:
        self.block, self.left = block, pieces
        self.packer = zlib.compressobj(wbits=31, level=1) if packed else None

    def read(self, size: int = -1) -> bytes:
        while self.left:
            self.left -= 1
            data = self.packer.compress(self.block) if self.packer else self.block
            if data:
                return data
        data, self.packer = (self.packer.flush() if self.packer else b""), None
        return data


@settings(deadline=None, max_examples=4)
@given(st.booleans())
def test_memory_does_not_grow_with_the_file(packed):
    block = "".join(f"{number};Ein Wein mit Namen {number};{number},50\n" for number in range(2_000)).encode()
    limits = Limits(text_bytes=10**9, inflation=10**6, rows=10**9)

    def peak(pieces: int) -> int:
        tracemalloc.start()
        for _ in open_stream(Endless(block, pieces, packed=packed), encoding="", limits=limits).lines():
            pass
        size = tracemalloc.get_traced_memory()[1]
        tracemalloc.stop()
        return size

    assert peak(200) < peak(20) + 500_000


def test_a_line_without_end_is_refused_before_it_fills_the_memory():
    taken = take(b"id,name,price\n1,a,2\n" + b"x" * 3_000_000)
    assert [row.source_id for row in taken.raw] == ["1"]
    assert (taken.fault.line, "1,000,000 characters" in taken.fault.reason) == (3, True)
