"""How things are called in Python: attributes, classes, modules."""

from __future__ import annotations

import keyword
import re
from collections.abc import Collection
from typing import Final

__all__ = ["attribute_name", "class_name", "module_name", "snake_case", "unique"]

_WORDS: Final = re.compile(
    r"[A-Z]+s(?=[A-Z]|$)"  # IPs, URLs
    r"|[A-Z]+(?=[A-Z][a-z])"  # the IP of IPAddress
    r"|[A-Z]?[a-z0-9]+"
    r"|[A-Z0-9]+"
)
_TAKEN: Final = frozenset(
    {"bool", "bytes", "clientset", "float", "int", "msgspec", "object", "str"}
)
"""Names that annotations need: an attribute of that name would hide them in its class."""


def snake_case(text: str) -> str:
    """Return a wire name in Python's spelling.

    >>> [snake_case(name) for name in ("podIP", "hostIPs", "runAsUser", "x-kubernetes-map-type")]
    ['pod_ip', 'host_ips', 'run_as_user', 'x_kubernetes_map_type']
    """
    return "_".join(word.lower() for word in _WORDS.findall(text))


def attribute_name(wire: str, taken: Collection[str] = ()) -> str:
    """Return the attribute for a wire name; an underscore at its end keeps it from colliding.

    >>> attribute_name("from"), attribute_name("$ref"), attribute_name("3d")
    ('from_', 'ref', 'field_3d')
    """
    name = snake_case(wire) or "field"
    if name[0].isdigit():
        name = f"field_{name}"
    while keyword.iskeyword(name) or name in _TAKEN or name in taken:
        name += "_"
    return name


def class_name(*parts: str) -> str:
    """Return the class for a path of names.

    >>> class_name("Widget", "spec", "podIP"), class_name("my-kind")
    ('WidgetSpecPodIP', 'MyKind')
    """
    words = [word for part in parts for word in re.findall(r"[A-Za-z0-9]+", part)]
    name = "".join(word[0].upper() + word[1:] for word in words) or "Model"
    return f"Model{name}" if name[0].isdigit() else name


def unique(name: str, taken: Collection[str]) -> str:
    """Return ``name``, with a number at its end if it is taken."""
    number, candidate = 2, name
    while candidate in taken:
        candidate, number = f"{name}{number}", number + 1
    return candidate


def module_name(group: str, version: str) -> str:
    """Return the module of a built-in API version.

    >>> module_name("", "v1"), module_name("rbac.authorization.k8s.io", "v1")
    ('core_v1', 'rbac_v1')
    """
    return f"{group.partition('.')[0] or 'core'}_{version}".replace("-", "_")
