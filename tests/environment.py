"""The environment of the tests, set before anything reads it: a pytest plugin, loaded first (see pyproject.toml).

Tests have a Postgres of their own, so that a running demo is left alone; it is started here unless DATABASE_URL
names one.
"""

import os

os.environ.setdefault("WINECELLAR_PG_NAME", "postgres-test")
os.environ.setdefault("WORKER_LISTEN", "false")
os.environ.setdefault("WORKER_PREPARES", "true")
os.environ.setdefault("LOG_LEVEL", "WARNING")
os.environ.setdefault("EMAIL_URL", "memorymail://")

from winecellar import embedded

embedded.start_unless_external()
