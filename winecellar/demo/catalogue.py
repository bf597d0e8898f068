"""The demo's catalogue: real wines, invented merchants, invented people. Facts only; pure, imports no Django.

Guarantee: reading it twice gives the same, in the order of the files. Called by load.py, feeding.py and the tests.
"""

import csv
from dataclasses import dataclass
from decimal import Decimal
from functools import cache
from pathlib import Path

WINES_FILE = Path(__file__).with_name("wines.csv")


@dataclass(frozen=True, slots=True)
class CatalogueMerchant:
    """`level` is how dear it is beside the market; `endings` are the cents its price tags end in."""

    letter: str  # in wines.csv, column sold_by
    id: str
    name: str
    website: str
    level: Decimal
    endings: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class CatalogueWine:
    """`price_usd` is about what the wine costs on the market; `vintage` is None for NV."""

    id: str
    name: str
    producer: str
    vintage: int | None
    size_ml: int
    colour: str
    country: str
    region: str
    price_usd: Decimal
    sold_by: tuple[str, ...]  # merchant ids


@dataclass(frozen=True, slots=True)
class Watch:
    """A person wants to hear of this wine at this part of today's best price, anywhere or at one merchant."""

    wine_id: str
    part: Decimal
    merchant_id: str | None = None


@dataclass(frozen=True, slots=True)
class CataloguePerson:
    """`password` None: nobody can sign in as this person."""

    email: str
    name: str
    password: str | None = None
    is_operator: bool = False
    watches: tuple[Watch, ...] = ()


def watches(*wine_ids: str, part: str = "0.985", merchant_id: str | None = None) -> tuple[Watch, ...]:
    return tuple(Watch(wine_id, Decimal(part), merchant_id) for wine_id in wine_ids)


MERCHANTS = (
    CatalogueMerchant("Q", "mch_082", "Quenby & Ostler", "https://quenby-ostler.example", Decimal("1.00"), (0, 50)),
    CatalogueMerchant("M", "mch_014", "Marrowby Cellars", "https://marrowby.example", Decimal("0.97"), (95,)),
    CatalogueMerchant("H", "mch_231", "Halcott Wine Rooms", "https://halcott.example", Decimal("1.09"), (0,)),
    CatalogueMerchant("F", "mch_305", "Ferrymead Vaults", "https://ferrymead.example", Decimal("1.03"), (0, 50)),
    CatalogueMerchant("L", "mch_467", "Lantern Street Wines", "https://lantern-street.example", Decimal("0.99"), (99,)),
)

# For the demo's own database on this machine only; load.py refuses to create them in production.
COLLECTOR = CataloguePerson(
    "demo@winecellar.example",
    "Dana",
    password="a-cellar-by-the-sea",  # noqa: S106
    watches=(
        *watches("wn_4417", "wn_4605", "wn_5101", "wn_4405", "wn_4602", "wn_6301", "wn_5103", "wn_5401", "wn_5604"),
        *watches("wn_4413", "wn_4803", part="0.97"),
        *watches("wn_5702", "wn_4421", "wn_5006", part="0.99", merchant_id="mch_014"),
    ),
)
OPERATOR = CataloguePerson(
    "operator@winecellar.example",
    "Olga",
    password="keys-to-the-cellar",  # noqa: S106
    is_operator=True,
)
OTHERS = (
    CataloguePerson(
        "alice@mailbox.example",
        "Alice",
        watches=(
            *watches("wn_4411", "wn_4426", "wn_4408", "wn_4421"),
            *watches("wn_4417", part="0.97"),
            *watches("wn_4402", "wn_4411", "wn_4413", part="0.99", merchant_id="mch_305"),
        ),
    ),
    CataloguePerson(
        "bob@mailbox.example",
        "Bob",
        watches=(
            *watches("wn_4601", "wn_4611", "wn_4613", "wn_4607", "wn_4609"),
            *watches("wn_4417", part="0.94"),
            *watches("wn_4602", "wn_4615", "wn_4605", part="0.99", merchant_id="mch_467"),
        ),
    ),
    CataloguePerson(
        "charlie@mailbox.example",
        "Charlie",
        watches=(
            *watches("wn_5108", "wn_5110", "wn_5202", "wn_5001", "wn_5004"),
            *watches("wn_5101", part="0.97"),
            *watches("wn_5105", "wn_5008", "wn_5002", part="0.99", merchant_id="mch_231"),
        ),
    ),
    CataloguePerson(
        "ines@mailbox.example",
        "Inés",
        watches=(
            *watches("wn_5301", "wn_5303", "wn_5307", "wn_5310", "wn_6101", "wn_6202"),
            *watches("wn_5305", "wn_6102", part="0.99", merchant_id="mch_082"),
        ),
    ),
    CataloguePerson(
        "jonas@mailbox.example",
        "Jonas",
        watches=(
            *watches("wn_5501", "wn_5504", "wn_5506", "wn_4902", "wn_5602"),
            *watches("wn_4905", "wn_5508", part="0.99", merchant_id="mch_305"),
        ),
    ),
    CataloguePerson(
        "mei@mailbox.example",
        "Mei",
        watches=(
            *watches("wn_4518", "wn_4513", "wn_5801", "wn_4801"),
            *watches("wn_4605", part="0.96"),
            *watches("wn_4515", "wn_4513", "wn_4807", part="0.99", merchant_id="mch_082"),
        ),
    ),
    CataloguePerson(
        "noor@mailbox.example",
        "Noor",
        watches=(
            *watches("wn_5702", "wn_5701", "wn_5710", "wn_5704", "wn_5708"),
            *watches("wn_5713", "wn_5711", part="0.99", merchant_id="mch_014"),
        ),
    ),
    CataloguePerson(
        "thabo@mailbox.example",
        "Thabo",
        watches=(
            *watches("wn_6001", "wn_6002", "wn_6004", "wn_5404", "wn_5805"),
            *watches("wn_5807", "wn_5903", part="0.99", merchant_id="mch_467"),
        ),
    ),
    CataloguePerson(
        "yusuf@mailbox.example",
        "Yusuf",
        watches=(
            *watches("wn_4701", "wn_4703", "wn_4710", "wn_4714"),
            *watches("wn_6301", part="0.96"),
            *watches("wn_4713", "wn_4710", part="0.99", merchant_id="mch_467"),
        ),
    ),
)
PEOPLE = (COLLECTOR, OPERATOR, *OTHERS)


@cache
def wines() -> tuple[CatalogueWine, ...]:
    """All wines, as typed in wines.csv."""
    by_letter = {merchant.letter: merchant.id for merchant in MERCHANTS}
    with WINES_FILE.open(encoding="utf-8", newline="") as lines:
        return tuple(
            CatalogueWine(
                id=row["id"],
                name=row["name"],
                producer=row["producer"],
                vintage=int(row["vintage"]) if row["vintage"] else None,
                size_ml=int(row["size_ml"]),
                colour=row["colour"],
                country=row["country"],
                region=row["region"],
                price_usd=Decimal(row["price_usd"]),
                sold_by=tuple(by_letter[letter] for letter in row["sold_by"]),
            )
            for row in csv.DictReader(lines)
        )


def usual_price(wine: CatalogueWine, merchant: CatalogueMerchant) -> Decimal:
    """What this merchant asks for this wine in a calm market, before it rounds as shops do."""
    return wine.price_usd * merchant.level
