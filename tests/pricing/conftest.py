"""Fixtures of the tests of prices."""

import pytest

from pricing.models import Merchant, Wine
from tests import cast


@pytest.fixture
def merchant(db: None) -> Merchant:
    return cast.merchant()


@pytest.fixture
def wine(db: None) -> Wine:
    return cast.wine()
