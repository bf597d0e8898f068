"""A replica that became a primary is none any more. The last file of these, since it leaves no replica behind."""

import pytest
from django.test import Client

from pricing.models import Wine
from tests.replicas.conftest import Look
from tests.replicas.standby import Standby
from winecellar.replicas import middleware

pytestmark = [pytest.mark.processes, pytest.mark.django_db(transaction=True, databases="__all__")]


def test_a_replica_that_was_promoted_is_none_any_more(replica: Standby, stranger: Client, look: Look) -> None:
    assert look(stranger, "/wines/wn_4417").on_replica
    replica.promote()
    Wine.objects.filter(pk="wn_4417").update(name="Ch. Brand New")
    page = look(stranger, "/wines/wn_4417")
    assert not page.on_replica
    assert "Ch. Brand New" in page.text
    (only,) = middleware.standbys()
    assert only.standing().why_not == "promoted"
    replica.destroy()  # if anything follows, the next start makes a new copy
