"""Kubernetes v1.36.4: the models of scheduling/v1. Written by ``make clientset``."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, ClassVar

import msgspec

from kinform import clientset
from kinform.clientset.wire import WireModel
from kinform.meta import GroupVersionKind, GroupVersionResource

__all__ = ["PriorityClass", "apply"]


class PriorityClass(WireModel, frozen=True, kw_only=True, omit_defaults=True, gc=False):
    """PriorityClass defines mapping from a priority class name to the priority integer value.
    The value can be any valid integer.
    """

    __resource__: ClassVar[str] = "scheduling.k8s.io/v1/priorityclasses"
    __gvk__: ClassVar[GroupVersionKind] = GroupVersionKind(
        "scheduling.k8s.io", "v1", "PriorityClass"
    )
    __gvr__: ClassVar[GroupVersionResource] = GroupVersionResource(
        "scheduling.k8s.io", "v1", "priorityclasses"
    )
    __namespaced__: ClassVar[bool] = False

    api_version: str | None = msgspec.field(default=None, name="apiVersion")
    """APIVersion defines the versioned schema of this representation of an object. Servers
    should convert recognized schemas to the latest internal value, and may reject
    unrecognized values. More info:
    https://git.k8s.io/community/contributors/devel/sig-architecture/api-conventions.md#resources
    """
    description: str | None = None
    """description is an arbitrary string that usually provides guidelines on when this priority
    class should be used.
    """
    global_default: bool | None = msgspec.field(default=None, name="globalDefault")
    """globalDefault specifies whether this PriorityClass should be considered as the default
    priority for pods that do not have any priority class. Only one PriorityClass can be
    marked as `globalDefault`. However, if more than one PriorityClasses exists with their
    `globalDefault` field set to true, the smallest value of such global default
    PriorityClasses will be used as the default priority.
    """
    kind: str | None = None
    """Kind is a string value representing the REST resource this object represents. Servers may
    infer this from the endpoint the client submits requests to. Cannot be updated. In
    CamelCase. More info:
    https://git.k8s.io/community/contributors/devel/sig-architecture/api-conventions.md#types-kinds
    """
    metadata: clientset.meta_v1.ObjectMeta = clientset.meta_v1.ObjectMeta()
    """Standard object's metadata. More info:
    https://git.k8s.io/community/contributors/devel/sig-architecture/api-conventions.md#metadata
    """
    preemption_policy: str | None = msgspec.field(default=None, name="preemptionPolicy")
    """preemptionPolicy is the Policy for preempting pods with lower priority. One of Never,
    PreemptLowerPriority. Defaults to PreemptLowerPriority if unset.

    Possible enum values:
     - `"Never"` means that pod never preempts other pods with lower priority.
     - `"PreemptLowerPriority"` means that pod can preempt other pods with lower priority.
    """
    value: int | None = None
    """value represents the integer value of this priority class. This is the actual priority
    that pods receive when they have the name of this class in their pod spec.
    """


if TYPE_CHECKING:
    from kinform.clientset import scheduling_v1 as apply
else:
    apply = sys.modules[__name__]
"""What to apply: every field of a model may be left out, so it is the models themselves."""
