"""No table: a name that the admin and the permission “can view journey” hang on."""

from django.db import models


class Journey(models.Model):
    """What became of one event. Made from other tables when it is asked for; see selectors."""

    TABLELESS = True

    event_id = models.TextField(primary_key=True)

    class Meta:
        managed = False
        default_permissions = ("view",)

    def __str__(self) -> str:
        return self.event_id
