"""Writes a module as text, formatted as ruff (or black) at 100 columns would leave it."""

from __future__ import annotations

import json
import re
import textwrap
from collections.abc import Iterator, Mapping, Sequence
from collections.abc import Set as AbstractSet
from typing import Final

from kinform.clientset.codegen.model import KindSpec, Model, ModelField, Module

__all__ = ["HOMES", "emit", "exports", "fitted", "imports", "text_of"]

_WIDTH: Final = 100
_OPTIONS: Final = "WireModel, frozen=True, kw_only=True, omit_defaults=True, gc=False"
HOMES: Final[Mapping[str, Sequence[str]]] = {
    "collections.abc": ("Mapping", "Sequence"),
    "typing": ("TYPE_CHECKING", "ClassVar", "final"),
    "kinform": ("clientset",),
    "kinform.clientset.actions": ("Binds", "Evicts", "IssuesTokens"),
    "kinform.clientset.typed": ("GroupClient", "HasParts", "InNamespaces", "Objects", "Part"),
    "kinform.clientset.wire": ("JSON", "IntOrString", "Quantity", "Time", "WireModel"),
    "kinform.meta": ("GroupVersionKind", "GroupVersionResource"),
    "kinform.verbs.reading": ("Gets", "Lists", "ReadsLogs", "Watches"),
    "kinform.verbs.writing": ("Changes", "Creates", "Deletes", "DeletesCollections"),
}
"""Where the names come from that generated modules use."""
_TEXTS: Final = re.compile(r'"""(?:.|\n)*?"""|"[^"\n]*"|from .* import .*')
_NAME: Final = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")


def emit(module: Module) -> str:
    """Return the source of ``module``."""
    body = "".join(f"\n\n{_model(model)}" for model in module.models) + module.extra
    names = sorted({*(model.name for model in module.models), *module.exports})
    head = [
        text_of(module.doc, 0),
        "",
        "from __future__ import annotations",
        "",
        *imports(body),
        "",
        *exports(names),
    ]
    return "\n".join(head) + "\n" + body


def imports(body: str, *, clientset: Sequence[str] = ()) -> Iterator[str]:
    """Yield the import lines that ``body`` needs, in isort's order.

    ``clientset`` are modules of `kinform.clientset` that it knows by their names alone.
    """
    used = set(_NAME.findall(_TEXTS.sub("", body)))
    standard = [
        *(["import sys"] if "sys" in used else []),
        *_from(used, "collections.abc", "typing"),
    ]
    if standard:
        yield from (*standard, "")
    if "msgspec" in used:
        yield from ("import msgspec", "")
    yield from _from(used, "kinform")
    if clientset:
        yield f"from kinform.clientset import {', '.join(sorted(clientset))}"
    yield from _from(used, *(home for home in HOMES if home.startswith("kinform.")))


def _from(used: AbstractSet[str], *homes: str) -> Iterator[str]:
    for home in homes:
        if names := sorted(used & set(HOMES[home]), key=_isort_key):
            yield from fitted(f"from {home} import ", ", ".join(names), "")


def _isort_key(name: str) -> tuple[bool, str]:
    return (not name.isupper(), name)  # constants before classes


def exports(names: Sequence[str]) -> list[str]:
    """Return the lines of ``__all__``."""
    listed = ", ".join(f'"{name}"' for name in names)
    if len(line := f"__all__ = [{listed}]") <= _WIDTH:
        return [line]
    return ["__all__ = [", *(f'    "{name}",' for name in names), "]"]


def _model(model: Model) -> str:
    lines = [*fitted(f"class {model.name}(", _OPTIONS, "):")]
    if model.doc:
        lines.append(text_of(model.doc, 4))
    if model.kind is not None:
        lines += ["", *_kind(model.kind)]
    if model.fields and (model.doc or model.kind):
        lines.append("")
    for field in model.fields:
        lines += _field(field)
    if len(lines) == 1:
        lines.append("    pass")
    return "\n".join(lines) + "\n" + model.methods


