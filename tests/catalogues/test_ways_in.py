"""Catalogue files come in by upload, in the admin or by `manage.py import_catalogue`, and their reports go out."""

import gzip
import json
from datetime import timedelta
from io import BytesIO, StringIO
from pathlib import Path

import pytest
from django.core.files.uploadedfile import SimpleUploadedFile
from django.core.management import CommandError, call_command
from django.test import Client
from django.urls import reverse
from django.utils import timezone

from jobs.models import DeadLetter, Delivery, JobRun
from jobs.worker import drain
from pricing import keys
from pricing.catalogues import files, lease, refresh, retention, stage
from pricing.feeds.catalogue_views import MEDIA_TYPES
from pricing.feeds.described.endpoints import ENDPOINTS
from pricing.models import CatalogueFile, CataloguePiece, CatalogueSettings, Listing
from tests import cast
from tests.catalogues.refreshing import NOW, at, csv, go_on, prices, received, row, shelf, stages, taken
from tests.pricing.observed import published
from tests.pricing.test_admin import act, staff

pytestmark = pytest.mark.django_db(transaction=True)
ADDRESS = "/feeds/v1/catalogues"
[DESCRIBED] = [endpoint for endpoint in ENDPOINTS if endpoint.path == ADDRESS]
EXAMPLES = {media_type: body.example for media_type, body in DESCRIBED.bodies.items() if body.example}


@pytest.fixture
def key(merchant):
    return keys.create_key(merchant=merchant, note="", now=timezone.now())[1]


def send(key, data, query="", *, method="PUT", media_type="text/csv", **headers):
    sent = {"Authorization": f"Bearer {key}", **headers}
    always = {"CONTENT_LENGTH": str(len(data)), "CONTENT_TYPE": media_type}
    return Client().generic(method, ADDRESS + query, data, media_type, headers=sent, **always)


def ask(key, address):
    return Client().get(address, headers={"Authorization": f"Bearer {key}"})


def told(response):
    error = response.json()["error"]
    return response.status_code, error["code"], error["field"]


# --- By the merchant's own program ------------------------------------------------------------------------------


@pytest.mark.parametrize("method", ["PUT", "POST"])
def test_an_uploaded_file_is_kept_taken_by_a_worker_and_reported(merchant, key, method):
    shelf(2)
    response = send(key, csv(row(1), row(2, "a lot")), "?name=stock.csv", method=method)
    assert response.status_code == 202
    answer = response.json()
    assert (answer["status"], published()[0]["type"]) == ("uploaded", "refresh_catalogue")
    assert ask(key, answer["report"]).json()["status"] == "uploaded"
    drain()
    response = ask(key, answer["report"])
    assert response.status_code == 200
    report = response.json()
    assert (report["status"], report["progress"], report["read"], report["changed"]) == ("done", 1.0, 2, 1)
    assert report["rejections"] == [
        {"line": 3, "field": "price", "reason": report["rejections"][0]["reason"], "listing": "sku-2"}
    ]
    assert (report["name"], report["rejected"], report["rejections_not_shown"]) == ("stock.csv", 1, 0)
    assert prices() == {"wn_1": "20.00"}


@pytest.mark.parametrize("media_type", [each for each in MEDIA_TYPES if each in EXAMPLES])
def test_a_file_as_the_description_shows_it_is_read(merchant, key, media_type):
    cast.wine()
    file = send(key, EXAMPLES[media_type].encode(), media_type=media_type).json()
    drain()
    report = ask(key, file["report"]).json()
    counted = {name: report[name] for name in ("status", "read", "changed", "rejected")}
    assert counted == {"status": "done", "read": 1, "changed": 1, "rejected": 0}
    assert prices() == {"wn_4417": "154.00"}


def test_a_long_file_is_taken_in_turns_that_follow_each_other(merchant, key, settings):
    settings.CATALOGUE_TURN = timedelta(0)
    settings.CATALOGUE_WINDOW, settings.CATALOGUE_CHUNK = 2, 2
    shelf(6)
    send(key, csv(*map(row, range(1, 7))))
    drain()
    assert CatalogueFile.objects.get().status == "done"
    assert [message["type"] for message in published()].count("refresh_catalogue") > 3
    assert not Delivery.objects.filter(subscription__name="catalogue-refresh").exists()


