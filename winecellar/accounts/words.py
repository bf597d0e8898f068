"""What the pages about accounts say, by the name under which allauth asks for it; for others they are silent."""

MESSAGES = {
    "account/messages/email_confirmed.txt": "{email} is confirmed. Alerts are sent to it.",
    "account/messages/email_confirmation_failed.txt": (
        "{email} belongs to another account. Sign in with it, or reset that account's password."
    ),
    "account/messages/email_deleted.txt": "{email} was taken away. Your address stays as it was.",
    "account/messages/logged_out.txt": "You have signed out.",
    "account/messages/password_changed.txt": "Your password is changed. Every other browser was signed out.",
    "mfa/messages/totp_activated.txt": "Signing in asks for a code of your app from now on.",
    "mfa/messages/totp_deactivated.txt": "The app is removed. Your password alone opens the account.",
    "mfa/messages/recovery_codes_generated.txt": (
        "These recovery codes are new. Keep them where you find them without your phone."
    ),
}

ERRORS = {
    "account_inactive": "This account is closed.",
    "duplicate_email": "This address is on your account already.",
    "email_password_mismatch": "This password and this email address do not belong together. Try again.",
    "email_taken": "This address belongs to another account.",
    "enter_current_password": "This is not your password. Try again.",
    "incorrect_password": "This is not your password. Try again.",
    "too_many_login_attempts": (
        "That was wrong too often. Wait a quarter of an hour, or set a new password through the link below."
    ),
    "rate_limited": "That was too often. Wait a few minutes.",
    "invalid_password_reset": "This link was used already, or is too old.",
}

SECOND_FACTOR_ERRORS = {
    "incorrect_code": "This code is not right, or was used already. Enter the one that the app shows now.",
    "unverified_email": "Confirm your address first: without it nobody could give you your account back.",
    "unreadable": "What belongs to your app cannot be read any more. Ask whoever runs this site.",
}

LINK_SENT = "We sent a link to {email}. Open it to confirm the address."
LINK_SENT_BEFORE = (
    "We sent a link to {email} a moment ago. Look among unwanted mail too; another can be sent in a while."
)
ADMIN_NEEDS_A_SECOND_FACTOR = "The admin asks for a second factor. Set one up here; then it opens."
ERASED = "Your account is erased, with everything that belonged to it. You get no more mail from us."
