"""Objects and lists of one kind, told from others that should not be there."""

from __future__ import annotations

import logging
from collections.abc import Sequence
from typing import Final, final

from kinform.errors import DecodeError
from kinform.objects import Object
from kinform.rest.results import ListResult

__all__ = ["KindCheck"]

log: Final = logging.getLogger(__name__)

_TABLES: Final = {"meta.k8s.io/v1", "meta.k8s.io/v1beta1"}


@final
class KindCheck:
    """Lets pass what is of the ``expected`` kind, as far as that can be told; ``None``: anything.

    Only an `Object` says of which kind it is, and not always: what says nothing may pass.

    Attributes:
        refused: how many objects were of another kind.
    """

    def __init__(self, expected: str | None, *, name: str) -> None:
        self._expected = expected
        self._name = name
        self.refused: int = 0

    def accepts(self, obj: object) -> bool:
        """Tell whether ``obj`` may pass; the first one that may not is logged."""
        if self._expected is None or not isinstance(obj, Object):
            return True
        if obj.kind in {self._expected, "PartialObjectMetadata", ""}:
            return True
        self.refused += 1
        if self.refused == 1:
            log.error("%s: got a %s, which is left out", self._name, obj.kind)
        return False

    def of_list(self, page: ListResult[object]) -> Sequence[bool] | None:
        """Tell which objects of a list may pass, in order; ``None``: all of them.

        Raises:
            DecodeError: it is no list of ours. To take it for one would empty the store.
        """
        if page.kind == "Status" or (page.kind == "Table" and page.api_version in _TABLES):
            raise DecodeError(f"the server answered with a {page.kind} in place of a list")
        expected = self._expected
        if expected is None or page.kind in {f"{expected}List", "PartialObjectMetadataList"}:
            return None
        if page.kind in {"", "List"}:
            return [self.accepts(obj) for obj in page]
        # A CRD may name its lists as it likes, but then its objects say what they are.
        if not page or not all(isinstance(obj, Object) and obj.kind == expected for obj in page):
            raise DecodeError(f"asked for a list of {expected}, got a {page.kind}")
        return None
