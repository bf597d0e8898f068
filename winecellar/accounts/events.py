"""The message types that accounts publish. Neither body holds an address: the log keeps messages for a year.

`user.address_confirmed`: the person's address is theirs, a new one or the first. Body: {"user_id"}.
`send_account_email`, a command: body {"account_mail_id"}; the mail itself is the row of that id.
"""

ADDRESS_CONFIRMED = "user.address_confirmed"
SEND_ACCOUNT_EMAIL = "send_account_email"
