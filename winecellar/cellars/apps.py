from django.apps import AppConfig


class CellarsConfig(AppConfig):
    name = "winecellar.cellars"
    verbose_name = "Cellars"
