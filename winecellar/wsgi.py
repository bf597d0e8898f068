"""The web server's entry: `gunicorn winecellar.wsgi`."""

import os
from collections.abc import Callable, Iterable
from typing import Any

from django.core.wsgi import get_wsgi_application
from django.utils.http import parse_header_parameters

from winecellar import embedded

os.environ.setdefault("DJANGO_SETTINGS_MODULE", "winecellar.settings")
embedded.start_unless_external()
django = get_wsgi_application()


def application(environ: dict[str, Any], start_response: Callable[..., Any]) -> Iterable[bytes]:
    """Django reads the Content-Type before any middleware of ours, and fails where it cannot: that is a 400."""
    try:
        parse_header_parameters(environ.get("CONTENT_TYPE", ""))
    except ValueError:
        body = b"400: the Content-Type cannot be read.\n"
        start_response("400 Bad Request", [("Content-Type", "text/plain"), ("Content-Length", str(len(body)))])
        return [body]
    return django(environ, start_response)
