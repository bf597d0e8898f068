"""Where sessions are kept: Django's database sessions, each row with whose it is. SESSION_ENGINE names it."""

from __future__ import annotations

from typing import Any

from django.conf import settings
from django.contrib.auth import SESSION_KEY
from django.contrib.sessions.backends.db import SessionStore as DatabaseStore
from django.contrib.sessions.base_session import AbstractBaseSession
from django.db import models


class Session(AbstractBaseSession):
    """A browser's session that knows whose it is, so that it goes with the account."""

    # No constraint: a request that is under way while its account is erased must not fail on this row.
    user = models.ForeignKey(
        settings.AUTH_USER_MODEL, on_delete=models.CASCADE, null=True, db_constraint=False, related_name="sessions"
    )

    @classmethod
    def get_session_store_class(cls) -> type[SessionStore]:
        return SessionStore


class SessionStore(DatabaseStore):
    @classmethod
    def get_model_class(cls) -> type[Session]:
        return Session

    def create_model_instance(self, data: dict[str, Any]) -> Session:
        session = super().create_model_instance(data)
        assert isinstance(session, Session)
        session.user_id = int(data[SESSION_KEY]) if SESSION_KEY in data else None
        return session
