"""Imports on Postgres: a look first, written once, nothing twice, undone; and out and in again."""

import threading
from decimal import Decimal
from typing import Any

import pytest
from django.conf import LazySettings
from django.db import connection

from pricing.matching import By
from tests.cast import wine
from tests.cellars.cast import SLOT, bottle, cellar
from tests.cellars.exports import BOTTLES, INVENTORY, LIST, PURCHASE, inventory, tabs
from winecellar.cellars import imports, selectors, services
from winecellar.cellars.files import ours
from winecellar.cellars.models import Bottle, Cellar, Import

D = Decimal
pytestmark = pytest.mark.django_db
# What is said of Montrose in all four tables: three bottles.
TABLES = [
    inventory("1", "2", "3"),
    tabs(LIST, {}),
    tabs(BOTTLES, {}, {}, {}),
    tabs(PURCHASE, {}),
]


def look(content: bytes, *, into: Cellar | None = None, **options: Any) -> Import:
    return imports.preview(cellar=into or cellar(), file_name="cellar.tsv", content=content, now=SLOT, **options)


def bring(content: bytes, *, into: Cellar | None = None) -> dict[str, Any]:
    one = look(content, into=into)
    return imports.apply(cellar=one.cellar, import_id=one.pk, now=SLOT).report


def held(of: Cellar | None = None) -> int:
    return sum((of or cellar()).bottles.values_list("quantity", flat=True))


def test_the_preview_says_all_the_numbers_and_writes_no_bottle() -> None:
    wine()
    rows = [
        {"Barcode": "1"},
        {"Barcode": "2", "Vintage": "1001", "Wine": "Krug", "iWine": "12", "NativePriceCurrency": "USD"},
        {"Barcode": "3", "Location": "(pending)"},
        {"Barcode": "4", "Size": "?"},
        {"Barcode": "5", "NativePrice": "0", "iWine": "13", "Wine": "Anon"},
    ]
    report = look(tabs(INVENTORY, *rows)).report
    assert report == {
        "table": "CellarTracker Inventory",
        "rows": 5,
        "bottles": 3,
        "new": 3,
        "there": 0,
        "matched": 1,
        "wines": 3,
        "non_vintage": 1,
        "without_price": 1,
        "pending": 1,
        "consumed": 0,
        "rejected": 1,
        "rejected_rows": [[5, report["rejected_rows"][0][1]]],
        "paid": {"EUR": "18.00", "USD": "18.00"},
    }
    assert not Bottle.objects.exists()


def test_what_was_confirmed_is_written_with_all_its_facts_and_its_wine() -> None:
    montrose = wine()
    report = bring(inventory("1", "2"))
    (one,) = Bottle.objects.all()
    assert report["new"] == 2
    assert (one.quantity, one.keys) == (2, ["inventory:1", "inventory:2"])
    assert (one.wine, one.linked_by) == (montrose, By.NAME)
    assert (one.name, one.vintage, one.size_ml, one.paid, one.paid_currency) == (
        *("Château Montrose", 2016, 750),
        *(D("18.00"), "EUR"),
    )
    assert (one.drink_from, one.drink_until, one.location, one.source_wine) == (2026, 2050, "Cellar", "ct:11")
    assert one.imported_by_id is not None
    assert Import.objects.get().content is None


def test_a_magnum_is_linked_to_the_ordinary_bottle_of_its_wine_and_another_vintage_to_nothing() -> None:
    montrose = wine()
    bring(tabs(INVENTORY, {"Size": "1.5L"}, {"Barcode": "2", "Vintage": "2015"}))
    assert Bottle.objects.get(size_ml=1500).wine == montrose
    assert Bottle.objects.get(size_ml=750).wine is None


@pytest.mark.parametrize("content", TABLES)
def test_the_same_file_again_adds_nothing(content: bytes) -> None:
    assert bring(content)["new"] == 3
    again = bring(content)
    assert (again["new"], again["there"]) == (0, 3)
    assert held() == 3


@pytest.mark.parametrize("first", range(4))
@pytest.mark.parametrize("second", range(4))
def test_another_table_of_the_same_cellar_adds_nothing(first: int, second: int) -> None:
    bring(TABLES[first])
    assert bring(TABLES[second])["new"] == 0
    assert held() == 3


def test_a_newer_file_adds_only_what_is_new_and_what_was_drunk_here_does_not_come_back() -> None:
    bring(inventory("1", "2"))
    one = Bottle.objects.get()
    services.consume(cellar=cellar(), bottle_id=one.pk, quantity=1, how="drunk", on=SLOT.date(), note="", now=SLOT)
    services.move(cellar=cellar(), bottle_id=one.pk, quantity=1, location="Attic", bin="", now=SLOT)
    report = bring(inventory("1", "2", "3", Location="Elsewhere"))
    assert (report["new"], report["there"]) == (1, 2)
    assert held() == 2
    assert bring(tabs(LIST, {"Quantity": "4"}))["new"] == 1


