"""The stylesheet: small, and legible in both palettes. Contrast is WCAG's, computed from the custom properties."""

import re
from pathlib import Path

import pytest

STATIC = Path(__file__).parents[2] / "winecellar" / "static"
CSS = (STATIC / "cellar.css").read_text()
COLOUR = re.compile(r"--([\w-]+): (#[0-9a-f]{6});")

# Foreground on background: letters.
TEXT = [
    *[("ink", ground) for ground in ("paper", "page", "wash", "green-wash", "amber-wash")],
    *[("soft", ground) for ground in ("paper", "page", "grey-wash")],
    *[("accent", ground) for ground in ("paper", "page", "wash")],
    *[("accent-deep", ground) for ground in ("paper", "page", "wash")],
    *[("green", ground) for ground in ("paper", "page", "green-wash")],
    *[("amber", ground) for ground in ("paper", "page", "amber-wash")],
    ("on-accent", "accent"),
    ("on-accent", "accent-deep"),
]
# Lines that carry meaning: borders of fields, the chart, the bars, the outline of what has the focus.
LINES = [
    *[("line", ground) for ground in ("paper", "page")],
    *[("accent", ground) for ground in ("paper", "page")],
    *[("green", ground) for ground in ("paper", "page")],
    *[("ink", ground) for ground in ("paper", "page")],
]


def palettes() -> dict[str, dict[str, str]]:
    light, dark = re.findall(r":root \{(.*?)\n *\}", CSS, re.DOTALL)
    day = dict(COLOUR.findall(light))
    return {"light": day, "dark": day | dict(COLOUR.findall(dark))}


def luminance(colour: str) -> float:
    parts = [int(colour[i : i + 2], 16) / 255 for i in (1, 3, 5)]
    red, green, blue = [part / 12.92 if part <= 0.04045 else ((part + 0.055) / 1.055) ** 2.4 for part in parts]
    return 0.2126 * red + 0.7152 * green + 0.0722 * blue


def contrast(one: str, other: str) -> float:
    low, high = sorted((luminance(one), luminance(other)))
    return (high + 0.05) / (low + 0.05)


def test_contrast_is_computed_as_wcag_says() -> None:
    assert round(contrast("#000000", "#ffffff"), 1) == 21
    assert round(contrast("#777777", "#ffffff"), 2) == 4.48


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_text_can_be_read(scheme: str) -> None:
    palette = palettes()[scheme]
    weak = {pair: contrast(palette[pair[0]], palette[pair[1]]) for pair in TEXT}
    assert {pair: ratio for pair, ratio in weak.items() if ratio < 4.5} == {}


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_lines_that_carry_meaning_can_be_seen(scheme: str) -> None:
    palette = palettes()[scheme]
    weak = {pair: contrast(palette[pair[0]], palette[pair[1]]) for pair in LINES}
    assert {pair: ratio for pair, ratio in weak.items() if ratio < 3} == {}


def test_the_dark_palette_is_its_own_and_warm() -> None:
    day, night = palettes()["light"], palettes()["dark"]
    for name in ("paper", "page", "ink", "soft", "accent", "green", "amber"):
        assert day[name] != night[name]
    red, _, blue = (int(night["paper"][i : i + 2], 16) for i in (1, 3, 5))
    assert red > blue


def test_the_stylesheets_are_under_twenty_kilobytes_and_fetches_nothing() -> None:
    assert sorted(path.name for path in STATIC.rglob("*.css")) == ["cellar.css", "print.css"]
    assert sum(len(path.read_bytes()) for path in STATIC.rglob("*.css")) < 20_480
    assert "url(" not in CSS
    assert "@import" not in CSS


def test_the_only_script_is_short_and_makes_no_text_into_code() -> None:
    (script,) = STATIC.rglob("*.js")
    text = script.read_text()
    assert (script.name, len(text.encode()) < 1_500) == ("fresh.js", True)
    assert not re.search(r"innerHTML|eval|Function\(|document\.write|\.style", text)


def test_motion_print_and_dark_mode_are_provided_for() -> None:
    for query in ("prefers-color-scheme: dark", "prefers-reduced-motion", "forced-colors"):
        assert query in CSS
    outside = re.sub(r"@media \(prefers-reduced-motion: no-preference\) \{.*?\n\}", "", CSS, flags=re.DOTALL)
    assert "transition" not in outside
    assert "animation" not in CSS


def test_every_colour_used_is_in_the_palette() -> None:
    rules = re.sub(r":root \{.*?\n *\}", "", CSS, flags=re.DOTALL)
    assert re.findall(r"#[0-9a-fA-F]{3,8}\b(?=[;\s}])", rules) == []
    used, known = set(re.findall(r"var\(--([\w-]+)\)", CSS)), set(re.findall(r"--([\w-]+):", CSS))
    assert used <= known
