"""client-go's ``tools/cache``: list and watch sources, caches and informers.

Names are loaded when they are first used, as those of `kinform` itself.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from kinform.cache.indexer import Indexer
    from kinform.cache.indexes import (
        NAMESPACE_INDEX,
        OWNER_INDEX,
        IndexFunctionError,
        UnknownIndexError,
    )
    from kinform.cache.lister import Lister, NamespaceLister
    from kinform.cache.listwatch import ListerWatcher, ListWatch
    from kinform.cache.store import Store
    from kinform.cache.thread_safe_store import ThreadSafeStore
    from kinform.cache.transitions import Replacement, Transition

__all__ = [
    "NAMESPACE_INDEX",
    "OWNER_INDEX",
    "IndexFunctionError",
    "Indexer",
    "ListWatch",
    "Lister",
    "ListerWatcher",
    "NamespaceLister",
    "Replacement",
    "Store",
    "ThreadSafeStore",
    "Transition",
    "UnknownIndexError",
]

_HOMES: Final[dict[str, str]] = {
    "NAMESPACE_INDEX": "kinform.cache.indexes",
    "OWNER_INDEX": "kinform.cache.indexes",
    "IndexFunctionError": "kinform.cache.indexes",
    "Indexer": "kinform.cache.indexer",
    "ListWatch": "kinform.cache.listwatch",
    "Lister": "kinform.cache.lister",
    "ListerWatcher": "kinform.cache.listwatch",
    "NamespaceLister": "kinform.cache.lister",
    "Replacement": "kinform.cache.transitions",
    "Store": "kinform.cache.store",
    "ThreadSafeStore": "kinform.cache.thread_safe_store",
    "Transition": "kinform.cache.transitions",
    "UnknownIndexError": "kinform.cache.indexes",
}

if not TYPE_CHECKING:

    def __getattr__(name: str) -> object:
        if name not in _HOMES:
            raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
        return getattr(import_module(_HOMES[name]), name)
