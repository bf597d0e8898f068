"""Django settings of the two peers that are Django task backends; BENCH_BACKEND says which."""

import os
from urllib.parse import parse_qs, urlsplit

_url = urlsplit(os.environ["BENCH_URL"])
_ox = os.environ["BENCH_BACKEND"] == "ox"

SECRET_KEY = "of the benchmarks"
USE_TZ = True
INSTALLED_APPS = ["django_tasks", "django_ox"] if _ox else ["django_tasks", "django_tasks_db"]
DATABASES = {
    "default": {
        "ENGINE": "django.db.backends.postgresql",
        "NAME": _url.path.lstrip("/"),
        "HOST": parse_qs(_url.query)["host"][0],
        "USER": _url.username,
        "CONN_MAX_AGE": None,
    }
}
TASKS = {"default": {"BACKEND": "django_ox.backend.OxBackend" if _ox else "django_tasks_db.DatabaseBackend"}}
DEFAULT_AUTO_FIELD = "django.db.models.BigAutoField"
LOGGING = {
    "version": 1,
    "disable_existing_loggers": False,
    "handlers": {"console": {"class": "logging.StreamHandler"}},
    "root": {"handlers": ["console"], "level": "ERROR"},
    "loggers": {name: {"level": "ERROR"} for name in ("django_tasks", "django_tasks_db", "django_ox")},
}
