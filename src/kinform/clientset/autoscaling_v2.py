"""Kubernetes v1.36.4: the models of autoscaling/v2. Written by ``make clientset``."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from typing import TYPE_CHECKING, ClassVar

import msgspec

from kinform import clientset
from kinform.clientset.wire import Quantity, Time, WireModel
from kinform.meta import GroupVersionKind, GroupVersionResource

__all__ = [
    "ContainerResourceMetricSource",
    "ContainerResourceMetricStatus",
    "CrossVersionObjectReference",
    "ExternalMetricSource",
    "ExternalMetricStatus",
    "HPAScalingPolicy",
    "HPAScalingRules",
    "HorizontalPodAutoscaler",
    "HorizontalPodAutoscalerBehavior",
    "HorizontalPodAutoscalerCondition",
    "HorizontalPodAutoscalerSpec",
    "HorizontalPodAutoscalerStatus",
    "MetricIdentifier",
    "MetricSpec",
    "MetricStatus",
    "MetricTarget",
    "MetricValueStatus",
    "ObjectMetricSource",
    "ObjectMetricStatus",
    "PodsMetricSource",
    "PodsMetricStatus",
    "ResourceMetricSource",
    "ResourceMetricStatus",
    "apply",
]


class MetricTarget(WireModel, frozen=True, kw_only=True, omit_defaults=True, gc=False):
    """MetricTarget defines the target value, average value, or average utilization of a specific
    metric
    """

    average_utilization: int | None = msgspec.field(default=None, name="averageUtilization")
    """averageUtilization is the target value of the average of the resource metric across all
    relevant pods, represented as a percentage of the requested value of the resource for the
    pods. Currently only valid for Resource metric source type
    """
    average_value: Quantity | None = msgspec.field(default=None, name="averageValue")
    """averageValue is the target value of the average of the metric across all relevant pods (as
    a quantity)
    """
    type: str | None = None
    """type represents whether the metric type is Utilization, Value, or AverageValue"""
    value: Quantity | None = None
    """value is the target value of the metric (as a quantity)."""


class ContainerResourceMetricSource(
    WireModel, frozen=True, kw_only=True, omit_defaults=True, gc=False
):
    """ContainerResourceMetricSource indicates how to scale on a resource metric known to
    Kubernetes, as specified in requests and limits, describing each pod in the current scale
    target (e.g. CPU or memory).  The values will be averaged together before being compared
    to the target.  Such metrics are built in to Kubernetes, and have special scaling options
    on top of those available to normal per-pod metrics using the "pods" source.  Only one
    "target" type should be set.
    """

    container: str | None = None
    """container is the name of the container in the pods of the scaling target"""
    name: str | None = None
    """name is the name of the resource in question."""
    target: MetricTarget = MetricTarget()
    """target specifies the target value for the given metric"""


class MetricValueStatus(WireModel, frozen=True, kw_only=True, omit_defaults=True, gc=False):
    """MetricValueStatus holds the current value for a metric"""

    average_utilization: int | None = msgspec.field(default=None, name="averageUtilization")
    """currentAverageUtilization is the current value of the average of the resource metric
    across all relevant pods, represented as a percentage of the requested value of the
    resource for the pods.
    """
    average_value: Quantity | None = msgspec.field(default=None, name="averageValue")
    """averageValue is the current value of the average of the metric across all relevant pods
    (as a quantity)
    """
    value: Quantity | None = None
    """value is the current value of the metric (as a quantity)."""


class ContainerResourceMetricStatus(
    WireModel, frozen=True, kw_only=True, omit_defaults=True, gc=False
):
    """ContainerResourceMetricStatus indicates the current value of a resource metric known to
    Kubernetes, as specified in requests and limits, describing a single container in each pod
    in the current scale target (e.g. CPU or memory).  Such metrics are built in to
    Kubernetes, and have special scaling options on top of those available to normal per-pod
    metrics using the "pods" source.
    """

    container: str | None = None
    """container is the name of the container in the pods of the scaling target"""
    current: MetricValueStatus = MetricValueStatus()
    """current contains the current value for the given metric"""
    name: str | None = None
    """name is the name of the resource in question."""


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


class MetricIdentifier(WireModel, frozen=True, kw_only=True, omit_defaults=True, gc=False):
    """MetricIdentifier defines the name and optionally selector for a metric"""

    name: str | None = None
    """name is the name of the given metric"""
    selector: clientset.meta_v1.LabelSelector | None = None
    """selector is the string-encoded form of a standard kubernetes label selector for the given
    metric When set, it is passed as an additional parameter to the metrics server for more
    specific metrics scoping. When unset, just the metricName will be used to gather metrics.
    """


class ExternalMetricSource(WireModel, frozen=True, kw_only=True, omit_defaults=True, gc=False):
    """ExternalMetricSource indicates how to scale on a metric not associated with any Kubernetes
    object (for example length of queue in cloud messaging service, or QPS from loadbalancer
    running outside of cluster).
    """

    metric: MetricIdentifier = MetricIdentifier()
    """metric identifies the target metric by name and selector"""
    target: MetricTarget = MetricTarget()
    """target specifies the target value for the given metric"""


class ExternalMetricStatus(WireModel, frozen=True, kw_only=True, omit_defaults=True, gc=False):
    """ExternalMetricStatus indicates the current value of a global metric not associated with
    any Kubernetes object.
    """

    current: MetricValueStatus = MetricValueStatus()
    """current contains the current value for the given metric"""
    metric: MetricIdentifier = MetricIdentifier()
    """metric identifies the target metric by name and selector"""


class HPAScalingPolicy(WireModel, frozen=True, kw_only=True, omit_defaults=True, gc=False):
    """HPAScalingPolicy is a single policy which must hold true for a specified past interval."""

    period_seconds: int | None = msgspec.field(default=None, name="periodSeconds")
    """periodSeconds specifies the window of time for which the policy should hold true.
    PeriodSeconds must be greater than zero and less than or equal to 1800 (30 min).
    """
    type: str | None = None
    """type is used to specify the scaling policy."""
    value: int | None = None
    """value contains the amount of change which is permitted by the policy. It must be greater
    than zero
    """


class HPAScalingRules(WireModel, frozen=True, kw_only=True, omit_defaults=True, gc=False):
    """HPAScalingRules configures the scaling behavior for one direction via scaling Policy Rules
    and a configurable metric tolerance.

    Scaling Policy Rules are applied after calculating DesiredReplicas from metrics for the
    HPA. They can limit the scaling velocity by specifying scaling policies. They can prevent
    flapping by specifying the stabilization window, so that the number of replicas is not set
    instantly, instead, the safest value from the stabilization window is chosen.

    The tolerance is applied to the metric values and prevents scaling too eagerly for small
    metric variations. (Note that setting a tolerance requires the beta
    HPAConfigurableTolerance feature gate to be enabled.)
    """

    policies: Sequence[HPAScalingPolicy] | None = None
    """policies is a list of potential scaling polices which can be used during scaling. If not
    set, use the default values: - For scale up: allow doubling the number of pods, or an
    absolute change of 4 pods in a 15s window. - For scale down: allow all pods to be removed
    in a 15s window.
    """
    select_policy: str | None = msgspec.field(default=None, name="selectPolicy")
    """selectPolicy is used to specify which policy should be used. If not set, the default value
    Max is used.
    """
    stabilization_window_seconds: int | None = msgspec.field(
        default=None, name="stabilizationWindowSeconds"
    )
    """stabilizationWindowSeconds is the number of seconds for which past recommendations should
    be considered while scaling up or scaling down. StabilizationWindowSeconds must be greater
    than or equal to zero and less than or equal to 3600 (one hour). If not set, use the
    default values: - For scale up: 0 (i.e. no stabilization is done). - For scale down: 300
    (i.e. the stabilization window is 300 seconds long).
    """
    tolerance: Quantity | None = None
    """tolerance is the tolerance on the ratio between the current and desired metric value under
    which no updates are made to the desired number of replicas (e.g. 0.01 for 1%). Must be
    greater than or equal to zero. If not set, the default cluster-wide tolerance is applied
    (by default 10%).

    For example, if autoscaling is configured with a memory consumption target of 100Mi, and
    scale-down and scale-up tolerances of 5% and 1% respectively, scaling will be triggered
    when the actual consumption falls below 95Mi or exceeds 101Mi.

    This is an beta field and requires the HPAConfigurableTolerance feature gate to be
    enabled.
    """


class HorizontalPodAutoscalerSpec(
    WireModel, frozen=True, kw_only=True, omit_defaults=True, gc=False
):
    """HorizontalPodAutoscalerSpec describes the desired functionality of the
    HorizontalPodAutoscaler.
    """

    behavior: HorizontalPodAutoscalerBehavior | None = None
    """behavior configures the scaling behavior of the target in both Up and Down directions
    (scaleUp and scaleDown fields respectively). If not set, the default HPAScalingRules for
    scale up and scale down are used.
    """
    max_replicas: int | None = msgspec.field(default=None, name="maxReplicas")
    """maxReplicas is the upper limit for the number of replicas to which the autoscaler can
    scale up. It cannot be less that minReplicas.
    """
    metrics: Sequence[MetricSpec] | None = None
    """metrics contains the specifications for which to use to calculate the desired replica
    count (the maximum replica count across all metrics will be used).  The desired replica
    count is calculated multiplying the ratio between the target value and the current value
    by the current number of pods.  Ergo, metrics used must decrease as the pod count is
    increased, and vice-versa.  See the individual metric source types for more information
    about how each type of metric must respond. If not set, the default metric will be set to
    80% average CPU utilization.
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
    """scaleTargetRef points to the target resource to scale, and is used to the pods for which
    metrics should be collected, as well as to actually change the replica count.
    """


