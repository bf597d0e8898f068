"""What is typed and what is stored meet: folding in Python and in Postgres is the same."""

import pytest

from pricing.folding import Folded, fold
from pricing.models import Wine
from tests.cast import wine

SAMPLES = {
    "Château d’Yquem": "chateau d'yquem",
    "SAINT-ÉMILION": "saint emilion",
    "Œil Bœuf ÆON Straße": "oeil boeuf aeon strasse",
    "Kjær Øst Łódź Đorđe ıI": "kjaer ost lodz dorde ii",
    "Viña Rosé Müller Škoda Ångström": "vina rose muller skoda angstrom",
    "Te\u0301te\u0301": "tete",
    "ﬁno ２０１６ ½": "fino 2016 1⁄2",
    "Τρία Ηλιούπολη": "τρια ηλιουπολη",
    "100% _ \\ ' \" $$": "100% _ \\ ' \" $$",
    "": "",
}


@pytest.mark.parametrize(("text", "folded"), SAMPLES.items())
def test_accents_case_and_ligatures_are_folded(text: str, folded: str) -> None:
    assert fold(text) == folded


@pytest.mark.django_db
@pytest.mark.parametrize("text", SAMPLES)
def test_postgres_folds_as_python_does(text: str) -> None:
    stored = wine(producer=text)
    assert Wine.objects.annotate(folded=Folded("producer")).get(pk=stored.pk).folded == fold(text)
