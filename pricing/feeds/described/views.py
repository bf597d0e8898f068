"""GET /feeds/openapi.json and the same as a page at /feeds/. The edge; for everybody, and reads no database."""

from __future__ import annotations

from django.http import HttpRequest, HttpResponse, JsonResponse
from django.shortcuts import render
from django.views.decorators.http import require_safe

from pricing.feeds.described import openapi
from pricing.feeds.described import page as words


@require_safe
def openapi_json(request: HttpRequest) -> HttpResponse:
    response = JsonResponse(openapi.document(), json_dumps_params={"ensure_ascii": False, "indent": 1})
    response["Access-Control-Allow-Origin"] = "*"  # it is public, and tools in other pages read it
    return response


@require_safe
def page(request: HttpRequest) -> HttpResponse:
    return render(request, "feeds/described.html", words.of_document(openapi.document()))
