"""`any_of`: a lookup for long lists. `__in` makes a placeholder of each member, which for a thousand takes the client
longer than the server; here the list is one array. Registered by pricing.models; used where rows come in batches.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from django.db.models import CharField, Lookup


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
