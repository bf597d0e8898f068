from django.apps import AppConfig
from django.db.models.signals import post_migrate


class DeploymentConfig(AppConfig):
    name = "winecellar.deployment"
    verbose_name = "Deployment"

    def ready(self) -> None:
        from winecellar.deployment.grants import follow_code

        post_migrate.connect(follow_code, sender=self)
