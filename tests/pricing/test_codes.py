"""Bar codes and LWINs."""

import pytest

from pricing.codes import InvalidCodeError, Lwin, read_gtin, read_lwin
from pricing.sizes import Packing
from pricing.titles import Vintage


@pytest.mark.parametrize(
    ("text", "gtin"),
    [
        ("4006381333931", "04006381333931"),
        ("036000291452", "00036000291452"),
        ("96385074", "00000096385074"),
        ("10036000291459", "10036000291459"),
        ("4 006381 333931", "04006381333931"),
    ],
)
def test_a_gtin_of_every_length_is_fourteen_digits(text, gtin):
    assert read_gtin(text) == gtin


@pytest.mark.parametrize(
    "text", ["", "4006381333932", "400638133393", "4006381", "0" * 13, "４００６３８１３３３９３１", "MONTROSE16"]
)
def test_what_is_no_gtin_is_refused(text):
    with pytest.raises(InvalidCodeError):
        read_gtin(text)


@pytest.mark.parametrize(
    ("text", "lwin"),
    [
        ("1012361", Lwin("1012361")),
        ("LWIN1012361", Lwin("1012361")),
        ("10123612016", Lwin("1012361", Vintage(2016))),
        ("10123611000", Lwin("1012361", Vintage(None))),
        ("1012361201600750", Lwin("1012361", Vintage(2016), Packing(1, 750))),
        ("101236120160600750", Lwin("1012361", Vintage(2016), Packing(6, 750))),
        ("1012361-2016-06-00750", Lwin("1012361", Vintage(2016), Packing(6, 750))),
    ],
)
def test_an_lwin_says_wine_vintage_bottle_and_pack(text, lwin):
    assert read_lwin(text) == lwin


@pytest.mark.parametrize("text", ["", "101236", "10123612", "101236120160000750", "1012361201600000", "٠١٢٣٤٥٦"])
def test_what_is_no_lwin_is_refused(text):
    with pytest.raises(InvalidCodeError):
        read_lwin(text)