def test_an_import_is_undone_as_a_whole_and_can_be_brought_again() -> None:
    bottle(name="Mine")
    one = look(inventory("1", "2", "3"))
    imports.apply(cellar=cellar(), import_id=one.pk, now=SLOT)
    assert imports.undo(cellar=cellar(), import_id=one.pk, now=SLOT) == 0
    assert [row.name for row in Bottle.objects.all()] == ["Mine"]
    assert imports.undo(cellar=cellar(), import_id=one.pk, now=SLOT) is None
    assert bring(inventory("1", "2", "3"))["new"] == 3


def test_undoing_keeps_what_its_owner_has_changed_since() -> None:
    one = look(tabs(INVENTORY, {}, {"Barcode": "2", "iWine": "12", "Wine": "Krug"}))
    imports.apply(cellar=cellar(), import_id=one.pk, now=SLOT)
    krug = Bottle.objects.get(name="Krug")
    services.move(cellar=cellar(), bottle_id=krug.pk, quantity=1, location="Attic", bin="", now=SLOT)
    assert imports.undo(cellar=cellar(), import_id=one.pk, now=SLOT) == 1
    assert [row.name for row in Bottle.objects.all()] == ["Krug"]


def test_another_persons_import_does_not_exist_and_a_discarded_one_neither() -> None:
    one = look(inventory("1"))
    bob = cellar("bob")
    for act in (imports.apply, imports.undo):
        with pytest.raises(Import.DoesNotExist):
            act(cellar=bob, import_id=one.pk, now=SLOT)
    imports.discard(cellar=bob, import_id=one.pk)
    assert Import.objects.filter(pk=one.pk).exists()
    imports.discard(cellar=cellar(), import_id=one.pk)
    assert not Import.objects.exists()


def test_files_that_nobody_confirmed_are_forgotten_and_imports_are_not(settings: LazySettings) -> None:
    bring(inventory("1"))
    look(inventory("2"))
    later = SLOT + settings.CELLAR_PREVIEW_RETENTION * 2
    imports.preview(cellar=cellar(), file_name="b", content=inventory("3"), now=later)
    assert sorted(Import.objects.values_list("state", flat=True)) == ["applied", "preview"]


def test_a_file_that_does_not_fit_into_the_cellar_is_refused(settings: LazySettings) -> None:
    settings.CELLAR_MAX_BOTTLES = 3
    bottle(quantity=2)
    with pytest.raises(imports.ImportRefusedError, match="2 bottles are there and 2 would be added"):
        look(inventory("1", "2"))


def test_a_file_that_cannot_be_read_leaves_nothing_behind() -> None:
    with pytest.raises(imports.ImportRefusedError, match="web page"):
        look(b"<html>")
    assert not Import.objects.exists()


@pytest.mark.django_db(transaction=True)
def test_eight_confirmations_at_once_write_once() -> None:
    """The same preview four times, and a second preview of the same file four times."""
    mine = cellar()
    ids = [look(inventory("1", "2", "3")).pk, look(inventory("1", "2", "3")).pk] * 4
    barrier, failures = threading.Barrier(8), []

    def confirm(import_id: int) -> None:
        try:
            barrier.wait(10)
            imports.apply(cellar=mine, import_id=import_id, now=SLOT)
        except Exception as error:
            failures.append(error)
        finally:
            connection.close()

    threads = [threading.Thread(target=confirm, args=[import_id]) for import_id in ids]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(30)
    assert failures == []
    assert held(mine) == 3
    assert set(Import.objects.values_list("state", flat=True)) == {"applied"}


# --- Out and in again ------------------------------------------------------------------------------------------


def exported(of: Cellar) -> bytes:
    return "".join(ours.write(selectors.lots(of))).encode()


def test_what_was_exported_imports_again_to_the_same_cellar() -> None:
    montrose = wine()
    bottle(montrose, quantity=6, size_ml=1500, paid="99.90", paid_currency="CHF", note="=SUM(A1)", bin="+3")
    bottle(name="Krug", non_vintage=True, colour="sparkling", own_value="250", own_currency="EUR", drink_until=2031)
    bottle(name="Gone", quantity=0)
    bring(inventory("1", "2"))
    bottle(montrose, name="Split", location="Attic")
    before = exported(cellar())
    bob = cellar("bob")
    assert bring(before, into=bob)["new"] == 10
    assert exported(bob) == before
    assert [row.wine_id for row in bob.bottles.order_by("id")] == [
        row.wine_id for row in cellar().bottles.filter(quantity__gt=0).order_by("id")
    ]
    # Into the cellar that it came from, and once more into the other, it brings nothing.
    assert bring(before)["new"] == 0
    assert bring(before, into=bob)["new"] == 0
    assert exported(cellar()) == before
    # And the other cellar knows the bottles when CellarTracker's own file is brought there.
    assert bring(inventory("1", "2"), into=bob)["new"] == 0
