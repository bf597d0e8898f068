"""The mail sink's web pages: a list, newest first, and one mail. Pure: mails in, HTML out.

Guarantee: everything from a mail is escaped; its HTML part is only ever served alone, for a sandboxed frame.
Called by mail_web.py.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from html import escape

from winecellar.demo.mail_box import Mail

STYLE = """
:root { color-scheme: light dark; --paper: #fbf9f6; --ink: #221c1a; --soft: #6d625d; --line: #ddd3cb; --wine: #7a1f34 }
@media (prefers-color-scheme: dark) {
  :root { --paper: #1b1715; --ink: #efe8e2; --soft: #a89b94; --line: #3d3430; --wine: #e39aac }
}
* { box-sizing: border-box }
body { margin: 0 auto; max-width: 52rem; padding: 1.5rem 1rem 3rem; background: var(--paper); color: var(--ink);
  font: 1rem/1.5 system-ui, sans-serif }
h1 { font: 600 1.56rem/1.25 ui-serif, Georgia, serif; margin: 0 0 .5rem; overflow-wrap: anywhere }
h2 { font: 600 1.1rem/1.3 ui-serif, Georgia, serif; margin: 2rem 0 .5rem }
p { margin: 0 0 1rem } .soft, time, dt { color: var(--soft) }
a { color: var(--wine) } a:focus-visible { outline: 3px solid var(--wine); outline-offset: 2px }
ul { list-style: none; margin: 1.5rem 0 0; padding: 0; border-top: 1px solid var(--line) }
li { border-bottom: 1px solid var(--line) }
li a { display: block; padding: .7rem .25rem; color: inherit; text-decoration: none }
li a:hover strong { text-decoration: underline } li strong { display: block; font-weight: 600; overflow-wrap: anywhere }
li span, li time { font-size: .9rem; font-variant-numeric: tabular-nums }
dl { display: grid; grid-template-columns: max-content 1fr; gap: .15rem 1rem; margin: 1rem 0; font-size: .9rem }
dd { margin: 0; overflow-wrap: anywhere }
pre { white-space: pre-wrap; overflow-wrap: anywhere; margin: 0; padding: 1rem; border: 1px solid var(--line);
  font: .95rem/1.55 ui-monospace, monospace }
iframe { width: 100%; height: 34rem; border: 1px solid var(--line); background: #fff }
"""
SECONDS_BETWEEN_REFRESHES = 3
# http and https addresses in a text part become links; a closing bracket or full stop is not part of one.
ADDRESS = re.compile(r"https?://[^\s<>\"']+[^\s<>\"'.,;:!?)\]]")


def list_page(mails: Sequence[Mail], count: int) -> str:
    """All mails kept, newest first; the page reloads itself."""
    rows = "".join(
        f'<li><a href="/mail/{mail.number}"><strong>{escape(mail.subject) or "(no subject)"}</strong>'
        f"<span class=soft>to {escape(', '.join(mail.recipients))}</span> · {_time(mail)}</a></li>\n"
        for mail in mails
    )
    kept = f", the newest {len(mails)} of them shown" if len(mails) < count else ""
    said = f"{count} taken since the demo started{kept}." if count else "No mail yet. It appears here by itself."
    return _page(
        "Mail",
        f"<h1>Mail</h1>\n<p class=soft>What winecellar sent in this demo. None of it left this machine. {said}</p>\n"
        + (f"<ul>\n{rows}</ul>" if mails else ""),
        refresh=True,
    )


def mail_page(mail: Mail) -> str:
    """One mail: its head, its text part, and its HTML part in a frame that may do nothing."""
    facts = [
        ("From", escape(mail.sender)),
        ("To", escape(", ".join(mail.recipients))),
        ("Taken", _time(mail)),
        ("Message-ID", escape(mail.message_id)),
        ("Event", escape(mail.event_id)),
        ("Alert", escape(mail.alert_id)),
    ]
    head = "".join(f"<dt>{name}</dt><dd>{value}</dd>" for name, value in facts if value)
    parts = ""
    if mail.html:
        parts += (
            f'<h2>As HTML</h2>\n<iframe title="The mail as HTML" src="/mail/{mail.number}/html" '
            'sandbox="allow-popups allow-popups-to-escape-sandbox"></iframe>\n'
        )
    if mail.text:
        parts += f"<h2>As text</h2>\n<pre>{_with_links(mail.text)}</pre>\n"
    if not parts:
        parts = "<p>This mail has no text.</p>"
    subject = escape(mail.subject) or "(no subject)"
    return _page(
        subject, f'<p><a href="/">← All mail</a></p>\n<h1>{subject}</h1>\n<dl>{head}</dl>\n{parts}', refresh=False
    )


def html_part(mail: Mail) -> str:
    """The HTML part as sent, except that its links open outside the frame."""
    return re.sub(r"(<head[^>]*>)", r'\1<base target="_blank">', mail.html, count=1, flags=re.IGNORECASE)


def missing_page() -> str:
    return _page(
        "Not here",
        '<h1>Not here</h1>\n<p>No such mail, or it is no longer kept. <a href="/">All mail</a></p>',
        refresh=False,
    )


def _page(title: str, main: str, *, refresh: bool) -> str:
    again = f'<meta http-equiv="refresh" content="{SECONDS_BETWEEN_REFRESHES}">' if refresh else ""
    return (
        f'<!doctype html>\n<html lang="en">\n<head><meta charset="utf-8">{again}'
        '<meta name="viewport" content="width=device-width, initial-scale=1">'
        f'<title>{title} · winecellar demo</title><link rel="stylesheet" href="/style.css"></head>\n'
        f"<body>\n<main>\n{main}\n</main>\n</body>\n</html>\n"
    )


def _time(mail: Mail) -> str:
    return f'<time datetime="{mail.received_at.isoformat()}">{mail.received_at:%H:%M:%S} UTC</time>'


def _with_links(text: str) -> str:
    """Escaped text in which addresses are links."""
    cut, parts = 0, []
    for found in ADDRESS.finditer(text):
        address = escape(found.group())
        parts += [
            escape(text[cut : found.start()]),
            f'<a href="{address}" target="_blank" rel="noopener">{address}</a>',
        ]
        cut = found.end()
    return "".join(parts) + escape(text[cut:])
