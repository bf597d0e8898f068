"""What went wrong, on our own pages: without the database, without a stack trace, with the next step."""

from collections.abc import Callable
from typing import NoReturn

import pytest
from django.core.exceptions import PermissionDenied
from django.db import InterfaceError, OperationalError
from django.http import Http404
from django.test import Client

from tests.pages.html import Page

# No test here may touch the database, though a session cookie is sent: pytest-django fails the one that does.
COOKIE = "a" * 32


def raising(error: Exception) -> Callable[..., NoReturn]:
    def fail(*args: object, **kwargs: object) -> NoReturn:
        raise error

    return fail


@pytest.fixture
def visitor() -> Client:
    client = Client(raise_request_exception=False)
    client.cookies["sessionid"] = COOKIE
    return client


@pytest.mark.parametrize("error", [OperationalError("no answer"), InterfaceError("connection already closed")])
def test_while_the_database_is_away_the_answer_is_503_with_a_time_to_come_back(
    visitor: Client, monkeypatch: pytest.MonkeyPatch, error: Exception
) -> None:
    monkeypatch.setattr("pricing.search.find", raising(error))
    response = visitor.get("/wines")
    assert response.status_code == 503
    assert int(response["Retry-After"]) > 0
    seen = Page(response.content.decode())
    assert seen.faults == []
    assert "Back in a moment" in seen.words
    assert str(error) not in seen.words


@pytest.mark.parametrize(
    ("error", "status", "heading"),
    [
        (RuntimeError("a secret"), 500, "That went wrong on our side"),
        (PermissionDenied("a secret"), 403, "You may not do that"),
        (Http404("a secret"), 404, "There is nothing here"),
    ],
)
def test_an_error_gets_our_own_page_without_its_text(
    visitor: Client, monkeypatch: pytest.MonkeyPatch, error: Exception, status: int, heading: str
) -> None:
    monkeypatch.setattr("pricing.search.find", raising(error))
    response = visitor.get("/wines")
    assert response.status_code == status
    seen = Page(response.content.decode())
    assert seen.faults == []
    assert heading in seen.words
    assert "a secret" not in response.content.decode()
    assert {"class": "button", "href": "/wines"} in seen.all("a")


@pytest.mark.parametrize(
    "path", ["/nowhere", "/wines/", "/alerts/", "/sign-in/", "/.env", "/%00", "/%ff", "/" + "a" * 5_000]
)
def test_an_unknown_address_is_a_404_and_never_a_redirect(visitor: Client, path: str) -> None:
    response = visitor.get(path)
    assert response.status_code == 404
    assert Page(response.content.decode()).faults == []


def test_a_wrong_host_is_a_400(visitor: Client) -> None:
    assert visitor.get("/wines", headers={"host": "evil.example"}).status_code == 400
