"""Every page there is, by the name of its address, and how to come to it. A new page belongs here; a test asks."""

from __future__ import annotations

from dataclasses import dataclass

# Who looks. Dana is the demo's: she watches wines and has a cellar.
STRANGER, DANA = "a stranger", "Dana"


@dataclass(frozen=True)
class At:
    """`path` has {names} of the fixture `facts`; `status` where it is an error page on purpose."""

    name: str
    path: str
    who: str = DANA
    status: int = 200

    def __str__(self) -> str:
        return f"{self.who}: {self.path}"


PAGES = [
    At("home", "/", STRANGER),
    At("home", "/"),
    At("wines", "/wines", STRANGER),
    At("wines", "/wines?q=montrose"),
    At("wines", "/wines?q=nothing+of+the+kind", STRANGER),
    At("wine", "/wines/{wine}", STRANGER),
    At("wine", "/wines/{wine}?target=150"),
    At("wine", "/wines/{wine}?target=x"),
    At("wine", "/wines/{dear_wine}"),
    At("alerts", "/alerts"),
    At("alert", "/alerts/{alert}"),
    At("alerts", "/alerts?show=met&sort=nearest"),
    At("alert", "/alerts/{met_alert}"),
    At("alert-edit", "/alerts/{alert}/edit"),
    At("notifications", "/notifications"),
    At("digest", "/notifications/weeks/{digest}"),
    At("notification-settings", "/account/notifications"),
    At("unsubscribe", "/unsubscribe/{unsubscribe}", STRANGER),
    At("unsubscribe", "/unsubscribe/alerts-1:forged", STRANGER, 404),
    At("feeds-described", "/feeds/", STRANGER),
    At("account_signup", "/sign-up", STRANGER),
    At("account_email_verification_sent", "/sign-up/look-into-your-mail", STRANGER),
    At("account_confirm_email", "/confirm-address/too-old", STRANGER, 400),
    At("account_login", "/sign-in", STRANGER),
    At("account_login", "/sign-in?next=/alerts", STRANGER),
    At("account_inactive", "/sign-in/closed", STRANGER),
    At("account_reset_password", "/new-password", STRANGER),
    At("account_reset_password_done", "/new-password/look-into-your-mail", STRANGER),
    At("account_reset_password_from_key", "/new-password/1-too-old", STRANGER, 400),
    At("account_reset_password_from_key_done", "/new-password/done", STRANGER),
    At("account", "/account"),
    At("account_email", "/account/address"),
    At("account_change_password", "/account/password"),
    At("account_reauthenticate", "/account/it-is-you"),
    At("mfa_index", "/account/second-factor"),
    At("mfa_activate_totp", "/account/second-factor/add"),
    At("account-erase", "/account/erase"),
    At("cellar", "/cellar"),
    At("cellar-settings", "/cellar/settings"),
    At("bottle-search", "/cellar/add?q=montrose"),
    At("bottle-add-other", "/cellar/add/other"),
    At("bottle-add", "/cellar/add/{wine}"),
    At("bottle", "/cellar/bottles/{bottle}"),
    At("bottle-edit", "/cellar/bottles/{bottle}/edit"),
    At("cellar-import", "/cellar/import"),
    At("import", "/cellar/imports/{preview}"),
    At("wine", "/wines/{sold_wine}", STRANGER),
    At("buy", "/buy/{stock}"),
    At("purchases", "/purchases"),
    At("purchase", "/purchases/{purchase}"),
    At("404", "/purchases/999999999", DANA, 404),
    At("404", "/nowhere", STRANGER, 404),
    At("404", "/alerts/999999999", DANA, 404),
    At("400", "/wines?q=%00", STRANGER, 400),
]

# Not addresses, but what is said where there is none.
ERRORS = {"404", "400"}
# Not looked at, and why.
NO_PAGES = {
    "a redirect": {"account_set_password", "account_logout"},
    "a file": {"account-data", "cellar-export", "feeds-openapi", "prices-csv", "mfa_download_recovery_codes"}
    | {"atom-feed"},
    "by POST only, and back to a page above": {
        *("alert-pause", "alert-resume", "alert-snooze", "alert-delete", "alert-restore", "alerts-bulk", "alerts-undo"),
        *("bottle-consume", "bottle-move", "bottle-remove", "bottle-wine", "bottle-give-back"),
        *("address-works", "notifications-read", "mail-wishes", "feed-open", "feed-close"),
        *("channel-add", "channel-action"),
        *("import-apply", "import-undo", "import-discard"),
    },
    "asks for a second factor that the demo's people do not have": {
        *("mfa_authenticate", "mfa_reauthenticate", "mfa_deactivate_totp"),
        *("mfa_view_recovery_codes", "mfa_generate_recovery_codes"),
    },
    "by POST only, or on the way from there": {"card-begin", "card-back", "card-remove"},
    "for programs": {"payment-reports", "feed-price-changes", "feed-catalogues", "feed-catalogue", "feed-shop"},
}
