"""What all tests share: the embedded Postgres under its own data directory, and the cast."""

import os

# Before Django reads the settings: tests have a server of their own, so that a running demo is left alone.
os.environ.setdefault("WINECELLAR_PG_NAME", "postgres-test")
os.environ.setdefault("WORKER_LISTEN", "false")
os.environ.setdefault("LOG_LEVEL", "WARNING")
os.environ.setdefault("EMAIL_URL", "memorymail://")

from winecellar import embedded

embedded.start_unless_external()
