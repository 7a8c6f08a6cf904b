"""What a reconcile may answer."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import final

from kinform.errors import UsageError

__all__ = ["Result"]


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class Result:
    """How a reconcile went on that did not fail; ``None`` says the same as ``Result()``.

    Raises:
        UsageError: ``requeue_after`` is not a number above 0. Who wants to be called again because
            something went wrong raises an error: then there is a back-off.
    """

    requeue_after: float | None = None
    """Reconcile again in so many seconds, unless something happens before."""

    def __post_init__(self) -> None:
        after = self.requeue_after
        if after is None:
            return
        if not 0 < after < math.inf:
            raise UsageError(
                f"requeue_after is {after!r}; expected seconds, more than 0. To be tried again "
                "with a back-off, raise an error"
            )
