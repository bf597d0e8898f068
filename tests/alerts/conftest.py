"""Retries wait long enough here that none comes due within a test by itself; tests let time pass by hand."""

from datetime import timedelta
from typing import Any

import pytest

from tests.schemas.published import every_event_is_of_its_schema  # noqa: F401


@pytest.fixture(autouse=True)
def _no_cooldown(settings: Any) -> None:
    """Tests of the cooldown set their own; the others' prices come within moments."""
    settings.ALERT_COOLDOWN = timedelta(0)


@pytest.fixture(autouse=True)
def _no_retry_by_itself(settings: Any) -> None:
    settings.RETRY_BACKOFF_BASE = timedelta(hours=10)
