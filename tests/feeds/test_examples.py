"""Every curl example of the merchants' guides is run against the real server, and answered as the guide shows."""

import base64
import json
import os
import re
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from django.conf import settings
from django.utils import timezone

from jobs.worker import drain
from pricing import keys, signing
from pricing.catalogues import files
from pricing.feeds.refusals import REFUSALS
from pricing.models import Merchant
from tests import cast
from tests.feeds.server import Server

pytestmark = [
    pytest.mark.processes,
    pytest.mark.django_db(transaction=True),
    pytest.mark.skipif(not (shutil.which("curl") and shutil.which("openssl")), reason="curl or openssl is missing"),
]

GUIDES = ["feeds.md", "catalogues.md"]
OF_A_DAY = [
    (r'"evt_[0-9a-z]{26}"', '"evt_…"'),
    (r'"req_[0-9a-f]{32}"', '"req_…"'),
    (r'"[0-9a-f]{64}"', '"…"'),
    (r'"[0-9-]{10}T[0-9:.]+\+00:00"', '"…"'),
    (r'"http[^"]*(/feeds/v1/catalogues/)[0-9]+"', r'"…\g<1>12"'),
    (r'"id": [0-9]+', '"id": 12'),
]
# Written after each answer, so that status and body can be told apart.
SHELL = 'set -eu -o pipefail; curl() { command curl -w "\\n%%{http_code}\\n" --max-time 20 "$@"; }\n%s'


def blocks(guide: str) -> Iterator[tuple[int, str]]:
    """The indented blocks with the line at which each begins. Blank lines part blocks."""
    text = (settings.BASE_DIR / "docs" / guide).read_text()
    number, block = 0, ""
    for line_number, line in enumerate([*text.split("\n"), ""], start=1):
        if line.startswith("    "):
            number, block = (number or line_number), block + line[4:] + "\n"
        elif block:
            yield number, block
            number, block = 0, ""


def examples() -> Iterator[Any]:
    """Each block with curl in it, and the block after it, which is what it answers."""
    for guide in GUIDES:
        found = list(blocks(guide))
        for index, (line, block) in enumerate(found):
            if "curl " in block:
                yield pytest.param(block, found[index + 1][1], id=f"{guide}:{line}")


def documents(text: str) -> list[Any]:
    decoder, found = json.JSONDecoder(), []
    while text := text.strip():
        document, end = decoder.raw_decode(text)
        found.append(document)
        text = text[end:]
    return found


def like(value: Any) -> Any:
    """With its ids made alike: those that the guide shows were of another day."""
    text = json.dumps(value, ensure_ascii=False)
    for pattern, shown in OF_A_DAY:
        text = re.sub(pattern, shown, text)
    return json.loads(text)


@pytest.fixture
def shop(server: Server) -> dict[str, str]:
    """The merchant of the guide with a key and its secrets, and where to send; as variables of the shell."""
    merchant: Merchant = cast.merchant()
    Merchant.objects.filter(pk=merchant.pk).update(currency="USD")
    for number in ("4417", "4418"):
        cast.wine(number, **({"name": "Another"} if number == "4418" else {}))
    whsec = "whsec_" + base64.b64encode(os.urandom(32)).decode()
    signing.create_secret(merchant=merchant, note="", now=timezone.now(), text=whsec)
    woo = "a-secret-of-sixteen-letters-or-more"
    signing.create_secret(merchant=merchant, note="", now=timezone.now(), text=woo, kind="woocommerce")
    site = f"http://127.0.0.1:{server.port}"
    key = keys.create_key(merchant=merchant, note="", now=timezone.now())[1]
    return {"KEY": key, "SECRET": whsec, "SITE": site, "URL": f"{site}/feeds/v1/price-changes"}


def file_of_the_guide() -> int:
    """The file that the guide sends before it asks for its report, taken by a worker."""
    upload = next(block for _, block in blocks("catalogues.md") if "curl " in block)
    rows = re.findall(r"^  '(.*)'", upload, re.MULTILINE)
    file = files.receive(
        merchant=Merchant.objects.get(),
        name="stock.csv",
        data=["".join(f"{row}\n" for row in rows).encode()],
        as_of=timezone.now(),
        send=True,
        by="test",
        now=timezone.now(),
    )
    drain()
    return file.pk


def test_the_guide_has_its_examples() -> None:
    assert len(list(examples())) >= 10


@pytest.mark.parametrize(("example", "shown"), list(examples()))
def test_an_example_is_answered_as_the_guide_shows(
    example: str, shown: str, shop: dict[str, str], tmp_path: Path
) -> None:
    script = re.sub(r"^SECRET=whsec_…\n", "", example, flags=re.MULTILINE)
    if "/catalogues/12" in script:
        script = script.replace("/catalogues/12", f"/catalogues/{file_of_the_guide()}")
    done = subprocess.run(
        ["bash", "-c", SHELL % script],
        env={**os.environ, **shop},
        cwd=tmp_path,
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    answers = re.findall(r"(.*)\n(\d{3})\n", done.stdout)
    expected = documents(shown)
    assert like([json.loads(body) for body, _ in answers]) == like(expected)
    for (_, status), document in zip(answers, expected, strict=True):
        taken = 200 if "rejections" in document else 202
        assert int(status) == (REFUSALS[document["error"]["code"]].status if document.get("error") else taken)
