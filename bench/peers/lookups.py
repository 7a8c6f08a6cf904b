"""The time of reads from a cache, measured within its process.

Keys and node names are made beforehand, in the form that the client's own workers have at hand, and
what the loop itself costs is taken off.
"""

from __future__ import annotations

import itertools
import statistics
import time
from collections.abc import Callable, Iterable, Sequence, Sized
from dataclasses import dataclass
from typing import Any, Final, TypeVar

__all__ = ["SELECTOR", "Lookups", "measure"]

SELECTOR: Final = ("tier", "backend")
"""The label and its value that pods are selected by."""
_LISTS: Final = 5

T = TypeVar("T")


@dataclass(frozen=True, slots=True, kw_only=True)
class Lookups:
    """The ways into a client's cache."""

    keys: Sequence[Any]
    """A key of every object, of the type that ``get`` takes."""
    nodes: Sequence[str]
    """The name of every node that has objects."""
    get: Callable[[Any], object]
    on_node: Callable[[str], Sized]
    """Returns a list of the objects on a node."""
    list: Callable[[], Sized]
    select: Callable[[], Sized]
    """Returns a list of the objects with the label `SELECTOR`."""


def measure(lookups: Lookups, rounds: int) -> dict[str, float]:
    """Return the figures that a peer answers with.

    Raises:
        LookupError: the cache is empty, or did not find what it holds.
    """
    if not lookups.keys or not lookups.nodes:
        raise LookupError("there is nothing in the cache that could be looked up")
    keys, nodes = _spread(lookups.keys, rounds), _spread(lookups.nodes, rounds)
    if any(lookups.get(key) is None for key in keys):
        raise LookupError("a key that was in the cache is not found there")
    plain = dict.fromkeys(lookups.keys, True)
    found = sum(len(lookups.on_node(node)) for node in nodes)
    return {
        "key_ns": _each(lookups.get, keys),
        "index_ns": _each(lookups.on_node, nodes),
        "index_objects": found / len(nodes),
        "list_ms": _once(lookups.list),
        "selector_ms": _once(lookups.select),
        "selector_objects": len(lookups.select()),
        "dict_get_ns": _each(plain.get, keys),
    }


def _spread(values: Sequence[T], rounds: int) -> list[T]:
    """Return ``rounds`` values, evenly spread over ``values``, each about equally often."""
    step = max(1, len(values) // rounds)
    return list(itertools.islice(itertools.cycle(values[::step]), rounds))


def _each(look: Callable[[Any], object], values: Iterable[Any]) -> float:
    return max(0.0, _loop(look, values) - _loop(None, values))


def _loop(look: Callable[[Any], object] | None, values: Iterable[Any]) -> float:
    """Return the nanoseconds that each turn took: the quickest of three rounds."""
    best, count = float("inf"), sum(1 for _ in values)
    for _ in range(3):
        began = time.perf_counter_ns()
        if look is None:
            for _value in values:
                pass
        else:
            for value in values:
                look(value)
        best = min(best, (time.perf_counter_ns() - began) / count)
    return best


def _once(look: Callable[[], object]) -> float:
    """Return the milliseconds that it took: the median of some rounds."""
    took = []
    for _ in range(_LISTS):
        began = time.perf_counter_ns()
        kept = look()
        took.append((time.perf_counter_ns() - began) / 1e6)
        del kept  # not within the time of the next
    return statistics.median(took)
