"""Which wine a listing is: what matches, and what never does."""

import pytest

from pricing.matching import By, Candidate, Candidates, Match, match, rank, read_listing

GTIN = "4006381333931"
LWIN = "1012361"


def wine(wine_id="wn_4417", **facts):
    montrose = {
        "name": "Ch. Montrose",
        "producer": "Château Montrose",
        "region": "Saint-Estèphe",
        "vintage": 2016,
        "size_ml": 750,
        "gtin": "04006381333931",
        "lwin": LWIN,
    }
    return Candidate(wine_id=wine_id, **{**montrose, **facts})


def found(title, *wines, unsaid=None, **fields):
    return match(read_listing(title, **fields), Candidates(wines or [wine()]), unsaid_size_ml=unsaid)


@pytest.mark.parametrize(
    ("title", "fields"),
    [
        ("Ch. Montrose 2016 75cl", {}),
        ("CHATEAU MONTROSE 2016 (750ml)", {}),
        ("2016 Château Montrose, Saint-Estèphe, 75cl", {}),
        ("Château Montrose Ch. Montrose 2016 75cl", {}),
        ("Château Montrose", {"vintage": "2016", "size": "75cl"}),
        ("Château Montrose 2016 75cl", {"vintage": "2016", "size": "Bottle"}),
        ("Château Montrose 2016 1 x 75cl", {"gtin": "not one"}),
    ],
)
def test_a_listing_is_matched_by_name_vintage_and_size(title, fields):
    assert found(title, **fields) == Match("wn_4417", By.NAME)


@pytest.mark.parametrize(
    ("title", "fields"),
    [
        ("Ch. Montrose 2016 6x75cl", {}),
        ("Ch. Montrose 2016 OWC6", {}),
        ("Ch. Montrose 2016 OWC", {}),
        ("Ch. Montrose 2016 Magnum", {}),
        ("Ch. Montrose 2016", {"size": "37.5cl"}),
        ("Ch. Montrose 2016 75cl", {"size": "6 x 75cl"}),
        ("Ch. Montrose 2016", {"size": "Red"}),
        ("Ch. Montrose 2015 75cl", {}),
        ("Ch. Montrose 2016 75cl", {"vintage": "2015"}),
        ("Ch. Montrose NV 75cl", {}),
        ("Ch. Montrose 75cl", {}),
        ("Ch. Montrose 2016", {}),
        ("Ch. Montrose Rosé 2016 75cl", {}),
        ("La Dame de Montrose 2016 75cl", {}),
        ("2016 75cl", {}),
        ("", {}),
    ],
)
@pytest.mark.parametrize("marks", [{}, {"wine_id": "wn_9999"}], ids=["by name", "with another wine's id"])
def test_what_says_something_else_or_too_little_waits(title, fields, marks):
    assert found(title, **fields, **marks) is None


@pytest.mark.parametrize("marks", [{"wine_id": "wn_4417"}, {"gtin": GTIN}, {"lwin": LWIN}], ids=str)
@pytest.mark.parametrize(
    "title",
    ["Montrose 2016 6x75cl", "Montrose 2016 Magnum", "Montrose 2016 OWC", "Montrose 2015 75cl", "Montrose NV 75cl"],
)
def test_no_mark_makes_a_case_another_size_or_another_vintage_this_wine(title, marks):
    assert found(title, **marks) is None


def test_a_wine_id_is_enough():
    assert found("whatever", wine_id="wn_4417") == Match("wn_4417", By.WINE_ID)


def test_a_bar_code_needs_the_vintage_which_it_does_not_say():
    assert found("Montrose rouge 2016", gtin=GTIN) == Match("wn_4417", By.GTIN)
    assert found("Montrose rouge", gtin=GTIN) is None
    assert found("Krug", wine(vintage=None), gtin=GTIN) == Match("wn_4417", By.GTIN)
    years = [wine(f"wn_{year}", vintage=year) for year in (2015, 2016)]
    assert found("Montrose rouge 2015", *years, gtin=GTIN) == Match("wn_2015", By.GTIN)


def test_a_cases_bar_code_is_another_one():
    assert found("Montrose rouge 2016", gtin="14006381333938") is None


def test_an_lwin_needs_vintage_and_bottle_which_it_may_say_itself():
    assert found("rouge", lwin="1012361201600750") == Match("wn_4417", By.LWIN)
    assert found("rouge 2016 75cl", lwin=LWIN) == Match("wn_4417", By.LWIN)
    assert found("rouge 2016", lwin=LWIN) is None
    assert found("rouge", lwin="101236120160600750") is None
    assert found("rouge 2015", lwin="1012361201600750") is None
    bottles = [wine("wn_1", size_ml=750), wine("wn_2", size_ml=1500)]
    assert found("rouge 2016 Magnum", *bottles, lwin=LWIN) == Match("wn_2", By.LWIN)


def test_the_merchants_usual_bottle_counts_where_none_is_said():
    assert found("Ch. Montrose 2016", unsaid=750) == Match("wn_4417", By.NAME)
    assert found("Ch. Montrose 2016", unsaid=1500) is None
    assert found("Ch. Montrose 2016 Magnum", unsaid=750) is None


def test_two_wines_that_fit_are_none():
    assert found("Ch. Montrose 2016 75cl", wine("wn_1"), wine("wn_2")) is None
    assert found("rouge 2016 75cl", wine("wn_1"), wine("wn_2"), gtin=GTIN) is None


def test_non_vintage_matches_non_vintage_alone():
    krug = wine(name="Grande Cuvée", producer="Krug", vintage=None, region="")
    assert found("Krug Grande Cuvée NV 75cl", krug) == Match("wn_4417", By.NAME)
    assert found("Krug Grande Cuvée 2004 75cl", krug) is None


def test_an_empty_mark_is_no_mark():
    assert found("something 2016 75cl", wine(gtin="", lwin=""), gtin="", lwin="") is None


def test_suggestions_share_words_and_contradict_nothing():
    wines = [
        wine("wn_1", name="Ch. Montrose"),
        wine("wn_2", name="La Dame de Montrose"),
        wine("wn_3", name="Ch. Montrose", size_ml=1500),
        wine("wn_4", name="Ch. Montrose", vintage=2015),
        wine("wn_5", name="Krug", producer="Krug", region=""),
    ]
    listed = read_listing("Montrose Dame 2016", size="75cl")
    assert [each.wine_id for each in rank(listed, wines, most=5)] == ["wn_2", "wn_1"]
    assert [each.wine_id for each in rank(listed, wines, most=1)] == ["wn_2"]
    assert rank(read_listing("Montrose 2016 6x75cl"), wines, most=5) == []
