"""Posting to an address that a stranger chose: what it reaches, and how it ends."""

import socket
from pathlib import Path
from typing import Any

import pytest

from alerts.channels import outside
from alerts.channels.outside import NoAnswerError, RefusedAddressError, is_public, post, read_url
from tests.alerts.receiver import answers, breaks_off, drips, receiving, resolve_to

PRIVATE = [
    *("127.0.0.1", "127.1.2.3", "0.0.0.0", "10.0.0.1", "172.16.0.1", "192.168.1.1", "100.64.0.1", "169.254.169.254"),
    *("192.0.2.1", "198.18.0.1", "224.0.0.1", "240.0.0.1", "255.255.255.255"),
    *("::", "::1", "fe80::1", "fe80::1%eth0", "fc00::1", "fd12::1", "fec0::1", "ff02::1", "2001:db8::1", "::127.0.0.1"),
    # Those with an IPv4 address inside: mapped, 6to4, NAT64, and Teredo, whose client stands there inverted.
    *("::ffff:127.0.0.1", "::ffff:10.0.0.1", "2002:7f00:1::", "2002:a00:1::1", "64:ff9b::a00:1", "64:ff9b::7f00:1"),
    "2001:0:808:808::f5ff:fffe",
]


@pytest.mark.parametrize("address", PRIVATE)
def test_what_is_ours_or_the_networks_is_not_public(address: str) -> None:
    assert not is_public(address)


@pytest.mark.parametrize(
    "address", ["8.8.8.8", "93.184.215.14", "2606:4700::1111", "::ffff:8.8.8.8", "64:ff9b::808:808"]
)
def test_what_is_anybodys_on_the_internet_is_public(address: str) -> None:
    assert is_public(address)


@pytest.mark.parametrize(
    ("url", "says"),
    [
        ("http://hooks.example.org/", "starts with https://"),
        ("ftp://hooks.example.org/", "starts with https://"),
        ("https://", "names no server"),
        ("https:///path", "names no server"),
        ("https://me:secret@hooks.example.org/", "name and the password"),
        ("https://hooks.example.org:22/", "Port 22"),
        ("https://hooks.example.org:99999/", "no address of a web server"),
        ("https://hooks.example.org:x/", "no address of a web server"),
        ("https://[::1/", "no address of a web server"),
        ("https://127.0.0.1/", "not on the public internet"),
        ("https://[::ffff:10.0.0.1]/", "not on the public internet"),
        ("https://hooks.example.org/a b", "no address has"),
        ("https://hooks.example.org/\r\nHost: x", "no address has"),
        ("https://good.example\\@evil.example/", "no address has"),
        ("https://höoks.example.org/", "percent-encoded"),
        ("https://hooks.example.org/" + "a" * 500, "at most 500"),
    ],
)
def test_an_address_that_we_would_never_post_to_is_refused_in_words(url: str, says: str) -> None:
    with pytest.raises(RefusedAddressError, match=says):
        read_url(url)


@pytest.mark.parametrize("addresses", [["10.0.0.1"], ["::1"], ["8.8.8.8", "192.168.0.1"]])
def test_a_name_of_which_any_address_is_private_is_not_connected_to(
    monkeypatch: pytest.MonkeyPatch, addresses: list[str]
) -> None:
    resolve_to(monkeypatch, *addresses)

    def connect(*_: Any) -> None:
        raise AssertionError("connected")

    monkeypatch.setattr(outside, "_connect", connect)
    with pytest.raises(RefusedAddressError):
        post("https://rebound.example/", b"{}", {}, seconds=2)


@pytest.mark.parametrize("url", ["https://2130706433/", "https://0x7f.1/", "https://127.1/", "https://localhost/"])
def test_other_spellings_of_loopback_are_refused_when_they_are_resolved(url: str) -> None:
    with pytest.raises((RefusedAddressError, NoAnswerError)) as refused:
        post(url, b"{}", {}, seconds=2)
    assert "public" in str(refused.value) or "not known" in str(refused.value)


def test_it_connects_to_the_address_that_was_judged_and_asks_for_the_name_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A second answer of the name server would be the attacker's chance."""
    with receiving(tmp_path, monkeypatch) as receiver:
        asked = resolve_to(monkeypatch, "127.0.0.1")
        answer = post(receiver.url, b'{"a":1}', {"X-Ours": "1"}, seconds=5)
        assert answer.status == 204
        assert asked == ["hooks.test"]
        ((line, headers, body),) = receiver.requests
    assert line == "POST /told?by=winecellar HTTP/1.1"
    assert headers["host"] == f"hooks.test:{receiver.port}"
    assert (headers["x-ours"], body) == ("1", b'{"a":1}')


def test_a_redirect_is_an_answer_and_is_not_followed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with receiving(tmp_path, monkeypatch, answers(302, "Location: https://127.0.0.1/admin")) as receiver:
        assert post(receiver.url, b"{}", {}, seconds=5).status == 302
        assert receiver.connections == 1


def test_a_certificate_for_another_name_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with receiving(tmp_path, monkeypatch) as receiver:
        with pytest.raises(NoAnswerError, match="certificate is not valid"):
            post(f"https://other.test:{receiver.port}/", b"{}", {}, seconds=5)
        assert not receiver.requests


def test_a_proxy_of_the_environment_is_not_asked(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HTTPS_PROXY", "http://127.0.0.1:1")
    with receiving(tmp_path, monkeypatch) as receiver:
        assert post(receiver.url, b"{}", {}, seconds=5).status == 204


def test_headers_that_drip_for_ever_end_with_the_time(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The suite's own time limit fails it if the drip is waited for."""
    with receiving(tmp_path, monkeypatch, drips) as receiver, pytest.raises(NoAnswerError):
        post(receiver.url, b"{}", {}, seconds=0.5)


def test_a_server_that_says_nothing_in_its_handshake_ends_with_the_time(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(outside, "is_public", lambda _: True)
    resolve_to(monkeypatch, "127.0.0.1")
    with socket.create_server(("127.0.0.1", 0)) as silent, pytest.raises(NoAnswerError):
        post(f"https://hooks.test:{silent.getsockname()[1]}/", b"{}", {}, seconds=0.5)


def test_an_answer_that_breaks_off_is_none(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with receiving(tmp_path, monkeypatch, breaks_off) as receiver, pytest.raises(NoAnswerError):
        post(receiver.url, b"{}", {}, seconds=5)


@pytest.mark.parametrize(("header", "seconds"), [("120", 120.0), ("soon", 0.0), ("-5", 0.0), ("9" * 30, 0.0)])
def test_retry_after_counts_when_it_is_seconds(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, header: str, seconds: float
) -> None:
    with receiving(tmp_path, monkeypatch, answers(503, f"Retry-After: {header}")) as receiver:
        answer = post(receiver.url, b"{}", {}, seconds=5)
    assert (answer.status, answer.retry_after) == (503, seconds)
