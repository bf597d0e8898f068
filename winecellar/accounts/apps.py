from django.apps import AppConfig


class AccountsConfig(AppConfig):
    name = "winecellar.accounts"
    verbose_name = "People"
