"""What is typed and what is indexed meet."""

import pytest

from pricing.folding import fold

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


@pytest.mark.parametrize("text", SAMPLES)
def test_folding_again_changes_nothing(text: str) -> None:
    assert fold(fold(text)) == fold(text)
