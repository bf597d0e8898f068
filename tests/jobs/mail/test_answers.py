"""What each answer of a provider means: the tables."""

import smtplib
from datetime import UTC, datetime

import pytest

from jobs.errors import AwayError, PermanentError, RefusedError, TransientError
from jobs.mail.answers import LONGEST_RETRY_AFTER, TakenAlreadyError, error_name, of_http, of_smtp, retry_after


@pytest.mark.parametrize(
    ("status", "name", "meaning"),
    [
        (400, "validation_error", PermanentError),
        (413, None, PermanentError),
        (422, "invalid_from_address", PermanentError),
        (401, "missing_api_key", AwayError),  # a wrong setting meets every mail alike, and makes no dead letters
        (403, "invalid_api_key", AwayError),
        (404, "not_found", AwayError),
        (408, None, AwayError),
        (429, "rate_limit_exceeded", AwayError),
        (429, "daily_quota_exceeded", AwayError),
        (500, "application_error", AwayError),
        (503, None, AwayError),
        (302, None, AwayError),  # a proxy's sign-in page
        (409, "concurrent_idempotent_requests", TransientError),
        (409, "invalid_idempotent_request", TakenAlreadyError),
    ],
)
def test_an_http_status_is_away_for_good_or_later(status: int, name: str | None, meaning: type[Exception]) -> None:
    error = of_http(status, name, 7.0)
    assert type(error) is meaning
    if meaning is AwayError:
        assert error.retry_after == 7.0  # type: ignore[attr-defined]


@pytest.mark.parametrize(
    ("error", "meaning", "whole"),
    [
        (smtplib.SMTPRecipientsRefused({"a": (550, b"no such user")}), RefusedError, None),
        (smtplib.SMTPRecipientsRefused({"a": (450, b"greylisted")}), AwayError, False),
        (smtplib.SMTPRecipientsRefused({}), AwayError, False),
        (smtplib.SMTPDataError(554, b"rejected"), PermanentError, None),
        (smtplib.SMTPDataError(451, b"later"), AwayError, True),
        (smtplib.SMTPAuthenticationError(535, b"wrong password"), AwayError, True),
        (smtplib.SMTPSenderRefused(550, b"not yours", "us"), AwayError, True),
        (smtplib.SMTPConnectError(554, b"no service"), AwayError, True),
        (smtplib.SMTPServerDisconnected("gone"), AwayError, True),
        (TimeoutError(), AwayError, True),
        (ConnectionRefusedError(), AwayError, True),
    ],
)
def test_smtp_says_whether_it_is_the_mail_the_recipient_or_the_server(
    error: Exception, meaning: type[Exception], whole: bool | None
) -> None:
    found = of_smtp(error)  # type: ignore[arg-type]
    assert type(found) is meaning
    assert getattr(found, "whole", None) is whole
    assert "a" not in str(found).split()


@pytest.mark.parametrize(
    ("text", "seconds"),
    [
        ("30", 30),
        ("0", 0),
        ("", 0),
        ("-5", 0),
        ("soon", 0),
        ("٣", 0),
        ("999999999999", LONGEST_RETRY_AFTER),
        ("Sat, 14 Mar 2026 09:01:00 GMT", 60),
        ("Sat, 14 Mar 2026 08:00:00 GMT", 0),
        ("Sat, 14 Mar 2099 08:00:00 -0000", LONGEST_RETRY_AFTER),
    ],
)
def test_retry_after_is_read_as_seconds_or_a_date_and_bounded(text: str, seconds: float) -> None:
    assert retry_after({"Retry-After": text}, datetime(2026, 3, 14, 9, 0, tzinfo=UTC)) == seconds


@pytest.mark.parametrize(("document", "name"), [({"name": "x"}, "x"), ({"name": 7}, None), ([], None), (None, None)])
def test_the_name_of_an_error_is_read_from_whatever_comes(document: object, name: str | None) -> None:
    assert error_name(document) == name
