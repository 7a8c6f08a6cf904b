"""Lazy exports of packages (PEP 562): a name is imported from its module at first use.

Every package of kinform shows its public names this way, so that ``import kinform`` loads nothing
that the program does not use. Type checkers see the imports under ``if TYPE_CHECKING`` instead.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Collection, Mapping
from importlib import import_module

__all__ = ["lazy_exports"]


def lazy_exports(
    package: str, homes: Mapping[str, str], *, modules: Collection[str] = ()
) -> tuple[Callable[[str], object], Callable[[], list[str]]]:
    """Return the ``__getattr__`` and ``__dir__`` of ``package``.

    Assign them under ``if not TYPE_CHECKING``: a checker that saw ``__getattr__`` would accept
    every misspelt name.

    Args:
        package: the package's ``__name__``.
        homes: the module that defines each public name.
        modules: the submodules that are attributes of the package without being imported.
    """
    namespace = vars(sys.modules[package])

    def get(name: str) -> object:
        if name in homes:
            value: object = getattr(import_module(homes[name]), name)
        elif name in modules:
            value = import_module(f"{package}.{name}")
        else:
            raise AttributeError(f"module {package!r} has no attribute {name!r}")
        namespace[name] = value  # the next access does not come here
        return value

    def names() -> list[str]:
        return sorted({*namespace, *homes, *modules})

    return get, names
