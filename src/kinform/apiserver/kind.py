"""A kind of object in one version, as the server serves it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import final

import msgspec

from kinform.meta import GroupVersion, GroupVersionKind

__all__ = ["CustomVersion", "Kind", "Subresource"]


@final
class Subresource(msgspec.Struct, frozen=True, kw_only=True):
    """What can be done below one object, such as ``pods/eviction``."""

    name: str
    verbs: tuple[str, ...]
    kind: str
    """Of its bodies; ``pods/eviction`` takes an ``Eviction``."""
    group: str = ""
    version: str = ""


@final
class CustomVersion(msgspec.Struct, frozen=True, kw_only=True):
    """What a CustomResourceDefinition says of one version, beyond names and scope."""

    definition: str
    """The name of the CustomResourceDefinition."""
    schema: dict[str, object]
    """The ``openAPIV3Schema``, or an empty object."""
    preserves_unknown_fields: bool = False
    """The old ``spec.preserveUnknownFields``."""
    has_status: bool = False
    scale: dict[str, str] | None = None
    """``specReplicasPath``, ``statusReplicasPath`` and ``labelSelectorPath``."""
    columns: tuple[dict[str, object], ...] = ()
    """The ``additionalPrinterColumns``."""
    selectable_fields: tuple[str, ...] = ()
    """JSON paths such as ``.spec.color``."""
    is_deprecated: bool = False
    deprecation_warning: str = ""
    is_terminating: bool = False
    """The definition is being deleted: nothing new comes, and discovery shows less."""


@final
class Kind(msgspec.Struct, frozen=True, kw_only=True):
    """One resource of one group and version, with all that discovery tells of it."""

    group: str
    version: str
    kind: str
    plural: str
    singular: str
    namespaced: bool
    verbs: tuple[str, ...]
    short_names: tuple[str, ...] = ()
    categories: tuple[str, ...] = ()
    subresources: Mapping[str, Subresource] = {}
    storage: str = ""
    """The table its objects are in, such as ``deployments.apps``. Versions of a kind share it."""
    definition: str = ""
    """The name of its schema, such as ``io.k8s.api.core.v1.Pod``; empty for a custom one."""
    list_kind: str = ""
    custom: CustomVersion | None = None

    @property
    def api_version(self) -> str:
        """What its objects carry in ``apiVersion``."""
        return f"{self.group}/{self.version}" if self.group else self.version

    @property
    def group_version(self) -> GroupVersion:
        """Its group and version alone."""
        return GroupVersion(self.group, self.version)

    @property
    def gvk(self) -> GroupVersionKind:
        """Its full name."""
        return GroupVersionKind(self.group, self.version, self.kind)

    @property
    def qualified(self) -> str:
        """How messages call the resource: ``pods``, ``deployments.apps``."""
        return f"{self.plural}.{self.group}" if self.group else self.plural

    @property
    def qualified_kind(self) -> str:
        """How messages call the kind: ``Pod``, ``Deployment.apps``."""
        return f"{self.kind}.{self.group}" if self.group else self.kind
