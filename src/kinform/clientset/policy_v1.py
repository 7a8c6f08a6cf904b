"""Kubernetes v1.36.4: the models of policy/v1. Written by ``make clientset``."""

from __future__ import annotations

import sys
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, ClassVar

import msgspec

from kinform import clientset
from kinform.clientset.wire import IntOrString, Time, WireModel
from kinform.meta import GroupVersionKind, GroupVersionResource

__all__ = [
    "Eviction",
    "PodDisruptionBudget",
    "PodDisruptionBudgetSpec",
    "PodDisruptionBudgetStatus",
    "apply",
]


class Eviction(WireModel, frozen=True, kw_only=True, omit_defaults=True, gc=False):
    """Eviction evicts a pod from its node subject to certain policies and safety constraints.
    This is a subresource of Pod.  A request to cause such an eviction is created by POSTing
    to .../pods/<pod name>/evictions.
    """

    api_version: str | None = msgspec.field(default=None, name="apiVersion")
    """APIVersion defines the versioned schema of this representation of an object. Servers
    should convert recognized schemas to the latest internal value, and may reject
    unrecognized values. More info:
    https://git.k8s.io/community/contributors/devel/sig-architecture/api-conventions.md#resources
    """
    delete_options: clientset.meta_v1.DeleteOptions | None = msgspec.field(
        default=None, name="deleteOptions"
    )
    """DeleteOptions may be provided"""
    kind: str | None = None
    """Kind is a string value representing the REST resource this object represents. Servers may
    infer this from the endpoint the client submits requests to. Cannot be updated. In
    CamelCase. More info:
    https://git.k8s.io/community/contributors/devel/sig-architecture/api-conventions.md#types-kinds
    """
    metadata: clientset.meta_v1.ObjectMeta = clientset.meta_v1.ObjectMeta()
    """ObjectMeta describes the pod that is being evicted."""


class PodDisruptionBudgetSpec(WireModel, frozen=True, kw_only=True, omit_defaults=True, gc=False):
    """PodDisruptionBudgetSpec is a description of a PodDisruptionBudget."""

    max_unavailable: IntOrString | None = msgspec.field(default=None, name="maxUnavailable")
    """An eviction is allowed if at most "maxUnavailable" pods selected by "selector" are
    unavailable after the eviction, i.e. even in absence of the evicted pod. For example, one
    can prevent all voluntary evictions by specifying 0. This is a mutually exclusive setting
    with "minAvailable".
    """
    min_available: IntOrString | None = msgspec.field(default=None, name="minAvailable")
    """An eviction is allowed if at least "minAvailable" pods selected by "selector" will still
    be available after the eviction, i.e. even in the absence of the evicted pod.  So for
    example you can prevent all voluntary evictions by specifying "100%".
    """
    selector: clientset.meta_v1.LabelSelector | None = None
    """Label query over pods whose evictions are managed by the disruption budget. A null
    selector will match no pods, while an empty ({}) selector will select all pods within the
    namespace.
    """
    unhealthy_pod_eviction_policy: str | None = msgspec.field(
        default=None, name="unhealthyPodEvictionPolicy"
    )
    """UnhealthyPodEvictionPolicy defines the criteria for when unhealthy pods should be
    considered for eviction. Current implementation considers healthy pods, as pods that have
    status.conditions item with type="Ready",status="True".

    Valid policies are IfHealthyBudget and AlwaysAllow. If no policy is specified, the default
    behavior will be used, which corresponds to the IfHealthyBudget policy.

    IfHealthyBudget policy means that running pods (status.phase="Running"), but not yet
    healthy can be evicted only if the guarded application is not disrupted
    (status.currentHealthy is at least equal to status.desiredHealthy). Healthy pods will be
    subject to the PDB for eviction.

    AlwaysAllow policy means that all running pods (status.phase="Running"), but not yet
    healthy are considered disrupted and can be evicted regardless of whether the criteria in
    a PDB is met. This means perspective running pods of a disrupted application might not get
    a chance to become healthy. Healthy pods will be subject to the PDB for eviction.

    Additional policies may be added in the future. Clients making eviction decisions should
    disallow eviction of unhealthy pods if they encounter an unrecognized policy in this
    field.

    Possible enum values:
     - `"AlwaysAllow"` policy means that all running pods (status.phase="Running"), but not
     yet healthy are considered disrupted and can be evicted regardless of whether the
     criteria in a PDB is met. This means perspective running pods of a disrupted application
     might not get a chance to become healthy. Healthy pods will be subject to the PDB for
     eviction.
     - `"IfHealthyBudget"` policy means that running pods (status.phase="Running"), but not
     yet healthy can be evicted only if the guarded application is not disrupted
     (status.currentHealthy is at least equal to status.desiredHealthy). Healthy pods will be
     subject to the PDB for eviction.
    """


