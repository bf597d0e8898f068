"""Where a message's body departs from its JSON Schema, field by field. Pure; imports no Django.

Our schemas are flat objects of typed, bounded fields (pricing/event_schemas.py); this reads just that, and says of
other keywords nothing.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from decimal import Decimal
from typing import Any

_TYPES: dict[str, tuple[type, ...]] = {
    "string": (str,),
    "number": (int, Decimal, float),
    "integer": (int,),
    "boolean": (bool,),
    "null": (type(None),),
    "object": (dict,),
    "array": (list,),
}


@dataclass(frozen=True)
class Field:
    """One field: what the schema wants, what the body has, and what is wrong, if anything."""

    name: str
    wanted: str
    found: str
    wrong: str
    stability: str = ""


def compare(schema: dict[str, Any] | None, body: Any) -> list[Field]:
    """Every field of the schema, then those of the body that it does not know."""
    if not isinstance(body, dict):
        return [Field("(the body)", "an object", shown(body), "not an object")]
    properties: dict[str, Any] = (schema or {}).get("properties", {})
    required = set((schema or {}).get("required", ()))
    fields = [
        Field(
            name,
            _wanted(wanted),
            shown(body[name]) if name in body else "–",
            _wrong(wanted, body[name]) if name in body else ("missing" if name in required else ""),
            wanted.get("x-stability", ""),
        )
        for name, wanted in properties.items()
    ]
    return fields + [Field(name, "–", shown(body[name]), "") for name in body if name not in properties]


def shown(value: Any) -> str:
    """With quotes round a text, so that a space at its end is seen."""
    text = repr(value) if isinstance(value, str) else str(value)
    return text if len(text) <= 200 else text[:199] + "…"


def _wanted(schema: dict[str, Any]) -> str:
    if "anyOf" in schema:
        return " or ".join(_wanted(one) for one in schema["anyOf"])
    types = schema.get("type", "")
    said = [" or ".join(types) if isinstance(types, list) else str(types)]
    if "const" in schema:
        said.append(f"exactly {schema['const']!r}")
    if "enum" in schema:
        values = schema["enum"]
        said.append("one of " + ", ".join(map(repr, values)) if len(values) <= 5 else f"one of {len(values)} values")
    for keyword, words in (("exclusiveMinimum", "above"), ("maximum", "at most"), ("maxLength", "no longer than")):
        if keyword in schema:
            said.append(f"{words} {schema[keyword]:,.15g}")
    return ", ".join(part for part in said if part)


def _wrong(schema: dict[str, Any], value: Any) -> str:
    if "anyOf" in schema:
        found = [_wrong(one, value) for one in schema["anyOf"]]
        return "" if "" in found else found[0]
    types = schema.get("type")
    names = [types] if isinstance(types, str) else list(types or ())
    if names and not any(_is(value, name) for name in names):
        return f"not {' or '.join(names)}"
    if "const" in schema and value != schema["const"]:
        return f"not {schema['const']!r}"
    if "enum" in schema and value not in schema["enum"]:
        return "not one of the values"
    if isinstance(value, str):
        return _wrong_text(schema, value)
    if isinstance(value, int | Decimal | float) and not isinstance(value, bool):
        return _wrong_number(schema, Decimal(str(value)))
    return ""


def _wrong_text(schema: dict[str, Any], value: str) -> str:
    if len(value) < schema.get("minLength", 0):
        return "empty" if not value else "too short"
    if len(value) > schema.get("maxLength", len(value)):
        return "too long"
    if "pattern" in schema and not re.search(schema["pattern"], value):
        return "not of the form that is asked for"
    return ""


def _wrong_number(schema: dict[str, Any], value: Decimal) -> str:
    if "exclusiveMinimum" in schema and value <= Decimal(str(schema["exclusiveMinimum"])):
        return f"not above {schema['exclusiveMinimum']}"
    if "maximum" in schema and value > Decimal(str(schema["maximum"])):
        return f"above {schema['maximum']:,.15g}"
    if "multipleOf" in schema and value % Decimal(str(schema["multipleOf"])):
        return f"not a multiple of {schema['multipleOf']}"
    return ""


def _is(value: Any, name: str) -> bool:
    if isinstance(value, bool):
        return name == "boolean"
    return isinstance(value, _TYPES.get(name, (object,)))
