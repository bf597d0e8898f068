"""Fixtures of the tests of the refresh."""

import pytest

from pricing.models import Merchant
from tests import cast


@pytest.fixture
def merchant(db: None) -> Merchant:
    return cast.merchant()
