"""Knobs: limits of kinform that a small cluster never reaches, made small for a run.

What happens only with thousands of objects, lists taken in turns, notifications that are merged,
then happens with ten.
"""

from __future__ import annotations

import contextlib
import random
from collections.abc import Generator
from types import ModuleType
from typing import Final

from kinform.cache import controller
from kinform.cache._reflector import intake
from kinform.sansio.queue import coalesce

__all__ = ["turned"]

_KNOBS: Final[tuple[tuple[ModuleType, str, int], ...]] = (
    (controller, "_TURN", 3),
    (controller, "_NOTIFIED_PER_TURN", 2),
    (intake, "TURN", 2),
    (coalesce, "HIGH_WATER", 4),
)


@contextlib.contextmanager
def turned(dice: random.Random) -> Generator[None]:
    """Turn some of them, at random, and turn them back at the end."""
    with contextlib.ExitStack() as stack:
        for module, name, small in _KNOBS:
            if dice.random() < 0.5:
                stack.callback(setattr, module, name, getattr(module, name))
                setattr(module, name, small)
        yield
