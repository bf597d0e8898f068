"""How the feed says no: one error, one shape. Pure of the database; called by every part of the feed.

`{"error": {"code", "message", "field", "request_id"}}`: `code` is for programs and never changes its meaning,
`message` is for people, `field` names item and field, such as `observations[3].price`, or is null.
"""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType

from django.http import JsonResponse

NO_HEADERS: Mapping[str, str] = MappingProxyType({})


class FeedError(Exception):
    """The request is refused, and nothing of it was written. Messages never repeat what the sender wrote."""

    def __init__(
        self, status: int, code: str, message: str, *, field: str | None = None, headers: Mapping[str, str] = NO_HEADERS
    ) -> None:
        super().__init__(f"{code} at {field}: {message}" if field else f"{code}: {message}")
        self.status = status
        self.code = code
        self.message = message
        self.field = field
        self.headers = headers

    def as_response(self, request_id: str) -> JsonResponse:
        error = {"code": self.code, "message": self.message, "field": self.field, "request_id": request_id}
        response = JsonResponse({"error": error}, status=self.status, headers=dict(self.headers))
        response["Cache-Control"] = "no-store"
        return response


def unavailable(*, retry_after: int) -> FeedError:
    """503: the same request will be taken later. Says nothing about what is wrong with us."""
    return FeedError(
        503,
        "unavailable",
        "We cannot take prices at this moment. Send the same request again.",
        headers={"Retry-After": str(retry_after)},
    )
