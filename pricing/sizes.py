"""How many bottles of which size a text speaks of: “6 x 75cl”, “case of 6 Magnums”, “Demi”. Pure.

Guarantee: a text that can be read in two ways, or names a case without saying how many, is refused, not guessed; so a
case, or another size, never passes for a bottle. Used where listings are read.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from decimal import Decimal

from pricing.folding import fold

BOTTLE_ML = 750
SAID_ML = {375: "Half bottle", 1_500: "Magnum", 3_000: "Double magnum", 6_000: "Imperial"}
QUARTER_ML = Decimal("187.5")  # sold, and here kept, as 187
LONGEST_TEXT = 500
LARGEST_PACK = 144  # a gross; numbers above it are something else
# The bottles that exist, in millilitres: those that law or trade know, and bags in boxes. A size that is none of
# them is a typing error, such as 750 cl.
KNOWN_ML = frozenset(
    {
        *(100, 187, 200, 250, 330, 350, 355, 360, 375, 500, 600, 620, 640, 700, 720, 750),
        *(1000, 1500, 1750, 1800, 2000, 2250, 2500, 3000, 4500, 5000, 6000, 9000, 10_000, 12_000),
        *(15_000, 16_000, 18_000, 20_000, 25_000, 26_000, 27_000, 30_000),
    }
)
# What a name may mean. A Jéroboam is four bottles in Champagne and Burgundy, and six in Bordeaux.
NAMED_ML: dict[str, tuple[int, ...]] = {
    "quarter bottles?": (187,),
    "(?:piccolos?|splits?)": (187, 200),
    "clavelins?": (620,),
    "(?:double magnums?|doppelmagnums?)": (3000,),
    "magnums?": (1500,),
    "(?:marie jeanne)": (2250, 2500),
    "jeroboams?": (3000, 4500, 5000),
    "rehoboams?": (4500,),
    "(?:methuselahs?|mathusalems?)": (6000,),
    "salmanazars?": (9000,),
    "(?:balthazars?|balthasars?)": (12_000,),
    "(?:nebuchadnezzars?|nabuchodonosors?)": (15_000,),
}
# Names that are also names of wines (Brut Impérial), so that they count only where a text is about nothing but size.
NAMED_ALONE_ML: dict[str, tuple[int, ...]] = {"imperiale?s?": (6000,), "(?:melchiors?|solomons?)": (18_000, 20_000)}
UNITS_ML = {"ml": 1, "cl": 10, "dl": 100, "l": 1000}


@dataclass(frozen=True, slots=True)
class Packing:
    """So many bottles of so many millilitres."""

    pack: int
    size_ml: int


class UnclearSizeError(Exception):
    """The text does not say for certain what it speaks of; the message says why, for a person."""


def read_packing(text: str) -> Packing:
    """What a text says that is about size alone, such as a variant's name. Raises UnclearSizeError."""
    facts = _Facts(_ALONE, text)
    if facts.rest.strip(" ,.;:()[]/+&"):
        raise UnclearSizeError("It says more than a size.")
    found = facts.packing()
    if found is None:
        raise UnclearSizeError("It says nothing of a size.")
    return found


def find_packing(title: str) -> tuple[Packing | None, str]:
    """What a title says of its size, or None when it says nothing, and the title without that, folded.

    Raises UnclearSizeError when it says something that cannot be read for certain.
    """
    facts = _Facts(_IN_TITLE, title)
    return facts.packing(), " ".join(facts.rest.split())


# --- The grammar, over folded text ------------------------------------------------------------------------------

_NUMBER = r"[0-9]{1,5}(?:[.,][0-9]{1,3})?"
_LITRES = r"l|lt|ltrs?|lit(?:re|er)s?|litros?|litri"
_UNIT = rf"(?:(?P<ml>ml|millilit(?:re|er)s?)|(?P<cl>cl|centilit(?:re|er)s?)|(?P<dl>dl)|(?P<l>{_LITRES}))"
_ANY_UNIT = re.sub(r"\?P<\w+>", "?:", _UNIT)
_BOTTLE = r"(?:bottles?|bouteilles?|btls?|btl?s?|flaschen?|bottigli[ae]|botellas?)"
_WOODEN = r"owc|occ|ocb|cbo|ohk|oc"  # original wooden case, original carton, and their like in French and German
_CASE = rf"(?:cases?|box(?:es)?|packs?|pk|cartons?|caisses?|cass[ae]|cajas?|kisten?|kartons?|coffrets?|{_WOODEN})"
_OF = r"(?:\s*(?:of|de|da|di|von|with|a))?"
_HALF = rf"(?:(?:1/2|half|halbe)\s*{_BOTTLE}|halves|demie?s?(?!\s+sec\b)(?:\s+{_BOTTLE})?)"
_HALF_ALONE = rf"(?:{_HALF}|half|1/2)"
_COUNT = r"[0-9]{1,3}"
# `12 x 75cl`, `12/750ml`, and `2 x 6 x 75cl`.
_TIMES = rf"(?P<times>(?:{_COUNT}\s*[x/]\s*)*)"
_TIMES_AFTER = rf"(?:\s*x\s*(?P<after>{_COUNT})(?![.,]?[0-9]|\s*x|\s*{_ANY_UNIT}\b))?"


