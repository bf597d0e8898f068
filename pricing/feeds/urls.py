"""The feeds' addresses, under /feeds/. A slash at the end changes nothing: a redirect would lose the body."""

from django.urls import re_path

from pricing.feeds import views

urlpatterns = [
    re_path(r"^v1/price-changes/?$", views.price_changes, name="feed-price-changes"),
]
