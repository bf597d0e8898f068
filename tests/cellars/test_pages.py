"""The cellar's pages: what they say, that they are well-formed, whose they are, and how many queries they make."""

import io
from collections.abc import Iterator
from datetime import timedelta
from decimal import Decimal
from typing import Any

import pytest
from django.core.files.uploadedfile import SimpleUploadedFile
from django.db import connection
from django.test import Client
from django.test.utils import CaptureQueriesContext
from django.utils import timezone

from pricing import search_index
from pricing.models import Offer
from tests.cast import merchant, person, wine
from tests.cellars import cast
from tests.cellars.cast import bottle, cellar
from tests.cellars.exports import INVENTORY, inventory, tabs
from tests.pages.html import Page
from winecellar.cellars.models import Bottle, Cellar, Consumption, Import
from winecellar.cellars.valuation import value_cellars

pytestmark = pytest.mark.django_db
DETAILS = {
    "name": "Pommard",
    "vintage": "2009",
    "size_ml": "750",
    "quantity": "2",
    "paid_currency": "EUR",
    "own_currency": "EUR",
}


@pytest.fixture
def alice() -> Client:
    client = Client()
    client.force_login(person("alice"))
    return client


@pytest.fixture
def today() -> Any:
    """The night that has just been."""
    return timezone.now().replace(hour=2, minute=0, second=0, microsecond=0)


@pytest.fixture
def full(today: Any) -> Iterator[Cellar]:
    """Three nights: a bottle that rose, one that came, one that was drunk, one without a value."""
    mine, montrose = cellar(), wine()
    offer = Offer(merchant=merchant(), wine=montrose, price_usd=Decimal("100.00"), event_id="evt_1")
    offer.occurred_at = offer.seen_at = today - timedelta(days=5)
    offer.save()
    bottle(montrose, quantity=3, location="Cellar", bin="A1", drink_from=2000, drink_until=2001, region="Bordeaux")
    talbot = bottle(name="Talbot", quantity=2, paid="50.00", size_ml=1500)
    bottle(name="Anon", quantity=4)
    for days in (2, 1):
        night(today - timedelta(days=days))
    Offer.objects.update(price_usd=Decimal("110.00"), occurred_at=today - timedelta(hours=3))
    Bottle.objects.filter(pk=talbot.pk).update(quantity=1)
    bottle(name="Newcomer", quantity=1, own_value="25.00")
    night(today)
    yield mine


def night(slot: Any) -> None:
    value_cellars(slot=slot, fenced=cast.unfenced, progress=lambda *_, **__: None, now=slot)


def get(client: Client, path: str, status: int = 200) -> Page:
    response = client.get(path)
    assert response.status_code == status, response
    page = Page(response.content.decode())
    assert page.faults == []
    return page


def post(client: Client, path: str, **data: Any) -> Page:
    """POST and follow to the page that answers."""
    response = client.post(path, data, follow=True)
    assert response.status_code == 200, response
    page = Page(response.content.decode())
    assert page.faults == []
    return page


# --- My cellar -------------------------------------------------------------------------------------------------


def test_an_empty_cellar_says_what_to_do(alice: Client) -> None:
    page = get(alice, "/cellar")
    assert "Nothing is in your cellar yet" in page.words
    assert "Import a file" in page.words


@pytest.mark.usefixtures("full")
def test_my_cellar_says_what_it_is_worth_what_changed_it_and_what_is_left_out(alice: Client) -> None:
    words = get(alice, "/cellar").words
    assert "$405.00" in words  # 3 × 110 + 50 + 25
    assert "4 of 9 bottles have no value and are left out" in words
    assert "up $5.00 since" in words
    for cause in ("Prices Ch. Montrose 2016 +$30.00 +$30.00", "Bottles that left Talbot −$50.00 −$50.00",
                  "Bottles that came Newcomer +$25.00 +$25.00"):  # fmt: skip
        assert cause in words
    assert "Ch. Montrose 2016 3 · past its window, 2001" in words
    assert "Anon 4" in words


@pytest.mark.usefixtures("full")
@pytest.mark.parametrize(
    ("query", "there", "not_there"),
    [
        ("q=montrose", "3 bottles of 9, by name", "Newcomer 75"),
        ("region=Bordeaux", "3 bottles of 9", "Newcomer 75"),
        ("vintage=2016", "3 bottles of 9", "Newcomer 75"),
        ("size=1500", "1 bottle of 9", "Newcomer 75"),
        ("location=Cellar&sort=value", "3 bottles of 9, by value", "Newcomer 75"),
        ("show=unvalued", "4 bottles of 9", "Newcomer 75"),
        ("show=ready", "3 bottles of 9", "Newcomer 75"),
        ("q=nothing+of+the+kind", "No bottle fits", "Newcomer 75"),
        ("page=99&sort=drink&days=365", "9 bottles, by drink", "No bottle fits"),
        ("days=x&page=-1&show=zzz&sort=zzz&size=%3Cb%3E", "No bottle fits", "Newcomer 75"),
    ],
)
def test_bottles_are_chosen_by_the_address(alice: Client, query: str, there: str, not_there: str) -> None:
    words = get(alice, f"/cellar?{query}").words.partition("Sort by")[2]
    assert there in words
    assert not_there not in words


