"""One POST to an address that a stranger chose, so that it can reach nothing of ours. Touches no database.

Guarantee: only public addresses, judged at the moment of connecting and connected to as judged, so that a name which
points elsewhere a second later changes nothing; no redirect is followed and no proxy asked; nothing of the answer's
body is read; and it ends within its seconds whatever the other side drips. Used by delivery.py.
"""

from __future__ import annotations

import http.client
import ipaddress
import socket
import ssl
import threading
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from urllib.parse import SplitResult, urlsplit

HTTPS = 443
LOWEST_OTHER_PORT = 1_024  # below it are services that are not meant to be posted to
LONGEST_URL = 500
MOST_ADDRESSES = 4  # of one name that are tried, within the same seconds
UNICAST = ipaddress.ip_network("2000::/3")  # all that is given out of IPv6
NAT64 = ipaddress.ip_network("64:ff9b::/96")  # carries an IPv4 address inside, in which a private one could hide


class RefusedAddressError(Exception):
    """We do not post there; the message says why, in the owner's words."""


class NoAnswerError(Exception):
    """There was no whole answer; the message says how far it came."""


@dataclass(frozen=True, slots=True)
class Answer:
    status: int
    retry_after: float


def read_url(text: str) -> SplitResult:
    """The parts of a webhook's address. Raises RefusedAddressError for one that we would never post to."""
    if len(text) > LONGEST_URL:
        raise RefusedAddressError(f"The address has {len(text)} letters; at most {LONGEST_URL} are possible.")
    if not text.isascii() or any(letter <= " " or letter == "\x7f" for letter in text) or "\\" in text:
        raise RefusedAddressError("The address has a letter that no address has. Write other letters percent-encoded.")
    try:
        parts = urlsplit(text)
        host, port = parts.hostname or "", parts.port or HTTPS
    except ValueError:
        raise RefusedAddressError("That is no address of a web server.") from None
    if parts.scheme != "https":
        raise RefusedAddressError("The address starts with https://, so that nobody on the way can read along.")
    if not host:
        raise RefusedAddressError("The address names no server.")
    if parts.username is not None or parts.password is not None:
        raise RefusedAddressError("Leave the name and the password out of the address; our signature says who we are.")
    if port != HTTPS and port < LOWEST_OTHER_PORT:
        raise RefusedAddressError(f"Port {port} is none for webhooks: use {HTTPS}, or one from {LOWEST_OTHER_PORT} on.")
    if _is_literal(host) and not is_public(host):
        raise RefusedAddressError(NOT_PUBLIC)
    return parts


Addresses = list[tuple[socket.AddressFamily, str]]
NOT_PUBLIC = "The address is not on the public internet."


def is_public(address: str) -> bool:
    """Whether an IP address is anybody's on the internet: not ours, not the network's own, not a group's."""
    found = ipaddress.ip_address(address.partition("%")[0])
    if isinstance(found, ipaddress.IPv6Address):
        hidden = found.ipv4_mapped or found.sixtofour or (found.teredo or (None, None))[1]
        if found in NAT64:
            hidden = ipaddress.IPv4Address(int(found) & 0xFFFFFFFF)
        if hidden is not None:
            return is_public(str(hidden))
        return found in UNICAST and found.is_global
    return found.is_global and not found.is_multicast and not found.is_reserved


def post(url: str, body: bytes, headers: Mapping[str, str], *, seconds: float) -> Answer:
    """Raises RefusedAddressError or NoAnswerError; whatever the server answered is an Answer."""
    parts = read_url(url)
    host, port = parts.hostname or "", parts.port or HTTPS
    path = (parts.path or "/") + (f"?{parts.query}" if parts.query else "")
    addresses = _resolve(host, port)
    try:
        with (
            _connect(addresses, port, seconds) as plain,
            _ended_after(plain, seconds),
            ssl.create_default_context().wrap_socket(plain, server_hostname=host) as encrypted,
        ):
            return _ask(host, port, encrypted, path, body, headers)
    except ssl.SSLCertVerificationError as error:
        raise NoAnswerError(f"its certificate is not valid: {error.verify_message}") from error
    except (OSError, http.client.HTTPException) as error:
        raise NoAnswerError(_in_words(error)) from error


def _ask(host: str, port: int, encrypted: ssl.SSLSocket, path: str, body: bytes, headers: Mapping[str, str]) -> Answer:
    connection = http.client.HTTPSConnection(host, port)
    connection.sock = encrypted  # connected already, and so it is not resolved a second time
    connection.request("POST", path, body, dict(headers))
    response = connection.getresponse()
    asked = response.headers.get("Retry-After", "")
    return Answer(response.status, float(asked) if asked.isdecimal() and len(asked) < 7 else 0.0)


def _resolve(host: str, port: int) -> Addresses:
    """All addresses of a name, if all of them are public: one that is not says that somebody plays with us."""
    try:
        found = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)
    except (OSError, UnicodeError) as error:
        raise NoAnswerError("its name is not known") from error
    addresses: Addresses = [(family, str(place[0])) for family, _, _, _, place in found]
    if not all(is_public(address) for _, address in addresses):
        raise RefusedAddressError(NOT_PUBLIC)
    return addresses


def _connect(addresses: Addresses, port: int, seconds: float) -> socket.socket:
    """The first that takes the connection; the addresses as they were judged, never their name again."""
    ends_at = time.monotonic() + seconds
    failure: OSError = OSError("no address")
    for family, address in addresses[:MOST_ADDRESSES]:
        plain = socket.socket(family, socket.SOCK_STREAM)
        try:
            plain.settimeout(max(ends_at - time.monotonic(), 0.01))
            plain.connect((address, port))
        except OSError as error:
            failure = error
            plain.close()
        else:
            plain.settimeout(seconds)
            return plain
    raise failure


@contextmanager
def _ended_after(plain: socket.socket, seconds: float) -> Iterator[None]:
    """Shut the connection when the time is up: each byte of a slow drip meets any timeout of a single read."""
    same = plain.dup()  # wrapping takes the first one's descriptor away
    late = threading.Event()

    def shut() -> None:
        late.set()
        with suppress(OSError):
            same.shutdown(socket.SHUT_RDWR)

    timer = threading.Timer(seconds, shut)
    timer.daemon = True
    timer.start()
    try:
        yield
        if late.is_set():  # headers that are cut look like headers that end
            raise TimeoutError
    finally:
        timer.cancel()
        same.close()


def _is_literal(host: str) -> bool:
    try:
        ipaddress.ip_address(host.partition("%")[0])
    except ValueError:
        return False
    return True


def _in_words(error: Exception) -> str:
    if isinstance(error, TimeoutError):
        return "no answer in time"
    if isinstance(error, ConnectionRefusedError):
        return "nobody listens there"
    if isinstance(error, http.client.HTTPException) and not isinstance(error, http.client.RemoteDisconnected):
        return "the answer is none of a web server"
    return "the connection broke"
