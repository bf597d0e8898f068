"""Which column of a file is what: by the merchant's settings, else by the names that price lists give them. Pure.

Guarantee: two columns that could both be the price are never chosen between, and a file without a needed column is
refused by name. Used by the readers of delimited text.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence

from pricing.catalogues.errors import UnreadableFileError
from pricing.catalogues.options import Field, FileSettings, Tax
from pricing.folding import fold

# Names in English, German and French, folded, letters and digits alone. Of several the first that is there counts.
NAMES: dict[Field, tuple[str, ...]] = {
    Field.SOURCE_ID: (
        *("id", "sku", "item id", "itemid", "product id", "productid", "offer id", "variant sku", "article id"),
        *("item number", "item no", "item code", "product code", "product number", "article number", "article no"),
        *(
            "artikelnummer",
            "artikelnr",
            "artikel nr",
            "artikel id",
            "art nr",
            "artnr",
            "bestellnummer",
            "produktnummer",
        ),
        *("reference", "ref", "reference produit", "code article", "numero article", "code produit", "no article"),
        *("code", "iwine", "wineid"),
    ),
    Field.TITLE: (
        *("title", "name", "wine name", "winename", "product name", "productname", "product title", "wine", "product"),
        *("weinname", "produktname", "artikelname", "artikelbezeichnung", "bezeichnung", "wein", "produkt", "artikel"),
        *("nom du vin", "nom", "nom du produit", "vin", "designation", "libelle", "produit", "article"),
        *("description", "beschreibung"),
    ),
    Field.SIZE: (
        *("size", "bottle size", "bottlesize", "unit size", "unitsize", "bottle format", "format", "volume"),
        *("flaschengrosse", "flascheninhalt", "inhalt", "grosse", "volumen", "gebinde"),
        *("contenance", "taille", "conditionnement", "flaconnage"),
    ),
    Field.VINTAGE: ("vintage", "year", "jahrgang", "jahr", "millesime", "annee"),
    Field.GTIN: ("gtin", "ean", "ean13", "ean 13", "ean code", "gtin ean", "barcode", "bar code", "upc", "jan"),
    Field.LWIN: ("lwin", "lwin18", "lwin16", "lwin11", "lwin7", "lwin 18", "lwin 16", "lwin 11", "lwin 7", "lwin code"),
    Field.WINE_ID: ("wine id", "winecellar id"),
    Field.CURRENCY: ("currency", "currency code", "price currency", "wahrung", "devise", "monnaie"),
    Field.AVAILABILITY: (
        *("availability", "available", "stock status", "in stock", "instock", "stock", "stock level", "inventory"),
        *("quantity", "qty", "verfugbarkeit", "verfugbar", "lagerbestand", "bestand", "disponibilite", "disponible"),
        *("quantite", "en stock"),
    ),
    Field.URL: ("link", "url", "product url", "product link", "deeplink", "deep link", "produktlink", "lien"),
    Field.PRODUCER: (
        *("producer", "winery", "producer name", "weingut", "produzent", "erzeuger", "winzer", "producteur"),
        "domaine",
    ),
    Field.PACK: (
        *("pack", "pack size", "case size", "bottles per case", "units per case", "bottle quantity", "bottles"),
        *("flaschen pro karton", "flaschen je karton", "bouteilles par caisse"),
    ),
    Field.SALE_PRICE: (
        *("sale price", "special price", "offer price", "sonderpreis", "angebotspreis", "aktionspreis"),
        *("prix promo", "prix promotionnel", "prix solde"),
    ),
    Field.SALE_DATES: ("sale price effective date",),
}
PRICES = (
    *("price", "preis", "prix", "unit price", "bottle price", "price per bottle", "retail price"),
    *("verkaufspreis", "stuckpreis", "flaschenpreis", "prix de vente", "prix unitaire", "prix bouteille"),
)
TAXED_PRICES: dict[Tax, tuple[str, ...]] = {
    Tax.INCLUDED: (
        *("price inc tax", "price inc vat", "price incl vat", "price incl tax", "price including vat", "gross price"),
        *("preis brutto", "bruttopreis", "brutto", "preis inkl mwst", "prix ttc", "ttc"),
    ),
    Tax.EXCLUDED: (
        *("price ex tax", "price ex vat", "price excl vat", "price excl tax", "price excluding vat", "net price"),
        *("preis netto", "nettopreis", "netto", "preis exkl mwst", "preis zzgl mwst", "prix ht", "ht"),
    ),
}


def folded(name: str) -> str:
    return " ".join(re.findall(r"[a-z0-9]+", fold(name)))


def recognise(
    header: Sequence[str], settings: FileSettings, names: Mapping[Field, tuple[str, ...]]
) -> dict[Field, int]:
    """The place of each field that the file has. `names` are those of the format; the merchant's settings go before.

    Raises UnreadableFileError naming what is missing, or stands there twice.
    """
    places: dict[str, list[int]] = {}
    for place, name in enumerate(header):
        places.setdefault(folded(name), []).append(place)
    found: dict[Field, int] = {}
    for field, name in settings.columns.items():
        if folded(name) not in places:
            raise UnreadableFileError(f"It has no column “{name}”, which your settings name for {field}.", line=1)
        found[Field(field)] = _only(places[folded(name)], name)
    for field, usual in names.items():
        if field not in found and (name := next((each for each in usual if each in places), "")):
            found[field] = _only(places[name], name)
    if Field.PRICE not in found and (priced := _price(places, settings)):
        found[Field.PRICE] = _only(places[priced], priced)
    _must_suffice(found)
    return found


def _only(places: list[int], name: str) -> int:
    if len(places) > 1:
        raise UnreadableFileError(f"Two columns are called “{name}”. Rename the one that is not meant.", line=1)
    return places[0]


def _price(places: Mapping[str, list[int]], settings: FileSettings) -> str:
    """The name of the column that is the price; a file may have it with tax, without, and not say which."""
    plain = [name for name in PRICES if name in places]
    taxed = {tax: [name for name in names if name in places] for tax, names in TAXED_PRICES.items()}
    chosen = plain
    if settings.tax and taxed[Tax(settings.tax)]:
        chosen = taxed[Tax(settings.tax)]
    elif not plain:
        chosen = [name for names in taxed.values() for name in names]
    if len(chosen) > 1:
        listed = ", ".join(f"“{name}”" for name in chosen)
        raise UnreadableFileError(f"Each of {listed} may be the price. Tell us which column is.", line=1)
    return chosen[0] if chosen else ""


def _must_suffice(found: Mapping[Field, int]) -> None:
    missing = []
    if Field.PRICE not in found:
        missing.append("price")
    if not found.keys() & {Field.TITLE, Field.WINE_ID, Field.LWIN, Field.GTIN}:
        missing.append("title")
    if missing:
        raise UnreadableFileError(
            f"Its first line names no column for: {', '.join(missing)}. Name them there, or tell us their names.",
            line=1,
        )
