"""The bare view in the project itself: the same settings and middleware as for ours, and the view of bare.py."""

import os

os.environ["DJANGO_SETTINGS_MODULE"] = "tests.benchmarks.bare_settings"

from winecellar.wsgi import application

__all__ = ["application"]
