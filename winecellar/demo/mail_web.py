"""The mail sink's web server on 127.0.0.1: GET only, no script, a policy that allows nothing but its own style.

Guarantee: answers only requests addressed to this machine, so that no page elsewhere can read the mails.
Called by mail_sink.py.
"""

from __future__ import annotations

import re
from http import HTTPStatus
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

from winecellar.demo import mail_pages
from winecellar.demo.mail_box import MailBox

PAGE_POLICY = "default-src 'none'; style-src 'self'; frame-src 'self'; base-uri 'none'; form-action 'none'"
# What a mail brings may be styled, and no more: no script, no request, no form.
PART_POLICY = (
    "default-src 'none'; style-src 'unsafe-inline'; img-src data:; form-action 'none'; frame-ancestors 'self'; "
    "sandbox allow-popups allow-popups-to-escape-sandbox"
)


class MailServer(ThreadingHTTPServer):
    daemon_threads = True

    def __init__(self, port: int, box: MailBox) -> None:
        super().__init__(("127.0.0.1", port), _Pages)
        self.box = box

    @property
    def port(self) -> int:
        return int(self.server_address[1])


class _Pages(BaseHTTPRequestHandler):
    server: MailServer
    server_version = "winecellar-mail"
    timeout = 10

    def do_GET(self) -> None:
        status, kind, body = self._answer(self.path.partition("?")[0])
        content = body.encode()
        self.send_response(status)
        self.send_header("Content-Type", f"text/{kind}; charset=utf-8")
        self.send_header("Content-Length", str(len(content)))
        self.send_header("Content-Security-Policy", PART_POLICY if self.path.endswith("/html") else PAGE_POLICY)
        self.send_header("X-Content-Type-Options", "nosniff")
        self.send_header("Referrer-Policy", "no-referrer")
        self.send_header("Cache-Control", "no-store")
        self.end_headers()
        self.wfile.write(content)

    def _answer(self, path: str) -> tuple[HTTPStatus, str, str]:
        host = self.headers.get("Host", "").rpartition(":")[0]
        if host not in {"127.0.0.1", "localhost"}:
            return HTTPStatus.MISDIRECTED_REQUEST, "plain", "This address is for this machine only.\n"
        if path == "/":
            return HTTPStatus.OK, "html", mail_pages.list_page(self.server.box.newest_first(), self.server.box.count)
        if path == "/style.css":
            return HTTPStatus.OK, "css", mail_pages.STYLE
        found = re.fullmatch(r"/mail/([0-9]{1,9})(/html)?", path)
        mail = self.server.box.get(int(found[1])) if found else None
        if found is None or mail is None:
            return HTTPStatus.NOT_FOUND, "html", mail_pages.missing_page()
        return HTTPStatus.OK, "html", mail_pages.html_part(mail) if found[2] else mail_pages.mail_page(mail)

    def log_message(self, format: str, *args: object) -> None:
        """The list reloads itself every few seconds: nothing worth a line."""
