"""Holds answers against the OpenAPI document: status, headers, and the body with no field more than it names."""

import copy
import re
from collections.abc import Mapping
from functools import cache
from typing import Any

import jsonschema_rs

from pricing.feeds.described.openapi import document

ANSWERS = (
    *("Taken", "ListingsTaken", "Result", "ListingResult", "Error"),
    *("CatalogueTaken", "CatalogueReport", "CatalogueRejection"),
)
# What the web server says by itself, before there is a request; the document says so in words.
NOT_OURS = {400, 414, 417, 431}


@cache
def described() -> dict[str, Any]:
    """The document, but strict: clients shall ignore fields they do not know, and we shall not send any."""
    strict = copy.deepcopy(document())
    for name in ANSWERS:
        _close(strict["components"]["schemas"][name])
    return strict


def _close(schema: dict[str, Any]) -> None:
    if "properties" in schema:
        schema["additionalProperties"] = False
        for below in schema["properties"].values():
            _close(below)


@cache
def validator(schema: str) -> Any:
    """Of the schema at this JSON pointer of the document."""
    return jsonschema_rs.Draft202012Validator(
        {"$ref": f"#{schema}", "components": described()["components"], **_paths()}
    )


@cache
def _paths() -> dict[str, Any]:
    return {"paths": described()["paths"]}


def template_of(path: str) -> str | None:
    """The document's path that this one is at; a slash at the end changes nothing."""
    return next((template for template in described()["paths"] if _pattern(template).fullmatch(path)), None)


@cache
def _pattern(template: str) -> re.Pattern[str]:
    text = re.escape(template)
    for parameter in next(iter(described()["paths"][template].values()))["parameters"]:
        if parameter["in"] == "path":
            pattern = parameter["schema"]["pattern"].removeprefix("^").removesuffix("$")
            text = text.replace(re.escape("{" + parameter["name"] + "}"), pattern)
    return re.compile(text + "/?")


def check(method: str, path: str, status: int, headers: Mapping[str, str], body: Any) -> None:
    """Assert that an answer is one that the document promises; nothing for what is not at a feed's address."""
    template = template_of(path)
    is_json = headers.get("content-type") == "application/json"
    if template is None or (status in NOT_OURS and not is_json):
        return
    operations = described()["paths"][template]
    method = method.lower()
    if method not in operations:
        assert status == 405 or (status, method) == (403, "get"), (method, path, status)
        method = next(iter(operations))
    answer = operations[method]["responses"].get(str(status))
    assert answer, f"{path} answered {status}, which is not described: {body}"
    for name in answer["headers"]:
        assert name.lower() in headers, f"{path} answered {status} without {name}"
    if method != "head":
        assert is_json, headers
        pointer = (
            f"/paths/{template.replace('/', '~1').replace('{', '%7B').replace('}', '%7D')}/{method}/responses/{status}"
        )
        error = next(validator(f"{pointer}/content/application~1json/schema").iter_errors(body), None)
        assert error is None, f"{path} answered {status}: {error.message if error else ''} in {body}"