class HorizontalPodAutoscalerStatus(
    WireModel, frozen=True, kw_only=True, omit_defaults=True, gc=False
):
    """HorizontalPodAutoscalerStatus describes the current status of a horizontal pod autoscaler."""

    conditions: Sequence[HorizontalPodAutoscalerCondition] | None = None
    """conditions is the set of conditions required for this autoscaler to scale its target, and
    indicates whether or not those conditions are met.
    """
    current_metrics: Sequence[MetricStatus] | None = msgspec.field(
        default=None, name="currentMetrics"
    )
    """currentMetrics is the last read state of the metrics used by this autoscaler."""
    current_replicas: int | None = msgspec.field(default=None, name="currentReplicas")
    """currentReplicas is current number of replicas of pods managed by this autoscaler, as last
    seen by the autoscaler.
    """
    desired_replicas: int | None = msgspec.field(default=None, name="desiredReplicas")
    """desiredReplicas is the desired number of replicas of pods managed by this autoscaler, as
    last calculated by the autoscaler.
    """
    last_scale_time: Time | None = msgspec.field(default=None, name="lastScaleTime")
    """lastScaleTime is the last time the HorizontalPodAutoscaler scaled the number of pods, used
    by the autoscaler to control how often the number of pods is changed.
    """
    observed_generation: int | None = msgspec.field(default=None, name="observedGeneration")
    """observedGeneration is the most recent generation observed by this autoscaler."""