class PodDisruptionBudgetStatus(WireModel, frozen=True, kw_only=True, omit_defaults=True, gc=False):
    """PodDisruptionBudgetStatus represents information about the status of a
    PodDisruptionBudget. Status may trail the actual state of a system.
    """

    conditions: Sequence[clientset.meta_v1.Condition] | None = None
    """Conditions contain conditions for PDB. The disruption controller sets the
    DisruptionAllowed condition. The following are known values for the reason field
    (additional reasons could be added in the future): - SyncFailed: The controller
    encountered an error and wasn't able to compute
                  the number of allowed disruptions. Therefore no disruptions are
                  allowed and the status of the condition will be False.
    - InsufficientPods: The number of pods are either at or below the number
                        required by the PodDisruptionBudget. No disruptions are
                        allowed and the status of the condition will be False.
    - SufficientPods: There are more pods than required by the PodDisruptionBudget.
                      The condition will be True, and the number of allowed
                      disruptions are provided by the disruptionsAllowed property.
    """
    current_healthy: int | None = msgspec.field(default=None, name="currentHealthy")
    """current number of healthy pods"""
    desired_healthy: int | None = msgspec.field(default=None, name="desiredHealthy")
    """minimum desired number of healthy pods"""
    disrupted_pods: Mapping[str, Time] | None = msgspec.field(default=None, name="disruptedPods")
    """DisruptedPods contains information about pods whose eviction was processed by the API
    server eviction subresource handler but has not yet been observed by the
    PodDisruptionBudget controller. A pod will be in this map from the time when the API
    server processed the eviction request to the time when the pod is seen by PDB controller
    as having been marked for deletion (or after a timeout). The key in the map is the name of
    the pod and the value is the time when the API server processed the eviction request. If
    the deletion didn't occur and a pod is still there it will be removed from the list
    automatically by PodDisruptionBudget controller after some time. If everything goes smooth
    this map should be empty for the most of the time. Large number of entries in the map may
    indicate problems with pod deletions.
    """
    disruptions_allowed: int | None = msgspec.field(default=None, name="disruptionsAllowed")
    """Number of pod disruptions that are currently allowed."""
    expected_pods: int | None = msgspec.field(default=None, name="expectedPods")
    """total number of pods counted by this disruption budget"""
    observed_generation: int | None = msgspec.field(default=None, name="observedGeneration")
    """Most recent generation observed when updating this PDB status. DisruptionsAllowed and
    other status information is valid only if observedGeneration equals to PDB's object
    generation.
    """


class PodDisruptionBudget(WireModel, frozen=True, kw_only=True, omit_defaults=True, gc=False):
    """PodDisruptionBudget is an object to define the max disruption that can be caused to a
    collection of pods
    """

    __resource__: ClassVar[str] = "policy/v1/poddisruptionbudgets"
    __gvk__: ClassVar[GroupVersionKind] = GroupVersionKind("policy", "v1", "PodDisruptionBudget")
    __gvr__: ClassVar[GroupVersionResource] = GroupVersionResource(
        "policy", "v1", "poddisruptionbudgets"
    )
    __namespaced__: ClassVar[bool] = True

    api_version: str | None = msgspec.field(default=None, name="apiVersion")
    """APIVersion defines the versioned schema of this representation of an object. Servers
    should convert recognized schemas to the latest internal value, and may reject
    unrecognized values. More info:
    https://git.k8s.io/community/contributors/devel/sig-architecture/api-conventions.md#resources
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
    spec: PodDisruptionBudgetSpec = PodDisruptionBudgetSpec()
    """Specification of the desired behavior of the PodDisruptionBudget."""
    status: PodDisruptionBudgetStatus = PodDisruptionBudgetStatus()
    """Most recently observed status of the PodDisruptionBudget."""


if TYPE_CHECKING:
    from kinform.clientset import policy_v1 as apply
else:
    apply = sys.modules[__name__]
"""What to apply: every field of a model may be left out, so it is the models themselves."""
