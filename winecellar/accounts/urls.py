"""Signing up, in and out, and one's own account. The names are those by which allauth looks its pages up."""

from allauth.account import views as allauth
from allauth.mfa.base import views as second_factor
from allauth.mfa.recovery_codes import views as recovery_codes
from allauth.mfa.totp import views as totp
from django.urls import path, re_path
from django.views.decorators.http import require_POST
from django.views.generic import RedirectView

from winecellar.accounts import views

urlpatterns = [
    path("sign-up", views.SignUpView.as_view(), name="account_signup"),
    path("sign-up/look-into-your-mail", allauth.email_verification_sent, name="account_email_verification_sent"),
    path("confirm-address/<str:key>", views.ConfirmAddressView.as_view(), name="account_confirm_email"),
    path("sign-in", allauth.login, name="account_login"),
    path("sign-in/code", second_factor.authenticate, name="mfa_authenticate"),
    path("sign-in/closed", allauth.account_inactive, name="account_inactive"),
    path("sign-out", require_POST(allauth.logout), name="account_logout"),
    path("new-password", allauth.password_reset, name="account_reset_password"),
    path("new-password/look-into-your-mail", allauth.password_reset_done, name="account_reset_password_done"),
    path("new-password/done", allauth.password_reset_from_key_done, name="account_reset_password_from_key_done"),
    re_path(
        r"^new-password/(?P<uidb36>[0-9A-Za-z]+)-(?P<key>[^/]+)\Z",
        views.SetPasswordView.as_view(),
        name="account_reset_password_from_key",
    ),
    path("account", views.account, name="account"),
    path("account/address", views.AddressView.as_view(), name="account_email"),
    path("account/password", allauth.password_change, name="account_change_password"),
    # Whoever has no password gets one as whoever forgot theirs: through a mail.
    path(
        "account/password/first",
        RedirectView.as_view(pattern_name="account_reset_password"),
        name="account_set_password",
    ),
    path("account/it-is-you", allauth.reauthenticate, name="account_reauthenticate"),
    path("account/it-is-you/code", second_factor.reauthenticate, name="mfa_reauthenticate"),
    path("account/second-factor", second_factor.index, name="mfa_index"),
    path("account/second-factor/add", totp.activate_totp, name="mfa_activate_totp"),
    path("account/second-factor/remove", totp.deactivate_totp, name="mfa_deactivate_totp"),
    path("account/recovery-codes", views.readable(recovery_codes.view_recovery_codes), name="mfa_view_recovery_codes"),
    path(
        "account/recovery-codes/new",
        views.readable(recovery_codes.generate_recovery_codes),
        name="mfa_generate_recovery_codes",
    ),
    path(
        "account/recovery-codes/file",
        views.readable(recovery_codes.download_recovery_codes),
        name="mfa_download_recovery_codes",
    ),
    path("account/data", views.export_data, name="account-data"),
    path("account/erase", views.erase_account, name="account-erase"),
]
