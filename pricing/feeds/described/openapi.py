"""The feeds as an OpenAPI 3.1 document, made from the entries in endpoints.py. Pure; called by the views and tests."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import groupby
from typing import Any

from django.conf import settings

from pricing.feeds.described.endpoint import SECURITY, Body, Endpoint, Parameter
from pricing.feeds.described.endpoints import ENDPOINTS
from pricing.feeds.described.shape import Schema
from pricing.feeds.described.shapes import SCHEMAS
from pricing.feeds.refusals import REFUSALS

VERSION = "1.1.0"
DESCRIPTION = (
    "For merchants: tell us what a wine costs at your shop, as often as you like, or send all that you sell as "
    "one file. "
    "Each refusal has one shape and names one problem; nothing of a refused request is stored. A request sent again "
    "under the same id of yours has no second effect. The web server itself answers what it cannot read as HTTP with "
    "400, 414, 417 or 431, without a JSON body."
)
HEADERS: dict[str, Schema] = {
    "X-Request-ID": {
        "description": "The request's id, as in the body.",
        "required": True,
        "schema": {"type": "string"},
    },
    "Cache-Control": {"description": "No answer is for keeping.", "required": True, "schema": {"const": "no-store"}},
    "WWW-Authenticate": {"description": "Which credentials we take.", "required": True, "schema": {"type": "string"}},
    "Retry-After": {
        "description": "Seconds until the same request may be sent again.",
        "required": True,
        "schema": {"type": "string", "pattern": "^[0-9]{1,3}$"},
    },
    "Allow": {"description": "The methods that are taken here.", "required": True, "schema": {"type": "string"}},
}
_ALWAYS = ("X-Request-ID", "Cache-Control")
_OF_STATUS = {401: ("WWW-Authenticate",), 405: ("Allow",), 429: ("Retry-After",), 503: ("Retry-After",)}


def document() -> dict[str, Any]:
    """The whole document, as plain values."""
    return {
        "openapi": "3.1.0",
        "info": {
            "title": "Winecellar feeds",
            "version": VERSION,
            "summary": "How merchants send prices.",
            "description": DESCRIPTION,
            "license": {"name": "MIT", "identifier": "MIT"},
        },
        "servers": [{"url": settings.SITE_URL or "/"}],
        "paths": {endpoint.path: _path(endpoint) for endpoint in ENDPOINTS},
        "components": {"schemas": SCHEMAS, "headers": HEADERS, "securitySchemes": SECURITY},
    }


def _path(endpoint: Endpoint) -> dict[str, Any]:
    return {method.lower(): _operation(endpoint, method) for method in endpoint.methods}


def _operation(endpoint: Endpoint, method: str) -> dict[str, Any]:
    several = len(endpoint.methods) > 1
    operation: dict[str, Any] = {
        "operationId": f"{endpoint.name}-{method.lower()}" if several else endpoint.name,
        "summary": endpoint.summary,
        "description": endpoint.description,
        "security": [{name: []} for name in endpoint.credentials] + [{}] * bool(endpoint.unsigned_bodies),
        "parameters": [_parameter(each) for each in endpoint.parameters],
        "responses": _responses(endpoint),
    }
    if endpoint.bodies:
        content = {media_type: _body(body) for media_type, body in endpoint.bodies.items()}
        operation["requestBody"] = {"required": True, "content": content}
    return operation


def _parameter(parameter: Parameter) -> dict[str, Any]:
    return {
        "name": parameter.name,
        "in": parameter.place,
        "required": parameter.required,
        "description": parameter.description,
        "schema": parameter.schema,
    }


def _body(body: Body) -> dict[str, Any]:
    refs = [{"$ref": f"#/components/schemas/{name}"} for name in body.schemas]
    described: dict[str, Any] = {"schema": refs[0] if len(refs) == 1 else {"oneOf": refs}}
    return described if body.example is None else {**described, "example": body.example}


def _responses(endpoint: Endpoint) -> dict[str, Any]:
    responses = dict([*_answers(endpoint), *_refusals(endpoint)])
    if any(parameter.place == "path" for parameter in endpoint.parameters):
        _add_no_such_address(responses)
    return dict(sorted(responses.items()))


def _answers(endpoint: Endpoint) -> Iterator[tuple[str, dict[str, Any]]]:
    for status, (schema, words) in endpoint.answers.items():
        headers = ("X-Request-ID",) if schema == "Nothing" else _ALWAYS
        yield str(status), _answer(words, {"$ref": f"#/components/schemas/{schema}"}, headers)


def _refusals(endpoint: Endpoint) -> Iterator[tuple[str, dict[str, Any]]]:
    """One response for each status, with the codes it may have."""
    codes = sorted(endpoint.refusals, key=lambda code: (REFUSALS[code].status, endpoint.refusals.index(code)))
    for status, of_status in groupby(codes, key=lambda code: REFUSALS[code].status):
        found = list(of_status)
        words = "\n".join(f"- `{code}`: {REFUSALS[code].meaning}" for code in found)
        schema = {
            "allOf": [
                {"$ref": "#/components/schemas/Error"},
                {"properties": {"error": {"properties": {"code": {"enum": found}}}}},
            ]
        }
        yield str(status), _answer(words, schema, (*_ALWAYS, *_OF_STATUS.get(status, ())))


def _add_no_such_address(responses: dict[str, Any]) -> None:
    """What is no id makes no address: that one is answered by the site, not by a feed."""
    response = responses.setdefault("404", {"description": "", "headers": {}, "content": {}})
    words = "- as a page: what stands in the address is not of the form of such an id"
    response["description"] = "\n".join(filter(None, [response["description"], words]))
    response["headers"] = {"X-Request-ID": {"$ref": "#/components/headers/X-Request-ID"}}
    response["content"]["text/html"] = {"schema": {"type": "string"}}


def _answer(words: str, schema: Schema, headers: tuple[str, ...]) -> dict[str, Any]:
    return {
        "description": words,
        "headers": {name: {"$ref": f"#/components/headers/{name}"} for name in headers},
        "content": {"application/json": {"schema": schema}},
    }
