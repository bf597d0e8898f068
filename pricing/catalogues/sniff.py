"""Which format a file is in, by its beginning, and by its name where that alone is not enough. Pure.

Guarantee: it does not guess; what is none of the formats, or could be two, is UnreadableFileError in words.
"""

from __future__ import annotations

import re

from pricing.catalogues import google, vivino, wine_searcher
from pricing.catalogues.columns import folded
from pricing.catalogues.errors import UnreadableFileError
from pricing.catalogues.options import FileSettings, Format
from pricing.catalogues.xml_rows import DOCUMENT_TYPE

# Both take a comment whole and never anew (possessive, atomic). Else, before what is no root, many of them would be
# tried in every way of joining some into one, which never ends.
_WEB_PAGE = re.compile(
    r"\s*+(?:(?><!--.*?-->)\s*+)*+<(?:!doctype\s+html|html|head|body|script)\b", re.IGNORECASE | re.DOTALL
)
# What stands before an XML file's root, and its name.
_ROOT = re.compile(r"\s*+(?:(?><\?.*?\?>|<!--.*?-->)\s*+)*+<(?:[\w.-]+:)?(?P<root>[\w.-]+|!DOCTYPE)", re.DOTALL)
_GOOGLE_ONLY = frozenset({"google product category", "sale price effective date", "image link", "item group id"})
_FORMATS_OF_ROOTS = {vivino.ROOT: Format.VIVINO_XML, wine_searcher.ROOT: Format.WINE_SEARCHER_XML}


def refuse_other_things(head: str) -> None:
    """Refuse what is sent by mistake, whatever the settings say. Raises UnreadableFileError."""
    if _WEB_PAGE.match(head):
        raise UnreadableFileError(
            "This is a web page and no price list, perhaps the page to sign in. Sign in and save the list itself.",
            line=1,
        )
    if head.lstrip()[:1] in ("{", "["):
        raise UnreadableFileError("This is JSON. Send catalogue files as delimited text or XML.", line=1)


def sniff(name: str, head: str, settings: FileSettings) -> Format:
    """Raises UnreadableFileError if the format is none that we know, or not certain."""
    if head.lstrip().startswith("<"):
        return _xml(head)
    line = next((each for each in head.splitlines() if each.strip()), "")
    if settings.columns or not _is_pipes_without_names(line):
        return _text(line)
    if re.search(r"wine[-_ ]?searcher", name, re.IGNORECASE):
        return Format.WINE_SEARCHER_TEXT
    raise UnreadableFileError(
        "Its first line does not name its columns. If it is Wine-Searcher's list without names, tell us so.", line=1
    )


def _xml(head: str) -> Format:
    found = _ROOT.match(head)
    root = found["root"].lower() if found else ""
    if found and root == "!doctype":
        raise UnreadableFileError(DOCUMENT_TYPE, line=1 + head.count("\n", 0, found.end()))
    if known := _FORMATS_OF_ROOTS.get(root):
        return known
    if root in ("rss", "feed"):
        if google.NAMESPACE in head:
            return Format.GOOGLE_XML
        message = f"It is an {'RSS' if root == 'rss' else 'Atom'} feed without Google's elements for products."
        raise UnreadableFileError(message, line=1)
    raise UnreadableFileError(f"It is XML that begins with <{root}>, which is no product list that we know.", line=1)


def _text(line: str) -> Format:
    names = {folded(name) for delimiter in "\t,;|" for name in line.split(delimiter)}
    if {"id", "title", "price"} <= names and names & _GOOGLE_ONLY:
        return Format.GOOGLE_TEXT
    return Format.DELIMITED


def _is_pipes_without_names(line: str) -> bool:
    order = wine_searcher.ORDER.split("|")
    cells = line.split("|")
    return len(cells) == len(order) and folded(cells[5]) != "price" and "price" not in map(folded, cells)
