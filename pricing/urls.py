"""The list of wines and their files. A wine's own page has the watch form on it, so alerts/urls.py has that."""

from django.urls import path

from pricing import views

urlpatterns = [
    path("wines", views.wine_list, name="wines"),
    path("wines/<str:wine_id>/prices.csv", views.prices_csv, name="prices-csv"),
]
