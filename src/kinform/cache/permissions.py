"""Which permission an informer lacks: the RBAC rule that a 403 asks for."""

from __future__ import annotations

import re
from typing import Final
from urllib.parse import unquote, urlsplit

from kinform.errors import ForbiddenError, KinformError

__all__ = ["explained", "missing_rule"]

# The last /api or /apis: a proxy may have put anything before it.
_PATH: Final = re.compile(
    r".*(?:/api/[^/]+|/apis/(?P<group>[^/]+)/[^/]+)"
    r"(?:/namespaces/(?P<namespace>[^/]+))?/(?P<resource>[^/]+)"
)


def missing_rule(error: KinformError, *, names_namespace: bool = True) -> str:
    """Return the rule without which a list or watch was forbidden; ``""`` for other errors.

    An informer needs both verbs, whichever of them was refused.
    """
    if not isinstance(error, ForbiddenError):
        return ""
    match = _PATH.fullmatch(unquote(urlsplit(error.url).path))
    if match is None:
        return ""
    namespace = match["namespace"]
    place = "a Role" if namespace else "a ClusterRole"
    if namespace and names_namespace:
        place += f" in the namespace {namespace}"
    rule = f'apiGroups: ["{match["group"] or ""}"], resources: ["{match["resource"]}"]'
    return f'{place} needs the rule {{{rule}, verbs: ["list", "watch"]}}'


def explained(error: KinformError) -> str:
    """Return the error's text, and what to do about it where that is known."""
    rule = missing_rule(error)
    return f"{error}; {rule}" if rule else str(error)
