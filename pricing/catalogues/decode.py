"""A file's text: by its byte order mark, else as UTF-8, else as the merchant says, else as Windows' Western letters.

Pure; used by stream.py. Guarantee: nothing is replaced or left out, and no encoding is taken that the text speaks
against. Before its first letter beyond ASCII a text is the same in every encoding here, so one pass is enough.
"""

from __future__ import annotations

import codecs
import re
from collections.abc import Iterator

from pricing.catalogues.errors import UnreadableFileError

UTF_16 = {codecs.BOM_UTF16_LE: "utf-16-le", codecs.BOM_UTF16_BE: "utf-16-be"}
GUESSED = "cp1252"
# What Western text in cp1252 does not have: a dagger between letters, capitals with accents inside a word, or four
# letters with accents on end. A Mac's “Château” is “Ch‰teau” here, and Russian is “Âèíî”.
_IMPLAUSIBLE = re.compile(
    r"[^\W\d_][‚ƒ„†‡ˆ‰‹›•˜™€¢£¥§©®±µ¶][^\W\d_]"
    r"|[a-zß-öø-ÿ][À-ÖØ-ÞŠŽŒŸ][a-zß-öø-ÿ]"
    r"|[À-ÖØ-öø-ÿŠŽšž]{4}"
)
BELIEVED_AFTER = 1_000_000  # characters that nothing speaks against: a file has one encoding
ADVICE = "Save it as UTF-8, or tell us its encoding."


def text_of(pieces: Iterator[bytes], fallback: str) -> Iterator[str]:
    """The text of a file in pieces, without its mark. `fallback` is a name in options.ENCODINGS, or "".

    Raises UnreadableFileError where it cannot go on, after it has given what stands before.
    """
    head = b""
    for piece in pieces:
        head += piece
        if len(head) >= len(codecs.BOM_UTF8):
            break
    decoder = _Decoder(fallback)
    if head.startswith(codecs.BOM_UTF8):
        decoder = _Decoder(None)
        head = head[len(codecs.BOM_UTF8) :]
    elif name := UTF_16.get(head[:2]):
        decoder = _Decoder(None, name)
        head = head[2:]
    yield from decoder.decode(head)
    for piece in pieces:
        yield from decoder.decode(piece)
    yield from decoder.decode(b"", final=True)


class _Decoder:
    """UTF-8 (or what a mark said), until something is not; then, if all before was ASCII, one of the others."""

    def __init__(self, fallback: str | None, name: str = "utf-8") -> None:
        self.fallback = fallback  # None: there was a mark, so nothing else is possible
        self.encoding = name
        self.decoder = codecs.getincrementaldecoder(name)()
        self.other = ""  # what it turned out to be in
        self.tail = ""  # the end of the last piece, for what is implausible may stand across two
        self.doubted = 0  # how many characters were looked at for that
        self.beyond_ascii = False
        self.line = 1

    def decode(self, data: bytes, *, final: bool = False) -> Iterator[str]:
        if self.other:
            yield from self._in_other(data)
            return
        try:
            text = self.decoder.decode(data, final)
        except UnicodeDecodeError as error:
            whole = bytes(error.object)
            before = whole[: error.start].decode(self.encoding)
            yield from self._given(before)
            if self.fallback is None or self.beyond_ascii:
                reason = f"This is no {self.encoding[:6].upper()}, though what stands before is. Save it anew as UTF-8."
                raise UnreadableFileError(reason, line=self.line) from error
            self.other = self.fallback or GUESSED
            yield from self._in_other(whole[error.start :])
        else:
            yield from self._given(text)

    def _in_other(self, data: bytes) -> Iterator[str]:
        try:
            text = data.decode(self.other)
        except UnicodeDecodeError as error:
            yield from self._given(data[: error.start].decode(self.other))
            raise UnreadableFileError(f"This is neither UTF-8 nor {self.other}. {ADVICE}", line=self.line) from error
        if not self.fallback and self.doubted < BELIEVED_AFTER:
            self._must_be_plausible(text)
        yield from self._given(text)

    def _must_be_plausible(self, text: str) -> None:
        seen = self.tail + text
        if found := _IMPLAUSIBLE.search(seen):
            line = self.line + seen.count("\n", len(self.tail), found.start())
            raise UnreadableFileError(f"This is not UTF-8, and we cannot tell what it is. {ADVICE}", line=line)
        self.doubted += len(text)

    def _given(self, text: str) -> Iterator[str]:
        text, nul, _ = text.partition("\0")
        if text:
            self.beyond_ascii = self.beyond_ascii or not text.isascii()
            self.line += text.count("\n")
            self.tail = (self.tail + text[-3:])[-3:]
            yield text
        if nul:
            raise UnreadableFileError("This is no text: it has a NUL in it. Save it as UTF-8.", line=self.line)
