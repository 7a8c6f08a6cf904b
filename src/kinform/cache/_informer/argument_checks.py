"""Checks of the keywords of informers, made where the caller passes them."""

from __future__ import annotations

import inspect
from collections.abc import Collection, Mapping

from kinform.cache.processor.handlers import check_period
from kinform.cache.reflector_options import ReflectorOptions
from kinform.cache.store.indexes import check_indexers
from kinform.errors import UsageError

__all__ = ["check_keywords", "check_values"]


def check_keywords(given: Mapping[str, object], known: Collection[str], *, caller: str) -> None:
    """Refuse unknown keywords of an informer, and values that cannot be used.

    Raises:
        TypeError: a keyword is unknown.
        UsageError: a value cannot be used.
    """
    for name in given:
        # Before the unknown keywords: it is a keyword of the factory, and the mistake that is made
        # most easily.
        if name == "namespaces":
            raise UsageError(
                f"{caller}: an informer is for one namespace or for all; pass namespace=, or use "
                "SharedInformerFactory(client, namespaces=[...]).informers(...) for several"
            )
        if name not in known:
            raise TypeError(f"{caller} got an unexpected keyword argument {name!r}")
    check_values(given)


def check_values(given: Mapping[str, object]) -> None:
    """Refuse values that an informer cannot use; ``None`` counts as not given.

    Raises:
        UsageError: a value cannot be used.
    """
    name = given.get("name", "")
    if not isinstance(name, str):
        raise UsageError(f"name is of type {type(name).__name__}; expected text")
    if (period := given.get("resync_period")) is not None:
        check_period(period)
    for role in ("transform", "watch_error_handler", "queue"):
        _check_function(role, given.get(role))
    options = given.get("options")
    if options is not None and not isinstance(options, ReflectorOptions):
        raise UsageError(f"options is of type {type(options).__name__}; expected ReflectorOptions")
    storage = given.get("storage", "raw")
    if storage not in {"raw", "zstd"}:
        raise UsageError(f"storage is {storage!r}, expected 'raw' or 'zstd'")
    check_indexers(given.get("indexers"))


def _check_function(role: str, function: object) -> None:
    if function is None:
        return
    if not callable(function):
        raise UsageError(f"{role} is of type {type(function).__name__}; expected a function")
    if inspect.iscoroutinefunction(function):
        raise UsageError(f"{role} is an async function; expected one that cannot wait")
