"""A workload: the objects that the writes of a schedule create and change."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Final, final

import msgspec

from kinform.apiserver.scheme.kind_registry import Kind
from kinform.apiserver.serializer.json_values import Json, as_dict, at
from kinform.errors import UsageError
from kinform.meta import GroupVersionResource

__all__ = ["CONFIG_MAPS", "Draft", "Workload", "body_of"]

_TRICKY: Final = " é\u0085\u2028😀"
"""Behind every text: characters of two, three and four bytes, of which two end lines elsewhere."""


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class Draft:
    """The choices of a schedule for an object that it is about to write."""

    namespace: str
    """``""`` for a kind without namespaces."""
    name: str
    labels: Mapping[str, str]
    """A label ``team``, which is ``red`` or ``blue``."""
    value: int
    """A number, another one at each write."""

    @property
    def key(self) -> str:
        """``namespace/name``, or the name alone."""
        return f"{self.namespace}/{self.name}" if self.namespace else self.name

    @property
    def text(self) -> str:
        """The value as a text, followed by characters that are hard to encode."""
        return f"{self.value}{_TRICKY}"


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class Workload:
    """The objects that a schedule creates, changes and deletes, and their contents.

    An update gives an object what ``make`` returns. What others have put beside that stays: other
    top-level members, such as the status, and in its metadata labels, annotations and finalizers.

    Args:
        resource: Of which kind they are, such as ``"example.com/v1/widgets"``. Of a kind without
            namespaces they are called ``blue-n1`` and the like.
        make: Returns an object, for the same draft the same one. Its kind and its name need not be
            in it; if they are, they must be those asked for. The draft's labels are added.
        value_at: The path of a text or number in it that distinguishes one write from another, for
            example ``("spec", "size")``. The history of a `World` has it as ``value``.
        manifests: Objects to create first: the CustomResourceDefinition, for example.

    Raises:
        UsageError: ``resource`` cannot be read.

    Example:
        >>> Workload(
        ...     resource="apps/v1/deployments",
        ...     make=lambda draft: {"spec": {"replicas": draft.value}},
        ...     value_at=("spec", "replicas"),
        ... ).resource
        'apps/v1/deployments'
    """

    resource: str
    make: Callable[[Draft], Mapping[str, object]]
    value_at: Sequence[str]
    manifests: Sequence[Mapping[str, object]] = ()

    def __post_init__(self) -> None:
        """Check that the workload names a resource."""
        try:
            GroupVersionResource.parse(self.resource)
        except ValueError as exc:
            raise UsageError(str(exc)) from exc


def body_of(workload: Workload, draft: Draft, kind: Kind) -> Json:
    """Return the object of a draft, whole.

    Raises:
        UsageError: it cannot be made, is another one, or has no value.
    """
    made = _made(workload, draft)
    called = f"the workload's make() returned for {draft.key}"
    metadata = as_dict(made.get("metadata"))
    of_kind = {"apiVersion": kind.api_version, "kind": kind.kind}
    named = {"name": draft.name}
    if draft.namespace:
        named = {"namespace": draft.namespace, **named}
    for said, meant in ((made, of_kind), (metadata, named)):
        for field, value in meant.items():
            if said.get(field, value) != value:
                raise UsageError(f"{called} {field} {said[field]!r}, not {value!r}")
    if not isinstance(at(made, *workload.value_at), str | int | float):
        raise UsageError(f"{called} no text or number at {'.'.join(workload.value_at)}")
    labels = {**as_dict(metadata.get("labels")), **draft.labels}
    return {**made, **of_kind, "metadata": {**metadata, **named, "labels": labels}}


def _made(workload: Workload, draft: Draft) -> Json:
    """Return the user's object as JSON values."""
    try:
        return msgspec.json.decode(msgspec.json.encode(workload.make(draft)), type=Json)
    except Exception as exc:  # the user's function may raise anything
        failure = f"make() failed for {draft.key}: {type(exc).__name__}: {exc}"
        raise UsageError(f"the workload's {failure}") from exc


CONFIG_MAPS: Final = Workload(
    resource="v1/configmaps",
    make=lambda draft: {"data": {"value": draft.text}},
    value_at=("data", "value"),
)
"""The default workload of schedules."""
