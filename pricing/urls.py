"""The list of wines. A wine's own page has the watch form on it, so alerts/urls.py has that."""

from django.urls import path

from pricing import views

urlpatterns = [
    path("", views.wine_list, name="wines"),
]