def _kind(kind: KindSpec) -> Iterator[str]:
    gvr = kind.gvr
    yield from _assigned("    __resource__: ClassVar[str] =", _quoted(str(gvr)))
    quoted = ", ".join(map(_quoted, (gvr.group, gvr.version, kind.kind)))
    yield from fitted("    __gvk__: ClassVar[GroupVersionKind] = GroupVersionKind(", quoted, ")")
    quoted = ", ".join(map(_quoted, gvr))
    opening = "    __gvr__: ClassVar[GroupVersionResource] = GroupVersionResource("
    yield from fitted(opening, quoted, ")")
    yield f"    __namespaced__: ClassVar[bool] = {kind.namespaced}"


def _field(field: ModelField) -> Iterator[str]:
    left = f"    {field.name}: {field.type} ="
    value = field.default
    if field.name != field.wire:
        value = f"msgspec.field(default={field.default}, name={_quoted(field.wire)})"
    opening, arguments = value.split("(", 1) if field.name != field.wire else ("", "")
    if len(f"{left} {value}") <= _WIDTH:
        yield f"{left} {value}"
    elif arguments and len(f"{left} {opening}(") <= _WIDTH:
        yield from fitted(f"{left} {opening}(", arguments[:-1], ")")
    elif len(f"{left} (") <= _WIDTH and value != "None":
        yield from _assigned(left, value)
    else:
        yield from (f"    {field.name}: (", *_union(field.type), f"    ) = {value}")
    if field.doc:
        yield text_of(field.doc, 4)


def _union(annotation: str) -> Iterator[str]:
    """Yield an annotation that has lines to itself; ``| None`` has its own if it must."""
    head, bar, none = annotation.rpartition(" | ")
    if len(annotation) + 8 <= _WIDTH or not bar:
        yield f"        {annotation}"
    else:
        yield from (f"        {head}", f"        | {none}")


def _assigned(left: str, value: str) -> Iterator[str]:
    """Yield an assignment, in parentheses where it is too long for a line."""
    if len(left) + 1 + len(value) <= _WIDTH:
        yield f"{left} {value}"
    else:
        yield from (f"{left} (", f"        {value}", "    )")


def fitted(opening: str, inside: str, closing: str) -> Iterator[str]:
    """Yield one line, or where that is too long the three that a formatter makes of it."""
    if len(opening + inside + closing) <= _WIDTH:
        yield opening + inside + closing
        return
    indent = opening[: len(opening) - len(opening.lstrip())]
    yield opening
    if len(indent) + 4 + len(inside) <= _WIDTH:
        yield f"{indent}    {inside}"
    else:
        yield from (f"{indent}    {part}," for part in inside.split(", "))
    yield indent + closing


def _quoted(text: str) -> str:
    return json.dumps(text, ensure_ascii=False)


def text_of(doc: str, indent: int) -> str:
    """Return ``doc`` as a docstring, its lines wrapped."""
    pad = " " * indent
    clean = doc.replace("\\", "\\\\").replace('"""', "'''").replace("\t", "    ")
    clean = "".join(char if char.isprintable() or char == "\n" else " " for char in clean)
    first, _, others = clean.strip().partition("\n")
    lines = [
        part.rstrip()
        for line in [first, *textwrap.dedent(others).split("\n")]
        for part in _wrapped(line.rstrip(), _WIDTH - indent - 6)
    ]
    lines = _without_double_blanks(lines)
    while not lines[-1] and len(lines) > 1:
        lines.pop()
    if lines[0].startswith('"'):
        lines[0] = f" {lines[0]}"  # a formatter would put it there
    if len(lines) == 1:
        end = " " if lines[0].endswith('"') else ""  # a formatter would put it there, too
        return f'{pad}"""{lines[0]}{end}"""'
    rest = [f"{pad}{line}" if line else "" for line in lines[1:]]
    return "\n".join([f'{pad}"""{lines[0]}', *rest, f'{pad}"""'])


def _wrapped(line: str, width: int) -> list[str]:
    indent = line[: len(line) - len(line.lstrip())]
    return textwrap.wrap(
        line, width, subsequent_indent=indent, break_long_words=False, break_on_hyphens=False
    ) or [""]


def _without_double_blanks(lines: Sequence[str]) -> list[str]:
    return [line for i, line in enumerate(lines) if line or (i and lines[i - 1])] or [""]
