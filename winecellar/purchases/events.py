"""The commands of a purchase; each body is {"purchase_id"}, a mail's {"purchase_mail_id"}: no address, no money.

Each has one handler: the first four the subscription purchase-payment, the last purchase-mail.
"""

CHARGE_PURCHASE = "charge_purchase"
CALL_OFF_PURCHASE = "call_off_purchase"
REFUND_PURCHASE = "refund_purchase"
CHECK_PAYMENT = "check_payment"
SEND_PURCHASE_EMAIL = "send_purchase_email"
