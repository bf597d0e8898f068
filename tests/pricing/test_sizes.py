"""Bottle sizes and packs, a row for each way they are written."""

import contextlib
import signal

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pricing.sizes import KNOWN_ML, LARGEST_PACK, Packing, UnclearSizeError, find_packing, read_packing

SIZES = [
    # measured
    ("75cl", 1, 750),
    ("75 cl", 1, 750),
    ("75CL", 1, 750),
    ("75.0 cl", 1, 750),
    ("７５cl", 1, 750),
    ("75-cl", 1, 750),
    ("0.75 L", 1, 750),
    ("0,75 L", 1, 750),
    ("0,75l", 1, 750),
    ("7.5 dl", 1, 750),
    ("750 ml", 1, 750),
    ("750ml.", 1, 750),
    ("(750ml)", 1, 750),
    ("750 millilitres", 1, 750),
    ("37.5cl", 1, 375),
    ("37,5 cl", 1, 375),
    ("375ml", 1, 375),
    ("50cl", 1, 500),
    ("62cl", 1, 620),
    ("18.75cl", 1, 187),
    ("187ml", 1, 187),
    ("187.5 ml", 1, 187),
    ("20cl", 1, 200),
    ("1L", 1, 1000),
    ("1 Litre", 1, 1000),
    ("1 liter", 1, 1000),
    ("1 lt", 1, 1000),
    ("1.5L", 1, 1500),
    ("1,5 L", 1, 1500),
    ("1.500 L", 1, 1500),
    ("150cl", 1, 1500),
    ("1500 ml", 1, 1500),
    ("1,500 ml", 1, 1500),
    ("1.500 ml", 1, 1500),
    ("3.0L", 1, 3000),
    ("3,000ml", 1, 3000),
    ("12 L", 1, 12000),
    # named
    ("bottle", 1, 750),
    ("Bottle", 1, 750),
    ("Bouteille", 1, 750),
    ("Flasche", 1, 750),
    ("btl", 1, 750),
    ("1 bottle", 1, 750),
    ("bottle 75cl", 1, 750),
    ("375ml bottle", 1, 375),
    ("Half", 1, 375),
    ("Half bottle", 1, 375),
    ("half-bottle", 1, 375),
    ("1/2 bottle", 1, 375),
    ("½ bottle", 1, 375),
    ("½", 1, 375),
    ("Halbe Flasche", 1, 375),
    ("Demi", 1, 375),
    ("Demie", 1, 375),
    ("demi-bouteille", 1, 375),
    ("Demi (37.5cl)", 1, 375),
    ("Quarter bottle", 1, 187),
    ("Clavelin", 1, 620),
    ("Magnum", 1, 1500),
    ("Magnum (1.5L)", 1, 1500),
    ("magnum 150 cl", 1, 1500),
    ("Double Magnum", 1, 3000),
    ("double-magnum", 1, 3000),
    ("Jéroboam 3L", 1, 3000),
    ("Jeroboam (5 L)", 1, 5000),
    ("Réhoboam", 1, 4500),
    ("Mathusalem", 1, 6000),
    ("Methuselah", 1, 6000),
    ("Impériale", 1, 6000),
    ("Salmanazar", 1, 9000),
    ("Balthazar", 1, 12000),
    ("Nebuchadnezzar", 1, 15000),
    ("Piccolo 20cl", 1, 200),
    # packs
    ("6 x 75cl", 6, 750),
    ("6x75cl", 6, 750),
    ("6 X 75 CL", 6, 750),
    ("6×75cl", 6, 750),
    ("6*75cl", 6, 750),
    ("1 x 75cl", 1, 750),
    ("12 x 750ml bottles", 12, 750),
    ("12/750ml", 12, 750),
    ("75cl x 6", 6, 750),
    ("75cl (case of 6)", 6, 750),
    ("75cl, 6-pack", 6, 750),
    ("24 x 37,5 cl", 24, 375),
    ("6 x 1.5L", 6, 1500),
    ("3 x 1,5 L", 3, 1500),
    ("2 x 6 x 75cl", 12, 750),
    ("2 x 6 bottles", 12, 750),
    ("6 bottles", 6, 750),
    ("6 btls", 6, 750),
    ("6 bouteilles", 6, 750),
    ("6 Magnums", 6, 1500),
    ("6 x Magnum", 6, 1500),
    ("3 double magnums", 3, 3000),
    ("12 halves", 12, 375),
    ("12 half bottles", 12, 375),
    ("12 x half bottle", 12, 375),
    ("case of 6", 6, 750),
    ("case of 6 Magnums", 6, 1500),
    ("Case of 12 x 75cl", 12, 750),
    ("case of 12 75cl", 12, 750),
    ("6 bottle case", 6, 750),
    ("box of 3", 3, 750),
    ("caisse de 6 bouteilles", 6, 750),
    ("carton de 12", 12, 750),
    ("Karton 6 Flaschen", 6, 750),
    ("6er OHK", 6, 750),
    ("OWC6", 6, 750),
    ("OWC 6", 6, 750),
    ("6 OWC", 6, 750),
    ("OWC12x75cl", 12, 750),
    ("6x75cl OWC", 6, 750),
    ("OWC 6 x 75cl", 6, 750),
    ("6 x 75cl case of 6", 6, 750),
    ("6 pack", 6, 750),
    ("pack of 6", 6, 750),
    ("x6", 6, 750),
    ("dozen", 12, 750),
    ("half dozen", 6, 750),
    ("dozen magnums", 12, 1500),
]
REFUSED = [
    ("", "nothing"),
    ("750", "more than a size"),
    ("0.75", "more than a size"),
    ("6 75cl", "more than a size"),
    ("Standard", "more than a size"),
    ("Default Title", "more than a size"),
    ("25.4 oz", "more than a size"),
    ("75cl in bond", "more than a size"),
    ("75cl per bottle, case of 6", "more than a size"),
    ("٧٥cl", "more than a size"),
    ("Red", "more than a size"),
    ("case", "not of how many"),
    ("OWC", "not of how many"),
    ("Kiste", "not of how many"),
    ("Magnum OWC", "not of how many"),
    ("case of 75cl", "not of how many"),
    ("case 75cl", "not of how many"),
    ("Jéroboam", "3000 ml or 4500 ml or 5000 ml"),
    ("Piccolo", "187 ml or 200 ml"),
    ("Magnum 75cl", "two sizes"),
    ("75cl 150cl", "two sizes"),
    ("half magnum", "two sizes"),
    ("Jeroboam 6L", "two sizes"),
    ("750cl", "does not exist"),
    ("75l", "does not exist"),
    ("7.5cl", "does not exist"),
    ("75.5cl", "does not exist"),
    ("37.59cl", "does not exist"),
    ("1 ml", "does not exist"),
    ("6 x 75cl, case of 12", "packs of different sizes"),
    ("12 bottles OWC6", "packs of different sizes"),
    ("0 x 75cl", "1 to 144"),
    ("200 x 75cl", "1 to 144"),
    ("999 bottles", "1 to 144"),
    ("75cl" + " " * 500, "more than 500"),
]
IN_TITLES = [
    ("Ch. Montrose 2016", None, "ch. montrose 2016"),
    ("Ch. Montrose 2016 6x75cl OWC", (6, 750), "ch. montrose 2016"),
    ("Ch. Montrose 2016 OWC6", (6, 750), "ch. montrose 2016"),
    ("2016 Magnum Ch. Montrose", (1, 1500), "2016 ch. montrose"),
    ("Ch. Montrose, 2016, Half Bottle", (1, 375), "ch. montrose, 2016,"),
    ("Krug Grande Cuvée NV (Magnum)", (1, 1500), "krug grande cuvee nv ( )"),
    ("Tokaji Aszú 5 Puttonyos 50cl", (1, 500), "tokaji aszu 5 puttonyos"),
    ("Penfolds Bin 389", None, "penfolds bin 389"),
    ("Pol Roger Demi-Sec", None, "pol roger demi sec"),
    ("Moët Impérial Brut", None, "moet imperial brut"),
    ("Half Moon Bay", None, "half moon bay"),
    ("Ch. Montrose 2016 Impériale", None, "ch. montrose 2016 imperiale"),
    ("Clos Mogador 1999 12 bottles", (12, 750), "clos mogador 1999"),
]


