"""The course's incident in the admin, clicked through by staff who may each do one thing.

One story, in the order in which it happens; at each turn whoever may do that does it, and the others are not asked.
"""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from playwright.sync_api import Locator, Page, expect

from tests.browser.conftest import Visit
from tests.browser.site import Site
from tests.browser.test_pages import faults
from tests.processes.conftest import ROOT, wait_until
from winecellar.demo.broken_release import BROKEN, MESSAGES

KINDS = "/admin/jobs/deadletter/"
LETTERS = f"{KINDS}letters/?subscription=price-history&decision=open"
ACTS = ("redrive", "readapt", "discard", "superseded", "quarantine", "assign", "comment", "reopen")
# What each is offered about a letter that waits.
OFFERED = {
    "dora": [],
    "vera": [],
    "rita": ["Redrive"],
    "rhea": ["Re-adapt and redrive"],
    "drew": ["Discard", "Discard as superseded"],
    "quin": ["Quarantine"],
    "ann": ["Assign"],
    "cole": ["Comment"],
}
By = Callable[[str], "Staff"]


class Staff:
    """Somebody of the staff at the admin."""

    def __init__(self, page: Page) -> None:
        self.page = page
        self.main = page.locator("#content")

    def opens(self, path: str) -> None:
        answer = self.page.goto(path)
        assert answer is not None
        assert answer.status == 200, path

    def sees(self, text: str | re.Pattern[str]) -> None:
        expect(self.page.locator("#main")).to_contain_text(text)

    def clicks(self, control: Locator) -> None:
        with self.page.expect_navigation():
            control.click()

    def link(self, name: str | re.Pattern[str]) -> Locator:
        return self.main.get_by_role("link", name=name, exact=True).first

    def all_like_this(self, act: str) -> None:
        """From the list: not the ticked ones but all that the filter finds."""
        self.clicks(self.main.locator("p", has_text="all like this").get_by_role("link", name=act, exact=True))

    def decides(self, act: str, because: str, **asked: str) -> None:
        """The confirmation page."""
        self.main.get_by_label("Reason").fill(because)
        for label, value in asked.items():
            self.main.get_by_label(label.replace("_", " ")).fill(value)
        self.clicks(self.main.get_by_role("button", name=re.compile(rf"^{act}")))


