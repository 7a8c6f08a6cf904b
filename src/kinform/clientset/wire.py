"""The types of values that stay as they are on the wire.

`kinform.clientset.quantity` and `kinform.clientset.times` read and write them.
"""

from __future__ import annotations

from typing import TypeAlias

__all__ = ["JSON", "IntOrString", "Quantity", "Time"]

Quantity: TypeAlias = str | int | float
"""An amount such as ``"500m"`` or ``"1Gi"``. The server writes text; manifests may hold numbers."""

IntOrString: TypeAlias = int | str
"""A number or a text, such as a port or its name, a count or a percentage."""

Time: TypeAlias = str
"""A moment in RFC 3339: ``"2026-01-02T03:04:05Z"``, a MicroTime with six more digits."""

JSON: TypeAlias = object
"""Anything that JSON can say: dicts, lists, text, numbers, booleans, None."""
