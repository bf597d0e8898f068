"""`python -m tests.browser.staff`: the incident of the 341 in a running site, and staff who may each do one thing.

Prints who they are and the cookies that they are signed in with, as JSON. Run in the site's environment by the tests of
the admin; by hand it does the same to whatever DATABASE_URL names.
"""

from __future__ import annotations

import json

import django

# What each may do beside looking; the permissions of jobs.DeadLetter, and one of pricing.
MAY = {
    "dora": (),
    "rita": ("redrive_deadletter",),
    "rhea": ("readapt_deadletter",),
    "drew": ("discard_deadletter",),
    "quin": ("quarantine_deadletter",),
    "ann": ("assign_deadletter",),
    "cole": ("comment_deadletter",),
    "vera": ("view_rawbody",),
}


def main() -> None:
    from django.contrib.auth.models import Permission
    from django.test import Client

    from pricing.models import Merchant
    from tests.cast import with_app
    from winecellar.accounts.models import User
    from winecellar.demo.broken_release import release_the_broken_adapter

    release_the_broken_adapter(Merchant.objects.get(pk="mch_082"))
    look = [f"view_{model}" for model in ("deadletter", "redrive", "auditentry")]
    cookies = {}
    for name, may in MAY.items():
        person = User.objects.create_user(f"{name}@winecellar.example", "claret-and-port", is_staff=True)
        person.user_permissions.set(Permission.objects.filter(codename__in=[*look, *may]))
        client = Client()
        client.force_login(with_app(person))
        cookies[name] = {key: morsel.value for key, morsel in client.cookies.items()}
    print(json.dumps(cookies))


if __name__ == "__main__":
    django.setup()
    main()
