"""Durations over time as a row of bars: an SVG without script or inline style, and its meaning in words."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import timedelta
from statistics import median

from django.utils.html import format_html, format_html_join
from django.utils.safestring import SafeString

from jobs.words import span

HEIGHT, STEP, BAR = 60, 10, 8


def bars(runs: Sequence[tuple[timedelta | None, str]]) -> SafeString | str:
    """`runs`: duration and description, oldest first. Each bar says its own figures when pointed at."""
    known = [(time, said) for time, said in runs if time is not None]
    if not known:
        return "No run has ended yet."
    longest = max(time for time, _ in known) or timedelta(milliseconds=1)
    drawn = format_html_join(
        "",
        '<rect x="{}" y="{}" width="{}" height="{}" fill="currentColor"><title>{}</title></rect>',
        (
            (n * STEP, f"{HEIGHT - height:.1f}", BAR, f"{height:.1f}", f"{said}: {span(time)}")
            for n, (time, said) in enumerate(known)
            for height in [max(time / longest * HEIGHT, 1.0)]
        ),
    )
    usual = timedelta(seconds=median(time.total_seconds() for time, _ in known))
    words = f"The last {len(known)} runs: median {span(usual)}, longest {span(longest)}."
    return format_html(
        '<svg width="{}" height="{}" role="img" aria-label="{}">{}</svg><p>{}</p>',
        len(known) * STEP,
        HEIGHT,
        words,
        drawn,
        words,
    )