def test_the_table_is_long_and_has_no_row_twice():
    texts = [row[0] for row in SIZES + REFUSED]
    assert len(texts) >= 150
    assert len(set(texts)) == len(texts)


@pytest.mark.parametrize(("text", "pack", "size_ml"), SIZES)
def test_a_size_is_read_as_a_merchant_means_it(text, pack, size_ml):
    assert read_packing(text) == Packing(pack, size_ml)
    assert read_packing(f"  {text.upper()} ") == Packing(pack, size_ml)


@pytest.mark.parametrize(("text", "why"), REFUSED)
def test_what_is_not_certain_is_refused_and_says_why(text, why):
    with pytest.raises(UnclearSizeError, match=why):
        read_packing(text)


@pytest.mark.parametrize(("title", "packing", "rest"), IN_TITLES)
def test_a_size_is_found_in_a_title_and_the_rest_is_left(title, packing, rest):
    assert find_packing(title) == (packing and Packing(*packing), rest)


@pytest.mark.parametrize(
    "title", ["Ch. Montrose 2016 OWC", "Krug Jéroboam", "Krug Magnum 75cl", "Krug case 6x75cl 12 pk"]
)
def test_a_title_that_is_not_certain_of_its_size_is_refused(title):
    with pytest.raises(UnclearSizeError):
        find_packing(title)


@pytest.mark.parametrize("around", ["{}", "Ch. Montrose 2016 {}", "{} Ch. Montrose"])
@pytest.mark.parametrize("text", [text for text, pack, size in SIZES if (pack, size) != (1, 750)])
def test_a_case_or_another_size_never_passes_for_a_bottle(text, around):
    """Also where the words are not understood: then they stay in the name, which is then another one."""
    try:
        packing, rest = find_packing(around.format(text))
    except UnclearSizeError:
        return
    assert packing not in (None, Packing(1, 750)) or rest != around.format("").strip().lower()


@settings(deadline=None)
@given(
    st.text(alphabet="0123456789 .,x/×*½clmdt()-caseofbottlemagnumhalfowc\n\u00e9", max_size=80) | st.text(max_size=80)
)
def test_whatever_is_written_gives_a_known_bottle_or_a_refusal(text):
    for read in (read_packing, lambda text: find_packing(text)[0] or Packing(1, 750)):
        try:
            found = read(text)
        except UnclearSizeError:
            continue
        assert found.size_ml in KNOWN_ML
        assert 1 <= found.pack <= LARGEST_PACK


@pytest.fixture
def deadline():
    def expired(*_):
        raise TimeoutError("the pattern looks at letters again and again")

    before = signal.signal(signal.SIGALRM, expired)
    signal.alarm(60)
    yield
    signal.alarm(0)
    signal.signal(signal.SIGALRM, before)


@pytest.mark.usefixtures("deadline")
@pytest.mark.parametrize("piece", ["1 x ", "1x", "6 ", "case of ", "1/", "75cl x ", "half ", "1 1 1 "])
def test_a_text_made_to_be_slow_is_not(piece):
    for read in (read_packing, find_packing):
        with contextlib.suppress(UnclearSizeError):
            read((piece * 500)[:500])
