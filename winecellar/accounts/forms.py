"""The forms about accounts: allauth's, in our words and without its placeholders; and the admin's forms for people.

Bad input is answered beside its field. What an address may be is said once, in `address_field`.
"""

from __future__ import annotations

from typing import Any

from allauth.account.adapter import get_adapter
from allauth.account.forms import (
    AddEmailForm,
    ChangePasswordForm,
    LoginForm,
    ReauthenticateForm,
    ResetPasswordForm,
    ResetPasswordKeyForm,
    SignupForm,
)
from allauth.account.models import EmailAddress
from allauth.mfa.adapter import get_adapter as get_second_factor_adapter
from allauth.mfa.base.forms import AuthenticateForm
from allauth.mfa.base.forms import ReauthenticateForm as ReauthenticateByCodeForm
from allauth.mfa.totp.forms import ActivateTOTPForm
from django import forms
from django.contrib.auth.forms import AdminUserCreationForm, UserChangeForm
from django.core.validators import RegexValidator
from django.db import IntegrityError, transaction
from django.http import HttpRequest

from winecellar.accounts import services
from winecellar.accounts.models import User

LONGEST_PASSWORD = 4_096
LONGEST_ADDRESS = 254  # RFC 5321, and the column
LONGEST_CODE = 20
ENTER_AN_ADDRESS = "Enter an email address, such as anna@example.com."


def address_field(autocomplete: str = "email", label: str = "Email") -> forms.EmailField:
    """ASCII only: letters that look alike would be two accounts to us and one to a reader."""
    field = forms.EmailField(
        label=label,
        max_length=LONGEST_ADDRESS,
        widget=forms.EmailInput(attrs={"autocomplete": autocomplete, "autocapitalize": "none"}),
        error_messages={"required": "Enter your email address.", "invalid": ENTER_AN_ADDRESS},
    )
    plain = "Enter the address in plain letters; a domain with others has a form that begins with xn--."
    field.validators.append(RegexValidator(r"\A[\x00-\x7f]*\Z", plain, code="not_ascii"))
    return field


def password_field(label: str = "Password", *, new: bool = False) -> forms.CharField:
    """Hidden as it is typed. A new one says beforehand what it has to be."""
    autocomplete = "new-password" if new else "current-password"
    return forms.CharField(
        label=label,
        strip=False,
        max_length=LONGEST_PASSWORD,
        help_text="At least ten characters, and not one that everybody uses." if new else "",
        widget=forms.PasswordInput(attrs={"autocomplete": autocomplete}),
        error_messages={"required": "Enter a password." if new else "Enter your password."},
    )


def code_field(label: str) -> forms.CharField:
    widget = forms.TextInput(attrs={"autocomplete": "one-time-code", "inputmode": "numeric"})
    required = {"required": "Enter the code that the app shows."}
    return forms.CharField(label=label, max_length=LONGEST_CODE, widget=widget, error_messages=required)


class SignInForm(LoginForm):
    def __init__(self, *args: Any, **options: Any) -> None:
        super().__init__(*args, **options)
        self.fields["login"] = address_field("username")
        self.fields["password"] = password_field()
        self.order_fields(["login", "password"])

    def clean(self) -> Any:
        """What is wrong with the pair stands beside the password."""
        try:
            return super().clean()
        except forms.ValidationError as error:
            self.add_error("password", error)
            return self.cleaned_data


class SignUpForm(SignupForm):
    """One answer, after as long a time, for an address that is new and one that has an account."""

    def __init__(self, *args: Any, **options: Any) -> None:
        super().__init__(*args, **options)
        self.fields["email"] = address_field()
        self.fields["password1"] = password_field(new=True)

    def validate_unique_email(self, value: str) -> str:
        """Taken is what is somebody's address; what somebody only wants to change to does not keep its owner out."""
        self.account_already_exists = User.objects.filter(email=value).exists()
        return value

    def try_save(self, request: HttpRequest) -> Any:
        if not self.account_already_exists:
            try:
                with transaction.atomic():
                    return super().try_save(request)
            except IntegrityError:  # a twin of this request was quicker
                self.account_already_exists = True
        User().set_password(self.cleaned_data["password1"])  # hashing takes the time by which one could tell
        return super().try_save(request)

    def save(self, request: HttpRequest) -> User:
        return User.objects.create_user(self.cleaned_data["email"], self.cleaned_data["password1"])


class AddressForm(AddEmailForm):
    """Another address for one's account."""

    def __init__(self, *args: Any, **options: Any) -> None:
        super().__init__(*args, **options)
        self.fields["email"] = address_field(label="New address")

    def save(self, request: HttpRequest) -> EmailAddress:
        self.row = services.propose_address(user=self.user, email=self.cleaned_data["email"])
        self.sent = get_adapter().send_link(request, self.row)
        return self.row


class PasswordForm(ChangePasswordForm):
    def __init__(self, *args: Any, **options: Any) -> None:
        super().__init__(*args, **options)
        self.fields["oldpassword"] = password_field("Present password")
        _take_one_new_password(self)


class ForgottenForm(ResetPasswordForm):
    def __init__(self, *args: Any, **options: Any) -> None:
        super().__init__(*args, **options)
        self.fields["email"] = address_field("username")

    def clean_email(self) -> str:
        """Only for the person's own address: whom a mistyped new one reaches must not get the account."""
        email = str(super().clean_email()).lower()
        self.users: list[User] = [user for user in self.users if user.email == email]
        return email


class NewPasswordForm(ResetPasswordKeyForm):
    def __init__(self, *args: Any, **options: Any) -> None:
        super().__init__(*args, **options)
        _take_one_new_password(self)


class ItIsYouForm(ReauthenticateForm):
    def __init__(self, *args: Any, **options: Any) -> None:
        super().__init__(*args, **options)
        self.fields["password"] = password_field()


class EraseForm(forms.Form):
    """The password again, which counts as an attempt to sign in."""

    password = password_field("Your password")

    def __init__(self, *args: Any, user: User, **options: Any) -> None:
        super().__init__(*args, **options)
        self.user = user

    def clean_password(self) -> str:
        password = str(self.cleaned_data["password"])
        if not get_adapter().reauthenticate(self.user, password):
            raise get_adapter().validation_error("incorrect_password")
        return password


class CodeForm(AuthenticateForm):
    def __init__(self, *args: Any, **options: Any) -> None:
        super().__init__(*args, **options)
        self.fields["code"] = code_field("Code of your app, or a recovery code")


class ItIsYouByCodeForm(ReauthenticateByCodeForm):
    def __init__(self, *args: Any, **options: Any) -> None:
        super().__init__(*args, **options)
        self.fields["code"] = code_field("Code of your app, or a recovery code")


class AppForm(ActivateTOTPForm):
    """The first code of a new app. An address not confirmed could be somebody else's, whom it would lock out."""

    def __init__(self, *args: Any, **options: Any) -> None:
        super().__init__(*args, **options)
        self.fields["code"] = code_field("Code that the app shows")

    def clean_code(self) -> str:
        if not self.user.address_is_confirmed:
            raise get_second_factor_adapter().validation_error("unverified_email")
        return str(super().clean_code())


def _take_one_new_password(form: Any) -> None:
    """Typed once: who mistypes it sets another through a mail. The validators see whose it is."""
    password = form.fields["password1"]
    plain = password_field("New password", new=True)
    password.label, password.help_text, password.widget = plain.label, plain.help_text, plain.widget
    password.error_messages |= plain.error_messages
    password.max_length, password.validators = LONGEST_PASSWORD, plain.validators
    del form.fields["password2"]


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
