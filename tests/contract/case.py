"""The contract's cases, and their registry."""

from __future__ import annotations

import importlib
import pkgutil
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from functools import cache
from typing import Any, Final, TypeAlias

from tests.contract import cases
from tests.contract.session import Session

__all__ = ["STRICT_AREAS", "Case", "all_cases", "case", "each"]

Run: TypeAlias = Callable[[Session], Awaitable[None]]

STRICT_AREAS: Final = frozenset({"list", "watch", "version", "paging"})
"""The areas in which no difference may be listed."""


@dataclass(frozen=True)
class Case:
    """A conversation with a server, and its title."""

    area: str
    title: str
    run: Run
    compacts: bool
    """It compacts the server's history: it runs alone, after the others."""

    @property
    def id(self) -> str:
        """The area and the name of the function."""
        return f"{self.area}/{self.run.__name__}"


_registered: Final[dict[str, Case]] = {}


def case(area: str, title: str, *, compacts: bool = False) -> Callable[[Run], Run]:
    """Register an async function of one `Session` as a case of ``area``."""

    def register(run: Run) -> Run:
        made = Case(area, title, run, compacts)
        if made.id in _registered:
            raise ValueError(f"two cases are called {made.id}")
        _registered[made.id] = made
        return run

    return register


def each(
    area: str, title: str, variants: dict[str, dict[str, Any]], *, compacts: bool = False
) -> Callable[[Callable[..., Awaitable[None]]], None]:
    """Register a function once per variant: ``{name: its keyword arguments}``.

    The cases are called after the function and the variant: ``list/unset_with_limit``.
    """

    def register(run: Callable[..., Awaitable[None]]) -> None:
        for name, arguments in variants.items():
            case(area, f"{title}: {name.replace('_', ' ')}", compacts=compacts)(
                _bound(run, f"{run.__name__}_{name}", arguments)
            )

    return register


def _bound(run: Callable[..., Awaitable[None]], name: str, arguments: dict[str, Any]) -> Run:
    async def bound(session: Session) -> None:
        await run(session, **arguments)

    bound.__name__ = name
    return bound


@cache
def all_cases() -> dict[str, Case]:
    """Import every module of ``cases/`` and return what they registered, by id and sorted."""
    for module in pkgutil.iter_modules(cases.__path__):
        importlib.import_module(f"{cases.__name__}.{module.name}")
    return dict(sorted(_registered.items()))
