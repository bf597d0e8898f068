"""A wine's page (watching is on it), and the alerts of whoever is signed in."""

from django.urls import path

from alerts import (
    actions,
    address_views,
    bounces,
    centre_views,
    feed_out,
    settings_views,
    unsubscribe_views,
    views,
)

urlpatterns = [
    path("wines/<str:wine_id>", views.wine_page, name="wine"),
    path("alerts", views.alert_list, name="alerts"),
    path("alerts/bulk", actions.alerts_bulk, name="alerts-bulk"),
    path("alerts/undo", actions.alerts_undo, name="alerts-undo"),
    path("alerts/<int:pk>", views.alert_page, name="alert"),
    path("alerts/<int:pk>/edit", views.alert_edit, name="alert-edit"),
    path("alerts/<int:pk>/pause", actions.alert_pause, name="alert-pause"),
    path("alerts/<int:pk>/resume", actions.alert_resume, name="alert-resume"),
    path("alerts/<int:pk>/snooze", actions.alert_snooze, name="alert-snooze"),
    path("alerts/<int:pk>/delete", actions.alert_delete, name="alert-delete"),
    path("alerts/<int:pk>/restore", actions.alert_restore, name="alert-restore"),
    path("unsubscribe/<str:key>", unsubscribe_views.unsubscribe, name="unsubscribe"),
    path("account/address/works", address_views.works, name="address-works"),
    *(path(f"mail/reports/{name}", view) for name, view in bounces.REPORTS.items()),
    path("alerts/feed/<str:key>", feed_out.atom_feed, name="atom-feed"),
    path("notifications", centre_views.notifications, name="notifications"),
    path("notifications/read", centre_views.notifications_read, name="notifications-read"),
    path("notifications/weeks/<int:pk>", centre_views.digest, name="digest"),
    path("account/notifications", settings_views.notification_settings, name="notification-settings"),
    path("account/notifications/mail", settings_views.mail_wishes, name="mail-wishes"),
    path("account/notifications/channels", settings_views.add_channel, name="channel-add"),
    path("account/notifications/channels/<int:pk>/<slug:action>", settings_views.channel_action, name="channel-action"),
    path("account/notifications/feed", settings_views.feed_open, name="feed-open"),
    path("account/notifications/feed/close", settings_views.feed_close, name="feed-close"),
]
