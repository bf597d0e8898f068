"""The product's settings, but its only address is the bare view's."""

from winecellar.settings import *  # noqa: F403

ROOT_URLCONF = "tests.benchmarks.bare_urls"
