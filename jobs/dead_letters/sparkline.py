"""How many letters came in each of the last hours, as a row of small bars and in words."""

from __future__ import annotations

from collections.abc import Sequence

from django.utils.html import format_html, format_html_join
from django.utils.safestring import SafeString

HEIGHT, STEP, BAR = 24, 5, 4


def sparkline(hours: Sequence[int]) -> SafeString:
    """`hours`: counts, the oldest first."""
    most = max(hours, default=0) or 1
    drawn = format_html_join(
        "",
        '<rect x="{}" y="{}" width="{}" height="{}" fill="currentColor"></rect>',
        (
            (n * STEP, f"{HEIGHT - height:.1f}", BAR, f"{height:.1f}")
            for n, count in enumerate(hours)
            for height in [max(count / most * HEIGHT, 1.0) if count else 0.4]
        ),
    )
    words = f"{sum(hours):,} in the last {len(hours)} hours, {hours[-1] if hours else 0:,} in this one"
    return format_html(
        '<svg class="dl-spark" width="{}" height="{}" role="img" aria-label="{}"><title>{}</title>{}</svg>',
        len(hours) * STEP,
        HEIGHT,
        words,
        words,
        drawn,
    )
