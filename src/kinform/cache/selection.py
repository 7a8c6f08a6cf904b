"""Selection: the objects of an informer. Equal selections can share one informer."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from typing import Final, Generic, Protocol, TypeAlias, TypeVar, Unpack, cast, final

from kinform.cache.shared_informer import InformerOptions, SharedInformer
from kinform.errors import UsageError
from kinform.meta import GroupVersionResource
from kinform.objects.object import Object
from kinform.resource import Resource, model_decoder, resource_of
from kinform.selectors import FieldSelectorLike, LabelSelectorLike, field_selector, label_selector

__all__ = [
    "InformerSource",
    "Kind",
    "Selection",
    "check_namespace",
    "check_namespaces",
    "select",
]

T = TypeVar("T")

# A name that is checked here cannot change the path of a request: "." and "/" are refused.
_DNS_LABEL: Final = re.compile(r"[a-z0-9]([-a-z0-9]{0,61}[a-z0-9])?")
_PART: Final = r"[A-Za-z0-9]([-.A-Za-z0-9]*[A-Za-z0-9])?"
_KIND_NAME: Final = re.compile(rf"{_PART}(/{_PART}){{0,2}}")

Kind: TypeAlias = str | GroupVersionResource | type[T] | Resource[T]
"""Names a kind: ``"v1/pods"``, a model with a ``__resource__``, or a `Resource`."""


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class Selection(Generic[T]):
    """One kind of object, read as ``model``, in one namespace or all, by labels and fields."""

    resource: str | Resource[T] = field(compare=False)
    """The kind as it was given; not compared, ``name`` is."""
    name: str
    """The kind's name, such as ``v1/pods``."""
    model: type[T]
    decode: Callable[[bytes], T] | None
    """The decode function, where it is not the default one of the model."""
    namespace: str
    label_selector: str
    field_selector: str
    metadata_only: bool

    def __str__(self) -> str:
        place = f" in {self.namespace}" if self.namespace else ""
        selectors = " ".join(filter(None, (self.label_selector, self.field_selector)))
        return f"{self.name}{place}{' with ' + selectors if selectors else ''}"


def select(
    resource: Kind[T],
    *,
    model: type[T] | None = None,
    namespace: str | None = "",
    labels: LabelSelectorLike = None,
    fields: FieldSelectorLike = None,
    metadata_only: bool = False,
) -> Selection[T]:
    """Return the selection for these arguments, in its normal form.

    No namespace, ``""`` or ``None``, means all of them.

    Raises:
        SelectorError: a selector cannot be parsed.
        UsageError: the arguments contradict each other, or one is not a valid name.
    """
    if metadata_only and (model is not None or isinstance(resource, type | Resource)):
        raise UsageError("metadata_only gives Objects: name the kind, and leave model out")
    kind, chosen = _kind(resource, model)
    return Selection(
        resource=kind,
        name=str(kind),
        model=chosen,
        decode=None if isinstance(kind, str) else _unusual_decode(kind),
        namespace=check_namespace(namespace),
        label_selector=label_selector(labels),
        field_selector=field_selector(fields),
        metadata_only=metadata_only,
    )


def check_namespace(namespace: object) -> str:
    """Return ``namespace``; ``""``, which means all of them, for ``None``.

    Raises:
        UsageError: it is not a valid name of a namespace.
    """
    if namespace is None or namespace == "":
        return ""
    if not isinstance(namespace, str):
        raise UsageError(
            f"a namespace is a text, not {type(namespace).__name__}; for several there is "
            "SharedInformerFactory(client, namespaces=[...])"
        )
    if not _DNS_LABEL.fullmatch(namespace):
        raise UsageError(
            f"no namespace can be called {namespace!r}: expected lowercase letters, digits and "
            "dashes, or the empty text for all namespaces"
        )
    return namespace


def check_namespaces(namespace: object, namespaces: object) -> tuple[str, ...]:
    """Return the namespaces of these two keywords, without duplicates; ``("",)``: all of them.

    ``namespace`` is one, ``namespaces`` one or several. ``None`` counts as not given.

    Raises:
        UsageError: both are given, a name is not valid, or ``""`` is one of several.
    """
    if namespaces is None or namespaces == "":
        return (check_namespace(namespace),)
    if namespace is not None:
        raise UsageError("give namespace= for one or namespaces= for several, not both")
    if isinstance(namespaces, str):
        return (check_namespace(namespaces),)
    if not isinstance(namespaces, Iterable):
        raise UsageError(
            f"namespaces is of type {type(namespaces).__name__}; expected texts, or one text"
        )
    given = list(cast("Iterable[object]", namespaces))
    # An empty list is refused: taken as "all" it would read more than the caller has named, taken
    # as "none" it would be an informer that never has objects.
    if not given:
        raise UsageError("namespaces is empty; expected a namespace, or '' for all of them")
    # Without duplicates, because each namespace has a watch and a cache of its own.
    found = tuple(dict.fromkeys(check_namespace(one) for one in given))
    if "" in found and len(given) > 1:
        raise UsageError("the empty namespace means all of them, so it stands alone")
    return found


class InformerSource(Protocol):
    """Makes informers: a `Client`, or a test double."""

    def informer_of(
        self, selection: Selection[T], **options: Unpack[InformerOptions[T]]
    ) -> SharedInformer[T]:
        """Return a new informer of these objects."""
        ...


def _unusual_decode(resource: Resource[T]) -> Callable[[bytes], T] | None:
    # Compared, so that a `Resource` and its name give equal selections, and share one informer.
    usual = model_decoder(resource.model)
    return None if resource.decode == usual else resource.decode


def _kind(resource: Kind[T], model: type[T] | None) -> tuple[str | Resource[T], type[T]]:
    if isinstance(resource, Resource):
        if model is not None:
            raise UsageError("a Resource has its model; use resource.with_model(...)")
        return resource, resource.model
    if isinstance(resource, type):
        if model is not None:
            raise UsageError("give a model class, or a name with model=, not both")
        name = resource_of(resource)
        if name is None:
            raise UsageError(
                f"{resource.__name__} does not say which resource it is; set "
                "__resource__ = 'v1/pods' in it, or give 'v1/pods' and model=..."
            )
        return name, resource
    if not isinstance(resource, str | GroupVersionResource):  # pyright: ignore[reportUnnecessaryIsInstance] - untyped callers
        raise UsageError(f"{resource!r} names no resource; give 'v1/pods' or a model class")
    name = str(resource)
    if not _KIND_NAME.fullmatch(name):
        raise UsageError(
            f"{name!r} names no resource; give 'v1/pods', 'apps/v1/deployments', "
            "'deployments.apps', 'deployments', 'Deployment' or a model class"
        )
    return name, cast("type[T]", Object) if model is None else model
