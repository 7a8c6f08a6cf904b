"""Strict decoding: checks of an object's kind, unknown fields and types."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final, TypeAlias, cast, final

import msgspec

from kinform.apiserver.endpoints import status
from kinform.apiserver.endpoints.status import StatusError
from kinform.apiserver.scheme import field_errors, go_types, kind_registry, schemas, type_errors
from kinform.apiserver.scheme.go_types import Walk, Wrong, written
from kinform.apiserver.scheme.kind_registry import Kind
from kinform.apiserver.scheme.schemas import Schema
from kinform.apiserver.serializer.json_values import Json, JsonValue, as_list, text
from kinform.meta import GroupVersion, GroupVersionKind

__all__ = ["Checked", "Duplicate", "Patched", "check", "complain", "convert"]

_Steps: TypeAlias = tuple[str | int, ...]
_RETIRED: Final = {
    "extensions": {"v1beta1"},
    "apps": {"v1beta1", "v1beta2"},
    "autoscaling": {"v2beta1", "v2beta2"},
    "batch": {"v1beta1"},
    "policy": {"v1beta1"},
}
"""Versions that the server no longer serves but still knows."""
_MOVED: Final = {
    ("extensions", "DaemonSet"),
    ("extensions", "Deployment"),
    ("extensions", "Ingress"),
    ("extensions", "NetworkPolicy"),
    ("extensions", "ReplicaSet"),
}
"""Kinds that were in another group before."""
_OTHER_SCHEMES: Final = {"apiextensions.k8s.io", "apiregistration.k8s.io"}
"""Groups that a part of the server serves which knows no others."""
_SCHEME: Final = 'in scheme "pkg/runtime/scheme.go:111"'
_NO_KIND: Final = Kind(
    group="", version="", kind="", plural="", singular="", namespaced=False, verbs=()
)


@final
class Duplicate(str):
    """A complaint about a field that is there twice, which knows where that is."""

    __slots__ = ("path",)

    path: _Steps

    def __new__(cls, complaint: str, path: _Steps) -> Duplicate:
        """Make the complaint."""
        made = super().__new__(cls, complaint)
        made.path = path
        return made


@final
class Checked(msgspec.Struct, frozen=True):
    """The result of checking an object that can be accepted."""

    complaints: list[str]
    """Unknown and duplicate fields, in the server's order: ``unknown field "spec.foo"``."""


@final
class Patched(msgspec.Struct, frozen=True):
    """The result of a patch, or a strategic merge patch itself, as a refusal shows it."""

    raw: bytes
    """As JSON, because `check` changes the decoded object."""
    is_strategic: bool = False
    is_custom: bool = False
    written: str = ""
    """The text to show; empty: it is made from ``raw``."""

    @property
    def text(self) -> str:
        """Return the text that kube-apiserver shows."""
        if self.written:
            return self.written
        value: JsonValue = msgspec.json.decode(self.raw)
        if self.is_strategic:
            return type_errors.go_format(value)
        if not isinstance(value, dict):
            return self.raw.decode()
        if self.is_custom:
            return msgspec.json.encode(value, order="sorted").decode()
        # What the patch has gone through is a map; below, fields are as their structs have them.
        obj = cast("Json", value)
        return msgspec.json.encode({name: obj[name] for name in sorted(obj)}).decode()

    def refusal(self, why: str) -> StatusError:
        """Return the refusal of the patch."""
        return status.invalid(_NO_KIND, "", [field_errors.invalid("patch", self.text, why)])


