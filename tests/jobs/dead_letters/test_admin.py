"""Dead letters' pages: who may look is offered nothing to do, who may do one thing is offered that one and no other."""

import re
from datetime import timedelta
from typing import Any

import pytest
from django.contrib.auth.models import Permission
from django.db import connection
from django.test import Client
from django.test.utils import CaptureQueriesContext
from django.utils import timezone

from jobs.alarms.mail import compose
from jobs.dead_letters.acts import ACTS
from jobs.models import AuditEntry, DeadLetter, Incident, Redrive
from pricing import raw_bodies
from pricing.raw_bodies import Received
from tests.cast import merchant
from tests.jobs.dead_letters.conftest import Staff, letter
from winecellar.accounts.models import User

pytestmark = pytest.mark.django_db

LIST, GROUPS = "/admin/jobs/deadletter/letters/", "/admin/jobs/deadletter/"
EXTRA = {
    "quarantine": {"wake_at": "2100-01-01T10:00"},
    "assign": {"to": "bob"},
    "redrive": {"rate_per_second": "10", "stop_share": "0.1"},
    "readapt": {"rate_per_second": "10", "stop_share": "0.1"},
}


def text(client: Client, address: str) -> str:
    answer = client.get(address)
    assert answer.status_code == 200, address
    return answer.content.decode()


def decide(client: Client, act: str, **given: str) -> Any:
    extra = dict(EXTRA.get(act, {}))
    if act == "quarantine":
        extra["wake_at"] = (timezone.now() + timedelta(days=3)).strftime("%Y-%m-%dT%H:%M")
    data = {"confirm": "1", "note": "the adapter is mended", **extra, **given}
    return client.post(f"/admin/jobs/deadletter/decide/{act}/", data, follow=True)


def test_the_first_page_groups_by_kind_with_counts_merchants_times_and_a_sparkline(staff: Staff) -> None:
    for n in range(3):
        letter(n, reason=f"new_price_usd {n} not above 0")
    letter(9, reason="currency required", origin="mch_007")
    page = text(staff(), GROUPS)
    assert page.count('class="dl-spark"') == 2
    assert "3 in the last 24 hours" in page
    assert "mch_082" in page
    assert "mch_007" in page


def test_a_case_file_shows_reason_schema_diff_journey_attempts_and_siblings(staff: Staff) -> None:
    one = letter(
        1, body={"wine_id": "wn_1", "currency": "USD ", "api_key": "s3cret-of-theirs"}, traceback="Traceback …"
    )
    letter(2)
    letter(3, dead_lettered_at=timezone.now() - timedelta(hours=3))
    page = text(staff(), f"/admin/jobs/deadletter/{one.pk}/change/")
    assert "new_price_usd required" in page
    assert re.search(
        r"<th scope=\"row\">new_price_usd</th><td[^>]*>[^<]+</td><td[^>]*>–</td><td[^>]*>missing</td>", page
    )
    assert "&#x27;USD &#x27;" in page, "with quotes, so that the space is seen"
    assert "host:1" in page
    assert "within 20 minutes: 2 wait<" in page, "it and its sibling, and not the one of three hours ago"
    assert "s3cret-of-theirs" not in page
    assert DeadLetter.objects.count() == 3, "looking consumes nothing"


def test_the_list_filters_by_age_class_subscription_merchant_and_decision(staff: Staff) -> None:
    new, old = letter(1), letter(2, dead_lettered_at=timezone.now() - timedelta(days=2))
    other = letter(3, origin="mch_007", subscription_name="alert-matching", error_class="KeyError")
    done = letter(4, decision="discard", decided_at=timezone.now(), decided_by="1", note="n", waits_from=None)
    client = staff()
    for query, expected in {
        "": {new, old, other, done},
        "?decision=open": {new, old, other},
        "?decision=discard": {done},
        "?within=3600": {new, other, done},
        "?origin=mch_007": {other},
        "?subscription=alert-matching": {other},
        "?error=KeyError": {other},
        "?event_id=evt_2": {old},
        f"?fingerprint={new.fingerprint}&decision=open": {new, old},
    }.items():
        shown = set(map(int, re.findall(r"/deadletter/(\d+)/change/", text(client, LIST + query))))
        assert shown == {one.pk for one in expected}, query


@pytest.mark.parametrize("query", ["?within=x", "?since=yesterday", "?before=nonsense", "?before=2026-01-01T00:00,1"])
def test_a_filter_nobody_understands_is_said_and_is_no_error(staff: Staff, query: str) -> None:
    letter()
    assert staff().get(LIST + query).status_code == 200


@pytest.mark.parametrize("address", ["decide/nothing/", "99999999999999999999/change/", "0/change/"])
def test_what_is_not_there_is_not_found(staff: Staff, address: str) -> None:
    assert staff("discard").get(f"/admin/jobs/deadletter/{address}").status_code == 404


