"""People, their browsers and their mailboxes. Nothing is known of anybody's attempts when a test begins."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

import pytest
from django.core import mail
from django.core.cache import cache
from django.test import Client

from jobs.worker import drain
from tests.cast import person
from tests.schemas.published import every_event_is_of_its_schema  # noqa: F401
from winecellar.accounts.models import User

PASSWORD = "a-cellar-of-tests"


@pytest.fixture(autouse=True)
def _quick_hashes(settings: Any) -> None:
    """The real hasher takes a third of a second, which is its point and not ours."""
    settings.PASSWORD_HASHERS = ["django.contrib.auth.hashers.MD5PasswordHasher"]


@pytest.fixture(autouse=True)
def _nothing_counted(request: pytest.FixtureRequest) -> Iterator[None]:
    yield
    if "transactional_db" in request.fixturenames:
        cache.clear()


@pytest.fixture
def alice(db: None) -> User:
    return with_password(person("alice"))


@pytest.fixture
def stranger() -> Client:
    return Client()


@pytest.fixture
def as_alice(alice: User) -> Client:
    client = Client()
    client.force_login(alice)
    return client


def with_password(user: User) -> User:
    user.set_password(PASSWORD)
    user.save(update_fields=["password"])
    return user


def mails() -> list[mail.EmailMessage]:
    """Let the worker send what waits; the mails since the last time."""
    mail.outbox = []
    drain()
    return list(mail.outbox)


def link_in(message: mail.EmailMessage) -> str:
    """The path of the only link in the text, and nothing of its host."""
    (link,) = re.findall(r"https?://[^/\s]+(/\S+)", str(message.body))
    return str(link)
