"""What is said about faults that make no sense. Pure."""

from __future__ import annotations

import difflib
import re
from collections.abc import Iterable
from typing import Final

import msgspec

__all__ = ["about_verb", "hint", "told"]

_PATH: Final = re.compile(r"^(?P<why>.*?)(?: - at `\$\.?(?P<key>[^`]*)`)?$")


def hint(name: str, known: Iterable[str]) -> str:
    """Return the end of a sentence about a name that is unknown: the nearest one, or all.

    >>> hint("clos", ["close", "gzip"])
    "; did you mean 'close'?"
    >>> hint("xyz", ["close", "gzip"])
    '; there are close, gzip'
    """
    nearest = difflib.get_close_matches(name, known, n=1)
    if nearest:
        return f"; did you mean {nearest[0]!r}?"
    return f"; there are {', '.join(sorted(known))}"


def about_verb(verb: object, known: Iterable[str]) -> str | None:
    """Return what is wrong with a verb, with all there are; None: nothing.

    >>> about_verb("lst", ["get", "list"])
    "verb: there is no 'lst', did you mean 'list'? There are get, list"
    """
    known = list(known)
    if verb is None or verb in known:
        return None
    nearest = difflib.get_close_matches(str(verb), known, n=1)
    guess = f", did you mean {nearest[0]!r}? There" if nearest else "; there"
    return f"verb: there is no {verb!r}{guess} are {', '.join(known)}"


def told(error: msgspec.ValidationError) -> str:
    """Return what is wrong, with the key in front."""
    found = _PATH.match(str(error))
    if found is None:
        return str(error)
    why = found["why"].replace("Expected", "expected", 1).replace("Object missing", "missing")
    return f"{found['key']}: {why}" if found["key"] else why
