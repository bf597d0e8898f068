#!/usr/bin/env python
"""Django's command line. Starts the embedded Postgres first unless DATABASE_URL names another."""

import os
import sys


def main() -> None:
    os.environ.setdefault("DJANGO_SETTINGS_MODULE", "winecellar.settings")
    from django.core.management import execute_from_command_line

    from winecellar import embedded

    # These look at code only, and must work where no server can run (an image build, a linter).
    if sys.argv[1:2] and sys.argv[1] not in {"help", "makemessages", "collectstatic", "--version"}:
        embedded.start_unless_external()
    execute_from_command_line(sys.argv)


if __name__ == "__main__":
    main()