def test_a_file_that_finds_another_at_work_waits_and_is_not_charged(merchant, key):
    shelf(1)
    first = received(merchant, csv(row(1)))
    lease.claim(file_id=first.pk, now=NOW)
    send(key, csv(row(1, 18)))
    drain(["catalogue-refresh"])
    waiting = Delivery.objects.get(subscription__name="catalogue-refresh")
    assert (waiting.receive_count, waiting.visible_at > timezone.now()) == (0, True)
    assert not DeadLetter.objects.exists()


def test_a_file_that_rests_between_two_turns_is_not_put_aside_for_the_next_one(merchant, key, settings):
    settings.CATALOGUE_TURN = settings.CATALOGUE_BUSY_DELAY = timedelta(0)
    settings.CATALOGUE_WINDOW, settings.CATALOGUE_CHUNK = 2, 2
    shelf(6)
    send(key, csv(*map(row, range(1, 7))))
    send(key, csv(*(row(n, 18) for n in range(1, 7))))
    drain()
    # Whichever of the two came first: the other waited for its end, and the later prices stand.
    assert list(CatalogueFile.objects.values_list("status", "cursor")) == [("done", 6)] * 2
    assert set(prices().values()) == {"18.00"}
    assert not DeadLetter.objects.exists()


def test_gzip_and_the_time_of_its_prices_are_taken(merchant, key):
    shelf(1)
    file = send(key, gzip.compress(csv(row(1))), "?as_of=2026-03-14T02:00:00%2B01:00", media_type="application/gzip")
    drain()
    report = ask(key, file.json()["report"]).json()
    assert (report["status"], report["as_of"]) == ("done", "2026-03-14T01:00:00+00:00")


def test_a_file_longer_than_the_limit_is_refused_before_it_is_read(key, settings):
    settings.CATALOGUE_MAX_BYTES = 20
    assert told(send(key, csv(row(1)))) == (413, "payload_too_large", None)
    assert not CatalogueFile.objects.exists()


@pytest.mark.parametrize(
    ("change", "expected"),
    [
        ({"query": "?as_of=yesterday"}, (422, "invalid_time", "as_of")),
        ({"query": "?as_of=2999-01-01T00:00:00Z"}, (422, "time_out_of_range", "as_of")),
        ({"query": f"?name={'x' * 201}"}, (422, "invalid_name", "name")),
        ({"query": "?name=%00"}, (422, "invalid_name", "name")),
        ({"media_type": "image/png"}, (415, "unsupported_media_type", None)),
        ({"method": "DELETE"}, (405, "method_not_allowed", None)),
        ({"key": "wck_00000000_" + "x" * 43}, (401, "invalid_credentials", None)),
    ],
)
def test_a_request_that_cannot_be_is_told_why_and_keeps_nothing(merchant, key, change, expected):
    query = change.pop("query", "")
    assert told(send(change.pop("key", key), csv(row(1)), query, **change)) == expected
    assert not CatalogueFile.objects.exists()


def test_a_body_that_breaks_off_leaves_nothing(merchant, key):
    data = csv(row(1))
    always = {"CONTENT_LENGTH": str(len(data) + 5), "CONTENT_TYPE": "text/csv", "wsgi.input": BytesIO(data)}
    sent = {"Authorization": f"Bearer {key}"}
    response = Client().generic("PUT", ADDRESS, data, "text/csv", headers=sent, **always)
    assert told(response) == (400, "incomplete_body", None)
    assert not CatalogueFile.objects.exists()
    assert published() == []