@pytest.fixture(scope="module")
def cookies(site: Site) -> dict[str, dict[str, str]]:
    """The incident has happened, and nobody has looked; who may look is signed in."""
    done = subprocess.run(
        [sys.executable, "-m", "tests.browser.staff"],
        cwd=ROOT,
        env={**os.environ, **site.environment},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    wait_until(lambda: waiting(site) == MESSAGES, seconds=60, what="all are dead-lettered")
    found: dict[str, dict[str, str]] = json.loads(done.stdout)
    return found


@pytest.fixture
def by(visit: Visit, site: Site, cookies: dict[str, dict[str, str]]) -> By:
    people: dict[str, Staff] = {}

    def by(name: str) -> Staff:
        if name not in people:
            page = visit()
            page.context.add_cookies(
                [{"name": key, "value": value, "url": site.address} for key, value in cookies[name].items()]
            )
            people[name] = Staff(page)
        return people[name]

    return by


def waiting(site: Site) -> Any:
    return site.ask(
        "SELECT count(*) FROM jobs_deadletter WHERE subscription_name = 'price-history' AND waits_from <= now()"
    )


def a_letter(site: Site, *, which: int = 100) -> int:
    found = site.ask(
        "SELECT id FROM jobs_deadletter WHERE subscription_name = 'price-history' ORDER BY id OFFSET %s LIMIT 1", which
    )
    assert isinstance(found, int)
    return found


def test_who_may_do_nothing_is_offered_nothing_and_a_forged_request_is_refused(by: By, site: Site) -> None:
    letter, dora = a_letter(site), by("dora")
    for path in (KINDS, LETTERS, f"{KINDS}{letter}/change/"):
        dora.opens(path)
        assert dora.main.locator("a[href*=decide], [formaction*=decide], input[type=checkbox]").count() == 0
    token = dora.page.locator("input[name=csrfmiddlewaretoken]").first.input_value()
    for act in ACTS:
        form = {"csrfmiddlewaretoken": token, "confirm": "1", "note": "forged", "ids": str(letter)}
        answer = dora.page.request.post(f"{site.address}{KINDS}decide/{act}/", form=form)
        assert answer.status == 403, act
        assert "CSRF" not in answer.text(), "it is refused for who they are, not for how they ask"
    assert site.ask("SELECT count(*) FROM jobs_audit WHERE note = 'forged'") == 0


def test_each_is_offered_what_they_may_and_a_raw_body_is_for_those_who_may_view_it(by: By, site: Site) -> None:
    for name, offered in OFFERED.items():
        person = by(name)
        person.opens(f"{KINDS}{a_letter(site)}/change/")
        assert person.main.locator(".dl-acts a").all_inner_texts() == offered, name
        raw = person.main.locator(".dl-raw")
        expect(raw).to_contain_text("154.0" if name == "vera" else "It is shown to those who may view raw bodies.")
    by("vera").clicks(by("vera").main.locator(".dl-raw a"))
    by("vera").sees("154.0")


def test_the_341_are_found_looked_at_decided_and_redriven(by: By, site: Site) -> None:
    letter = a_letter(site)

    # Detect and diagnose: one kind, one merchant, twenty minutes; nothing is consumed.
    dora = by("dora")
    dora.opens("/admin/")
    dora.clicks(dora.page.get_by_role("link", name="Dead letters", exact=True).first)
    kind = dora.main.locator("tr", has_text="price-history")
    expect(kind).to_contain_text(str(MESSAGES))
    expect(kind).to_contain_text("mch_082")
    dora.clicks(kind.get_by_role("link"))
    dora.clicks(dora.main.locator("tbody th a").first)
    dora.sees("new_price_usd required; currency 'USD ' not ISO-4217")
    expect(dora.main.locator("tr.dl-wrong", has_text="new_price_usd")).to_contain_text("missing")
    dora.sees(f"within 20 minutes: {MESSAGES} wait")

    # Said, assigned, and one put aside for somebody who is not here.
    cole = by("cole")
    cole.opens(f"{KINDS}{letter}/change/")
    cole.clicks(cole.link("Comment"))
    cole.decides("Comment", "adapter 4.1 loses new_price_usd; 4.2 is being built")
    cole.sees("Comment: 1 letter.")
    cole.sees("4.2 is being built")
    ann = by("ann")
    ann.opens(LETTERS)
    ann.all_like_this("Assign")
    ann.sees(f"{MESSAGES} of them wait for a decision")
    ann.decides("Assign", "it is his adapter", Who_is_to_decide="bob")
    ann.sees(f"Assign: {MESSAGES} letters.")
    quin = by("quin")
    quin.opens(LETTERS)
    quin.main.locator("input[type=checkbox]").first.check()
    quin.clicks(quin.main.get_by_role("button", name="Quarantine"))
    quin.decides(
        "Quarantine",
        "bob is back on Monday",
        **{"To_be_decided_at_(UTC)": f"{datetime.now(UTC) + timedelta(days=3):%Y-%m-%dT%H:%M}"},
    )
    quin.sees("Quarantine: 1 letter.")
    assert waiting(site) == MESSAGES - 1
    quin.sees("to be decided at")

    # Too early: what would fail again is said beforehand, and none is sent.
    rita = by("rita")
    rita.opens(LETTERS)
    rita.all_like_this("Redrive")
    rita.sees(f"0 of {MESSAGES} would pass now; {MESSAGES} would fail again")
    rita.decides("Redrive", "let us just try", Letters_a_second="1000")
    rita.sees("would fail again")
    wait_until(lambda: "This page follows" not in rita.main.inner_text(), seconds=60, what="the redrive ends")
    rita.sees(re.compile(r"Stopped at|Done at"))
    assert site.ask("SELECT count(*) FROM pricing_pricehistory WHERE wine_id LIKE 'wn_7%%'") == 0

    # Adapter 4.2 is out: the raw bodies are read again.
    rhea = by("rhea")
    rhea.opens(LETTERS)
    rhea.all_like_this("Re-adapt and redrive")
    rhea.sees(f"{MESSAGES - BROKEN} of {MESSAGES} would pass now; {BROKEN} would fail again")
    rhea.sees("2: the raw body has no price of this wine")
    rhea.decides(
        "Re-adapt and redrive",
        "adapter 4.2 is deployed",
        Letters_a_second="1000",
        Stop_when_more_than_this_share_fails_again="0.5",
    )
    expect(rhea.main).to_contain_text("Done at", timeout=60_000)
    rhea.sees(f"{MESSAGES - BROKEN} applied")
    rhea.sees(f"{BROKEN} refused")
    assert site.ask("SELECT count(*) FROM pricing_pricehistory WHERE wine_id LIKE 'wn_7%%'") == MESSAGES - BROKEN
    assert faults(rhea.page) == []

    # The three that nothing can help, and the record of it all.
    drew = by("drew")
    drew.opens(LETTERS)
    assert drew.main.locator("tbody tr").count() == BROKEN
    for box in drew.main.locator("input[type=checkbox]").all():
        box.check()
    drew.clicks(drew.main.get_by_role("button", name="Discard", exact=True))
    drew.sees(f"{BROKEN} of them wait for a decision")
    drew.decides("Discard", "mch_082 has sent them again")
    drew.sees(f"Discard: {BROKEN} letters.")
    assert waiting(site) == 0
    dora.opens(f"{KINDS}{letter}/change/")
    for words in ("comment by cole@", "assign by ann@", "redrive by rita@", "readapt by rhea@"):
        dora.sees(words)
    dora.sees("applied by price-history")


@pytest.mark.parametrize("path", ["", "letters/", "{letter}/change/", "decide/readapt/?subscription=analytics-rollup"])
def test_a_page_of_dead_letters_has_no_fault(by: By, site: Site, path: str) -> None:
    rhea = by("rhea")
    rhea.opens(KINDS + path.format(letter=a_letter(site)))
    assert faults(rhea.page) == []
