"""The products of an XML file, one after the other, each as the texts of its elements. Pure; used by the XML readers.

Guarantee: memory does not grow with the file, however it is nested; a document type is refused where it begins, so
there are no entities to expand and nothing outside to fetch; what was cut off ends in UnreadableFileError.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator
from typing import NamedTuple
from xml.parsers import expat

from pricing.catalogues.errors import UnreadableFileError
from pricing.catalogues.stream import Text

DEEPEST = 32  # a price list nests five deep; a parser bomb nests a million
LONGEST_PRODUCT = 100_000  # characters of the elements that are read
LONGEST_TOKEN = 1_000_000  # bytes of one tag, comment or the like, which the parser holds whole
MOST_NAMES = 1_000  # of elements, attributes and prefixes: the parser keeps each that it has met, so we bound them
LONGEST_NAME = 200
PIECE = 1 << 16
DOCUMENT_TYPE = "It declares a document type, which a price list does not need. Leave it out."
_BETWEEN = " "  # a namespace and a name; neither can have a space
CUT_OFF = frozenset(
    {
        expat.errors.codes[message]
        for message in (
            expat.errors.XML_ERROR_NO_ELEMENTS,
            expat.errors.XML_ERROR_UNCLOSED_TOKEN,
            expat.errors.XML_ERROR_UNCLOSED_CDATA_SECTION,
            expat.errors.XML_ERROR_PARTIAL_CHAR,
        )
    }
)
UNBOUND = expat.errors.codes[expat.errors.XML_ERROR_UNBOUND_PREFIX]


class Product(NamedTuple):
    """`texts` has the paths below the product's element that were asked for and are there: `price`, `extras/vintage`.

    A path's last part may be an attribute, `link@href`. `twice` are the paths that came again with another text.
    """

    line: int
    texts: dict[str, str]
    twice: set[str]


def products(
    text: Text, *, elements: Collection[str], wanted: Collection[str], prefixes: dict[str, str] | None = None
) -> Iterator[Product]:
    """Names count without case, `_` as `-`, and without their namespace, but for those that `prefixes` gives a prefix.

    Raises UnreadableFileError.
    """
    collector = _Collector(frozenset(elements), frozenset(wanted), prefixes or {})
    fed = 0
    for piece in text.pieces():
        for start in range(0, len(piece), PIECE):
            data = piece[start : start + PIECE].encode()
            fed += len(data)
            yield from collector.feed(data, fed)
    yield from collector.feed(b"", fed, final=True)


class _Collector:
    """The parser's handlers, which run some thirty times for each product, and what they have gathered."""

    def __init__(self, elements: frozenset[str], wanted: frozenset[str], prefixes: dict[str, str]) -> None:
        self.elements = elements
        self.wanted = wanted
        self.attributed = {path.partition("@")[0] for path in wanted if "@" in path}
        self.prefixes = prefixes
        self.names: dict[str, str] = {}  # all that the file has used, and what we call them
        self.ready: list[Product] = []
        self.outside = 0  # how many elements we are in that are not of a product
        self.path: list[str] = []  # of the elements that we are in below a product's own
        self.product: Product | None = None
        self.taken = ""  # the path whose text is being gathered
        self.pieces: list[str] = []
        self.size = 0
        self.parser = expat.ParserCreate("utf-8", _BETWEEN)
        self.parser.buffer_text = True
        self.parser.StartDoctypeDeclHandler = self.refuse_document_type
        self.parser.StartNamespaceDeclHandler = self.declares
        self.parser.StartElementHandler = self.begins
        self.parser.EndElementHandler = self.ends
        self.parser.CharacterDataHandler = self.says

    def feed(self, data: bytes, fed: int, *, final: bool = False) -> Iterator[Product]:
        try:
            self.parser.Parse(data, final)
        except expat.ExpatError as error:
            yield from self.ready
            raise UnreadableFileError(_words(error, final=final), line=error.lineno) from error
        except UnreadableFileError:
            yield from self.ready
            raise
        yield from self.ready
        self.ready.clear()
        if fed - self.parser.CurrentByteIndex > LONGEST_TOKEN:
            raise self.fault(f"A tag here has more than {LONGEST_TOKEN:,} bytes.")

    def begins(self, name: str, attributes: dict[str, str]) -> None:
        bare = self.names.get(name) or self.meet(name)
        for attribute in attributes:
            if attribute not in self.names:
                self.meet(attribute)
        path = self.path
        if self.product is None:
            if bare in self.elements:
                self.product = Product(self.parser.CurrentLineNumber, {}, set())
                self.size = 0
                return
            self.outside += 1
        else:
            where = f"{path[-1]}/{bare}" if path else bare
            path.append(where)
            if where in self.wanted:
                self.taken = where
                self.pieces.clear()
            if where in self.attributed:
                for attribute, text in attributes.items():
                    self.keep(f"{where}@{attribute.lower()}", text)
        if self.outside + len(path) > DEEPEST:
            raise self.fault(f"Its elements nest more than {DEEPEST} deep.")

    def ends(self, _: str) -> None:
        if self.path:
            where = self.path.pop()
            if where == self.taken:
                self.keep(where, "".join(self.pieces))
                self.taken = ""
        elif self.product is not None:
            self.ready.append(self.product)
            self.product = None
        else:
            self.outside -= 1

    def says(self, data: str) -> None:
        if self.taken:
            self.pieces.append(data)
            self.size += len(data)
            if self.size > LONGEST_PRODUCT:
                raise self.fault(f"A product has more than {LONGEST_PRODUCT:,} characters.")

    def keep(self, path: str, text: str) -> None:
        """The first text that says something; another one is noted."""
        assert self.product is not None
        text = text.strip()
        texts = self.product.texts
        if not texts.get(path):
            texts[path] = text
        elif text and text != texts[path]:
            self.product.twice.add(path)

    def declares(self, prefix: str | None, _: str | None) -> None:
        self.meet(f"xmlns:{prefix}")

    def meet(self, name: str) -> str:
        """Remember a name that was not met before; ours for it."""
        space, _, local = name.rpartition(_BETWEEN)
        self.names[name] = self.prefixes.get(space, "") + local.lower().replace("_", "-")
        if len(self.names) > MOST_NAMES or len(name) > LONGEST_NAME:
            raise self.fault(
                f"It has more than {MOST_NAMES:,} different names, or one beyond {LONGEST_NAME} characters."
            )
        return self.names[name]

    def refuse_document_type(self, *_: object) -> None:
        raise self.fault(DOCUMENT_TYPE)

    def fault(self, reason: str) -> UnreadableFileError:
        return UnreadableFileError(reason, line=self.parser.CurrentLineNumber)


def _words(error: expat.ExpatError, *, final: bool) -> str:
    if final and error.code in CUT_OFF:
        return "The file ends before its last element is closed: it was cut off. Send it again."
    if error.code == UNBOUND:
        return "A prefix of an element is not declared. Google's needs xmlns:g=“http://base.google.com/ns/1.0”."
    return f"This is not well-formed XML: {expat.ErrorString(error.code)}."