def test_a_report_is_for_its_merchant_alone(merchant, key):
    address = send(key, csv(row(1))).json()["report"]
    other = keys.create_key(merchant=cast.merchant("083", "Y"), note="", now=timezone.now())[1]
    assert told(ask(other, address)) == (404, "unknown_file", None)
    assert told(ask(key, f"{ADDRESS}/{10**17}")) == (404, "unknown_file", None)
    assert told(ask("nonsense", address))[0] == 401


# --- In the admin -----------------------------------------------------------------------------------------------


def upload(client, seller, data, **fields):
    form = {"merchant": seller.pk, "upload": SimpleUploadedFile("stock.csv", data), "as_of_0": "", "as_of_1": ""}
    return client.post(reverse("admin:pricing_cataloguefile_add"), {**form, **fields}, follow=True)


def page(client, file):
    return client.get(reverse("admin:pricing_cataloguefile_change", args=[file.pk])).content.decode()


def test_a_person_uploads_a_file_and_its_page_follows_it_without_script(client, merchant):
    shelf(1)
    staff(client, "view_cataloguefile", "add_cataloguefile")
    shown = upload(client, merchant, csv(row(1), row(2, "a lot"))).content.decode()
    file = CatalogueFile.objects.get()
    assert "was received" in shown
    assert '<meta http-equiv="refresh"' in shown
    lease.claim(file_id=file.pk, now=NOW)
    CatalogueFile.objects.update(status="applying", rows=4, cursor=1, seen=4)
    assert '<progress max="1" value="0.25">' in page(client, file)
    CatalogueFile.objects.update(status="reading", rows=0, cursor=0, lease_token="", leased_until=None)
    drain()
    shown = page(client, file)
    assert "http-equiv" not in shown
    assert "have another price than before" in shown
    assert "<td>3</td><td>price</td>" in shown


def test_who_may_only_look_cannot_upload(client, merchant):
    staff(client, "view_cataloguefile")
    assert upload(client, merchant, csv(row(1))).status_code == 403
    assert not CatalogueFile.objects.exists()


@pytest.mark.parametrize(
    ("fields", "complaint"),
    [
        ({"as_of_0": "2999-01-01", "as_of_1": "00:00"}, "in the future"),
        ({"merchant": "mch_999"}, "valid choice"),
        ({"upload": ""}, "required"),
    ],
)
def test_an_upload_that_cannot_be_is_explained_next_to_its_field(client, merchant, fields, complaint):
    staff(client, "view_cataloguefile", "add_cataloguefile")
    assert complaint in upload(client, merchant, csv(row(1)), **fields).content.decode()
    assert not CatalogueFile.objects.exists()


def test_a_shrunken_files_size_is_accepted_and_that_is_logged(client, merchant):
    shelf(4)
    taken(merchant, csv(*map(row, range(1, 5))))
    small = taken(merchant, csv(row(1)), hours=24)
    staff(client, "view_cataloguefile")
    act(client, CatalogueFile, "accept_size", small)
    assert CatalogueSettings.objects.get().rows == 4
    staff(client, "view_cataloguefile", "change_cataloguesettings")
    assert "compared with its 1 rows" in act(client, CatalogueFile, "accept_size", small)
    assert CatalogueSettings.objects.get().rows == 1


@pytest.mark.parametrize(
    ("field", "value"),
    [("delimiter", "x"), ("encoding", "klingon"), ("columns", '{"taste": "Nose"}'), ("format", "xls")],
)
def test_settings_that_no_reader_could_follow_are_refused_at_their_field(client, merchant, field, value):
    staff(client, "view_cataloguesettings", "add_cataloguesettings", "change_cataloguesettings")
    form = {"merchant": merchant.pk, "unit": "currency", "columns": "{}", "absent": "report", "smallest_share": "80"}
    response = client.post(reverse("admin:pricing_cataloguesettings_add"), {**form, field: value})
    assert list(response.context["adminform"].form.errors) == [field]
    assert client.post(reverse("admin:pricing_cataloguesettings_add"), form).status_code == 302


# --- In a terminal ----------------------------------------------------------------------------------------------


@pytest.fixture
def stock(tmp_path: Path) -> Path:
    return tmp_path / "stock.csv"


