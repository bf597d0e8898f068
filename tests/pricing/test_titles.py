"""Titles taken apart: name, vintage, bottle."""

import pytest

from pricing.sizes import Packing, UnclearSizeError
from pricing.titles import Title, UnclearVintageError, Vintage, comparable, read_title, read_vintage


@pytest.mark.parametrize(
    ("text", "vintage"),
    [
        ("2016", Vintage(2016)),
        (" 1945 ", Vintage(1945)),
        ("NV", Vintage(None)),
        ("nv", Vintage(None)),
        ("N.V.", Vintage(None)),
        ("Non-Vintage", Vintage(None)),
        ("sans année", Vintage(None)),
        ("1001", Vintage(None)),
        ("", None),
        ("9999", None),
        ("Unknown", None),
        ("(n/a)", None),
    ],
)
def test_a_vintage_is_a_year_or_none_on_purpose_or_not_known(text, vintage):
    assert read_vintage(text) == vintage


@pytest.mark.parametrize("text", ["16", "'16", "2016/17", "2016-2017", "1799", "2100", "20165", "٢٠١٦", "vintage", "0"])
def test_what_is_no_vintage_is_refused(text):
    with pytest.raises(UnclearVintageError):
        read_vintage(text)


TITLES = [
    ("Ch. Montrose 2016", "chateau montrose", Vintage(2016), None),
    ("Château Montrose 2016", "chateau montrose", Vintage(2016), None),
    ("2016 CHÂTEAU MONTROSE (750ml)", "chateau montrose", Vintage(2016), Packing(1, 750)),
    ("Ch. Montrose, 2016, 6x75cl OWC", "chateau montrose", Vintage(2016), Packing(6, 750)),
    ("Ch. Montrose 2016 - Saint-Estèphe", "chateau montrose saint estephe", Vintage(2016), None),
    ("Krug Grande Cuvée NV Magnum", "krug grande cuvee", Vintage(None), Packing(1, 1500)),
    ("Krug Grande Cuvée Non-Vintage", "krug grande cuvee", Vintage(None), None),
    ("Krug Grande Cuvée", "krug grande cuvee", None, None),
    ("Penfolds Bin 389 2018", "penfolds bin 389", Vintage(2018), None),
    ("St. Julien & Fils 2000 2000 ml", "saint julien et fils", Vintage(2000), Packing(1, 2000)),
    ("Montrose 2016 Montrose 2016", "montrose montrose", Vintage(2016), None),
    ("Réserve R2016", "reserve r2016", None, None),
    ("Envy 2016", "envy", Vintage(2016), None),
    ("L'Évangile 2009", "l'evangile", Vintage(2009), None),
    ("", "", None, None),
]


@pytest.mark.parametrize(("text", "name", "vintage", "packing"), TITLES)
def test_a_title_is_taken_apart(text, name, vintage, packing):
    assert read_title(text) == Title(name, vintage, packing)


@pytest.mark.parametrize("text", ["Cuvée 1865 2019", "Krug 2004 NV", "1757 1855 1900"])
def test_a_title_with_two_vintages_is_refused(text):
    with pytest.raises(UnclearVintageError):
        read_title(text)


def test_a_title_with_an_unclear_size_is_refused():
    with pytest.raises(UnclearSizeError):
        read_title("Ch. Montrose 2016 OWC")


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("Ch. Montrose", "CHÂTEAU  MONTROSE"),
        ("Dom. Leflaive", "Domaine Leflaive"),
        ("St-Julien", "Saint Julien"),
        ("Joh. Jos. Prüm", "joh jos prum"),
        ("Bichot & Fils", "Bichot et Fils"),
        ("L’Évangile", "l'evangile"),
    ],
)
def test_one_name_written_in_two_ways_is_one_name(one, other):
    assert comparable(one) == comparable(other)


@pytest.mark.parametrize(
    ("one", "other"), [("Montrose", "La Dame de Montrose"), ("Bin 389", "Bin 28"), ("Krug", "Krug Rosé")]
)
def test_two_names_stay_two(one, other):
    assert comparable(one) != comparable(other)
