"""The mail sink as a process: mails go in by SMTP, come out by HTTP and as lines in a file."""

import asyncio
import http.client
import json
import re
import signal
import smtplib
import socket
import subprocess
import sys
import time
from datetime import UTC, datetime
from email.message import EmailMessage
from types import SimpleNamespace

import pytest

from winecellar.demo import mail_sink
from winecellar.demo.mail_box import KEPT, MailBox
from winecellar.demo.mail_log import MailLog

SECONDS = 20


@pytest.fixture(scope="module")
def sink(tmp_path_factory):
    """A running sink; stopped by SIGTERM, which must end it cleanly."""
    log = tmp_path_factory.mktemp("sink") / "mail.jsonl"
    process = subprocess.Popen(
        [sys.executable, "-m", "winecellar.demo.mail_sink", "--log", str(log)], stdout=subprocess.PIPE, text=True
    )
    ports = json.loads(process.stdout.readline())
    yield SimpleNamespace(**ports, log=log, process=process)
    process.send_signal(signal.SIGTERM)
    assert process.wait(SECONDS) == 0


def compose(subject="Ch. Montrose 2016 is $154.00 at Quenby & Ostler", **parts):
    mail = EmailMessage()
    mail["From"] = "Winecellar <alerts@winecellar.example>"
    mail["To"] = "demo@winecellar.example"
    mail["Subject"] = subject
    mail["Message-ID"] = "<alert-7.evt_1@winecellar.example>"
    mail["X-Winecellar-Event-ID"] = "evt_1"
    mail["X-Winecellar-Alert-ID"] = "7"
    mail.set_content(parts.get("text", "It is $154.00 now.\n\nhttp://127.0.0.1:8000/wines/wn_4417.\n"))
    if "html" in parts:
        mail.add_alternative(parts["html"], subtype="html")
    return mail


def send(sink, mail):
    with smtplib.SMTP("127.0.0.1", sink.smtp_port, timeout=SECONDS) as server:
        server.send_message(mail)


def get(sink, path, host="127.0.0.1"):
    connection = http.client.HTTPConnection("127.0.0.1", sink.web_port, timeout=SECONDS)
    connection.request("GET", path, headers={"Host": f"{host}:{sink.web_port}"})
    response = connection.getresponse()
    body = response.read().decode()
    connection.close()
    return SimpleNamespace(status=response.status, headers=response.headers, body=body)


def newest(sink):
    """The path of the newest mail on the list."""
    return re.search(r'href="(/mail/[0-9]+)"', get(sink, "/").body)[1]


def test_a_mail_is_on_the_list_newest_first_and_the_list_reloads_itself(sink):
    send(sink, compose(subject="The first"))
    send(sink, compose(subject="The second"))
    page = get(sink, "/")
    assert page.status == 200
    assert page.body.index("The second") < page.body.index("The first")
    assert '<meta http-equiv="refresh"' in page.body


def test_one_mail_shows_its_head_its_text_and_its_html_in_a_sandbox(sink):
    send(sink, compose(html="<html><head><title>x</title></head><body><p>It is <b>$154.00</b></p></body></html>"))
    path = newest(sink)
    page = get(sink, path).body
    assert "Ch. Montrose 2016 is $154.00 at Quenby &amp; Ostler" in page
    assert "&lt;alert-7.evt_1@winecellar.example&gt;" in page
    assert "It is $154.00 now." in page
    assert 'href="http://127.0.0.1:8000/wines/wn_4417"' in page, "a link without its full stop"
    assert re.search(rf'<iframe [^>]*src="{path}/html" sandbox="[^"]*"', page)
    assert "allow-scripts" not in page
    assert 'http-equiv="refresh"' not in page, "a page that one reads stands still"
    part = get(sink, f"{path}/html")
    assert "<b>$154.00</b>" in part.body
    assert "script-src" not in part.headers["Content-Security-Policy"]
    assert "default-src 'none'" in part.headers["Content-Security-Policy"]
    assert "sandbox" in part.headers["Content-Security-Policy"]


def test_what_a_mail_says_is_never_markup_of_ours(sink):
    send(sink, compose(subject="<script>alert(1)</script>", text="</pre><script>alert(2)</script>"))
    assert "<script" not in get(sink, "/").body
    page = get(sink, newest(sink))
    assert "<script" not in page.body
    assert "&lt;script&gt;alert(2)" in page.body
    assert "script-src" not in page.headers["Content-Security-Policy"]
    assert "default-src 'none'" in page.headers["Content-Security-Policy"]


def test_each_mail_is_a_line_in_the_log(sink):
    log = MailLog(sink.log)
    log.read_new()
    before = datetime.now(UTC)
    send(sink, compose(subject="Château d’Yquem 2015 is $199.00"))
    (mail,) = log.read_new()
    assert (mail.event_id, mail.alert_id) == ("evt_1", 7)
    assert mail.message_id == "<alert-7.evt_1@winecellar.example>"
    assert mail.to == "demo@winecellar.example"
    assert mail.subject == "Château d’Yquem 2015 is $199.00"
    assert before <= mail.received_at <= datetime.now(UTC)
    assert log.read_new() == []


def test_a_mail_of_any_shape_is_taken(sink):
    log = MailLog(sink.log)
    log.read_new()
    strange = [
        b"",
        b"no header at all",
        b"Subject: =?nonsense?b?!!?=\r\nContent-Type: text/plain; charset=klingon\r\n\r\n\xff",
    ]
    with smtplib.SMTP("127.0.0.1", sink.smtp_port, timeout=SECONDS) as server:
        for content in strange:
            server.sendmail("a@x.example", ["b@x.example"], content)
    assert [mail.alert_id for mail in log.read_new()] == [None] * 3
    assert get(sink, newest(sink)).status == 200
    assert "(no subject)" in get(sink, "/").body


