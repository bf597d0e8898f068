"""Everybody sees their own write at once while a real replica is minutes behind; others' pages come from it."""

from typing import Any

import pytest
from django.db import OperationalError, connections, transaction
from django.test import Client

from alerts.models import Alert
from pricing.models import Wine
from tests.cast import wine, with_app
from tests.replicas.conftest import ALIAS, Look
from tests.replicas.standby import Standby
from winecellar.accounts.models import User
from winecellar.replicas import middleware
from winecellar.replicas.reading import Reading
from winecellar.replicas.standby import WRITTEN

pytestmark = [pytest.mark.processes, pytest.mark.django_db(transaction=True, databases="__all__")]


def watch(client: Client, target: str) -> Alert:
    """Through the form of the wine's page."""
    assert client.post("/wines/wn_4417", {"target": target}).status_code == 302
    return Alert.objects.get(target=target)


def test_an_alert_is_on_the_list_as_soon_as_it_is_created_changed_or_deleted(
    replica: Standby, as_alice: Client, look: Look
) -> None:
    assert look(as_alice, "/alerts").on_replica, "until then her pages come from the replica"
    replica.delay("5min")

    alert = watch(as_alice, "123.45")
    listed = look(as_alice, "/alerts")
    assert "$123.45" in listed.text
    assert not listed.on_replica
    assert "$123.45" in look(as_alice, f"/alerts/{alert.pk}").text
    assert "$123.45" in look(as_alice, "/wines/wn_4417").text

    as_alice.post(f"/alerts/{alert.pk}/edit", {"target": "101.10"})
    listed = look(as_alice, "/alerts")
    assert "$101.10" in listed.text
    assert "$123.45" not in listed.text

    as_alice.post(f"/alerts/{alert.pk}/delete")
    assert "$101.10" not in look(as_alice, "/alerts").text
    assert replica.ask("SELECT count(*) FROM alerts_alert") == 0, "the replica never had it"


def test_others_read_from_the_replica_what_it_has(
    replica: Standby, as_alice: Client, stranger: Client, look: Look
) -> None:
    replica.delay("5min")
    watch(as_alice, "123.45")
    Wine.objects.filter(pk="wn_4417").update(name="Ch. Brand New")
    theirs = look(stranger, "/wines/wn_4417")
    assert theirs.on_replica
    assert WRITTEN in theirs.on_primary, "the mark"
    assert not any('"pricing_wine"' in sql for sql in theirs.on_primary)
    assert "Ch. Montrose" in theirs.text
    assert "Ch. Brand New" not in theirs.text, "the replica cannot have it yet"
    assert "Ch. Brand New" in look(as_alice, "/wines/wn_4417").text, "hers came from the primary"


def test_once_the_replica_has_replayed_the_write_it_is_read_from_again(
    replica: Standby, as_alice: Client, look: Look
) -> None:
    replica.delay("5min")
    watch(as_alice, "123.45")
    assert not look(as_alice, "/alerts").on_replica
    wine("99")  # the log goes on: a position may lie behind a page's header, where no record has ended yet
    replica.catch_up()
    listed = look(as_alice, "/alerts")
    assert any('"alerts_alert"' in sql for sql in listed.on_replica)
    assert not any('"alerts_alert"' in sql for sql in listed.on_primary)
    assert "$123.45" in listed.text


def test_whoever_is_not_signed_in_is_remembered_too(replica: Standby, stranger: Client, look: Look) -> None:
    assert look(stranger, "/wines/wn_4417").on_replica
    replica.delay("5min")
    Wine.objects.filter(pk="wn_4417").update(name="Ch. Brand New")
    stranger.post("/sign-in", {"login": "nobody@winecellar.example", "password": "not-the-password"})
    assert "Ch. Brand New" in look(stranger, "/wines/wn_4417").text


def test_a_page_that_writes_while_it_reads_goes_on_with_the_primary(
    replica: Standby, as_alice: Client, look: Look, settings: Any
) -> None:
    """The first look at one's cellar makes it."""
    replica.delay("5min")
    page = look(as_alice, "/cellar")
    assert any("INSERT INTO" in sql and "cellar" in sql for sql in page.on_primary)
    assert not page.on_replica
    cookie = as_alice.cookies[middleware.COOKIE]  # so the next page knows, for as long as a replica may lack it
    assert cookie["max-age"] > settings.REPLICA_MAX_LAG.total_seconds()


def test_with_a_replica_a_page_costs_one_short_question_more(
    replica: Standby, as_alice: Client, stranger: Client, look: Look
) -> None:
    look(as_alice, "/alerts")
    watch(as_alice, "123.45")
    replica.catch_up()
    page = look(as_alice, "/alerts")
    assert page.how_far == 1
    assert look(stranger, "/sign-in").how_far == 0, "nothing on this page may come from a replica"


@pytest.mark.parametrize("path", ["/admin/pricing/wine/", "/feeds/openapi.json"])
def test_operators_and_programs_never_read_from_a_replica(replica: Standby, look: Look, path: str) -> None:
    client = Client()
    operator = User.objects.create_user("charlie@winecellar.example", confirmed=True, is_staff=True, is_superuser=True)
    client.force_login(with_app(operator))
    assert look(client, path).how_far == 0


def test_what_programs_send_gets_no_cookie(replica: Standby, stranger: Client) -> None:
    assert stranger.post("/feeds/v1/price-changes", b"{}", content_type="application/json").status_code == 401
    assert middleware.COOKIE not in stranger.cookies


def test_a_cookie_that_somebody_made_up_counts_for_nothing(replica: Standby, stranger: Client, look: Look) -> None:
    stranger.cookies[middleware.COOKIE] = f"{2**64}:made-up"
    assert look(stranger, "/wines/wn_4417").on_replica


def test_a_write_whose_position_is_unknown_is_seen_on_the_primary(
    replica: Standby, as_alice: Client, look: Look, monkeypatch: pytest.MonkeyPatch
) -> None:
    def gone() -> int:
        raise OperationalError("the primary went away after the commit")

    look(as_alice, "/alerts")
    replica.delay("5min")
    with monkeypatch.context() as patch:
        patch.setattr(middleware, "primary_position", gone)
        watch(as_alice, "123.45")
    assert "$123.45" in look(as_alice, "/alerts").text


def test_workers_commands_and_whatever_else_is_no_page_read_from_the_primary(replica: Standby) -> None:
    replica.delay("5min")
    wine("99", name="Ch. Brand New")
    assert Wine.objects.filter(pk="wn_99").exists()
    assert Wine.objects.filter(pk="wn_99").db == "default"


def test_what_is_read_inside_a_transaction_is_what_the_transaction_sees(replica: Standby) -> None:
    reading = Reading(middleware.standbys()[0], written_at=0)
    with transaction.atomic():
        assert reading.alias() == "default"
    assert reading.alias() == ALIAS


def test_the_replicas_connection_cannot_write(replica: Standby) -> None:
    with pytest.raises(Exception, match="read-only"), connections[ALIAS].cursor() as cursor:
        cursor.execute("DELETE FROM alerts_alert")


def test_time_does_not_run_backwards_for_one_visitor(settings: Any, rf: Any) -> None:
    settings.REPLICAS = {f"replica{n}": {} for n in range(4)}
    middleware.standbys.cache_clear()
    request = rf.get("/wines")
    chosen = set()
    for number in range(50):
        request.COOKIES[settings.SESSION_COOKIE_NAME] = f"session-{number}"
        first = middleware._standby_for(request)
        assert first is middleware._standby_for(request)
        chosen.add(first)
    middleware.standbys.cache_clear()
    assert len(chosen) == 4, "and all of them have work"
