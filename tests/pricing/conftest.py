"""Fixtures of the tests of prices."""

import pytest

from pricing.models import Merchant, Wine
from tests import cast
from tests.schemas.published import every_event_is_of_its_schema  # noqa: F401


@pytest.fixture
def merchant(db: None) -> Merchant:
    return cast.merchant()


@pytest.fixture
def wine(db: None) -> Wine:
    return cast.wine()
