from django.apps import AppConfig


class DemoConfig(AppConfig):
    name = "winecellar.demo"
    verbose_name = "Demo"
