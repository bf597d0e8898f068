"""Template filters of ours, available everywhere without a load tag."""

from django import template

register = template.Library()