def run(*arguments, **options):
    out = StringIO()
    call_command("import_catalogue", *map(str, arguments), stdout=out, stderr=StringIO(), **options)
    return out.getvalue()


def test_a_file_is_imported_and_told_about(merchant, stock):
    shelf(2)
    stock.write_bytes(csv(row(1), row(2, "a lot")))
    said = run("mch_082", stock)
    assert "2 rows read, of which" in said
    assert "1 have another price than before, which is published" in said
    assert "1 could not be understood" in said
    assert prices() == {"wn_1": "20.00"}


def test_its_report_can_be_had_as_json(merchant, stock):
    shelf(1)
    stock.write_bytes(csv(row(1)))
    assert json.loads(run("mch_082", stock, "--json"))["changed"] == 1


def test_a_dry_run_says_what_would_differ_and_leaves_nothing_behind(merchant, stock):
    shelf(4)
    taken(merchant, csv(row(1), row(2), row(3)))
    before = published(), prices(), list(Listing.objects.order_by("pk").values())
    stock.write_bytes(csv(row(1), row(2, 18), row(4)))
    told = json.loads(run("mch_082", stock, "--dry-run", "--json"))
    counted = {name: told[name] for name in ("read", "new", "asked_anew", "same", "absent")}
    assert counted == {"read": 3, "new": 1, "asked_anew": 1, "same": 1, "absent": 1}
    assert (published(), prices(), list(Listing.objects.order_by("pk").values())) == before
    assert (CatalogueFile.objects.count(), stages()) == (1, [])


@pytest.mark.parametrize(
    ("arguments", "complaint"),
    [
        (("mch_999", "{stock}"), "No merchant has the id mch_999"),
        (("mch_082", "{stock}.gone"), "No such file"),
        (("mch_082", "{stock}", "--as-of", "yesterday"), "RFC 3339"),
        (("mch_082", "{stock}", "--as-of", "2999-01-01T00:00:00Z"), "in the future"),
    ],
)
def test_what_cannot_be_imported_is_told_and_keeps_nothing(merchant, stock, arguments, complaint):
    stock.write_bytes(csv(row(1)))
    with pytest.raises(CommandError, match=complaint):
        run(*(each.format(stock=stock) for each in arguments))
    assert not CatalogueFile.objects.exists()


def test_a_refused_file_is_an_error_of_the_command(merchant, stock):
    stock.write_bytes(b"<html>Sign in</html>")
    with pytest.raises(CommandError, match="Nothing was taken"):
        run("mch_082", stock)
    assert CatalogueFile.objects.get().status == "refused"


def test_an_import_while_another_is_under_way_is_refused_in_words(merchant, stock):
    first = received(merchant, csv(row(1)))
    lease.claim(file_id=first.pk, now=NOW)
    stock.write_bytes(csv(row(1, 18)))
    with pytest.raises(CommandError, match=r"being taken just now\. Try again when it is done"):
        run("mch_082", stock)
    assert CatalogueFile.objects.count() == 1


def test_files_that_workers_take_are_taken_in_the_order_in_which_they_came(merchant, settings):
    shelf(1)
    first, second = (received(merchant, csv(row(1, price)), hours=n, send=True) for n, price in enumerate((20, 30)))
    with pytest.raises(lease.BusyError, match=f"File {first.pk} .* came before"):
        lease.claim(file_id=second.pk, now=at(1))
    go_on(first, hours=1)
    go_on(second, hours=1)
    changes = [message["body"] for message in published() if message["type"] == "wine.price_changed"]
    assert [body["new_price_usd"] for body in changes] == [20, 30]


def test_a_file_whose_command_is_lost_holds_up_the_next_for_a_while_only(merchant, settings):
    received(merchant, csv(row(1)), send=True)
    second = received(merchant, csv(row(1)), hours=1, send=True)
    patience = settings.CATALOGUE_ORDER_PATIENCE
    with pytest.raises(lease.BusyError):
        lease.claim(file_id=second.pk, now=at(1) + patience)
    assert lease.claim(file_id=second.pk, now=at(1) + patience + timedelta(seconds=1)).pk == second.pk


