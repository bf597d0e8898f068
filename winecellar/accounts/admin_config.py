"""Names the admin's site. A module of its own, for it is read before there are models. Named in INSTALLED_APPS."""

from django.contrib.admin.apps import AdminConfig


class OperatorAdminConfig(AdminConfig):
    default_site = "winecellar.accounts.admin_site.OperatorSite"
