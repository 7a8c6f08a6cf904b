"""client-go's ``tools/cache``: list and watch sources, caches and informers.

Names are loaded when they are first used, as those of `kinform` itself.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from kinform.cache.listwatch import ListerWatcher, ListWatch

__all__ = ["ListWatch", "ListerWatcher"]

_HOMES: Final[dict[str, str]] = {
    "ListWatch": "kinform.cache.listwatch",
    "ListerWatcher": "kinform.cache.listwatch",
}

if not TYPE_CHECKING:

    def __getattr__(name: str) -> object:
        if name not in _HOMES:
            raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
        return getattr(import_module(_HOMES[name]), name)
