"""Signing in and out."""

from django.contrib.auth.views import LogoutView
from django.urls import path

from winecellar.accounts.views import SignInView

urlpatterns = [
    path("sign-in", SignInView.as_view(), name="sign-in"),
    path("sign-out", LogoutView.as_view(), name="sign-out"),
]
