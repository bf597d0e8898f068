"""The merchant's guide names every format, column and limit that the readers know, and no other."""

import re

from django.conf import settings

from pricing.catalogues.availability import NOT_SOLD, SOLD
from pricing.catalogues.columns import NAMES, PRICES, TAXED_PRICES
from pricing.catalogues.options import ENCODINGS, Field, Tax
from pricing.catalogues.rows import LONGEST_ID
from pricing.catalogues.wine_searcher import ORDER
from pricing.folding import fold

GUIDE = (settings.BASE_DIR / "docs" / "catalogues.md").read_text()


def named_in_the_guide(field: str) -> list[str]:
    [cell] = re.findall(rf"^\| {field} \| (.*) \|$", GUIDE, re.MULTILINE)
    return re.findall(r"`([^`]+)`", cell)


def test_the_guide_has_every_name_of_a_column_in_the_order_in_which_they_count():
    for field, names in NAMES.items():
        assert named_in_the_guide(field) == list(names), field
    assert named_in_the_guide(Field.PRICE) == list(PRICES)
    for tax in (Tax.INCLUDED, Tax.EXCLUDED):
        assert named_in_the_guide(f"price, tax {tax}") == list(TAXED_PRICES[tax])


def test_the_guide_has_the_limits_and_encodings():
    for text in (
        f"at most {settings.CATALOGUE_MAX_TEXT_BYTES:,} bytes and {settings.CATALOGUE_MAX_ROWS:,} rows",
        f"at most {settings.CATALOGUE_MAX_INFLATION} times as long as packed",
        f"at most {LONGEST_ID} characters",
        f"`{ORDER}`",
        *(f"`{encoding}`" for encoding in ENCODINGS),
    ):
        assert text in GUIDE.replace("\n", " "), text


def test_the_words_for_availability_in_the_guide_are_known():
    [item] = re.findall(r"^- \*\*availability\*\*(.*?)\n-? ?\n?(?=\n|- )", GUIDE, re.MULTILINE | re.DOTALL)
    words = {fold(word) for word in re.findall(r"`([^`]+)`", item)}
    assert len(words) >= 10
    assert words <= SOLD | NOT_SOLD
