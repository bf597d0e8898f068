"""The feeds' addresses, under /feeds/. A slash at the end changes nothing: a redirect would lose the body.

With a merchant's id the address says whose signature to expect, or whose key. What is at each address is described in
described/endpoints.py, one entry for each.
"""

from django.urls import path, re_path

from pricing.feeds import catalogue_views, shop_views, views
from pricing.feeds.described import views as described

urlpatterns = [
    path("", described.page, name="feeds-described"),
    path("openapi.json", described.openapi_json, name="feeds-openapi"),
    re_path(r"^v1/price-changes/?$", views.price_changes, name="feed-price-changes"),
    re_path(r"^v1/price-changes/(?P<merchant_id>mch_[a-z0-9_]{1,36})/?$", views.price_changes),
    re_path(r"^v1/catalogues/?$", catalogue_views.catalogues, name="feed-catalogues"),
    re_path(r"^v1/catalogues/(?P<file_id>[0-9]{1,18})/?$", catalogue_views.catalogue, name="feed-catalogue"),
    re_path(
        r"^v1/(?P<system>shopify|woocommerce)/(?P<merchant_id>mch_[a-z0-9_]{1,36})/?$",
        shop_views.shop_webhook,
        name="feed-shop",
    ),
]