class HorizontalPodAutoscaler(WireModel, frozen=True, kw_only=True, omit_defaults=True, gc=False):
    """HorizontalPodAutoscaler is the configuration for a horizontal pod autoscaler, which
    automatically manages the replica count of any resource implementing the scale subresource
    based on the metrics specified.
    """

    __resource__: ClassVar[str] = "autoscaling/v2/horizontalpodautoscalers"
    __gvk__: ClassVar[GroupVersionKind] = GroupVersionKind(
        "autoscaling", "v2", "HorizontalPodAutoscaler"
    )
    __gvr__: ClassVar[GroupVersionResource] = GroupVersionResource(
        "autoscaling", "v2", "horizontalpodautoscalers"
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
    """metadata is the standard object metadata. More info:
    https://git.k8s.io/community/contributors/devel/sig-architecture/api-conventions.md#metadata
    """
    spec: HorizontalPodAutoscalerSpec = HorizontalPodAutoscalerSpec()
    """spec is the specification for the behaviour of the autoscaler. More info:
    https://git.k8s.io/community/contributors/devel/sig-architecture/api-conventions.md#spec-and-status.
    """
    status: HorizontalPodAutoscalerStatus = HorizontalPodAutoscalerStatus()
    """status is the current information about the autoscaler."""


class HorizontalPodAutoscalerBehavior(
    WireModel, frozen=True, kw_only=True, omit_defaults=True, gc=False
):
    """HorizontalPodAutoscalerBehavior configures the scaling behavior of the target in both Up
    and Down directions (scaleUp and scaleDown fields respectively).
    """

    scale_down: HPAScalingRules | None = msgspec.field(default=None, name="scaleDown")
    """scaleDown is scaling policy for scaling Down. If not set, the default value is to allow to
    scale down to minReplicas pods, with a 300 second stabilization window (i.e., the highest
    recommendation for the last 300sec is used).
    """
    scale_up: HPAScalingRules | None = msgspec.field(default=None, name="scaleUp")
    """scaleUp is scaling policy for scaling Up. If not set, the default value is the higher of:
      * increase no more than 4 pods per 60 seconds
      * double the number of pods per 60 seconds
    No stabilization is used.
    """


class HorizontalPodAutoscalerCondition(
    WireModel, frozen=True, kw_only=True, omit_defaults=True, gc=False
):
    """HorizontalPodAutoscalerCondition describes the state of a HorizontalPodAutoscaler at a
    certain point.
    """

    last_transition_time: Time | None = msgspec.field(default=None, name="lastTransitionTime")
    """lastTransitionTime is the last time the condition transitioned from one status to another"""
    message: str | None = None
    """message is a human-readable explanation containing details about the transition"""
    reason: str | None = None
    """reason is the reason for the condition's last transition."""
    status: str | None = None
    """status is the status of the condition (True, False, Unknown)"""
    type: str | None = None
    """type describes the current condition"""


class MetricSpec(WireModel, frozen=True, kw_only=True, omit_defaults=True, gc=False):
    """MetricSpec specifies how to scale based on a single metric (only `type` and one other
    matching field should be set at once).
    """

    container_resource: ContainerResourceMetricSource | None = msgspec.field(
        default=None, name="containerResource"
    )
    """containerResource refers to a resource metric (such as those specified in requests and
    limits) known to Kubernetes describing a single container in each pod of the current scale
    target (e.g. CPU or memory). Such metrics are built in to Kubernetes, and have special
    scaling options on top of those available to normal per-pod metrics using the "pods"
    source.
    """
    external: ExternalMetricSource | None = None
    """external refers to a global metric that is not associated with any Kubernetes object. It
    allows autoscaling based on information coming from components running outside of cluster
    (for example length of queue in cloud messaging service, or QPS from loadbalancer running
    outside of cluster).
    """
    object_: ObjectMetricSource | None = msgspec.field(default=None, name="object")
    """object refers to a metric describing a single kubernetes object (for example,
    hits-per-second on an Ingress object).
    """
    pods: PodsMetricSource | None = None
    """pods refers to a metric describing each pod in the current scale target (for example,
    transactions-processed-per-second).  The values will be averaged together before being
    compared to the target value.
    """
    resource: ResourceMetricSource | None = None
    """resource refers to a resource metric (such as those specified in requests and limits)
    known to Kubernetes describing each pod in the current scale target (e.g. CPU or memory).
    Such metrics are built in to Kubernetes, and have special scaling options on top of those
    available to normal per-pod metrics using the "pods" source.
    """
    type: str | None = None
    """type is the type of metric source.  It should be one of "ContainerResource", "External",
    "Object", "Pods" or "Resource", each mapping to a matching field in the object.
    """


class MetricStatus(WireModel, frozen=True, kw_only=True, omit_defaults=True, gc=False):
    """MetricStatus describes the last-read state of a single metric."""

    container_resource: ContainerResourceMetricStatus | None = msgspec.field(
        default=None, name="containerResource"
    )
    """container resource refers to a resource metric (such as those specified in requests and
    limits) known to Kubernetes describing a single container in each pod in the current scale
    target (e.g. CPU or memory). Such metrics are built in to Kubernetes, and have special
    scaling options on top of those available to normal per-pod metrics using the "pods"
    source.
    """
    external: ExternalMetricStatus | None = None
    """external refers to a global metric that is not associated with any Kubernetes object. It
    allows autoscaling based on information coming from components running outside of cluster
    (for example length of queue in cloud messaging service, or QPS from loadbalancer running
    outside of cluster).
    """
    object_: ObjectMetricStatus | None = msgspec.field(default=None, name="object")
    """object refers to a metric describing a single kubernetes object (for example,
    hits-per-second on an Ingress object).
    """
    pods: PodsMetricStatus | None = None
    """pods refers to a metric describing each pod in the current scale target (for example,
    transactions-processed-per-second).  The values will be averaged together before being
    compared to the target value.
    """
    resource: ResourceMetricStatus | None = None
    """resource refers to a resource metric (such as those specified in requests and limits)
    known to Kubernetes describing each pod in the current scale target (e.g. CPU or memory).
    Such metrics are built in to Kubernetes, and have special scaling options on top of those
    available to normal per-pod metrics using the "pods" source.
    """
    type: str | None = None
    """type is the type of metric source.  It will be one of "ContainerResource", "External",
    "Object", "Pods" or "Resource", each corresponds to a matching field in the object.
    """


class ObjectMetricSource(WireModel, frozen=True, kw_only=True, omit_defaults=True, gc=False):
    """ObjectMetricSource indicates how to scale on a metric describing a kubernetes object (for
    example, hits-per-second on an Ingress object).
    """

    described_object: CrossVersionObjectReference = msgspec.field(
        default=CrossVersionObjectReference(), name="describedObject"
    )
    """describedObject specifies the descriptions of a object,such as kind,name apiVersion"""
    metric: MetricIdentifier = MetricIdentifier()
    """metric identifies the target metric by name and selector"""
    target: MetricTarget = MetricTarget()
    """target specifies the target value for the given metric"""


class ObjectMetricStatus(WireModel, frozen=True, kw_only=True, omit_defaults=True, gc=False):
    """ObjectMetricStatus indicates the current value of a metric describing a kubernetes object
    (for example, hits-per-second on an Ingress object).
    """

    current: MetricValueStatus = MetricValueStatus()
    """current contains the current value for the given metric"""
    described_object: CrossVersionObjectReference = msgspec.field(
        default=CrossVersionObjectReference(), name="describedObject"
    )
    """DescribedObject specifies the descriptions of a object,such as kind,name apiVersion"""
    metric: MetricIdentifier = MetricIdentifier()
    """metric identifies the target metric by name and selector"""


class PodsMetricSource(WireModel, frozen=True, kw_only=True, omit_defaults=True, gc=False):
    """PodsMetricSource indicates how to scale on a metric describing each pod in the current
    scale target (for example, transactions-processed-per-second). The values will be averaged
    together before being compared to the target value.
    """

    metric: MetricIdentifier = MetricIdentifier()
    """metric identifies the target metric by name and selector"""
    target: MetricTarget = MetricTarget()
    """target specifies the target value for the given metric"""


class PodsMetricStatus(WireModel, frozen=True, kw_only=True, omit_defaults=True, gc=False):
    """PodsMetricStatus indicates the current value of a metric describing each pod in the
    current scale target (for example, transactions-processed-per-second).
    """

    current: MetricValueStatus = MetricValueStatus()
    """current contains the current value for the given metric"""
    metric: MetricIdentifier = MetricIdentifier()
    """metric identifies the target metric by name and selector"""


class ResourceMetricSource(WireModel, frozen=True, kw_only=True, omit_defaults=True, gc=False):
    """ResourceMetricSource indicates how to scale on a resource metric known to Kubernetes, as
    specified in requests and limits, describing each pod in the current scale target (e.g.
    CPU or memory).  The values will be averaged together before being compared to the target.
    Such metrics are built in to Kubernetes, and have special scaling options on top of those
    available to normal per-pod metrics using the "pods" source.  Only one "target" type
    should be set.
    """

    name: str | None = None
    """name is the name of the resource in question."""
    target: MetricTarget = MetricTarget()
    """target specifies the target value for the given metric"""


class ResourceMetricStatus(WireModel, frozen=True, kw_only=True, omit_defaults=True, gc=False):
    """ResourceMetricStatus indicates the current value of a resource metric known to Kubernetes,
    as specified in requests and limits, describing each pod in the current scale target (e.g.
    CPU or memory).  Such metrics are built in to Kubernetes, and have special scaling options
    on top of those available to normal per-pod metrics using the "pods" source.
    """

    current: MetricValueStatus = MetricValueStatus()
    """current contains the current value for the given metric"""
    name: str | None = None
    """name is the name of the resource in question."""


if TYPE_CHECKING:
    from kinform.clientset import autoscaling_v2 as apply
else:
    apply = sys.modules[__name__]
"""What to apply: every field of a model may be left out, so it is the models themselves."""
