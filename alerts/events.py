"""The message types that alerts publish.

`alert.created` asks matching to compare one alert with the prices now. Its body is {"alert_id", "wine_id"}, its key the
wine's id, so that it stands in line with the wine's prices. Published again when a target changes or an alert resumes.
"""

ALERT_CREATED = "alert.created"
# A command: the decision that a mail is due has been made. Body: notification_id, alert_id, event_id.
SEND_ALERT_EMAIL = "send_alert_email"
