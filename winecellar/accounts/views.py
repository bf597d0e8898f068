"""Signing in. Signing out is Django's own view, by POST only."""

from django.contrib.auth.views import LoginView

from winecellar.accounts.forms import SignInForm


class SignInView(LoginView):
    """By email and password. `next` is followed only within this site."""

    template_name = "accounts/sign_in.html"
    authentication_form = SignInForm  # type: ignore[assignment]  # it needs the same two things only
    redirect_authenticated_user = True
