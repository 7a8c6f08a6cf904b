"""Kubernetes v1.36.4: the models of node/v1. Written by ``make clientset``."""

from __future__ import annotations

import sys
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, ClassVar

import msgspec

from kinform import clientset
from kinform.clientset.wire import Quantity, WireModel
from kinform.meta import GroupVersionKind, GroupVersionResource

__all__ = ["Overhead", "RuntimeClass", "Scheduling", "apply"]


class Overhead(WireModel, frozen=True, kw_only=True, omit_defaults=True, gc=False):
    """Overhead structure represents the resource overhead associated with running a pod."""

    pod_fixed: Mapping[str, Quantity] | None = msgspec.field(default=None, name="podFixed")
    """podFixed represents the fixed resource overhead associated with running a pod."""


class RuntimeClass(WireModel, frozen=True, kw_only=True, omit_defaults=True, gc=False):
    """RuntimeClass defines a class of container runtime supported in the cluster. The
    RuntimeClass is used to determine which container runtime is used to run all containers in
    a pod. RuntimeClasses are manually defined by a user or cluster provisioner, and
    referenced in the PodSpec. The Kubelet is responsible for resolving the RuntimeClassName
    reference before running the pod.  For more details, see
    https://kubernetes.io/docs/concepts/containers/runtime-class/
    """

    __resource__: ClassVar[str] = "node.k8s.io/v1/runtimeclasses"
    __gvk__: ClassVar[GroupVersionKind] = GroupVersionKind("node.k8s.io", "v1", "RuntimeClass")
    __gvr__: ClassVar[GroupVersionResource] = GroupVersionResource(
        "node.k8s.io", "v1", "runtimeclasses"
    )
    __namespaced__: ClassVar[bool] = False

    api_version: str | None = msgspec.field(default=None, name="apiVersion")
    """APIVersion defines the versioned schema of this representation of an object. Servers
    should convert recognized schemas to the latest internal value, and may reject
    unrecognized values. More info:
    https://git.k8s.io/community/contributors/devel/sig-architecture/api-conventions.md#resources
    """
    handler: str | None = None
    """handler specifies the underlying runtime and configuration that the CRI implementation
    will use to handle pods of this class. The possible values are specific to the node & CRI
    configuration.  It is assumed that all handlers are available on every node, and handlers
    of the same name are equivalent on every node. For example, a handler called "runc" might
    specify that the runc OCI runtime (using native Linux containers) will be used to run the
    containers in a pod. The Handler must be lowercase, conform to the DNS Label (RFC 1123)
    requirements, and is immutable.
    """
    kind: str | None = None
    """Kind is a string value representing the REST resource this object represents. Servers may
    infer this from the endpoint the client submits requests to. Cannot be updated. In
    CamelCase. More info:
    https://git.k8s.io/community/contributors/devel/sig-architecture/api-conventions.md#types-kinds
    """
    metadata: clientset.meta_v1.ObjectMeta = clientset.meta_v1.ObjectMeta()
    """More info:
    https://git.k8s.io/community/contributors/devel/sig-architecture/api-conventions.md#metadata
    """
    overhead: Overhead | None = None
    """overhead represents the resource overhead associated with running a pod for a given
    RuntimeClass. For more details, see
    https://kubernetes.io/docs/concepts/scheduling-eviction/pod-overhead/
    """
    scheduling: Scheduling | None = None
    """scheduling holds the scheduling constraints to ensure that pods running with this
    RuntimeClass are scheduled to nodes that support it. If scheduling is nil, this
    RuntimeClass is assumed to be supported by all nodes.
    """


class Scheduling(WireModel, frozen=True, kw_only=True, omit_defaults=True, gc=False):
    """Scheduling specifies the scheduling constraints for nodes supporting a RuntimeClass."""

    node_selector: Mapping[str, str] | None = msgspec.field(default=None, name="nodeSelector")
    """nodeSelector lists labels that must be present on nodes that support this RuntimeClass.
    Pods using this RuntimeClass can only be scheduled to a node matched by this selector. The
    RuntimeClass nodeSelector is merged with a pod's existing nodeSelector. Any conflicts will
    cause the pod to be rejected in admission.
    """
    tolerations: Sequence[clientset.core_v1.Toleration] | None = None
    """tolerations are appended (excluding duplicates) to pods running with this RuntimeClass
    during admission, effectively unioning the set of nodes tolerated by the pod and the
    RuntimeClass.
    """


if TYPE_CHECKING:
    from kinform.clientset import node_v1 as apply
else:
    apply = sys.modules[__name__]
"""What to apply: every field of a model may be left out, so it is the models themselves."""
