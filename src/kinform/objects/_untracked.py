"""`untrack`: exclude objects that cannot be part of a cycle from garbage collection.

A full collection visits every container and blocks the event loop meanwhile: for 65 ms with a
cache of 100,000 pods. It could free none of them that their reference counts do not.
"""

from __future__ import annotations

import ctypes
import sys
from collections.abc import Callable
from typing import Final

__all__ = ["untrack"]


def _found() -> Callable[[object], None]:
    if sys.implementation.name != "cpython":
        return lambda _: None
    function = ctypes.pythonapi.PyObject_GC_UnTrack
    function.argtypes = [ctypes.py_object]
    function.restype = None
    return function


untrack: Final = _found()
"""Exclude an object from garbage collection; it must hold no reference that leads back to it.

Only CPython has it (``PyObject_GC_UnTrack``); elsewhere nothing is done.
"""
