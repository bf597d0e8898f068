"""A provider on this machine that behaves as a test says, and a mail to hand it."""

from collections.abc import Callable, Iterator
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
from django.core.mail import EmailMultiAlternatives

from jobs.mail import transport
from winecellar import mail_provider
from winecellar.demo.mail_api import ApiServer, Taken
from winecellar.demo.mail_script import Script

Provider = Callable[..., ApiServer]
TIMEOUT = 0.6


@pytest.fixture
def provider(tmp_path: Path, settings: Any) -> Iterator[Provider]:
    """provider("500, ok") listens, and the settings send mails there."""
    servers: list[ApiServer] = []

    def start(script: str = "") -> ApiServer:
        server = ApiServer(0, Taken(tmp_path / "taken.jsonl"), Script(script)).start()
        servers.append(server)
        url = f"resend://re_key@127.0.0.1:{server.port}/?tls=false"
        for name, value in mail_provider.read(url, timeout=TIMEOUT).items():
            setattr(settings, name, value)
        settings.MAIL_TIMEOUT = timedelta(seconds=TIMEOUT)
        return server

    yield start
    transport._drop()
    for server in servers:
        server.shutdown()
        server.server_close()


def mail(number: int = 1, *, body: str = "It is $154.00.") -> EmailMultiAlternatives:
    message = EmailMultiAlternatives(
        "Subject",
        body,
        "Winecellar <alerts@winecellar.example>",
        ["alice@winecellar.example"],
        headers={"Message-ID": f"<alert-1.evt_{number}@winecellar.example>"},
    )
    message.attach_alternative(f"<p>{body}</p>", "text/html")
    return message
