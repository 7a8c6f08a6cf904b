"""Objects that no cycle can go through, kept out of the garbage collector's sight.

A full collection visits every container there is, and holds up the event loop meanwhile: for 65 ms
with a cache of 100,000 pods. It could never free one of them that their reference counts do not.
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
"""Let the collector pass over an object: one that holds nothing that could lead back to it.

CPython alone has it (``PyObject_GC_UnTrack``); elsewhere nothing is done.
"""