def check(
    kind: Kind,
    schema: Schema,
    obj: Json,
    *,
    duplicates: Sequence[str] = (),
    patched: Patched | None = None,
) -> Checked:
    """Hold an object against its kind and make it what the server would have read, in place.

    Of a built-in kind unknown fields and nulls are dropped, times and quantities get their
    canonical form, and ``apiVersion`` and ``kind`` are filled in. Of a custom kind that is so of
    the metadata; the rest is only inspected. ``duplicates`` are those of `decoding.decode`;
    ``patched`` says that the object is the result of a patch.

    Raises:
        StatusError: 400 for another kind or a value of a wrong type; 422 if ``patched``.
    """
    try:
        if kind.custom is None:
            is_strategic = patched is not None and patched.is_strategic
            _check_identity(obj, is_strategic=is_strategic)
            if patched is not None and not is_strategic and not obj.get("apiVersion"):
                return Checked(_unversioned(kind, obj))
            _identify(kind, obj, is_strategic=is_strategic)
            return Checked(_builtin(schema, obj, duplicates, is_strategic=is_strategic))
        _identify_custom(kind, obj, is_patched=patched is not None)
        unknown = _custom(kind, schema, obj)
        return Checked([*duplicates, *unknown])
    except Wrong as exc:
        if patched is not None:
            raise patched.refusal(str(exc)) from exc
        raise _refused(kind, obj, str(exc)) from exc


def convert(kind: Kind, schema: Schema, obj: Json) -> None:
    """Make what an apply merged what the server keeps of it, in place.

    The merge made sure that its fields are known and roughly of their types.

    Raises:
        StatusError: 500 for a value that is none of its type.
    """
    try:
        if kind.custom is None:
            walk = Walk(is_strategic=True)
            go_types.shape_of(schema).read(obj, None, walk)
            if walk.wrong is not None:
                raise walk.wrong
        else:
            _metadata(go_types.shape_of(schemas.builtin(schemas.OBJECT_META)), obj, ())
    except Wrong as exc:
        called = f"{kind.group}/{kind.version}, Kind={kind.kind}"
        name = f"{text(obj, 'metadata', 'namespace')}/{text(obj, 'metadata', 'name')}; {called}"
        what = f"unable to convert unstructured object to {called}"
        message = f"failed to convert new object ({name}) to proper version: {what}: {exc}"
        raise StatusError(500, "", message) from exc


def complain(
    level: str, complaints: Sequence[str], kind: Kind, *, patched: Patched | None = None
) -> list[str]:
    """Return what is to be warned of, at a level of the ``fieldValidation`` parameter.

    `kinform.apiserver.endpoints.list_options` has seen to it that there is such a level.

    Raises:
        StatusError: the level is ``Strict`` and there is something to complain about.
    """
    if not complaints or level == "Ignore":
        return []
    if level != "Strict":
        return [str(one) for one in complaints]
    # Complaints about YAML, which name lines, are one error of the YAML decoder's.
    lines = [one for one in complaints if one.startswith("line ")]
    others = [one for one in complaints if not one.startswith("line ")]
    first = ["yaml: unmarshal errors:\n  " + "\n  ".join(lines)] if lines else []
    why = "strict decoding error: " + ", ".join(first + others)
    if patched is not None:
        raise patched.refusal(why)
    raise status.bad_request(_unhandled(kind, why, given=kind.kind, version=kind.version))


def _unhandled(kind: Kind, why: str, *, given: str, version: str) -> str:
    return f'{given} in version "{version}" cannot be handled as a {kind.kind}: {why}'


def _refused(kind: Kind, obj: Json, why: str) -> StatusError:
    given = text(obj, "kind") or kind.kind
    version = text(obj, "apiVersion").rpartition("/")[2] or kind.version
    return status.bad_request(_unhandled(kind, why, given=given, version=version))


