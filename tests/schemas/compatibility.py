"""What a new version of an event's schema changes for those who read the event, in words.

A reader may rely on what is contract and on what is required, and meets no value there that the old schema forbids.
Convenience fields may change and go.
"""

from typing import Any, NamedTuple

# Keyword → whether its new limit lets through what the old one did not.
LIMITS = {
    "minimum": lambda old, new: new < old,
    "exclusiveMinimum": lambda old, new: new < old,
    "minLength": lambda old, new: new < old,
    "maximum": lambda old, new: new > old,
    "exclusiveMaximum": lambda old, new: new > old,
    "maxLength": lambda old, new: new > old,
    "enum": lambda old, new: not set(new) <= set(old),
    "type": lambda old, new: not types(new) <= types(old),
}
WORDS = {"description", "title", "$id", "$schema", "x-version", "x-stability", "x-always"}


class Change(NamedTuple):
    words: str
    breaking: bool


def types(value: Any) -> set[str]:
    named = {value} if isinstance(value, str) else set(value)
    return named | ({"integer"} if "number" in named else set())


def changes(old: dict[str, Any], new: dict[str, Any]) -> list[Change]:
    """From one version to another; descriptions are not counted."""
    found: list[Change] = []
    if old["title"] != new["title"]:
        found.append(Change(f"the event is called {new['title']}, no longer {old['title']}", breaking=True))
    was, now = old["properties"], new["properties"]
    for name in was:
        found += _changes_of(name, was[name], now.get(name), name in old["required"], name in new["required"])
    for name in now.keys() - was.keys():
        found.append(Change(f"{name} is new", breaking=False))
    return found


def _changes_of(
    name: str, was: dict[str, Any], now: dict[str, Any] | None, was_always: bool, always: bool
) -> list[Change]:
    relied_on = was_always or was["x-stability"] == "contract"
    if now is None:
        return [Change(f"{name} is gone", breaking=relied_on)]
    found = []
    if was_always and not always:
        found.append(Change(f"{name} may be missing", breaking=True))
    elif always and not was_always:
        found.append(Change(f"{name} is always there", breaking=False))
    if was["x-stability"] != now["x-stability"]:
        words = f"{name} is {now['x-stability']}, no longer {was['x-stability']}"
        found.append(Change(words, breaking=was["x-stability"] == "contract"))
    for keyword in sorted((was.keys() | now.keys()) - WORDS):
        if was.get(keyword) != now.get(keyword):
            wider = keyword in was and _wider(keyword, was[keyword], now.get(keyword))
            words = f"{name}: {keyword} was {was.get(keyword)} and is {now.get(keyword)}"
            found.append(Change(words + (", which lets more through" if wider else ""), breaking=relied_on and wider))
    return found


def _wider(keyword: str, old: Any, new: Any) -> bool:
    """A limit that is gone lets more through; so may one of which nobody can say how it compares."""
    return new is None or keyword not in LIMITS or bool(LIMITS[keyword](old, new))