def test_who_may_only_look_is_offered_no_action_and_cannot_take_one(staff: Staff) -> None:
    one = letter()
    dora = staff()
    for address in (GROUPS, LIST, f"{LIST}?fingerprint={one.fingerprint}", f"/admin/jobs/deadletter/{one.pk}/change/"):
        page = text(dora, address)
        assert "/decide/" not in page
        assert 'type="checkbox"' not in page
    for name in ACTS:
        assert dora.get(f"/admin/jobs/deadletter/decide/{name}/?ids={one.pk}").status_code == 403
        assert decide(dora, name, ids=str(one.pk)).status_code == 403
    one.refresh_from_db()
    assert (one.decision, one.assigned_to) == ("", "")
    assert not AuditEntry.objects.filter(letter_ids__contains=[one.pk]).exists()


@pytest.mark.parametrize("may", ["redrive", "readapt", "discard", "quarantine", "assign", "comment"])
def test_each_permission_alone_offers_its_acts_and_no_others(staff: Staff, may: str) -> None:
    one = letter()
    client = staff(may)
    page = text(client, f"/admin/jobs/deadletter/{one.pk}/change/")
    own = {name for name, act in ACTS.items() if act.permission == may}
    assert set(re.findall(r"/decide/(\w+)/", page)) == own - {"reopen"}, "it waits: there is nothing to reopen"
    for name in set(ACTS) - own:
        assert decide(client, name, ids=str(one.pk)).status_code == 403, name
    for name in own - {"reopen", "superseded"}:
        answer = decide(client, name, ids=str(one.pk))
        assert answer.status_code == 200
        assert "1 letter." in answer.content.decode(), name
        entry = AuditEntry.objects.filter(letter_ids__contains=[one.pk], action=name).get()
        assert (entry.note, entry.by) == ("the adapter is mended", client.session["_auth_user_id"])


def test_nobody_without_the_staffs_permission_to_look_sees_a_letter(staff: Staff) -> None:
    one = letter()
    client = staff()
    User.objects.get().user_permissions.clear()
    for address in (GROUPS, LIST, f"/admin/jobs/deadletter/{one.pk}/change/"):
        assert client.get(address).status_code == 403


def test_a_decision_needs_a_reason_and_keeps_what_was_typed(staff: Staff) -> None:
    one = letter()
    answer = decide(staff("assign"), "assign", ids=str(one.pk), note=" ", to="bob the cellarman")
    assert "This field is required" in answer.content.decode()
    assert "bob the cellarman" in answer.content.decode()
    assert not AuditEntry.objects.filter(letter_ids__contains=[one.pk]).exists()


def test_all_like_this_is_confirmed_with_the_true_count_and_takes_nothing_that_came_later(staff: Staff) -> None:
    first = [letter(n) for n in range(3)]
    letter(7, reason="another thing altogether")
    client = staff("discard")
    page = text(client, f"/admin/jobs/deadletter/decide/discard/?fingerprint={first[0].fingerprint}")
    assert "<strong>3</strong> of them wait" in page
    up_to = re.search(r'name="up_to" value="(\d+)"', page)
    assert up_to
    late = letter(8)
    decide(client, "discard", fingerprint=first[0].fingerprint, up_to=up_to[1])
    assert DeadLetter.objects.filter(decision="discard").count() == 3
    late.refresh_from_db()
    assert late.decision == ""


def test_more_than_one_decision_takes_goes_on_in_portions_with_what_was_typed(staff: Staff, settings: Any) -> None:
    settings.DECISION_MOST = 2
    letters = [letter(n) for n in range(5)]
    client = staff("discard")
    answer = decide(client, "discard", fingerprint=letters[0].fingerprint)
    page = answer.content.decode()
    assert "Discard: 2 letters." in page
    assert "3 are left" in page
    assert "the adapter is mended</textarea>" in page
    late = letter(8)
    rest = answer.redirect_chain[-1][0]
    assert client.get(rest).status_code == 200, "it can be opened again later"
    for expected in (4, 5):
        hidden = dict(re.findall(r'name="(\w+)" value="([^"]*)"', client.get(rest).content.decode()))
        answer = decide(client, "discard", **{name: hidden[name] for name in ("fingerprint", "up_to", "after")})
        rest = answer.redirect_chain[-1][0]
        assert DeadLetter.objects.filter(decision="discard").count() == expected
    assert "are left" not in answer.content.decode()
    late.refresh_from_db()
    assert late.decision == "", "it came after the first page was opened"
    acts = AuditEntry.objects.filter(letter_ids__overlap=[one.pk for one in letters], action="discard")
    assert sorted(len(act.letter_ids) for act in acts) == [1, 2, 2], "each portion is on the log"


def test_a_raw_body_is_shown_masked_to_those_who_may_view_raw_bodies(staff: Staff) -> None:
    received = Received("price-changes", {}, b'{"price": 154.0, "api_key": "s3cret-of-theirs"}')
    attributes = raw_bodies.keep(merchant=merchant(), received=received, now=timezone.now())()
    address = f"/admin/jobs/deadletter/{letter(attributes=attributes).pk}/change/"
    client = staff()
    page = text(client, address)
    assert "154.0" not in page
    assert "It is shown to those who may view raw bodies." in page
    assert "/rawbody/" not in page, "no link that would be refused"
    User.objects.get().user_permissions.add(Permission.objects.get(codename="view_rawbody"))
    page = text(client, address)
    assert "154.0" in page
    assert "s3cret-of-theirs" not in page
    [link] = re.findall(r'href="([^"]+/rawbody/[^"]+)"', page)
    assert client.get(link).status_code == 200