def _grammar(half: str, named: dict[str, tuple[int, ...]]) -> re.Pattern[str]:
    names = "|".join(named).replace(" ", r"\s+")  # a bare space means nothing in a verbose pattern
    return re.compile(
        rf"""(?<![\w.,/])(?:
            (?:(?P<half_dozen>half\s+)?(?P<dozen>dozen))
          | (?:(?P<half_times>{_COUNT})\s*x?\s*)?(?P<half>{half})
          | {_TIMES}(?P<number>{_NUMBER})\s*{_UNIT}{_TIMES_AFTER}
          | {_TIMES.replace("times", "times_named")}(?:(?P<count>{_COUNT})\s*)?
            (?:(?P<name>{names})|(?P<bottle>{_BOTTLE})){_TIMES_AFTER.replace("after", "after_named")}
          | {_CASE}{_OF}\s*(?P<case_of>{_COUNT})(?![.,]?[0-9]|\s*[x/]|\s*{_ANY_UNIT}\b)
          | (?P<case_times>{_COUNT})\s*(?:{_CASE}|er)
          | x\s*(?P<only_times>{_COUNT})
          | (?P<case>{_CASE}){_OF}
        )(?!\w)""",
        re.VERBOSE,
    )


_IN_TITLE = _grammar(_HALF, NAMED_ML)
_ALONE = _grammar(_HALF_ALONE, {**NAMED_ML, **NAMED_ALONE_ML})
_ALL_NAMED = {re.compile(name.replace(" ", r"\s+")): sizes for name, sizes in {**NAMED_ML, **NAMED_ALONE_ML}.items()}
_GLUED = re.compile(rf"\b({_CASE})(?=[0-9])")


class _Facts:
    """What a text says, each thing by itself; `packing` puts it together or finds that it does not fit."""

    def __init__(self, grammar: re.Pattern[str], text: str) -> None:
        self.packs: set[int] = set()
        self.sizes: list[frozenset[int]] = []
        self.said = self.case = False
        if len(text) > LONGEST_TEXT:
            raise UnclearSizeError(f"It has more than {LONGEST_TEXT} letters.")
        folded = fold(text).replace("×", "x").replace("*", "x").replace("⁄", "/")
        self.rest = grammar.sub(self._take, _GLUED.sub(r"\1 ", folded))

    def _take(self, found: re.Match[str]) -> str:
        self.said = True
        group = found.groupdict()
        if group["dozen"]:
            self.packs.add(6 if group["half_dozen"] else 12)
        if group["half"]:
            self.sizes.append(frozenset({375}))
        if group["number"]:
            unit = next(name for name in UNITS_ML if group[name])
            self.sizes.append(_measured(group["number"], UNITS_ML[unit]))
        if name := group["name"]:
            self.sizes.append(next(frozenset(sizes) for like, sizes in _ALL_NAMED.items() if like.fullmatch(name)))
        if group["case"] or group["case_of"] or group["case_times"]:
            self.case = True
        self._count(group)
        return " "

    def _count(self, group: dict[str, str | None]) -> None:
        """All counts that stand together belong together: 2 x 6 bottles are twelve."""
        names = ("half_times", "count", "after", "after_named", "case_of", "case_times", "only_times")
        counts = [int(text) for name in names if (text := group[name])]
        for name in ("times", "times_named"):
            counts += [int(number) for number in re.findall(r"[0-9]+", group[name] or "")]
        if counts:
            product = 1
            for count in counts:
                product *= count
            self.packs.add(product)

    def packing(self) -> Packing | None:
        if not self.said:
            return None
        if len(self.packs) > 1:
            raise UnclearSizeError("It speaks of packs of different sizes.")
        if self.case and not self.packs:
            raise UnclearSizeError("It speaks of a case, and not of how many bottles.")
        pack = next(iter(self.packs), 1)
        if not 1 <= pack <= LARGEST_PACK:
            raise UnclearSizeError(f"A pack has 1 to {LARGEST_PACK} bottles.")
        return Packing(pack, self._size())

    def _size(self) -> int:
        possible = frozenset.intersection(*self.sizes) if self.sizes else frozenset({BOTTLE_ML})
        if not possible:
            raise UnclearSizeError("It speaks of a bottle that does not exist, or of two sizes.")
        if len(possible) > 1:
            raise UnclearSizeError(f"That can be {' or '.join(f'{size} ml' for size in sorted(possible))}.")
        return next(iter(possible))


def _measured(number: str, unit_ml: int) -> frozenset[int]:
    """The bottles a number can mean: `1,500 ml` has a thousands sign, `1,5 l` a decimal one."""
    readings = {number.replace(",", ".")}
    if re.fullmatch(r"[0-9]{1,2}[.,][0-9]{3}", number):
        readings.add(re.sub(r"[.,]", "", number))
    volumes = {Decimal(reading) * unit_ml for reading in readings}
    return frozenset(int(volume) for volume in volumes if volume == int(volume) or volume == QUARTER_ML) & KNOWN_ML


def size_words(millilitres: int) -> str:
    """A bottle's size as every page says it: “75 cl”, “Magnum, 1.5 l”."""
    litres = Decimal(millilitres) / 1_000
    size = f"{litres.normalize():f}\u00a0l" if litres >= 1 else f"{(litres * 100).normalize():f}\u00a0cl"
    name = SAID_ML.get(millilitres)
    return f"{name}, {size}" if name else size
