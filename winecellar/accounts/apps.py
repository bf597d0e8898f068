from django.apps import AppConfig


class AccountsConfig(AppConfig):
    name = "winecellar.accounts"
    verbose_name = "People"

    def ready(self) -> None:
        from winecellar.accounts import checks  # noqa: F401  # registers them
        from winecellar.accounts.journal import connect

        connect()
