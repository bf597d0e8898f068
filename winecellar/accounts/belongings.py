"""What belongs to a person: every row that would go with them, found in the models, so that no table is forgotten.

Used by the export, which shows all of it, and by erasure. A foreign key to a person says by its on_delete whether a
row is theirs (CASCADE) or only mentions them (SET_NULL). Between them are books that must be kept: a model that says
KEPT_WHEN_ERASED is shown as theirs, and stays without their name.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

from django.contrib.admin.models import LogEntry
from django.db.models import CASCADE, SET_NULL, ForeignObjectRel, Model, QuerySet

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
    """What is a person's directly, and goes with them."""
    return list(_rows_of(User, "", _goes))


def all_belongings() -> list[Belonging]:
    """And what is that's, down to the last: an alert's decisions are its owner's; and what is kept of them."""
    found: dict[type[Model], Belonging] = {}
    waiting = belongings()
    while waiting:
        belonging = waiting.pop(0)
        if belonging.model not in found:
            found[belonging.model] = belonging
            waiting.extend(_rows_of(belonging.model, f"__{belonging.path}", _goes))
    return [*found.values(), *kept()]


def books() -> list[Belonging]:
    """What stays when its person leaves, without their name."""
    return list(_rows_of(User, "", _stays))


def kept() -> list[Belonging]:
    """Books, and all that is written about each."""
    pages = [_rows_of(belonging.model, f"__{belonging.path}", lambda _: True) for belonging in books()]
    return [*books(), *(belonging for some in pages for belonging in some)]


Chooses = Callable[[ForeignObjectRel], bool]


def _goes(relation: ForeignObjectRel) -> bool:
    return relation.on_delete is CASCADE


def _stays(relation: ForeignObjectRel) -> bool:
    return relation.on_delete is SET_NULL and hasattr(relation.related_model, "KEPT_WHEN_ERASED")


def _rows_of(model: type[Model], path: str, chooses: Chooses) -> Iterator[Belonging]:
    # Hidden are those with related_name "+", and the tables that join people to groups, which are not theirs.
    relations = [each for each in model._meta.get_fields(include_hidden=True) if isinstance(each, ForeignObjectRel)]
    for relation in relations:
        other = relation.related_model
        if chooses(relation) and other not in NOT_THEIRS and not other._meta.auto_created:
            yield Belonging(other, f"{relation.field.name}{path}")
