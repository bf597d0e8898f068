"""Retries wait long enough here that none comes due within a test by itself; tests let time pass by hand."""

from datetime import timedelta
from typing import Any

import pytest


@pytest.fixture(autouse=True)
def _no_retry_by_itself(settings: Any) -> None:
    settings.RETRY_BACKOFF_BASE = timedelta(hours=10)
