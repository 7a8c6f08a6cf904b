"""What a generated module holds, before it is text."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import final

from kinform.meta import GroupVersionResource

__all__ = ["KindSpec", "Model", "ModelField", "Module", "TypeText", "in_order"]


@final
@dataclass(frozen=True, slots=True)
class TypeText:
    """An annotation, and whether it is the name of a Struct of which there is always one."""

    text: str
    is_struct: bool = False


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class ModelField:
    """One attribute of a model."""

    name: str
    wire: str
    type: str
    """The annotation, ``| None`` included."""
    default: str = "None"
    """The default, as an expression."""
    doc: str = ""


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class KindSpec:
    """What the server calls a model that has objects of its own."""

    gvr: GroupVersionResource
    kind: str
    namespaced: bool


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class Model:
    """One class."""

    name: str
    fields: Sequence[ModelField] = ()
    doc: str = ""
    kind: KindSpec | None = None
    methods: str = ""
    """Python text that follows the fields."""


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class Module:
    """One file of models."""

    name: str
    doc: str
    models: Sequence[Model]
    extra: str = ""
    """Python text that follows the models."""
    exports: Sequence[str] = ()
    """Names in ``__all__`` besides the models."""


def in_order(models: Iterable[Model]) -> list[Model]:
    """Return ``models`` by name, but each after those that its defaults are made of."""
    by_name = {model.name: model for model in models}
    found: dict[str, Model] = {}

    def visit(model: Model) -> None:
        for field in model.fields:
            needed = by_name.get(field.default.removesuffix("()"))
            if needed is not None and needed.name not in found and needed is not model:
                visit(needed)
        found.setdefault(model.name, model)

    for name in sorted(by_name):
        visit(by_name[name])
    return list(found.values())
