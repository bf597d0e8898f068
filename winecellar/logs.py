"""Logging: one event name and its ids as fields on every line; JSON in production, readable at a keyboard.

No bodies, no addresses, no secrets: code logs ids. The request id and event id come from structlog's
context variables, which the middleware and the worker bind.
"""

import logging
import logging.config
from typing import Any

import structlog

from jobs import tracing

SHARED: list[Any] = [
    structlog.contextvars.merge_contextvars,
    structlog.stdlib.add_logger_name,
    structlog.stdlib.add_log_level,
    structlog.processors.TimeStamper(fmt="iso", utc=True),
    tracing.add_ids,
]


def configure_logging(*, json: bool, level: str) -> None:
    """Send structlog's and the standard library's lines through one renderer to standard error."""
    renderer: list[Any] = (
        # Plain tracebacks both ways: the rich ones print local variables, which hold bodies and addresses.
        [structlog.processors.format_exc_info, structlog.processors.JSONRenderer()]
        if json
        else [structlog.dev.ConsoleRenderer(colors=False, exception_formatter=structlog.dev.plain_traceback)]
    )
    logging.config.dictConfig(
        {
            "version": 1,
            "disable_existing_loggers": False,
            "formatters": {
                "structlog": {
                    "()": structlog.stdlib.ProcessorFormatter,
                    "foreign_pre_chain": SHARED,
                    "processors": [structlog.stdlib.ProcessorFormatter.remove_processors_meta, *renderer],
                }
            },
            "handlers": {"stderr": {"class": "logging.StreamHandler", "formatter": "structlog"}},
            "root": {"handlers": ["stderr"], "level": level},
            # Django's "Bad Request: /path" lines repeat what our access line says with its request id.
            # What these say at DEBUG is whole contexts of templates, and statements with what is in them.
            "loggers": {
                "django.request": {"level": "ERROR"},
                "django.security": {"level": "ERROR"},
                "django.template": {"level": "INFO"},
                "django.db.backends": {"level": "INFO"},
            },
        }
    )
    structlog.configure(
        processors=[*SHARED, structlog.stdlib.ProcessorFormatter.wrap_for_formatter],
        logger_factory=structlog.stdlib.LoggerFactory(),
        wrapper_class=structlog.stdlib.BoundLogger,
        cache_logger_on_first_use=True,
    )
