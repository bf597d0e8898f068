"""The ECB's files of exchange rates: both forms, packed or not, and what is wrong with others. Pure."""

import io
import zipfile
from datetime import date
from decimal import Decimal

import pytest

from pricing import ecb
from pricing.ecb import Published, RatesError

TODAY = date(2026, 3, 14)
DAILY = b"Date, USD, JPY, BGN, \n13 March 2026, 1.1002, 161.33, N/A, \n"
HISTORY = (
    b"Date,USD,JPY,TRL,\n"
    b"2026-03-13,1.1002,161.33,N/A,\n"
    b"2026-03-12,1.0950,160.9,N/A,\n"
    b"1999-01-04,1.1789,133.73,372274,\n"
)


def read(content):
    return {(rate.day.isoformat(), rate.currency): str(rate.per_eur) for rate in ecb.read(content, today=TODAY)}


def packed(*files):
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, content in files:
            archive.writestr(name, content)
    return buffer.getvalue()


def test_the_daily_file_is_read_with_its_day_in_words_and_without_what_has_no_rate():
    assert read(DAILY) == {
        ("2026-03-13", "EUR"): "1",
        ("2026-03-13", "USD"): "1.1002",
        ("2026-03-13", "JPY"): "161.33",
    }


def test_the_history_is_read_with_all_its_days():
    found = read(HISTORY)
    assert found["1999-01-04", "TRL"] == "372274"
    assert ("2026-03-13", "TRL") not in found
    assert len(found) == 3 + 3 + 3 + 1


@pytest.mark.parametrize(
    "content",
    [
        packed(("eurofxref.csv", DAILY)),
        packed(("readme.txt", b"x"), ("eurofxref.csv", DAILY)),
        b"\xef\xbb\xbf" + DAILY,
        DAILY.replace(b"\n", b"\r\n"),
        DAILY + b"\n\n",
        DAILY.replace(b", \n", b"\n"),
    ],
    ids=["zip", "zip with more", "byte order mark", "carriage returns", "empty lines", "no comma at the end"],
)
def test_the_same_in_another_wrapping_is_the_same(content):
    assert read(content) == read(DAILY)


@pytest.mark.parametrize(
    ("content", "words"),
    [
        (b"", "line 1: the first column"),
        (b"<html>\n<p>Not found</p>", "line 1: the first column"),
        (b"Day,USD\n2026-03-13,1.1", "line 1: the first column"),
        (b"Date,JPY\n2026-03-13,161", "no column USD"),
        (b"Date,USD,USD\n2026-03-13,1,1", "line 1: the column 'USD'"),
        (b"Date,USD,EUR\n2026-03-13,1,1", "line 1: the column 'EUR'"),
        (b"Date,USD,Yen\n2026-03-13,1,1", "line 1: the column 'Yen'"),
        (b"Date,USD\n", "no line with rates"),
        (b"Date,USD\n2026-03-13,1.1\n2026-03-13,1.2\n", "line 3: 2026-03-13 stands in the file twice"),
        (b"Date,USD\n2026-02-30,1.1\n", "line 2: '2026-02-30' is no day"),
        (b"Date,USD\n20260313,1.1\n", "line 2: '20260313' is no day"),
        (b"Date,USD\n13 Maerz 2026,1.1\n", "line 2: '13 Maerz 2026' is no day"),
        (b"Date,USD\n2026-03-16,1.1\n", "line 2: 2026-03-16 is still to come"),
        (b"Date,USD,JPY\n2026-03-13,1.1\n", "line 2: it has 1 values for 2 currencies"),
        (b"Date,USD\n2026-03-13,1.1,7\n", "line 2: it has 2 values for 1 currencies"),
        (b"Date,USD\n2026-03-13,0\n", "line 2, USD: '0' is no rate"),
        (b"Date,USD\n2026-03-13,-1.1\n", "line 2, USD: '-1.1' is no rate"),
        (b"Date,USD\n2026-03-13,NaN\n", "line 2, USD: 'NaN' is no rate"),
        (b"Date,USD\n2026-03-13,1e3\n", "line 2, USD: '1e3' is no rate"),
        (b'Date,USD\n2026-03-13,"1,1"\n', "line 2, USD: '1,1' is no rate"),
        ("Date,USD\n2026-03-13,١\n".encode(), "line 2, USD"),
        (b"Date,USD\n2026-03-13,1.1\xff\n", "line 2: this is not text in UTF-8"),
        (b"PK\x03\x04nonsense", "The zip cannot be read"),
        (packed(("a.csv", DAILY), ("b.csv", DAILY)), "The zip holds 2 CSV files"),
        (packed(("a.txt", DAILY)), "The zip holds 0 CSV files"),
        (b"Date,USD\n" + b"x" * 200_000, "line 2: this is not CSV"),
    ],
)
def test_what_is_wrong_is_said_with_its_line(content, words):
    with pytest.raises(RatesError) as refused:
        ecb.read(content, today=TODAY)
    assert words in str(refused.value)


@pytest.mark.parametrize("way", [zipfile.ZIP_DEFLATED, zipfile.ZIP_BZIP2, zipfile.ZIP_LZMA])
def test_a_zip_that_was_damaged_anywhere_is_refused_or_read_and_never_an_error_of_ours(way):
    """Found by fuzzing: each way to pack has its own exception."""
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w", way) as archive:
        archive.writestr("eurofxref.csv", HISTORY)
    whole = buffer.getvalue()
    refused = 0
    for at in range(len(whole)):
        damaged = whole[:at] + bytes([whole[at] ^ 0xFF]) + whole[at + 1 :]
        try:
            ecb.read(damaged, today=TODAY)
        except RatesError:
            refused += 1
    assert refused > 100


def test_a_zip_that_unpacks_to_more_than_any_history_is_refused(monkeypatch):
    monkeypatch.setattr(ecb, "LARGEST_FILE", 1_000)
    with pytest.raises(RatesError, match="more than 1,000 bytes"):
        ecb.read(packed(("bomb.csv", b"0" * 2_000)), today=TODAY)


def test_a_file_with_a_mistake_gives_nothing_of_it():
    with pytest.raises(RatesError, match="line 3"):
        ecb.read(b"Date,USD\n2026-03-12,1.1\n2026-03-13,x\n", today=TODAY)


def test_a_rate_keeps_all_its_digits():
    rates = ecb.read(b"Date,USD,IDR\n2026-03-13,1.1,18123.12345678\n", today=TODAY)
    assert rates[-1] == Published(date(2026, 3, 13), "IDR", Decimal("18123.12345678"))
