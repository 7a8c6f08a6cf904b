"""Kubernetes v1.36.4: the models of autoscaling/v1. Written by ``make clientset``."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, ClassVar

import msgspec

from kinform import clientset
from kinform.clientset.wire import Time, WireModel
from kinform.meta import GroupVersionKind, GroupVersionResource

__all__ = [
    "CrossVersionObjectReference",
    "HorizontalPodAutoscaler",
    "HorizontalPodAutoscalerSpec",
    "HorizontalPodAutoscalerStatus",
    "Scale",
    "ScaleSpec",
    "ScaleStatus",
    "apply",
]


class CrossVersionObjectReference(
    WireModel, frozen=True, kw_only=True, omit_defaults=True, gc=False
):
    """CrossVersionObjectReference contains enough information to let you identify the referred
    resource.
    """

    api_version: str | None = msgspec.field(default=None, name="apiVersion")
    """apiVersion is the API version of the referent"""
    kind: str | None = None
    """kind is the kind of the referent; More info:
    https://git.k8s.io/community/contributors/devel/sig-architecture/api-conventions.md#types-kinds
    """
    name: str | None = None
    """name is the name of the referent; More info:
    https://kubernetes.io/docs/concepts/overview/working-with-objects/names/#names
    """


class HorizontalPodAutoscalerSpec(
    WireModel, frozen=True, kw_only=True, omit_defaults=True, gc=False
):
    """specification of a horizontal pod autoscaler."""

    max_replicas: int | None = msgspec.field(default=None, name="maxReplicas")
    """maxReplicas is the upper limit for the number of pods that can be set by the autoscaler;
    cannot be smaller than MinReplicas.
    """
    min_replicas: int | None = msgspec.field(default=None, name="minReplicas")
    """minReplicas is the lower limit for the number of replicas to which the autoscaler can
    scale down.  It defaults to 1 pod.  minReplicas is allowed to be 0 if the alpha feature
    gate HPAScaleToZero is enabled and at least one Object or External metric is configured.
    Scaling is active as long as at least one metric value is available.
    """
    scale_target_ref: CrossVersionObjectReference = msgspec.field(
        default=CrossVersionObjectReference(), name="scaleTargetRef"
    )
    """reference to scaled resource; horizontal pod autoscaler will learn the current resource
    consumption and will set the desired number of pods by using its Scale subresource.
    """
    target_cpu_utilization_percentage: int | None = msgspec.field(
        default=None, name="targetCPUUtilizationPercentage"
    )
    """targetCPUUtilizationPercentage is the target average CPU utilization (represented as a
    percentage of requested CPU) over all the pods; if not specified the default autoscaling
    policy will be used.
    """


class HorizontalPodAutoscalerStatus(
    WireModel, frozen=True, kw_only=True, omit_defaults=True, gc=False
):
    """current status of a horizontal pod autoscaler"""

    current_cpu_utilization_percentage: int | None = msgspec.field(
        default=None, name="currentCPUUtilizationPercentage"
    )
    """currentCPUUtilizationPercentage is the current average CPU utilization over all pods,
    represented as a percentage of requested CPU, e.g. 70 means that an average pod is using
    now 70% of its requested CPU.
    """
    current_replicas: int | None = msgspec.field(default=None, name="currentReplicas")
    """currentReplicas is the current number of replicas of pods managed by this autoscaler."""
    desired_replicas: int | None = msgspec.field(default=None, name="desiredReplicas")
    """desiredReplicas is the  desired number of replicas of pods managed by this autoscaler."""
    last_scale_time: Time | None = msgspec.field(default=None, name="lastScaleTime")
    """lastScaleTime is the last time the HorizontalPodAutoscaler scaled the number of pods; used
    by the autoscaler to control how often the number of pods is changed.
    """
    observed_generation: int | None = msgspec.field(default=None, name="observedGeneration")
    """observedGeneration is the most recent generation observed by this autoscaler."""


class HorizontalPodAutoscaler(WireModel, frozen=True, kw_only=True, omit_defaults=True, gc=False):
    """configuration of a horizontal pod autoscaler."""

    __resource__: ClassVar[str] = "autoscaling/v1/horizontalpodautoscalers"
    __gvk__: ClassVar[GroupVersionKind] = GroupVersionKind(
        "autoscaling", "v1", "HorizontalPodAutoscaler"
    )
    __gvr__: ClassVar[GroupVersionResource] = GroupVersionResource(
        "autoscaling", "v1", "horizontalpodautoscalers"
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
    """Standard object metadata. More info:
    https://git.k8s.io/community/contributors/devel/sig-architecture/api-conventions.md#metadata
    """
    spec: HorizontalPodAutoscalerSpec = HorizontalPodAutoscalerSpec()
    """spec defines the behaviour of autoscaler. More info:
    https://git.k8s.io/community/contributors/devel/sig-architecture/api-conventions.md#spec-and-status.
    """
    status: HorizontalPodAutoscalerStatus = HorizontalPodAutoscalerStatus()
    """status is the current information about the autoscaler."""


class ScaleSpec(WireModel, frozen=True, kw_only=True, omit_defaults=True, gc=False):
    """ScaleSpec describes the attributes of a scale subresource."""

    replicas: int | None = None
    """replicas is the desired number of instances for the scaled object."""


class ScaleStatus(WireModel, frozen=True, kw_only=True, omit_defaults=True, gc=False):
    """ScaleStatus represents the current status of a scale subresource."""

    replicas: int | None = None
    """replicas is the actual number of observed instances of the scaled object."""
    selector: str | None = None
    """selector is the label query over pods that should match the replicas count. This is same
    as the label selector but in the string format to avoid introspection by clients. The
    string will be in the same format as the query-param syntax. More info about label
    selectors: https://kubernetes.io/docs/concepts/overview/working-with-objects/labels/
    """


class Scale(WireModel, frozen=True, kw_only=True, omit_defaults=True, gc=False):
    """Scale represents a scaling request for a resource."""

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
    """Standard object metadata; More info:
    https://git.k8s.io/community/contributors/devel/sig-architecture/api-conventions.md#metadata.
    """
    spec: ScaleSpec = ScaleSpec()
    """spec defines the behavior of the scale. More info:
    https://git.k8s.io/community/contributors/devel/sig-architecture/api-conventions.md#spec-and-status.
    """
    status: ScaleStatus = ScaleStatus()
    """status is the current status of the scale. More info:
    https://git.k8s.io/community/contributors/devel/sig-architecture/api-conventions.md#spec-and-status.
    Read-only.
    """


if TYPE_CHECKING:
    from kinform.clientset import autoscaling_v1 as apply
else:
    apply = sys.modules[__name__]
"""What to apply: every field of a model may be left out, so it is the models themselves."""
