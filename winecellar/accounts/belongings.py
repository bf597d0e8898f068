"""What belongs to a person: every row that would go with them, found in the models, so that no table is forgotten.

Used by the export, which shows all of it, and by erasure. A foreign key to a person says by its on_delete whether a
row is theirs (CASCADE) or only mentions them (SET_NULL).
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from django.contrib.admin.models import LogEntry
from django.db.models import CASCADE, ForeignObjectRel, Model, QuerySet

from winecellar.accounts.models import User

# Rows that go with a person by their schema and yet are not theirs, with the reason.
NOT_THEIRS: dict[type[Model], str] = {LogEntry: "says who did what in the admin: the site's record, not a person's"}


@dataclass(frozen=True)
class Belonging:
    """Rows of one model, and the way from them to their person (`alert__user`)."""

    model: type[Model]
    path: str

    def of(self, person: User) -> QuerySet[Any]:
        return self.model._base_manager.filter(**{self.path: person})

    @property
    def name(self) -> str:
        return str(self.model._meta.verbose_name_plural)


def belongings() -> list[Belonging]:
    """What is a person's directly."""
    return list(_rows_of(User, ""))


def all_belongings() -> list[Belonging]:
    """And what is that's, down to the last: an alert's decisions are its owner's."""
    found: dict[type[Model], Belonging] = {}
    waiting = belongings()
    while waiting:
        belonging = waiting.pop(0)
        if belonging.model not in found:
            found[belonging.model] = belonging
            waiting.extend(_rows_of(belonging.model, f"__{belonging.path}"))
    return list(found.values())


def _rows_of(model: type[Model], path: str) -> Iterator[Belonging]:
    # Hidden are those with related_name "+", and the tables that join people to groups, which are not theirs.
    relations = [each for each in model._meta.get_fields(include_hidden=True) if isinstance(each, ForeignObjectRel)]
    for relation in relations:
        other = relation.related_model
        if relation.on_delete is CASCADE and other not in NOT_THEIRS and not other._meta.auto_created:
            yield Belonging(other, f"{relation.field.name}{path}")