def _check_identity(obj: Json, *, is_strategic: bool) -> None:
    """Refuse what a patch makes of ``apiVersion`` and ``kind`` if it cannot be a version or a kind.

    A version without a group may have a slash in front, as for Go.
    """
    for name in ("apiVersion", "kind"):
        value = obj.get(name)
        if value is None or isinstance(value, str):
            continue
        if is_strategic:
            raise Wrong("unrecognized type: string")
        given = type_errors.json_kind(value)
        raise Wrong(
            "couldn't get version/kind; json parse error: json: cannot unmarshal "
            f"{given} into Go struct field .{name} of type string"
        )
    version: str = obj.get("apiVersion") or ""
    if version.count("/") > 1:
        raise Wrong(f"unexpected GroupVersion string: {version}")
    if version.startswith("/"):
        obj["apiVersion"] = version[1:]
    elif version.endswith("/"):
        shown = msgspec.json.encode(obj).decode()
        raise Wrong(f"Object 'apiVersion' is missing in '{shown}'")


def _identify(kind: Kind, obj: Json, *, is_strategic: bool) -> None:
    """Fill in what an object says it is, or make sure that it is that."""
    if is_strategic:
        # A strategic merge cannot change them: the server converts to the type it expects.
        obj["kind"], obj["apiVersion"] = kind.kind, kind.api_version
    given = obj.get("kind") or kind.kind
    api_version = obj.get("apiVersion") or kind.api_version
    if given != kind.kind or api_version != kind.api_version:
        _refuse_other(kind, given, api_version)
    obj["kind"], obj["apiVersion"] = given, api_version


def _unversioned(kind: Kind, obj: Json) -> list[str]:
    """Read what a patch left without a version: the server finds no field that it knows in it."""
    unknown = sorted(obj.keys() - {"kind", "apiVersion"})
    obj.clear()
    obj["kind"], obj["apiVersion"] = kind.kind, kind.api_version
    return [_complaint(name) for name in unknown]


def _builtin(
    schema: Schema, obj: Json, duplicates: Sequence[str], *, is_strategic: bool
) -> list[str]:
    shape = go_types.shape_of(schema)
    order = _positions(obj) if duplicates else {}
    walk = Walk(is_strategic=is_strategic)
    shape.read(obj, None, walk)
    if walk.wrong is not None:
        raise walk.wrong
    if not walk.unknown and not duplicates:
        return []
    found = [(go_types.steps(path), _unknown(go_types.steps(path))) for path in walk.unknown]
    first: list[str] = []
    for one in duplicates:
        if not isinstance(one, Duplicate):
            first.append(one)
        elif go_types.is_read(shape, one.path):
            found.append((one.path, one))
    found.sort(key=lambda entry: order.get(entry[0], 0))
    return first + [complaint for _, complaint in found]


def _refuse_other(kind: Kind, given: str, api_version: str) -> None:
    """Refuse an object that says it is of another kind or version."""
    group_version = GroupVersion.parse(api_version)
    gvk = GroupVersionKind(group_version.group, group_version.version, given)
    other = _registered(kind, gvk)
    is_retired = gvk.version in _RETIRED.get(gvk.group, ()) and (
        gvk.group == kind.group or (gvk.group, kind.kind) in _MOVED
    )
    if given == kind.kind and (is_retired or (other and other.storage == kind.storage)):
        raise _mismatched(kind, api_version)
    if other is None:
        raise Wrong(f'no kind "{given}" is registered for version "{api_version}" {_SCHEME}')
    internal = kind.group.partition(".")[0] or "core"
    types = f"converting ({gvk.version}.{given}) to ({internal}.{kind.kind})"
    raise Wrong(f"{types}: unknown conversion")


def _registered(kind: Kind, gvk: GroupVersionKind) -> Kind | None:
    """Return the kind, or the kind it is a list of, if the part that serves ``kind`` knows it."""
    if gvk.group != kind.group and {gvk.group, kind.group} & _OTHER_SCHEMES:
        return None
    if gvk.kind == "Status" and not gvk.group:
        return _NO_KIND
    known = kind_registry.builtin().by_gvk
    item = GroupVersionKind(gvk.group, gvk.version, gvk.kind.removesuffix("List"))
    return known(gvk) or known(item)


