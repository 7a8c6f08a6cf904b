"""What becomes of an index function that fails: the object is cached, somebody hears of it."""

from __future__ import annotations

import logging
from typing import Final, final

from kinform.cache.indexes import IndexFunctionError

__all__ = ["IndexErrors"]

log: Final = logging.getLogger(__name__)


@final
class IndexErrors:
    """Counts the failures of index functions, and logs the first of each."""

    def __init__(self, name: str) -> None:
        self._name = name
        self.counts: Final[dict[str, int]] = {}
        """How often each index function failed, by the name of its index."""

    def __call__(self, error: IndexFunctionError) -> None:
        """Take note of a failure."""
        count = self.counts.get(error.index, 0)
        self.counts[error.index] = count + 1
        if not count:
            log.error(
                "%s: %s; the object is cached, but not found by that index. "
                "Further failures of this index are counted, not logged",
                self._name,
                error,
                exc_info=error.__cause__,
            )
