"""CellarTracker's tables as its exports have them, typed small: tabs or commas, in any encoding."""

import csv
import io
from collections.abc import Sequence

INVENTORY = {
    "iWine": "11",
    "Barcode": "0100",
    "Location": "Cellar",
    "Bin": "(n/a)",
    "Size": "750ml",
    "Price": "20",
    "NativePrice": "18",
    "NativePriceCurrency": "EUR",
    "StoreName": "Unknown",
    "PurchaseDate": "5/25/2020",
    "BottleNote": "",
    "Vintage": "2016",
    "Wine": "Château Montrose",
    "Country": "France",
    "Region": "Bordeaux",
    "SubRegion": "Médoc",
    "Appellation": "St. Estèphe",
    "Producer": "Château Montrose",
    "Type": "Red",
    "WA": "18-19+",
    "BeginConsume": "2026",
    "EndConsume": "2050",
}
LIST = {
    "iWine": "11",
    "Quantity": "3",
    "Pending": "2",
    "Location": "Cellar",
    "Bin": "",
    "Size": "750ml",
    "Price": "18",
    "MyValue": "0",
    "Currency": "EUR",
    "Vintage": "2016",
    "Wine": "Château Montrose",
    "Locale": "France, Bordeaux, Médoc, St. Estèphe",
    "Type": "Red",
    "BeginConsume": "9999",
    "EndConsume": "9999",
    "UPC": "",
}
BOTTLES = {
    "BottleState": "1",
    "iWine": "11",
    "Vintage": "2016",
    "Wine": "Château Montrose",
    "Locale": "France, Bordeaux, Médoc, St. Estèphe",
    "Quantity": "1",
    "BottleSize": "750ml",
    "Location": "(n/a)",
    "Store": "Unknown",
    "PurchaseDate": "5/25/2020",
    "DeliveryDate": "5/25/2020",
    "BottleCost": "18",
    "BottleCostCurrency": "EUR",
}
PURCHASE = {
    "iWine": "11",
    "iPurchase": "900",
    "PurchaseDate": "5/25/2020",
    "Price": "20",
    "NativePrice": "18",
    "NativePriceCurrency": "EUR",
    "Quantity": "6",
    "Remaining": "3",
    "Delivered": "True",
    "Size": "750ml",
    "Vintage": "2016",
    "Wine": "Château Montrose",
    "Country": "France",
    "Region": "Bordeaux",
    "Appellation": "Unknown",
    "Type": "Red",
}
CONSUMED = {"iConsumed": "5", "iWine": "11", "Consumed": "5/1/2020", "Size": "750ml", "Vintage": "2016", "Wine": "X"}

Row = dict[str, str]


def text(like: Row, rows: Sequence[Row], *, delimiter: str = "\t") -> str:
    """A file with the columns of `like`; each row says what differs from it."""
    out = io.StringIO()
    quoting = csv.QUOTE_NONE if delimiter == "\t" else csv.QUOTE_MINIMAL
    writer = csv.DictWriter(out, list(like), delimiter=delimiter, quoting=quoting, quotechar=None if quoting else '"')
    writer.writeheader()
    writer.writerows({**like, **row} for row in rows)
    return out.getvalue()


def tabs(like: Row, *rows: Row) -> bytes:
    """As the web query sends it: UTF-8, no line end after the last row."""
    return text(like, rows).rstrip("\r\n").encode()


def browser(like: Row, *rows: Row) -> bytes:
    """As a browser saves it: CSV in Windows-1252."""
    return text(like, rows, delimiter=",").encode("cp1252")


def inventory(*barcodes: str, **fields: str) -> bytes:
    return tabs(INVENTORY, *({"Barcode": barcode, **fields} for barcode in barcodes))
