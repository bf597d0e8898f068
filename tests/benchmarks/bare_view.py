"""What single intake is measured against: a Django view that does one INSERT and commits, and nothing else.

The body is not read as JSON, no key is looked up, nothing is remembered.
"""

from django.db import connection
from django.http import HttpRequest, HttpResponse

TABLE = "CREATE TABLE IF NOT EXISTS bench_bare (id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY, body jsonb)"
ANSWER = b'{"accepted": 1}'


def take(request: HttpRequest) -> HttpResponse:
    with connection.cursor() as cursor:  # autocommit: the statement is the transaction
        cursor.execute("INSERT INTO bench_bare (body) VALUES (%s)", [request.body.decode()])
    return HttpResponse(ANSWER, status=202, content_type="application/json", headers={"Content-Length": len(ANSWER)})
