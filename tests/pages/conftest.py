"""Who looks at the pages, and what there is to see."""

from typing import Any

import pytest
from django.test import Client

from tests.cast import person
from tests.pages.cellar import fill_cellar
from winecellar.accounts.models import User

PASSWORD = "a-cellar-of-tests"


@pytest.fixture(autouse=True)
def _quick_hashes(settings: Any) -> None:
    """The real hasher takes a third of a second, which is its point and not ours."""
    settings.PASSWORD_HASHERS = ["django.contrib.auth.hashers.MD5PasswordHasher"]


@pytest.fixture
def alice(db: None) -> User:
    user = person("alice")
    user.set_password(PASSWORD)
    user.save(update_fields=["password"])
    return user


@pytest.fixture
def stranger() -> Client:
    return Client()


@pytest.fixture
def as_alice(alice: User) -> Client:
    client = Client()
    client.force_login(alice)
    return client


@pytest.fixture
def cellar(db: None) -> None:
    """Montrose with two merchants and history, and a wine that nobody offers."""
    fill_cellar()