def test_everything_at_once_is_refused(staff: Staff) -> None:
    letter()
    answer = decide(staff("discard"), "discard")
    assert "narrow them by a filter" in answer.content.decode()
    assert not DeadLetter.objects.exclude(decision="").exists()


def test_the_confirmation_of_a_redrive_says_how_many_would_fail_again_and_why(staff: Staff) -> None:
    for n in range(1, 4):
        letter(n)
    page = text(staff("redrive"), "/admin/jobs/deadletter/decide/redrive/?subscription=price-history")
    assert "0 of 3 would pass now; 3 would fail again" in page
    assert "Who has been told" not in page


def test_what_is_older_than_the_ledger_asks_who_has_been_told(staff: Staff) -> None:
    one = letter(published_at=timezone.now() - timedelta(days=8))
    client = staff("redrive")
    assert "Who has been told" in text(client, f"/admin/jobs/deadletter/decide/redrive/?ids={one.pk}")
    answer = decide(client, "redrive", ids=str(one.pk))
    assert "Say who has been told" in answer.content.decode()
    assert not Redrive.objects.exists()
    decide(client, "redrive", ids=str(one.pk), told="support")
    assert Redrive.objects.get().told == "support"


def test_a_redrives_page_shows_progress_and_stops_it_for_those_who_may_redrive(staff: Staff) -> None:
    for n in range(1, 4):
        letter(n)
    client, dora = staff("redrive"), staff()
    answer = decide(client, "redrive", subscription="price-history")
    run = Redrive.objects.get()
    assert "0 of 3: 3 queued" in answer.content.decode()
    assert 'http-equiv="refresh"' in answer.content.decode()
    assert "Stop: send no more" not in text(dora, f"/admin/jobs/redrive/{run.pk}/change/")
    assert dora.post(f"/admin/jobs/redrive/{run.pk}/stop/").status_code == 403
    assert "It stops" in client.post(f"/admin/jobs/redrive/{run.pk}/stop/", follow=True).content.decode()
    assert "not running any more" in client.post(f"/admin/jobs/redrive/{run.pk}/stop/", follow=True).content.decode()
    assert decide(client, "redrive", subscription="price-history").status_code == 200
    assert Redrive.objects.count() == 1, "the second click finds nothing that waits"


def test_the_audit_log_is_shown_and_offers_no_change(staff: Staff) -> None:
    one = letter()
    client = staff("comment")
    decide(client, "comment", ids=str(one.pk))
    entry = AuditEntry.objects.filter(letter_ids__contains=[one.pk]).get()
    page = text(client, f"/admin/jobs/auditentry/{entry.pk}/change/")
    assert "the adapter is mended" in page
    assert client.post(f"/admin/jobs/auditentry/{entry.pk}/change/", {"note": "x"}).status_code == 403
    assert client.post(f"/admin/jobs/auditentry/{entry.pk}/delete/", {"post": "yes"}).status_code == 403


@pytest.mark.parametrize("address", [GROUPS, LIST, f"{LIST}?origin=mch_082&error=KeyError"])
def test_no_page_counts_rows_and_its_queries_do_not_grow_with_them(staff: Staff, address: str) -> None:
    client = staff("discard")

    def asked() -> list[str]:
        with CaptureQueriesContext(
            connection,
        ) as queries:
            text(client, address)
        return [query["sql"] for query in queries]

    letter(1)
    few = asked()
    for n in range(2, 40):
        letter(n)
    many = asked()
    assert len(many) == len(few)
    assert not [sql for sql in many if re.match(r"SELECT COUNT\(", sql, re.IGNORECASE)]


def test_the_alarm_leads_to_its_letters_and_to_the_runbook_on_its_page_and_in_its_mail(staff: Staff) -> None:
    now = timezone.now()
    incident = Incident.objects.create(
        alarm="dead-letters-undecided", subject="price-history", severity="page", summary="3 wait.", since=now,
        last_true_at=now, opened_at=now,
    )  # fmt: skip
    client = staff()
    User.objects.get().user_permissions.add(Permission.objects.get(codename="view_incident"))
    page = text(client, f"/admin/jobs/incident/{incident.pk}/change/")
    body = compose(incident).body
    address = "/admin/jobs/deadletter/letters/?subscription=price-history&decision=open"
    for where in (page.replace("&amp;", "&"), body):
        assert "docs/runbooks/dead-letters.md" in where
        assert address in where
    assert client.get(address).status_code == 200
    runbook = "/admin/jobs/subscription/runbooks/dead-letters/"
    assert runbook in text(client, "/admin/jobs/deadletter/")
    assert client.get(runbook).status_code == 200
