"""The web server's entry: `gunicorn winecellar.wsgi`."""

import os

from django.core.wsgi import get_wsgi_application

from winecellar import embedded

os.environ.setdefault("DJANGO_SETTINGS_MODULE", "winecellar.settings")
embedded.start_unless_external()
application = get_wsgi_application()
