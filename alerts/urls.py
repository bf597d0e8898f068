"""A wine's page (watching is on it), and the alerts of whoever is signed in."""

from django.urls import path

from alerts import unsubscribe_views, views

urlpatterns = [
    path("wines/<str:wine_id>", views.wine_page, name="wine"),
    path("alerts", views.alert_list, name="alerts"),
    path("alerts/<int:pk>", views.alert_page, name="alert"),
    path("alerts/<int:pk>/target", views.alert_target, name="alert-target"),
    path("alerts/<int:pk>/pause", views.alert_pause, name="alert-pause"),
    path("alerts/<int:pk>/resume", views.alert_resume, name="alert-resume"),
    path("alerts/<int:pk>/delete", views.alert_delete, name="alert-delete"),
    path("unsubscribe/<str:key>", unsubscribe_views.unsubscribe, name="unsubscribe"),
]