def _identify_custom(kind: Kind, obj: Json, *, is_patched: bool) -> None:
    """Make sure that an object says it is of the custom kind."""
    name = text(obj, "metadata", "name")
    api_version = text(obj, "apiVersion")
    if api_version != kind.api_version:
        if is_patched:
            must = field_errors.invalid("apiVersion", api_version, f"must be {kind.api_version}")
            raise status.invalid(kind, name, [must])
        raise _mismatched(kind, api_version)
    given = text(obj, "kind")
    if given != kind.kind:
        wrong = field_errors.invalid("kind", given, f"must be {kind.kind}")
        raise status.invalid(msgspec.structs.replace(kind, kind=given), name, [wrong])


def _mismatched(kind: Kind, api_version: str) -> StatusError:
    expected = f"the expected API version ({kind.api_version})"
    message = f"the API version in the data ({api_version}) does not match {expected}"
    return status.bad_request(message)


def _custom(kind: Kind, schema: Schema, obj: Json) -> list[str]:
    meta = go_types.shape_of(schemas.builtin(schemas.OBJECT_META))
    complaints = _metadata(meta, obj, ())
    if kind.custom is not None and kind.custom.preserves_unknown_fields:
        return complaints
    survey = _Survey()
    survey.look(schema, obj, ())
    complaints += [_complaint(path) for path in sorted(survey.unknown)]
    for path, resource in survey.embedded:
        complaints += _metadata(meta, resource, path)
    return complaints


def _metadata(meta: go_types.GoType, obj: Json, path: _Steps) -> list[str]:
    """Read the metadata of a custom object, or of one in it, as what it is."""
    value = obj.get("metadata")
    if value is None:
        return []
    shown = msgspec.json.encode(value).decode() if path else ""
    walk = Walk()
    try:
        meta.read(value, None, walk)
        if walk.wrong is not None:
            raise walk.wrong
    except Wrong as exc:
        if path:
            raise Wrong(f"{written(path)}.metadata: Invalid value: {shown}: {exc}") from exc
        raise
    return [_unknown((*path, "metadata", *go_types.steps(one))) for one in walk.unknown]


@final
class _Survey:
    """The unknown fields of a custom object, and the objects embedded in it."""

    def __init__(self) -> None:
        self.unknown: Final[list[str]] = []
        self.embedded: Final[list[tuple[_Steps, Json]]] = []

    def look(self, schema: Schema, value: JsonValue, path: _Steps) -> None:
        """Look at a value and all that is in it."""
        if isinstance(value, list):
            if schema.items is not None:
                for index, item in enumerate(as_list(cast("object", value))):
                    self.look(schema.items, item, (*path, index))
        elif isinstance(value, dict):
            self._look_in(schema, cast("Json", value), path)

    def _look_in(self, schema: Schema, obj: Json, path: _Steps) -> None:
        is_resource = schema.is_embedded or not path
        if is_resource and path:
            self.embedded.append((path, obj))
        for name, entry in obj.items():
            if name == "metadata" and is_resource:
                continue
            below = schema.properties.get(name) or schema.values
            if below is not None:
                self.look(below, entry, (*path, name))
            elif not schema.preserves_unknown:
                self.unknown.append(written((*path, name)))


def _unknown(path: _Steps) -> str:
    return _complaint(written(path))


def _complaint(path: str) -> str:
    return f"unknown field {msgspec.json.encode(path).decode()}"


def _positions(value: JsonValue) -> dict[_Steps, int]:
    """Return where each field is in the order of the document."""
    positions: dict[_Steps, int] = {}
    waiting: list[tuple[_Steps, JsonValue]] = [((), value)]
    while waiting:
        path, here = waiting.pop()
        positions[path] = len(positions)
        entries: list[tuple[str | int, JsonValue]] = []
        if isinstance(here, dict):
            entries = list(cast("Json", here).items())
        elif isinstance(here, list):
            entries = list(enumerate(as_list(cast("object", here))))
        waiting += [((*path, step), entry) for step, entry in reversed(entries)]
    return positions
