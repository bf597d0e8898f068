"""A mail server that keeps what it gets and shows it in the browser; none of it goes anywhere.

`python -m winecellar.demo.mail_sink --smtp-port 0 --web-port 8025 --log var/demo/mail.jsonl`; port 0 takes a free one.
Once all listen on 127.0.0.1 it prints them as one JSON line. Stops on SIGTERM and SIGINT. Imports no Django.
It takes mails by SMTP, and by an API like Resend's (mail_api.py), which behaves as `--script` says.
`--brownout 30:60` (may be given several times): from second 30 on, for a minute, every third mail hangs and is refused.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import signal
import sys
import threading
import time
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from email.message import EmailMessage
from email.utils import parseaddr
from functools import partial
from pathlib import Path
from typing import Any

from aiosmtpd.smtp import SMTP, Envelope, Session

from winecellar.demo.mail_api import ApiServer, Taken
from winecellar.demo.mail_box import MailBox
from winecellar.demo.mail_script import Script
from winecellar.demo.mail_web import MailServer

LARGEST_MAIL = 2_000_000
BROWNOUT_HANGS, BROWNOUT_PART = 8.0, 3  # seconds; and of how many mails one


@dataclass(frozen=True)
class Brownout:
    """A bad time of the provider's, in seconds since it started."""

    begins: float
    lasts: float

    @classmethod
    def read(cls, text: str) -> Brownout:
        begins, lasts = map(float, text.split(":"))
        return cls(begins, lasts)


class Taker:
    """What aiosmtpd calls for each mail."""

    def __init__(self, box: MailBox, brownouts: Sequence[Brownout] = ()) -> None:
        self._box = box
        self._brownouts = brownouts
        self._began = time.monotonic()
        self._bad = 0

    async def handle_DATA(self, server: SMTP, session: Session, envelope: Envelope) -> str:  # noqa: N802
        if self._is_bad_moment():
            await asyncio.sleep(BROWNOUT_HANGS)
            return "451 come again later"
        received_at = datetime.now(UTC)
        content = envelope.content or b""
        self._box.take(
            content if isinstance(content, bytes) else content.encode(),
            sender=envelope.mail_from or "",
            recipients=list(envelope.rcpt_tos),
            received_at=received_at,
        )
        return "250 kept"

    def _is_bad_moment(self) -> bool:
        """Every third mail of a brownout: by count, not by chance, so that each run meets as many."""
        since = time.monotonic() - self._began
        if not any(each.begins <= since < each.begins + each.lasts for each in self._brownouts):
            return False
        self._bad += 1
        return self._bad % BROWNOUT_PART == 0


async def serve(
    *, smtp_port: int, web_port: int, or_any: bool, log: Path, brownouts: Sequence[Brownout] = (), script: Script
) -> None:
    """Take mails and show them until a signal comes. Raises OSError for a taken port, unless any web port will do."""
    box = MailBox(log)
    loop = asyncio.get_running_loop()
    stopped = asyncio.Event()
    for number in (signal.SIGTERM, signal.SIGINT):
        loop.add_signal_handler(number, stopped.set)
    web = _web_server(web_port, box, or_any=or_any)
    taker = Taker(box, brownouts)
    smtp = await loop.create_server(
        lambda: SMTP(taker, data_size_limit=LARGEST_MAIL, hostname="localhost", ident="winecellar demo", loop=loop),
        "127.0.0.1",
        smtp_port,
    )
    api = ApiServer(0, Taken(log.with_suffix(".keys.jsonl"), partial(box_from_api, box)), script).start()
    threading.Thread(target=web.serve_forever, kwargs={"poll_interval": 0.1}, daemon=True).start()
    ports = {"smtp_port": smtp.sockets[0].getsockname()[1], "web_port": web.port, "api_port": api.port}
    print(json.dumps(ports), flush=True)
    await stopped.wait()
    smtp.close()
    api.shutdown()
    api.server_close()
    web.shutdown()
    web.server_close()
    box.close()


def box_from_api(box: MailBox, mail: dict[str, Any]) -> None:
    """What came by the API as the mail that the provider would make of it. For Taken: called once for each key."""
    message = EmailMessage()
    for name, value in {"From": mail["from"], "To": ", ".join(mail["to"]), "Subject": mail["subject"]}.items():
        message[name] = value
    for name, value in mail.get("headers", {}).items():
        message[name] = value
    message.set_content(mail.get("text", ""))
    if "html" in mail:
        message.add_alternative(mail["html"], subtype="html")
    recipients = [parseaddr(address)[1] for address in mail["to"]]
    sender = parseaddr(mail["from"])[1]
    box.take(message.as_bytes(), sender=sender, recipients=recipients, received_at=datetime.now(UTC))


def _web_server(port: int, box: MailBox, *, or_any: bool) -> MailServer:
    try:
        return MailServer(port, box)
    except OSError:
        if not or_any:
            raise
        return MailServer(0, box)


def main(arguments: list[str]) -> int:
    parser = argparse.ArgumentParser(prog="python -m winecellar.demo.mail_sink", description=__doc__)
    parser.add_argument("--smtp-port", type=int, default=0)
    parser.add_argument("--web-port", type=int, default=0)
    parser.add_argument("--or-any", action="store_true", help="another web port if that one is taken")
    parser.add_argument("--log", type=Path, required=True)
    parser.add_argument("--brownout", type=Brownout.read, action="append", default=[], help="begin:length in seconds")
    parser.add_argument("--script", type=Script, default=Script(), help="how the API behaves: see mail_script.py")
    chosen = parser.parse_args(arguments)
    ports = {"smtp_port": chosen.smtp_port, "web_port": chosen.web_port, "or_any": chosen.or_any}
    try:
        asyncio.run(serve(**ports, log=chosen.log, brownouts=chosen.brownout, script=chosen.script))
    except OSError as error:
        print(f"The mail sink cannot listen: {error}", file=sys.stderr)
        return 2
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
