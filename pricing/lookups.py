"""`any_of`: a lookup for long lists. `__in` makes a placeholder of each member, which for a thousand takes the client
longer than the server; here the list is one array. Registered by pricing.models; used where rows come in batches.
`Shared` counts what two arrays of texts have in common.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from django.contrib.postgres.fields import ArrayField
from django.db.models import CharField, Func, IntegerField, Lookup, TextField, Value


@CharField.register_lookup
class AnyOf(Lookup):  # type: ignore[type-arg]
    lookup_name = "any_of"

    def get_prep_lookup(self) -> list[str]:
        members: Iterable[str] = self.rhs
        return list(members)

    def get_db_prep_lookup(self, value: Any, connection: Any) -> Any:
        return "%s", (value,)

    def as_sql(self, compiler: Any, connection: Any) -> Any:
        left, parameters = self.process_lhs(compiler, connection)
        right, members = self.process_rhs(compiler, connection)
        return f"{left} = ANY ({right}::text[])", (*parameters, *members)


class Shared(Func):
    """How many of these texts an array of texts has."""

    template = "cardinality(ARRAY(SELECT unnest(%(expressions)s)))"
    arg_joiner = ") INTERSECT SELECT unnest("
    output_field = IntegerField()

    def __init__(self, array: str, texts: Iterable[str]) -> None:
        super().__init__(array, Value(list(texts), output_field=ArrayField(TextField())))
