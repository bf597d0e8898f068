"""The bare view in a Django of its own: no middleware, no other app, no check of the connection."""

import os

import environ
from django.conf import settings
from django.core.wsgi import get_wsgi_application
from django.urls import path

from tests.benchmarks.bare_view import take

urlpatterns = [path("bare", take)]

if not settings.configured:
    settings.configure(
        ROOT_URLCONF=__name__,
        ALLOWED_HOSTS=["127.0.0.1"],
        SECRET_KEY="of no use here",
        USE_TZ=True,
        DATABASES={"default": {**environ.Env.db_url_config(os.environ["DATABASE_URL"]), "CONN_MAX_AGE": None}},
    )

application = get_wsgi_application()