@pytest.mark.parametrize(
    "path", ["/mail/99999", "/mail/0/html", "/mail/x", "/etc/passwd", "/mail/999999999999999999999"]
)
def test_what_is_not_there_is_a_404(sink, path):
    assert get(sink, path).status == 404


def test_a_page_elsewhere_that_resolves_to_this_machine_reads_nothing(sink):
    send(sink, compose(subject="Confidential"))
    answer = get(sink, "/", host="evil.example")
    assert answer.status == 421
    assert "Confidential" not in answer.body


def test_both_ports_are_on_this_machine_only(sink):
    others = {info[4][0] for info in socket.getaddrinfo(socket.gethostname(), None, socket.AF_INET)} - {"127.0.0.1"}
    for address in others:
        for port in (sink.smtp_port, sink.web_port):
            with socket.socket() as probe:
                assert probe.connect_ex((address, port)) != 0


@pytest.mark.parametrize("option", ["--smtp-port", "--web-port"])
def test_a_port_that_is_taken_is_said_and_the_exit_code_is_2(sink, tmp_path, option):
    taken = {"--smtp-port": sink.smtp_port, "--web-port": sink.web_port}[option]
    done = subprocess.run(
        [sys.executable, "-m", "winecellar.demo.mail_sink", option, str(taken), "--log", tmp_path / "m"],
        capture_output=True,
        text=True,
        timeout=SECONDS,
        check=False,
    )
    assert done.returncode == 2
    assert "cannot listen" in done.stderr


def test_another_web_port_is_taken_where_any_will_do(sink, tmp_path):
    command = [sys.executable, "-m", "winecellar.demo.mail_sink", "--web-port", str(sink.web_port), "--or-any"]
    other = subprocess.Popen([*command, "--log", str(tmp_path / "m")], stdout=subprocess.PIPE, text=True)
    try:
        assert json.loads(other.stdout.readline())["web_port"] not in {0, sink.web_port}
    finally:
        other.terminate()
        assert other.wait(SECONDS) == 0


def test_in_a_brownout_every_third_mail_is_refused_and_before_and_after_it_none(tmp_path, monkeypatch):
    monkeypatch.setattr(mail_sink, "BROWNOUT_HANGS", 0)
    taker = mail_sink.Taker(MailBox(tmp_path / "mail.jsonl"), [mail_sink.Brownout.read("10:5")])
    envelope = SimpleNamespace(content=compose().as_bytes(), mail_from="a@b.example", rcpt_tos=["c@d.example"])
    said = []
    for second in (0, 9, *[10] * 6, 16):
        taker._began = time.monotonic() - second
        said.append(asyncio.run(taker.handle_DATA(None, None, envelope))[:3])
    assert said == ["250", "250", "250", "250", "451", "250", "250", "451", "250"]
    assert taker._box.count == 7


def test_the_box_keeps_the_newest_and_logs_all(tmp_path):
    box = MailBox(tmp_path / "mail.jsonl")
    for number in range(KEPT + 3):
        box.take(f"Subject: {number}\r\n\r\nx".encode(), sender="a", recipients=["b"], received_at=datetime.now(UTC))
    assert len(box.newest_first()) == KEPT
    assert box.newest_first()[0].subject == str(KEPT + 2)
    assert box.get(1) is None
    assert box.count == len(MailLog(tmp_path / "mail.jsonl").read_new()) == KEPT + 3


def test_a_half_written_line_is_read_once_it_is_whole(tmp_path):
    path = tmp_path / "mail.jsonl"
    box = MailBox(path)
    box.take(b"Subject: one\r\n\r\n", sender="a", recipients=["b"], received_at=datetime.now(UTC))
    whole = path.read_bytes()
    path.write_bytes(whole[:20])
    log = MailLog(path)
    assert log.read_new() == []
    path.write_bytes(whole)
    assert [mail.subject for mail in log.read_new()] == ["one"]


def test_no_log_yet_is_no_mail(tmp_path):
    assert MailLog(tmp_path / "none").read_new() == []


def test_a_mail_that_comes_by_the_api_is_shown_like_one_by_smtp_and_once_for_its_key(sink):
    mail = {
        "from": "Winecellar <alerts@winecellar.example>",
        "to": ["Demo <demo@winecellar.example>"],
        "subject": "By the API",
        "text": "It is $154.00 now.",
        "html": "<p>It is $154.00 now.</p>",
        "headers": {"Message-ID": "<alert-8.evt_2@winecellar.example>", "X-Winecellar-Event-ID": "evt_2"},
    }
    for _ in range(2):
        connection = http.client.HTTPConnection("127.0.0.1", sink.api_port, timeout=SECONDS)
        headers = {"Authorization": "Bearer demo", "Idempotency-Key": "alert-8.evt_2@winecellar.example"}
        connection.request("POST", "/emails", json.dumps(mail), headers)
        assert connection.getresponse().status == 200
        connection.close()
    lines = [line for line in map(json.loads, sink.log.read_text().splitlines()) if line["event_id"] == "evt_2"]
    assert [(line["message_id"], line["to"]) for line in lines] == [
        ("<alert-8.evt_2@winecellar.example>", ["demo@winecellar.example"])
    ]
