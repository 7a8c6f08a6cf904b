"""Comparing resourceVersions, as far as that is allowed.

They are opaque, except that well-formed ones may be compared as integers of any size
(apimachinery: CompareResourceVersion). Anything else is only equal or different.
"""

from __future__ import annotations

__all__ = ["is_older"]


def is_older(version: str, than: str) -> bool:
    """Whether ``version`` is certainly older than ``than``; false where nobody can tell.

    >>> is_older("9", "10"), is_older("10", "9"), is_older("", "10"), is_older("9", "x10")
    (True, False, False, False)
    """
    return _is_number(version) and _is_number(than) and int(version) < int(than)


def _is_number(version: str) -> bool:
    return version.isascii() and version.isdigit()
