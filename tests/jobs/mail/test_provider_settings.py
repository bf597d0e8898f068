"""EMAIL_URL becomes settings; what is half configured is said by the system checks."""

from typing import Any

import pytest

from jobs.mail import checks
from winecellar.mail_provider import read

SMTP = "jobs.mail.backends.SmtpBackend"


@pytest.mark.parametrize(
    ("url", "backend", "anymail"),
    [
        (
            "resend://re_1@",
            "jobs.mail.backends.ResendBackend",
            {"RESEND_API_KEY": "re_1", "RESEND_API_URL": "https://api.resend.com/"},
        ),
        (
            "resend://re%2F1@127.0.0.1:8026/?tls=false",
            "jobs.mail.backends.ResendBackend",
            {"RESEND_API_KEY": "re/1", "RESEND_API_URL": "http://127.0.0.1:8026/"},
        ),
        (
            "postmark://token@",
            "jobs.mail.backends.PostmarkBackend",
            {"POSTMARK_SERVER_TOKEN": "token", "POSTMARK_API_URL": "https://api.postmarkapp.com/"},
        ),
        ("memorymail://", "django.core.mail.backends.locmem.EmailBackend", {}),
        ("smtp://me:secret@mail.example:587/?tls=true", SMTP, {}),
        ("", SMTP, {}),
    ],
)
def test_a_url_names_the_provider_and_its_key(url: str, backend: str, anymail: dict[str, str]) -> None:
    found = read(url, timeout=10)
    assert found["EMAIL_BACKEND"] == backend
    assert found["ANYMAIL"] == {"REQUESTS_TIMEOUT": 10} | anymail


def test_a_mail_servers_url_is_read_as_before() -> None:
    found = read("smtp+tls://me:secret@mail.example:587", timeout=10)
    server = (found["EMAIL_HOST"], found["EMAIL_PORT"], found["EMAIL_HOST_USER"], found["EMAIL_HOST_PASSWORD"])
    assert server == ("mail.example", 587, "me", "secret")
    assert found["EMAIL_USE_TLS"]


@pytest.mark.parametrize(
    ("url", "tls", "ssl"),
    [
        ("smtp://me:secret@mail.example:587/?tls=true", True, False),
        ("smtp://me:secret@mail.example:587?tls=true", True, False),
        ("smtp+tls://me:secret@mail.example:587", True, False),
        ("smtp+ssl://me:secret@mail.example:465", False, True),
        ("smtp://mail.example:25", False, False),
        ("smtp://mail.example:25/?tls=false", False, False),
    ],
)
def test_a_mail_server_is_spoken_to_in_secret_where_its_url_says_so(url: str, tls: bool, ssl: bool) -> None:
    found = read(url, timeout=10)
    assert (found["EMAIL_USE_TLS"], found["EMAIL_USE_SSL"]) == (tls, ssl)


@pytest.mark.parametrize(
    "url", ["smtp://mail.example/?tls=yes", "smtp+ssl://mail.example/?tls=true", "smtp+tls://mail.example/?tls=false"]
)
def test_a_url_that_says_two_things_of_tls_or_none_is_refused_in_words(url: str) -> None:
    with pytest.raises(ValueError, match="tls="):
        read(url, timeout=10)


@pytest.mark.parametrize("url", ["resend://", "resend://api.resend.com", "postmark://@"])
def test_a_provider_without_its_key_is_refused_in_words(url: str) -> None:
    with pytest.raises(ValueError, match="needs the API key before an @"):
        read(url, timeout=10)


@pytest.mark.parametrize(
    ("url", "secret", "ids"),
    [
        ("resend://k@", "whsec_x", set()),
        ("resend://k@", "", {"jobs.W003"}),
        ("resend://k@", "user:password", {"jobs.E017"}),
        ("postmark://k@", "user:password", set()),
        ("postmark://k@", "whsec_x", {"jobs.E017"}),
        ("resend://k@127.0.0.1:9/?tls=false", "whsec_x", set()),
        ("resend://k@10.0.0.7:9/?tls=false", "whsec_x", {"jobs.E016"}),
        ("smtp://me:secret@mail.example:587/?tls=true", "", set()),
        ("smtp+ssl://me:secret@mail.example:465", "", set()),
        ("smtp://mail.example:25", "", set()),
        ("smtp://me:secret@localhost:25", "", set()),
        ("smtp://me:secret@mail.example:587", "", {"jobs.E016"}),
        ("smtp://me:secret@mail.example:587/?tls=false", "", {"jobs.E016"}),
        ("memorymail://", "", {"jobs.E018"}),
        ("", "", {"jobs.E018"}),
    ],
)
def test_what_is_half_configured_is_said(settings: Any, url: str, secret: str, ids: set[str]) -> None:
    for name, value in read(url, timeout=10).items():
        setattr(settings, name, value)
    settings.EMAIL_URL, settings.MAIL_WEBHOOK_SECRET = url, secret
    found = [
        *checks.a_mail_has_time_to_fail(),
        *checks.the_providers_key_is_not_sent_in_the_clear(),
        *checks.the_reports_secret_can_be_used(),
        *checks.mails_go_somewhere_and_their_fate_is_heard(),
    ]
    assert {message.id for message in found} == ids


def test_a_timeout_that_would_have_workers_replaced_is_refused(settings: Any) -> None:
    settings.MAIL_TIMEOUT = settings.EXTERNAL_TIME_LIMIT
    assert [message.id for message in checks.a_mail_has_time_to_fail()] == ["jobs.E015"]
