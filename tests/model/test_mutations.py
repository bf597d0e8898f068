"""The real SQL and the real code with one bug planted at a time: each must break the promise that its table names.

First every scenario passes on the code as it is. Then each mutation must make its scenario fail, with the invariant
that it was expected to break and no other error.
"""

from collections.abc import Callable, Iterator

import pytest

from jobs.models import DeadLetter
from tests.model.mutations import MUTATIONS, Mutation
from tests.model.stage import reset

pytestmark = pytest.mark.django_db(transaction=True)
SCENARIOS = sorted({mutation.scenario for mutation in MUTATIONS}, key=lambda scenario: scenario.__name__)


@pytest.fixture(autouse=True)
def _stage(queue_db: None) -> Iterator[None]:
    reset()
    yield
    DeadLetter.objects.all().delete()


@pytest.mark.parametrize("scenario", SCENARIOS, ids=lambda scenario: scenario.__name__)
def test_the_code_as_it_is_keeps_the_promise(scenario: Callable[[], None]) -> None:
    scenario()


@pytest.mark.parametrize("mutation", MUTATIONS, ids=lambda mutation: mutation.name.replace(" ", "_"))
def test_the_code_with_a_bug_planted_breaks_the_promise(mutation: Mutation, monkeypatch: pytest.MonkeyPatch) -> None:
    mutation.plant(monkeypatch)
    with pytest.raises(AssertionError) as caught:
        mutation.scenario()
    assert str(caught.value).startswith(mutation.rule), caught.value
    print(f"\n{mutation.name}: {caught.value}")
