"""What a page of another app says about somebody's bottles: apps do not import each other, but templates meet here."""

from django import template

from winecellar.cellars.models import Bottle
from winecellar.cellars.selectors import bottles_of_wine

register = template.Library()


@register.simple_tag(takes_context=True)
def bottles_held(context: template.Context, wine_id: str) -> list[Bottle]:
    """The reader's own bottles of a wine, if they are signed in: 1 query, none for a stranger."""
    user = context["user"]
    return bottles_of_wine(user_id=user.pk, wine_id=wine_id) if user.is_authenticated else []
