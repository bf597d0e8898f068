"""The site's map."""

from django.contrib import admin
from django.urls import include, path

urlpatterns = [
    path("", include("pricing.urls")),
    path("", include("alerts.urls")),
    path("", include("winecellar.accounts.urls")),
    path("", include("winecellar.cellars.urls")),
    path("feeds/", include("pricing.feeds.urls")),
    path("admin/", admin.site.urls),
]
