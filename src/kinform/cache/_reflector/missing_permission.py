"""The RBAC rule that an informer lacks, derived from a 403 response."""

from __future__ import annotations

import re
from typing import Final
from urllib.parse import unquote, urlsplit

from kinform.errors import ForbiddenError, KinformError

__all__ = ["explained", "missing_rule"]

# The last /api or /apis: a proxy may have any path prefix.
_PATH: Final = re.compile(
    r".*(?:/api/[^/]+|/apis/(?P<group>[^/]+)/[^/]+)"
    r"(?:/namespaces/(?P<namespace>[^/]+))?/(?P<resource>[^/]+)"
)


def missing_rule(error: KinformError, *, names_namespace: bool = True) -> str:
    """Return the RBAC rule that would allow a forbidden list or watch; ``""`` for other errors.

    An informer needs both verbs, even if only one was refused.
    """
    if not isinstance(error, ForbiddenError):
        return ""
    # From the URL and not from the server's message: an authorization webhook may write any text
    # there.
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
    """Return the text of an error; for a 403 with the RBAC rule that is missing."""
    rule = missing_rule(error)
    return f"{error}; {rule}" if rule else str(error)
