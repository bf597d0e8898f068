"""Fixtures of the tests of the refresh."""

from collections.abc import Iterator

import pytest

from pricing.catalogues import stage
from pricing.models import CatalogueFile, Merchant
from tests import cast
from tests.feeds.conftest import _every_answer_is_as_described  # noqa: F401
from tests.schemas.published import every_event_is_of_its_schema  # noqa: F401


@pytest.fixture
def merchant(db: None) -> Merchant:
    return cast.merchant()


@pytest.fixture(autouse=True)
def _leave_no_stage(request: pytest.FixtureRequest) -> Iterator[None]:
    """A stage is made by SQL, and a test that fails may leave one."""
    yield
    if "transactional_db" in request.fixturenames or request.node.get_closest_marker("django_db"):
        CatalogueFile.objects.all().delete()
        stage.drop_strays()
