"""What a wine may be called is kept by the server, as Python would make it, and found by an index."""

import pytest
from django.db import connection
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from pricing.listing_state import candidate
from pricing.listing_wines import wines_for
from pricing.matching import read_listing
from pricing.models import Wine
from pricing.titles import ABBREVIATED, comparable
from tests import cast

WORDS = [
    *ABBREVIATED,
    "Saint-Émilion",
    "L’Œuvre",
    "d'Or",
    "Weiß",
    "Łódź",
    "Ñandú",
    "№5",
    "½",
    "Ghemme",
    "Ø",
    "&",
    "Κτήμα",
    "Шато",
]
SIGNS = ["", " ", "-", "–", ", ", " & ", "'", "’", "_", ".", "/", "  "]


def in_sql(text):
    with connection.cursor() as cursor:
        cursor.execute("SELECT pricing_comparable(%s)", [text])
        return cursor.fetchone()[0]


@pytest.mark.django_db
@settings(max_examples=300, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    st.lists(st.tuples(st.sampled_from(WORDS), st.sampled_from(SIGNS)), max_size=8),
    st.text("aÀéïŒßZ9 '’&-.", max_size=20),
)
def test_sql_and_python_spell_a_name_alike(words, more):
    text = "".join(word + sign for word, sign in words) + more
    assert in_sql(text) == comparable(text)


@pytest.mark.django_db
@pytest.mark.parametrize("word", sorted(ABBREVIATED))
def test_every_abbreviation_is_known_to_both(word):
    assert in_sql(f"{word} Montrose") == comparable(f"{word} Montrose")


@pytest.mark.django_db
@pytest.mark.parametrize("region", ["", "Saint-Estèphe"])
@pytest.mark.parametrize("producer", ["", "Château Montrose", "Ch. Montrose"])
def test_a_wine_has_all_the_names_that_matching_compares(producer, region):
    wine = cast.wine(producer=producer, region=region)
    wine.refresh_from_db()
    assert set(wine.names) == candidate(wine).names()
    Wine.objects.update(name="La Dame de Montrose")
    wine.refresh_from_db()
    assert set(wine.names) == candidate(wine).names()


@pytest.mark.django_db
def test_listings_are_matched_by_a_look_at_each_index_and_no_wine_that_is_not_asked_for_is_read():
    for n in range(20):
        cast.wine(str(n), name=f"Cuvée {n}")
    listed = [read_listing("Cuvée 3 2016 75cl"), read_listing("Château Montrose Cuvée 4 2016 75cl")]
    assert sorted(wines_for(listed)) == ["wn_3", "wn_4"]
    with connection.cursor() as cursor:
        cursor.execute("SET LOCAL enable_seqscan = off")
        query = Wine.objects.filter(names__overlap=["cuvee 3"], retired_at__isnull=True)
        assert "pricing_wine_by_names" in query.explain()
