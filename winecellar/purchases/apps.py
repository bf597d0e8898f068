from django.apps import AppConfig


class PurchasesConfig(AppConfig):
    name = "winecellar.purchases"
    verbose_name = "Purchases"

    def ready(self) -> None:
        from winecellar.purchases import checks  # noqa: F401  (registers the system checks)
