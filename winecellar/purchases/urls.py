"""Buying, what was bought, the card that pays, and what the payment provider reports."""

from django.urls import path

from winecellar.purchases import card_views, reports, views

urlpatterns = [
    path("buy/<int:pk>", views.buy, name="buy"),
    path("purchases", views.purchase_list, name="purchases"),
    path("purchases/<int:pk>", views.purchase_page, name="purchase"),
    path("purchases/card", card_views.card_begin, name="card-begin"),
    path("purchases/card/back", card_views.card_back, name="card-back"),
    path("purchases/card/remove", views.card_remove, name="card-remove"),
    path("payments/reports", reports.payment_reports, name="payment-reports"),
]
