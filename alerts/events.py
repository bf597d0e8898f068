"""The message types that alerts publish.

`alert.created` asks matching to compare one alert with the prices now. Its body is {"alert_id", "wine_id"}, its key the
wine's id, so that it stands in line with the wine's prices. Published again when a target changes or an alert resumes.
"""

ALERT_CREATED = "alert.created"
# A command: the decision that a mail is due has been made. Body: notification_id, alert_id, event_id.
SEND_ALERT_EMAIL = "send_alert_email"
# A command: post one notification to one channel. Body: channel_delivery_id, channel_id. Once for each try.
DELIVER_TO_CHANNEL = "deliver_to_channel"
# A command: send one person's weekly digest. Body: digest_id.
SEND_DIGEST_EMAIL = "send_digest_email"
