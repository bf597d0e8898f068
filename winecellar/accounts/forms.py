"""Signing in by email, and the admin's forms for people: the same as Django's but for the field's name."""

from typing import Any

from django import forms
from django.contrib.auth import authenticate
from django.contrib.auth.forms import AdminUserCreationForm, UserChangeForm
from django.http import HttpRequest

from winecellar.accounts.models import User

LONGEST_PASSWORD = 4_096


class SignInForm(forms.Form):
    """What LoginView needs: `request` and `data` in, `get_user()` out."""

    email = forms.EmailField(
        label="Email", widget=forms.EmailInput(attrs={"autocomplete": "username", "autocapitalize": "none"})
    )
    password = forms.CharField(
        strip=False,
        max_length=LONGEST_PASSWORD,
        widget=forms.PasswordInput(attrs={"autocomplete": "current-password"}),
    )
    error_messages = {
        "email": {
            "required": "Enter your email address.",
            "invalid": "Enter an email address, such as anna@example.com.",
        },
        "password": {"required": "Enter your password."},
    }

    def __init__(self, request: HttpRequest | None = None, *args: Any, **options: Any) -> None:
        super().__init__(*args, **options)
        self.request = request
        self.user: Any = None
        for name, messages in self.error_messages.items():
            self.fields[name].error_messages.update(messages)

    def clean(self) -> dict[str, Any]:
        email, password = self.cleaned_data.get("email"), self.cleaned_data.get("password")
        if email and password:
            self.user = authenticate(self.request, username=email, password=password)
            if self.user is None:
                # One answer for an unknown address, a wrong password and a closed account.
                self.add_error("password", "This password and this email address do not belong together. Try again.")
        return self.cleaned_data

    def get_user(self) -> Any:
        return self.user


class PersonCreationForm(AdminUserCreationForm):  # type: ignore[type-arg]
    class Meta:
        model = User
        fields = ("email",)

    def clean_email(self) -> str:
        """Stored in lower case, as the manager does: two spellings of one address are one person."""
        return str(self.cleaned_data["email"]).lower()


class PersonChangeForm(UserChangeForm):  # type: ignore[type-arg]
    class Meta:
        model = User
        fields = "__all__"

    def clean_email(self) -> str:
        return str(self.cleaned_data["email"]).lower()
