"""All of a person's data as one JSON document, written as it is read: a long log needs no memory to match.

Guarantee: complete (belongings.py finds the tables), but for what would let its reader in: hashes, keys, secrets.
Called by the view; reads only.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from datetime import datetime
from typing import Any

from django.core.serializers.json import DjangoJSONEncoder
from django.db.models import ForeignKey, Model

from winecellar.accounts.belongings import Belonging, all_belongings
from winecellar.accounts.models import User

PAGE = 1_000
# What opens an account, by model. Everything else is written.
SECRETS = {
    "accounts.User": {"password"},
    "accounts.Session": {"session_key", "session_data"},
    "accounts.AccountMail": {"sealed_text", "sealed_html"},
    "account.EmailConfirmation": {"key"},
    "mfa.Authenticator": {"data"},
    "alerts.Channel": {"sealed_address", "sealed_secret", "sealed_old_secret"},
    "alerts.AtomFeed": {"token_sha256"},
}


def export(*, person: User, now: datetime) -> Iterator[str]:
    """The document in pieces: `exported_at`, `person`, then a list for each kind of thing that is theirs."""
    yield f'{{"exported_at": {_json(now)}, "person": {_json(_row(person))}'
    for belonging in all_belongings():
        yield f",\n{_json(belonging.name)}: ["
        for number, row in enumerate(_rows(belonging, person)):
            yield f"{',' if number else ''}\n{_json(_row(row))}"
        yield "]"
    yield "}\n"


def _rows(belonging: Belonging, person: User) -> Iterator[Model]:
    """Page by page in the order of the key: the server keeps no cursor open between the pieces."""
    elsewhere = [field.name for field in belonging.model._meta.fields if _points_elsewhere(field)]
    rows = belonging.of(person).select_related(*elsewhere).order_by("pk") if elsewhere else belonging.of(person)
    page = list(rows.order_by("pk")[:PAGE])
    while page:
        yield from page
        page = list(rows.filter(pk__gt=page[-1].pk).order_by("pk")[:PAGE])


def _row(row: Model) -> dict[str, Any]:
    """The columns by name. What a key leads to outside of what is theirs (a wine) is named beside it."""
    hidden = SECRETS.get(row._meta.label, set())
    written: dict[str, Any] = {}
    for field in row._meta.fields:
        if field.name in hidden:
            continue
        written[field.name] = field.value_from_object(row)
        if _points_elsewhere(field) and written[field.name] is not None:
            written[f"{field.name}_name"] = str(getattr(row, field.name))
    for many in row._meta.many_to_many:
        written[many.name] = [str(one) for one in many.value_from_object(row)]
    return written


def _points_elsewhere(field: Any) -> bool:
    theirs = {User, *(belonging.model for belonging in all_belongings())}
    return isinstance(field, ForeignKey) and field.related_model not in theirs


def _json(value: Any) -> str:
    return json.dumps(value, cls=DjangoJSONEncoder, ensure_ascii=False)
