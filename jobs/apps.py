from django.apps import AppConfig
from django.db.backends.signals import connection_created
from django.db.models.signals import post_migrate


class JobsConfig(AppConfig):
    name = "jobs"
    verbose_name = "Queue"

    def ready(self) -> None:
        from jobs import checks, tracing  # noqa: F401  (registers the system checks)
        from jobs.database import tell_the_server
        from jobs.mail import checks as mail_checks  # noqa: F401
        from jobs.sync import sync_after_migrate

        # As Django does for permissions: the table of subscriptions follows the code after each migrate.
        post_migrate.connect(sync_after_migrate, sender=self)
        connection_created.connect(tell_the_server)
        tracing.set_up()
