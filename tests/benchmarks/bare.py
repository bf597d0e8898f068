"""What single intake is measured against: a Django view that does one INSERT and commits, and nothing else.

No middleware, no session, no credentials; the body is not read as JSON, a key is not looked up. The same gunicorn
configuration serves it, over the same database.
"""

import os

import environ
from django.conf import settings
from django.core.wsgi import get_wsgi_application
from django.db import connection
from django.http import HttpRequest, HttpResponse
from django.urls import path

TABLE = "CREATE TABLE IF NOT EXISTS bench_bare (id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY, body jsonb)"
ANSWER = b'{"accepted": 1}'


def take(request: HttpRequest) -> HttpResponse:
    with connection.cursor() as cursor:  # autocommit: the statement is the transaction
        cursor.execute("INSERT INTO bench_bare (body) VALUES (%s)", [request.body.decode()])
    return HttpResponse(ANSWER, status=202, content_type="application/json", headers={"Content-Length": len(ANSWER)})


urlpatterns = [path("bare", take)]

if not settings.configured:
    database = environ.Env.db_url_config(os.environ["DATABASE_URL"])
    settings.configure(
        ROOT_URLCONF=__name__,
        ALLOWED_HOSTS=["127.0.0.1"],
        SECRET_KEY="of no use here",
        USE_TZ=True,
        DATABASES={"default": {**database, "CONN_MAX_AGE": None}},
    )

application = get_wsgi_application()
