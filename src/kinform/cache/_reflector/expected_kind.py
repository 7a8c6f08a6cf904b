"""KindCheck: drops objects, and refuses lists, of another kind than the expected one."""

from __future__ import annotations

import logging
from collections.abc import Sequence
from typing import Final, final

from kinform.errors import DecodeError
from kinform.objects.object import Object
from kinform.rest.results import ListResult

__all__ = ["KindCheck"]

log: Final = logging.getLogger(__name__)

_TABLES: Final = {"meta.k8s.io/v1", "meta.k8s.io/v1beta1"}


@final
class KindCheck:
    """Accepts objects and lists of the ``expected`` kind; ``None``: of any kind.

    Only an `Object` has a kind, and it may be empty: objects without a kind are accepted.

    Attributes:
        refused: the number of objects of another kind.
    """

    def __init__(self, expected: str | None, *, name: str) -> None:
        self._expected = expected
        self._name = name
        self.refused: int = 0

    def accepts(self, obj: object) -> bool:
        """Return whether ``obj`` is accepted; the first one that is not is logged."""
        if self._expected is None or not isinstance(obj, Object):
            return True
        # The empty kind: objects within a list have none, the list's own kind stands for all of
        # them.
        if obj.kind in {self._expected, "PartialObjectMetadata", ""}:
            return True
        self.refused += 1
        if self.refused == 1:
            extra = {"informer": self._name, "kind": obj.kind, "expected": self._expected}
            log.error("%s: dropped an object of kind %s", self._name, obj.kind, extra=extra)
        return False

    def of_list(self, page: ListResult[object]) -> Sequence[bool] | None:
        """Return which objects of a list are accepted, in order; ``None``: all of them.

        Raises:
            DecodeError: it is not a list of the expected kind. Storing it would empty the cache.
        """
        # A CRD may be called Table too, so the group counts. A Status with 200 comes from proxies
        # (F-R28).
        if page.kind == "Status" or (page.kind == "Table" and page.api_version in _TABLES):
            raise DecodeError(f"the server answered with a {page.kind} in place of a list")
        expected = self._expected
        if expected is None or page.kind in {f"{expected}List", "PartialObjectMetadataList"}:
            return None
        if page.kind in {"", "List"}:
            return [self.accepts(obj) for obj in page]
        # A CRD may choose any name for its list kind, but then its objects have the expected kind.
        if not page or not all(isinstance(obj, Object) and obj.kind == expected for obj in page):
            raise DecodeError(f"asked for a list of {expected}, got a {page.kind}")
        return None
