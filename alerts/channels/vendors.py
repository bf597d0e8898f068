"""Chat and push services, by Apprise: which of its addresses we take, and posting to them. Touches no database.

Guarantee: only services whose server stands in Apprise's own code, so that nobody chooses a host of ours; no options,
which could read a file, switch off certificates or stretch a timeout; no redirects. Apprise is optional: without it
installed no such channel can be added, and those that there are rest.
"""

from __future__ import annotations

import logging
import re
from importlib.util import find_spec
from typing import Any

if find_spec("apprise") is not None:
    import apprise as installed
else:  # pragma: no cover (the tests install it)
    installed = None  # type: ignore[assignment]

# By scheme: what its owner calls it, and the only hosts it may speak to (the tests look at what is really sent).
SERVICES = {
    "discord": ("Discord", {"discord.com"}),
    "ntfy": ("ntfy.sh", {"ntfy.sh"}),
    "pbul": ("Pushbullet", {"api.pushbullet.com"}),
    "pover": ("Pushover", {"api.pushover.net"}),
    "prowl": ("Prowl", {"api.prowlapp.com"}),
    "slack": ("Slack", {"slack.com", "hooks.slack.com"}),
    "tgram": ("Telegram", {"api.telegram.org"}),
}
LONGEST_ADDRESS = 500
_ADDRESS = re.compile(r"([a-z]+)://[A-Za-z0-9@/_:.#+=-]+")
# Its lines name addresses. What came of a try is said by us, without any.
logging.getLogger("apprise").setLevel(logging.CRITICAL)


class RefusedServiceError(Exception):
    """We do not take this address; the message says why, in the owner's words."""


def names() -> list[str]:
    """What can be reached from here: nothing where Apprise is not installed."""
    return [name for name, _ in SERVICES.values()] if installed is not None else []


def read_address(text: str) -> str:
    """The service's name, for an address that can be posted to. Raises RefusedServiceError."""
    known = ", ".join(name for name, _ in SERVICES.values())
    scheme = text.partition("://")[0]
    if scheme not in SERVICES:
        raise RefusedServiceError(f"The address begins with {', '.join(f'{each}://' for each in SERVICES)} ({known}).")
    if len(text) > LONGEST_ADDRESS or not _ADDRESS.fullmatch(text):
        raise RefusedServiceError(
            "The address has letters that none of this service has. Options after a ? are not taken."
        )
    name = SERVICES[scheme][0]
    if installed is None:
        raise RefusedServiceError(f"{name} cannot be reached from this site. A webhook can.")
    service = _open(text)
    if service is None:
        raise RefusedServiceError(f"That is no address of {name}. It is written as Apprise's page about it says.")
    if getattr(service, "mode", "") == "private":  # ntfy on a server of one's own
        raise RefusedServiceError(f"Only {name} itself can be reached, not a server of your own. A webhook can.")
    return name


def send(address: str, *, title: str, text: str) -> bool:
    """Whether the service took it. Never raises for what the service does."""
    service = _open(address)
    return service is not None and bool(service.notify(body=text, title=title, body_format="text"))


def _open(address: str) -> Any:
    if installed is None:
        return None
    asset = installed.AppriseAsset(
        app_id="Winecellar",
        app_desc="Winecellar",
        async_mode=False,
        http_redirects=False,
        storage_mode="memory",  # nothing of ours on the disk
        secure_logging=True,
        pgp_autogen=False,
        pem_autogen=False,
    )
    return installed.Apprise.instantiate(address, asset=asset)
