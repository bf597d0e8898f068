"""What a wine's page says about buying it: apps do not import each other, but templates meet here."""

from django import template

from winecellar.purchases import selectors
from winecellar.purchases.models import StockItem

register = template.Library()


@register.simple_tag
def stock_of(wine_id: str) -> list[StockItem]:
    """What can be bought of a wine: 1 query, none where nothing is sold."""
    return selectors.stock_of(wine_id)
