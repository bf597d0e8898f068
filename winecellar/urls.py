"""The site's map."""

from django.contrib import admin
from django.urls import include, path

from winecellar.home import home
from winecellar.security_txt import security_txt

admin.site.site_header = admin.site.site_title = "Winecellar"
handler429 = "winecellar.accounts.views.too_many"  # allauth asks for it by this name

urlpatterns = [
    path("feeds/", include("pricing.feeds.urls")),  # first, since it is asked for most, and the search goes in order
    path("", home, name="home"),
    path("", include("pricing.urls")),
    path("", include("alerts.urls")),
    path("", include("winecellar.accounts.urls")),
    path("", include("winecellar.cellars.urls")),
    path("", include("winecellar.purchases.urls")),
    path("admin/", admin.site.urls),
    path(".well-known/security.txt", security_txt),
]