@pytest.mark.usefixtures("full")
def test_a_cellars_page_makes_the_same_few_queries_however_many_bottles_there_are(alice: Client) -> None:
    with CaptureQueriesContext(
        connection,
    ) as few:
        get(alice, "/cellar")
    for number in range(60):
        bottle(name=f"More {number}", paid="5")
    with CaptureQueriesContext(connection) as many:
        get(alice, "/cellar")
    assert len(few) == len(many) <= 14


def test_a_nul_in_the_address_is_a_400(alice: Client) -> None:
    for path in ("/cellar?q=%00", "/cellar?region=%00", "/cellar/add?wine=%00", "/cellar/add/%00"):
        assert alice.get(path).status_code == 400


def test_a_cellar_in_another_currency_is_shown_in_it_and_the_nights_before_are_not_compared(
    alice: Client, full: Cellar, today: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    rates = {"USD": Decimal(1), "EUR": Decimal("0.5")}
    for name in ("valuation", "views", "selectors"):
        monkeypatch.setattr(f"winecellar.cellars.{name}.rates_on", lambda day: rates)
    assert "Saved" in post(alice, "/cellar/settings", currency="EUR").words
    full.refresh_from_db()
    assert (full.currency, full.scales_by_size) == ("EUR", False)
    night(today + timedelta(days=1))
    words = get(alice, "/cellar").words
    assert "€202.50" in words
    assert "Valued in USD the night before" in words


def test_only_a_currency_with_a_rate_can_be_chosen(alice: Client) -> None:
    page = post(alice, "/cellar/settings", currency="XAU")
    assert "XAU is not one of the available choices" in page.words
    assert cellar().currency == "USD"


# --- Bottles ---------------------------------------------------------------------------------------------------


def test_a_wine_is_found_and_added(alice: Client) -> None:
    wine()
    search_index.rebuild()
    page = get(alice, "/cellar/add?wine=montrose")
    assert "/cellar/add/wn_4417" in [link.get("href") for link in page.all("a")]
    form = get(alice, "/cellar/add/wn_4417")
    assert {"Ch. Montrose", "2016"} <= {field.get("value") for field in form.all("input")}
    said = post(alice, "/cellar/add/wn_4417", **DETAILS | {"name": "Ch. Montrose", "vintage": "2016", "paid": "99.5"})
    assert "Added 2 bottles" in said.words
    one = Bottle.objects.get()
    assert (one.wine_id, one.quantity, one.paid, one.paid_currency) == ("wn_4417", 2, Decimal("99.50"), "EUR")
    assert (one.own_value, one.own_currency) == (None, "")


def test_a_wine_that_we_do_not_list_is_written_down(alice: Client) -> None:
    wine()
    assert "None of our wines" in get(alice, "/cellar/add?wine=zzz").words
    assert get(alice, "/cellar/add/other?name=zzz").all("input")
    assert "We do not know which of our wines" in post(alice, "/cellar/add/other", **DETAILS).words
    assert Bottle.objects.get().wine is None
    assert alice.get("/cellar/add/wn_none").status_code == 404


@pytest.mark.parametrize(
    ("field", "value", "words"),
    [
        ("name", "", "This field is required"),
        ("quantity", "0", "from 1 to"),
        ("quantity", "२", "from 1 to"),
        ("quantity", "1e3", "from 1 to"),
        ("quantity", "9999999", "from 1 to"),
        ("vintage", "16", "year, NV"),
        ("vintage", "2016 2017", "year, NV"),
        ("size_ml", "7", "valid choice"),
        ("paid", "12,50", "digits"),
        ("paid", "-1", "digits"),
        ("paid", "0", "above 0"),
        ("paid", "NaN", "digits"),
        ("paid", "1e20", "digits"),
        ("own_value", "9999999999", "above 0"),
        ("paid_currency", "XXX", "valid choice"),
        ("drink_from", "soon", "year from"),
        ("drink_until", "1990", "before the first year"),
        ("purchased_on", "25/5/2020", "year-month-day"),
        ("note", "a\x00b", "Null characters"),
        ("location", "x" * 81, "at most 80"),
    ],
)
def test_what_is_no_bottle_is_said_beside_the_field_and_what_was_typed_is_kept(
    alice: Client, field: str, value: str, words: str
) -> None:
    data = {**DETAILS, "drink_from": "2000", "region": "kept as typed", field: value}
    page = post(alice, "/cellar/add/other", **data)
    assert words in page.words
    assert "kept as typed" in {one.get("value") for one in page.all("input")}
    assert not Bottle.objects.exists()


def test_bottles_are_edited_moved_drunk_and_struck_out(alice: Client) -> None:
    one = bottle(quantity=3)
    here = f"/cellar/bottles/{one.pk}"
    assert get(alice, f"{here}/edit").all("input")
    assert "Saved" in post(alice, f"{here}/edit", **DETAILS | {"quantity": "4", "location": "Hall"}).words
    assert "1 bottle moved to Attic" in post(alice, f"{here}/move", quantity="1", location="Attic", bin="").words
    assert (
        "2 bottles: drunk"
        in post(alice, f"{here}/consume", quantity="2", how="drunk", on=timezone.now().date(), note="Superb").words
    )
    gone = Consumption.objects.get()
    assert "Superb" in get(alice, here).words
    assert "Taken back" in post(alice, f"/cellar/consumed/{gone.pk}/give-back").words
    assert list(Bottle.objects.order_by("id").values_list("quantity", "location")) == [(3, "Hall"), (1, "Attic")]
    assert "Struck out" in post(alice, f"{here}/remove").words
    assert Bottle.objects.count() == 1


@pytest.mark.parametrize(
    ("action", "data", "words"),
    [
        ("consume", {"quantity": "4", "how": "drunk", "on": "2024-01-01"}, "from 1 to 3"),
        ("consume", {"quantity": "x", "how": "drunk", "on": "2024-01-01"}, "whole number"),
        ("consume", {"quantity": "1", "how": "eaten", "on": "2024-01-01"}, "valid choice"),
        ("consume", {"quantity": "1", "how": "drunk", "on": "2999-01-01"}, "today or a day before"),
        ("move", {"quantity": "9", "location": "x"}, "from 1 to 3"),
    ],
)
def test_a_wrong_action_is_said_on_the_bottles_page_and_does_nothing(
    alice: Client, action: str, data: dict[str, str], words: str
) -> None:
    one = bottle(quantity=3)
    assert words in post(alice, f"/cellar/bottles/{one.pk}/{action}", **data).words
    assert Bottle.objects.get().quantity == 3


def test_a_bottles_page_says_what_it_is_worth_by_which_source_and_since_when(
    alice: Client, full: Cellar, today: Any
) -> None:
    montrose, talbot, anon = (full.bottles.get(name=name) for name in ("Ch. Montrose", "Talbot", "Anon"))
    words = get(alice, f"/cellar/bottles/{montrose.pk}").words
    assert "$110.00" in words
    assert "$100.00" in words
    assert "best offer" in words
    assert "price paid" in get(alice, f"/cellar/bottles/{talbot.pk}").words
    assert "counted, and left out" in get(alice, f"/cellar/bottles/{anon.pk}").words
    Offer.objects.update(seen_at=today - timedelta(days=40), occurred_at=today - timedelta(days=50))
    night(today + timedelta(days=1))
    assert "last offer, 41 days old" in get(alice, f"/cellar/bottles/{montrose.pk}").words


def test_which_wine_it_is_can_be_corrected(alice: Client) -> None:
    wine(), wine("2", name="Bandol", vintage=2022)
    search_index.rebuild()
    one = bottle(wine())
    page = get(alice, f"/cellar/bottles/{one.pk}/wine?wine=bandol")
    assert "wn_2" in {field.get("value") for field in page.all("input")}
    assert "It is Bandol 2022" in post(alice, f"/cellar/bottles/{one.pk}/wine", wine="wn_2").words
    assert Bottle.objects.get().wine_id == "wn_2"
    assert "Unlinked" in post(alice, f"/cellar/bottles/{one.pk}/wine", wine="").words
    assert Bottle.objects.get().wine_id is None
    assert alice.post(f"/cellar/bottles/{one.pk}/wine", {"wine": "wn_none"}).status_code == 404


# --- Files -----------------------------------------------------------------------------------------------------


def upload(client: Client, content: bytes, **data: str) -> Page:
    return post(client, "/cellar/import", file=SimpleUploadedFile("mine.tsv", content), **data)


def test_a_file_is_looked_at_confirmed_and_undone(alice: Client) -> None:
    content = tabs(INVENTORY, {}, {"Barcode": "2", "Vintage": "1001"}, {"Barcode": "3", "Size": "?"})
    page = upload(alice, content)
    assert "Nothing is written yet" in page.words
    assert "Rows read 3" in page.words
    assert "Import 2 bottles" in page.words
    assert "4 size: '?'" in page.words
    assert not Bottle.objects.exists()
    one = Import.objects.get()
    assert "Imported 2 bottles" in post(alice, f"/cellar/imports/{one.pk}/apply").words
    assert Bottle.objects.count() == 2
    assert "Undone" in post(alice, f"/cellar/imports/{one.pk}/undo").words
    assert not Bottle.objects.exists()
    upload(alice, content)
    assert "Given up" in post(alice, f"/cellar/imports/{Import.objects.first().pk}/discard").words
    assert Import.objects.count() == 1


@pytest.mark.parametrize(
    ("content", "words"),
    [
        (b"<html>", "web page"),
        (b"", "empty"),
        (inventory("1")[:-30], "cut"),
        (tabs(INVENTORY, {"NativePrice": "8,750"}), "two ways"),
    ],
)
def test_a_file_that_cannot_be_read_is_refused_beside_the_field(alice: Client, content: bytes, words: str) -> None:
    assert words in upload(alice, content).words
    assert not Import.objects.exists()


def test_the_decimal_sign_can_be_said(alice: Client) -> None:
    assert "8.75" in upload(alice, tabs(INVENTORY, {"NativePrice": "8,750"}), decimal_sign=",").words


def test_a_file_that_is_too_large_is_refused(alice: Client, settings: Any) -> None:
    settings.CELLAR_MAX_FILE_BYTES = 100
    assert "has more than" in upload(alice, inventory("1")).words


def test_the_export_downloads_and_imports_again(alice: Client) -> None:
    bottle(name="=HYPERLINK(1)", quantity=2)
    response = alice.get("/cellar/export")
    content = b"".join(response.streaming_content)  # type: ignore[attr-defined]
    assert response["Content-Disposition"].startswith('attachment; filename="cellar-')
    assert b",'=HYPERLINK(1)," in content
    assert "There is nothing new to import" in upload(alice, content).words
    bob = Client()
    bob.force_login(person("bob"))
    assert "Import 2 bottles" in upload(bob, content).words
    assert io.BytesIO(content).readline().startswith(b"\xef\xbb\xbf")


# --- Whose -----------------------------------------------------------------------------------------------------


def test_what_is_another_persons_is_a_404_and_who_is_not_signed_in_signs_in(alice: Client) -> None:
    bobs = bottle(inside=cellar("bob"), quantity=2)
    gone = Consumption.objects.create(bottle=bobs, quantity=1, on=timezone.now().date())
    one = Import.objects.create(cellar=cellar("bob"), file_name="x", content=b"x")
    reads = [f"/cellar/bottles/{bobs.pk}", f"/cellar/bottles/{bobs.pk}/edit", f"/cellar/bottles/{bobs.pk}/wine",
             f"/cellar/imports/{one.pk}"]  # fmt: skip
    writes = [*reads[1:3], *(f"{reads[0]}/{action}" for action in ("consume", "move", "remove")),
              f"/cellar/consumed/{gone.pk}/give-back",
              *(f"/cellar/imports/{one.pk}/{action}" for action in ("apply", "undo"))]  # fmt: skip
    good = {**DETAILS, "how": "drunk", "on": "2024-01-01", "location": "x", "wine": ""}
    for path in reads:
        assert alice.get(path).status_code == 404, path
        assert Client().get(path)["Location"].startswith("/sign-in"), path
    for path in writes:
        assert alice.post(path, good).status_code == 404, path
        assert Client().post(path, good)["Location"] == "/sign-in?next=/cellar", path
    for path in (*writes[2:], f"/cellar/imports/{one.pk}/discard"):
        assert alice.get(path).status_code == 405, path
    assert Bottle.objects.get().quantity == 2
    assert Import.objects.get().state == "preview"


@pytest.mark.parametrize("path", ["/cellar", "/cellar/add", "/cellar/import", "/cellar/settings", "/cellar/export"])
def test_a_stranger_signs_in_first_and_comes_back(path: str) -> None:
    assert Client().get(path)["Location"] == f"/sign-in?next={path}"


def test_what_people_write_is_escaped(alice: Client, today: Any) -> None:
    bottle(name="<script>alert(1)</script>", region='"><img src=x>', location="{{7*7}}", quantity=2)
    night(today)
    for path in ("/cellar", f"/cellar/bottles/{Bottle.objects.get().pk}"):
        page = get(alice, path)
        assert not page.all("script")
        assert "49" not in page.words.split()
