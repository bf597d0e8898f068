"""Whatever the flows publish is of its schema."""

from tests.schemas.published import every_event_is_of_its_schema  # noqa: F401
