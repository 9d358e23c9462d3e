"""What is told of a file on its way in: rows set aside, and guesses."""

from __future__ import annotations

import hashlib
from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass

__all__ = ["SHOWN_LINES", "Guess", "SetAside", "printable", "printable_apart"]

SHOWN_LINES = 5
"""Lines that are named of the rows left out for one cause."""


def printable(text: object, limit: int = 60) -> str:
    """Text from a file, safe to show: one line, no control characters, at most ``limit`` long."""
    shown = "".join(c if c.isprintable() else "?" for c in str(text)[: limit + 1])
    return shown if len(shown) <= limit else shown[: limit - 1] + "…"


DIGEST_LETTERS = 7


def printable_apart(texts: Iterable[str], limit: int = 60) -> dict[str, str]:
    """`printable` of each text, as a name of its own.

    Texts that would be shown alike, being cut or having letters that cannot be shown, end in some
    letters of a digest of the whole; all others are as `printable` has them.
    """
    shown = {text: printable(text, limit) for text in texts}
    alike = Counter(shown.values())
    return {
        text: _with_digest(text, name, limit) if alike[name] > 1 and text != name else name
        for text, name in shown.items()
    }


def _with_digest(text: str, name: str, limit: int) -> str:
    digest = hashlib.sha256(text.encode(errors="surrogatepass")).hexdigest()[:DIGEST_LETTERS]
    return f"{name[: limit - DIGEST_LETTERS - 2].removesuffix('…')}… {digest}"


@dataclass(frozen=True)
class SetAside:
    """Rows left out for one cause: how many, the first five lines of the file, one example."""

    count: int
    lines: tuple[int, ...] = ()
    example: str = ""

    def __add__(self, more: SetAside) -> SetAside:
        """These rows and others that come after them."""
        lines = tuple(dict.fromkeys((*self.lines, *more.lines)))[:SHOWN_LINES]
        return SetAside(self.count + more.count, lines, self.example or more.example)


@dataclass(frozen=True)
class Guess:
    """A choice made for the reader: what was taken, what else it could have been, and a note.

    ``option`` names the choice of `agg_core.io.choices` by which a person changes it; the
    alternatives are values of that choice.
    """

    value: str
    alternatives: tuple[str, ...] = ()
    note: str = ""
    option: str = ""
