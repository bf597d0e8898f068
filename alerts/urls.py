"""A wine's page (watching is on it), and the alerts of whoever is signed in."""

from django.urls import path

from alerts import actions, views

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
]