def test_a_file_that_no_worker_takes_holds_up_nobody(merchant):
    received(merchant, csv(row(1)), send=False)
    second = received(merchant, csv(row(1)), hours=1, send=True)
    assert lease.claim(file_id=second.pk, now=at(1)).pk == second.pk


def test_an_import_that_was_interrupted_goes_on_where_it_stopped(merchant, stock, settings):
    from pricing.catalogues.ahead import Ahead

    settings.CATALOGUE_WINDOW, settings.CATALOGUE_CHUNK = 2, 2
    shelf(6)
    data = csv(*map(row, range(1, 7)))
    leased, ahead = lease.claim(file_id=received(merchant, data).pk, now=at(0)), Ahead()
    while leased.cursor < 4:
        refresh.step(leased, ahead, now=at(0))
    ahead.close()
    CatalogueFile.objects.update(leased_until=at(-1))
    stock.write_bytes(data)
    said = run("mch_082", stock)
    assert "went on where it had stopped" in said
    assert "6 have another price" in said
    assert len(published()) == 6


# --- What is kept -----------------------------------------------------------------------------------------------


def test_a_files_bytes_are_kept_in_pieces_and_read_back_as_they_were(merchant, settings):
    settings.CATALOGUE_PIECE_BYTES = 7
    data = bytes(range(256))
    file = files.receive(
        merchant=merchant, name="x", data=[data[:100], data[100:]], as_of=NOW, send=False, by="test", now=NOW
    )
    assert CataloguePiece.objects.count() == 37
    assert files.open_file(file).read() == data


def test_a_sender_that_fails_leaves_nothing(merchant):
    def breaks_off():
        yield b"x" * 3_000_000
        raise OSError("gone")

    with pytest.raises(OSError, match="gone"):
        files.receive(merchant=merchant, name="x", data=breaks_off(), as_of=NOW, send=True, by="test", now=NOW)
    assert not CatalogueFile.objects.exists()
    assert not CataloguePiece.objects.exists()


def purged():
    """What a run of the job says that it removed."""
    call_command("run_job", "catalogue-files", "--for", "2026-03-14", stdout=StringIO(), stderr=StringIO())
    counts = JobRun.objects.get(job="catalogue-files").counts
    return counts["pieces removed"], counts["files removed"]


def aged(files, days):
    files.update(received_at=timezone.now() - timedelta(days=days))


def test_old_files_lose_their_bytes_and_older_ones_their_report_but_never_what_is_still_to_be_taken(
    merchant, monkeypatch
):
    monkeypatch.setattr(retention, "PIECES_AT_ONCE", 1)
    old = [taken(merchant, csv(f"sku-{n},Corkscrew,,,9.00,USD"), hours=n) for n in range(3)]
    waiting = received(merchant, csv(row(1)))
    receiving = CatalogueFile.objects.create(merchant=merchant, name="x", as_of=NOW, received_at=NOW)
    everything = CatalogueFile.objects.exclude(pk=receiving.pk)
    aged(everything, 13)
    aged(CatalogueFile.objects.filter(pk=receiving.pk), 2)
    assert purged() == (0, 1)
    assert not CatalogueFile.objects.filter(pk=receiving.pk).exists()
    aged(everything, 15)
    assert purged() == (3, 0)
    assert set(CataloguePiece.objects.values_list("file", flat=True)) == {waiting.pk}
    aged(everything, 401)
    assert purged() == (0, 3)
    assert not CatalogueFile.objects.filter(pk__in=[file.pk for file in old]).exists()
    assert CatalogueFile.objects.get().pk == waiting.pk


def test_a_stage_that_a_crash_has_left_is_dropped_and_one_in_use_is_not(merchant):
    used = lease.claim(file_id=received(merchant, csv(row(1))).pk, now=at(0))
    stage.create(used.stage)
    stage.create(f"{stage.PREFIX}0_stray")
    purged()
    assert stages() == [used.stage]
