"""Comparison of resourceVersions: as integers of any size, otherwise only for equality.

kube-apiserver's versions are decimal integers that grow with every write. Aggregated servers may
use any text, or no versions at all; the order of such versions is unknown.
"""

from __future__ import annotations

from kinform.meta import ObjectMeta

__all__ = ["is_complete", "is_older", "is_replay", "newest", "same_version"]


def is_older(version: str, other: str) -> bool:
    """Return whether ``version`` is certainly older than ``other``.

    Certain are ASCII digits only, however many: ``int()`` refuses more than 4,300 of them.

    >>> is_older("9", "10"), is_older("10", "10"), is_older("", "10"), is_older("a", "b")
    (True, False, False, False)
    """
    if not (version.isascii() and version.isdigit() and other.isascii() and other.isdigit()):
        return False
    # Compared as text of equal length, which is the order of integers: ``int()`` refuses more than
    # 4,300 digits, and a hostile server could send them.
    digits, others = version.lstrip("0"), other.lstrip("0")
    return (len(digits), digits) < (len(others), others)


def is_replay(held: str, seen: str) -> bool:
    """Return whether an event of version ``seen`` is certainly not newer than version ``held``.

    >>> is_replay("10", "10"), is_replay("10", "9"), is_replay("10", "11"), is_replay("", "")
    (True, True, False, False)
    """
    if len(seen) == len(held) and seen > held:
        return False  # newer if both are integers: the usual case
    return bool(seen) and (seen == held or is_older(seen, held))


def newest(current: str, seen: str) -> str:
    """Return the version to remember at ``current`` once ``seen`` has been seen.

    That is ``seen``, unless it is empty or certainly older.

    >>> newest("10", "9"), newest("10", "11"), newest("10", ""), newest("", "9")
    ('10', '11', '10', '9')
    """
    if len(seen) == len(current) and seen >= current:
        return seen  # newer if both are integers, and not certainly older if they are not
    return current if not seen or is_older(seen, current) else seen


def is_complete(version: str, newest_seen: str) -> bool:
    """Return whether a list of ``version`` can show objects up to ``newest_seen``.

    If not, the server does not count its writes: versions of its objects have no order.

    >>> is_complete("10", "9"), is_complete("10", "11"), is_complete("", "9"), is_complete("0", "9")
    (True, False, False, False)
    >>> is_complete("", ""), is_complete("k-7", "x")
    (True, True)
    """
    # A list without a version may still have objects with versions. Then nothing says up to where
    # it is complete.
    if version in {"", "0"}:
        return not newest_seen
    return not is_older(version, newest_seen)


def same_version(old: ObjectMeta, new: ObjectMeta) -> bool:
    """Return whether both are one version of one object: same uid, same resourceVersion.

    An object that lacks either is never known to be the same: some aggregated servers give
    every object no uid and a resourceVersion that never changes.
    """
    version = new.resource_version
    return bool(version and new.uid and old.resource_version == version and old.uid == new.uid)
