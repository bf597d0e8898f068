"""Buyers: who open a bottle's page, confirm the price that it shows, and want to know what became of it.

A form that is sent again is the same purchase, so a buyer who gets no answer sends it again until one comes. Beside
them what brings every purchase to its end when a run is over.
"""

from __future__ import annotations

import html
import re
from dataclasses import dataclass
from http.client import HTTPResponse
from urllib.parse import urlencode

from django.db import connection, transaction
from django.utils import timezone

from tests.chaos.fill import SCARCE
from tests.chaos.load import BETWEEN_TRIES, CSRF, NOT_NOW, Client, Site, Target, headers_of
from winecellar.purchases import upkeep

Answer = tuple[HTTPResponse, bytes]
BUYERS = 4
MOST = 3  # bottles at once
FIELD = 'name="{}" value="([^"]*)"'
OFFERED = re.compile(r'<option value="(\d+)"')
REFUSED = re.compile(r'role="alert">([^<]*)<')
NONE_LEFT = "All bottles are sold or reserved now"


@dataclass(frozen=True)
class Form:
    """As it was shown."""

    token: str
    price: str
    currency: str
    most: int


def read(page: str) -> Form | None:
    """The form of a page; None where nothing can be bought there."""
    found = [re.search(FIELD.format(name), page) for name in ("token", "unit_price", "currency")]
    offered = OFFERED.findall(page)
    token, price, currency = (match[1] if match else "" for match in found)
    return Form(token, price, currency, len(offered)) if token and offered else None


class Buyer(Client):
    def __init__(self, number: int, target: Target, seed: int) -> None:
        super().__init__(f"buyer-{number}", target, seed)
        self.between = BUYERS / max(target.purchases, 1e-9)
        self.site = Site(target.ports, number)

    def step(self) -> None:
        items = list(self.target.filled.stock)
        some = items[:SCARCE] if self.source.random() < 0.5 else items[SCARCE:]
        user, item = self.source.choice(list(self.target.filled.sessions)), self.source.choice(some)
        quantity = self.source.randint(1, MOST)
        form = self.look(user, item)
        if form:
            self.buy(user, item, form, min(quantity, form.most))
        self.site.close()

    def look(self, user: int, item: int) -> Form | None:
        """The page with the form, if there is one."""
        said = self._ask("GET", user, item)
        if isinstance(said, str) or said[0].status in NOT_NOW:
            return None
        answer, body = said
        page = html.unescape(body.decode())
        form = read(page)
        if answer.status != 302 and form is None and NONE_LEFT not in page:
            why = f"{answer.status} {page[:200]}"
            self.history.note(self.name, "look at stock", "fail", str(item), user=user, why=why)
        return form

    def buy(self, user: int, item: int, form: Form, quantity: int) -> None:
        """Until there is an answer, or nobody waits for one any more."""
        facts = {"user": user, "item": item, "quantity": quantity, "price": form.price}
        self.history.note(self.name, "buy", "invoke", form.token, **facts)
        given = {"token": form.token, "unit_price": form.price, "currency": form.currency, "quantity": quantity}
        body = urlencode({**given, "csrfmiddlewaretoken": CSRF}).encode()
        while not self._answered(user, form.token, self._ask("POST", user, item, body)):
            self.site.close()
            if self.stopping.wait(BETWEEN_TRIES):
                return

    def _answered(self, user: int, token: str, said: Answer | str) -> bool:
        """Note what was said; whether it says anything."""
        if isinstance(said, str):
            self.history.note(self.name, "buy", "unknown", token, why=said)
            return False
        answer, body = said
        location = answer.headers.get("Location", "")
        if answer.status in NOT_NOW:
            self.history.note(self.name, "buy", "unknown", token, why=str(answer.status))
            return False
        if answer.status == 302 and "login" not in location:
            self.history.note(self.name, "buy", "ok", token, purchase=int(location.rpartition("/")[2]))
        elif answer.status == 302:  # somebody who has had themselves erased
            self.history.note(self.name, "buy", "signed out", token)
        else:
            told = REFUSED.search(html.unescape(body.decode(errors="replace")))
            self.history.note(self.name, "buy", "fail", token, user=user, why=told[1] if told else f"{answer.status}")
        return True

    def _ask(self, method: str, user: int, item: int, body: bytes | None = None) -> Answer | str:
        """The answer, or why there is none."""
        try:
            return self.site.ask(method, f"/buy/{item}", body, headers_of(self.target, user))
        except OSError as error:
            return str(error)[:80]

    def end(self) -> None:
        self.site.close()


def buyers(target: Target, seed: int) -> list[Client]:
    return [Buyer(number, target, seed) for number in range(BUYERS if target.purchases else 0)]


def end_reservations() -> None:
    """What the schedule does each minute, and nobody waits for at the end of a run."""
    now = timezone.now()
    try:
        for event, due in upkeep.due(now).items():
            with transaction.atomic():
                upkeep.settle(event, due, now=now)
    finally:
        connection.close()
