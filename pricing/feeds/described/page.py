"""The OpenAPI document in words, for the page: what the template shows is read from the document alone. Pure.

Texts of the document mark code with backticks; here they become <code>, everything else is escaped.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from typing import Any

from django.utils.html import format_html, format_html_join
from django.utils.safestring import SafeString, mark_safe

from pricing.feeds.refusals import REFUSALS

Schema = dict[str, Any]

_CODE = re.compile(r"`([^`]+)`")
_PLAIN = {
    "string": "text",
    "integer": "a whole number",
    "number": "a number",
    "boolean": "true or false",
    "null": "null",
}


def of_document(document: dict[str, Any]) -> dict[str, Any]:
    """What the template needs, by name."""
    components = document["components"]
    return {
        "info": document["info"],
        "description": marked(document["info"]["description"]),
        "operations": [
            # The methods of one address do the same, so they are told of together.
            _operation([method.upper() for method in operations], path, next(iter(operations.values())), components)
            for path, operations in document["paths"].items()
        ],
        "shapes": [_shape(name, schema) for name, schema in components["schemas"].items()],
    }


def _operation(methods: list[str], path: str, operation: dict[str, Any], components: dict[str, Any]) -> dict[str, Any]:
    return {
        "id": operation["operationId"],
        "methods": methods,
        "path": path,
        "summary": operation["summary"],
        "description": marked(operation["description"]),
        "credentials": [
            marked(components["securitySchemes"][name]["description"])
            for each in operation["security"]
            for name in each
        ],
        "parameters": [
            {
                "name": each["name"],
                "place": "header" if each["in"] == "header" else "address",
                "kind": kind(each["schema"]),
                "words": marked(each["description"]),
            }
            for each in operation["parameters"]
        ],
        "bodies": [
            {
                "media_type": media_type,
                "kind": kind(body["schema"]),
                "example": _example(media_type, body.get("example")),
            }
            for media_type, body in operation.get("requestBody", {"content": {}})["content"].items()
        ],
        "answers": [
            {"status": status, "words": marked(answer["description"]), "kind": kind(_schema_of(answer))}
            for status, answer in operation["responses"].items()
            if status < "300"
        ],
        "refusals": [
            {"status": status, "code": code, "words": marked(REFUSALS[code].meaning)}
            for status, answer in operation["responses"].items()
            if status >= "400" and "application/json" in answer["content"]
            for code in _schema_of(answer)["allOf"][1]["properties"]["error"]["properties"]["code"]["enum"]
        ],
        "unreadable": _unreadable(operation, components),
    }


def _schema_of(answer: dict[str, Any]) -> Schema:
    schema: Schema = answer["content"]["application/json"]["schema"]
    return schema


def _unreadable(operation: dict[str, Any], components: dict[str, Any]) -> list[dict[str, Any]]:
    """What the answer 202 itself may name as wrong."""
    answer = operation["responses"].get("202")
    schema = components["schemas"][_schema_of(answer)["$ref"].rpartition("/")[2]] if answer else {}
    codes = schema.get("properties", {}).get("unreadable", {}).get("properties", {}).get("code", {}).get("enum", [])
    return [{"status": 202, "code": code, "words": marked(REFUSALS[code].meaning)} for code in codes]


def _example(media_type: str, example: Any) -> str:
    if example is None or isinstance(example, str):
        return example or ""
    if media_type.endswith("ndjson"):
        return "\n".join(json.dumps(line, ensure_ascii=False) for line in example)
    if media_type.endswith("urlencoded"):
        return "&".join(f"{name}={value}" for name, value in example.items())
    return json.dumps(example, ensure_ascii=False, indent=2)


def _shape(name: str, schema: Schema) -> dict[str, Any]:
    return {
        "name": name,
        "description": marked(schema.get("description", "")),
        "kind": "" if "properties" in schema else kind(schema),
        "fields": list(_fields(schema)),
    }


def _fields(schema: Schema, before: str = "") -> Iterator[dict[str, Any]]:
    """Each field with those below it, by its path."""
    required = schema.get("required", [])
    for name, field in schema.get("properties", {}).items():
        path = f"{before}{name}"
        yield {
            "name": path,
            "always": name in required,
            "kind": kind(field),
            "words": marked(field.get("description", "")),
        }
        items = field.get("items", {})
        yield from _fields(items, f"{path}[].") if "properties" in items else _fields(field, f"{path}.")


def kind(schema: Schema) -> SafeString:
    """What a value may be: “text of 1 to 200 characters”, or a link to the shape that it has."""
    if "$ref" in schema:
        name = schema["$ref"].rpartition("/")[2]
        return format_html('<a href="#shape-{}">{}</a>', name, name)
    for choice in ("oneOf", "anyOf"):
        if choice in schema and "type" not in schema:
            return _either([kind(each) for each in schema[choice]])
    if "const" in schema:
        return format_html("<code>{}</code>", schema["const"])
    if "enum" in schema:
        return _either([format_html("<code>{}</code>", each) for each in schema["enum"]])
    types = schema.get("type", "anything")
    return _either([_typed(each, schema) for each in ([types] if isinstance(types, str) else types)])


def _either(kinds: list[SafeString]) -> SafeString:
    return format_html_join(" or ", "{}", ((each,) for each in kinds))


def _typed(type_: str, schema: Schema) -> SafeString:
    if type_ == "array":
        items, at_most = kind(schema["items"]), schema.get("maxItems")
        limits = f" {schema.get('minItems', 0)} to {at_most:,}" if at_most else ""
        return format_html("a list of{} {}", limits, items)
    if type_ == "object":
        return mark_safe("an object") if "properties" in schema else mark_safe("an empty object")
    words = _PLAIN.get(type_, type_)
    if "maxLength" in schema:
        words += f" of {schema.get('minLength', 0)} to {schema['maxLength']:,} characters"
    if "exclusiveMinimum" in schema:
        words += f" above {schema['exclusiveMinimum']}"
    if "maximum" in schema:
        words += f" up to {schema['maximum']:.2f}"
    if "pattern" in schema:
        return format_html("{} like <code>{}</code>", words, schema["pattern"])
    return format_html("{}", words)


def marked(text: str) -> SafeString:
    """Escaped, and what stands between backticks as code."""
    pieces = _CODE.split(text)
    return format_html_join(
        "",
        "{}",
        ((format_html("<code>{}</code>", piece) if index % 2 else piece,) for index, piece in enumerate(pieces)),
    )
