"""Kubernetes v1.36.4: the models of apps/v1. Written by ``make clientset``."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from typing import TYPE_CHECKING, ClassVar

import msgspec

from kinform import clientset
from kinform.clientset.wire import JSON, IntOrString, Time, WireModel
from kinform.meta import GroupVersionKind, GroupVersionResource

__all__ = [
    "ControllerRevision",
    "DaemonSet",
    "DaemonSetCondition",
    "DaemonSetSpec",
    "DaemonSetStatus",
    "DaemonSetUpdateStrategy",
    "Deployment",
    "DeploymentCondition",
    "DeploymentSpec",
    "DeploymentStatus",
    "DeploymentStrategy",
    "ReplicaSet",
    "ReplicaSetCondition",
    "ReplicaSetSpec",
    "ReplicaSetStatus",
    "RollingUpdateDaemonSet",
    "RollingUpdateDeployment",
    "RollingUpdateStatefulSetStrategy",
    "StatefulSet",
    "StatefulSetCondition",
    "StatefulSetOrdinals",
    "StatefulSetPersistentVolumeClaimRetentionPolicy",
    "StatefulSetSpec",
    "StatefulSetStatus",
    "StatefulSetUpdateStrategy",
    "apply",
]


class ControllerRevision(WireModel, frozen=True, kw_only=True, omit_defaults=True, gc=False):
    """ControllerRevision implements an immutable snapshot of state data. Clients are responsible
    for serializing and deserializing the objects that contain their internal state. Once a
    ControllerRevision has been successfully created, it can not be updated. The API Server
    will fail validation of all requests that attempt to mutate the Data field.
    ControllerRevisions may, however, be deleted. Note that, due to its use by both the
    DaemonSet and StatefulSet controllers for update and rollback, this object is beta.
    However, it may be subject to name and representation changes in future releases, and
    clients should not depend on its stability. It is primarily for internal use by
    controllers.
    """

    __resource__: ClassVar[str] = "apps/v1/controllerrevisions"
    __gvk__: ClassVar[GroupVersionKind] = GroupVersionKind("apps", "v1", "ControllerRevision")
    __gvr__: ClassVar[GroupVersionResource] = GroupVersionResource(
        "apps", "v1", "controllerrevisions"
    )
    __namespaced__: ClassVar[bool] = True

    api_version: str | None = msgspec.field(default=None, name="apiVersion")
    """APIVersion defines the versioned schema of this representation of an object. Servers
    should convert recognized schemas to the latest internal value, and may reject
    unrecognized values. More info:
    https://git.k8s.io/community/contributors/devel/sig-architecture/api-conventions.md#resources
    """
    data: JSON = None
    """Data is the serialized representation of the state."""
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
    revision: int | None = None
    """Revision indicates the revision of the state represented by Data."""


class DaemonSetUpdateStrategy(WireModel, frozen=True, kw_only=True, omit_defaults=True, gc=False):
    """DaemonSetUpdateStrategy is a struct used to control the update strategy for a DaemonSet."""

    rolling_update: RollingUpdateDaemonSet | None = msgspec.field(
        default=None, name="rollingUpdate"
    )
    """Rolling update config params. Present only if type = "RollingUpdate"."""
    type: str | None = None
    """Type of daemon set update. Can be "RollingUpdate" or "OnDelete". Default is RollingUpdate.

    Possible enum values:
     - `"OnDelete"` Replace the old daemons only when it's killed
     - `"RollingUpdate"` Replace the old daemons by new ones using rolling update i.e replace
     them on each node one after the other.
    """


class DaemonSetSpec(WireModel, frozen=True, kw_only=True, omit_defaults=True, gc=False):
    """DaemonSetSpec is the specification of a daemon set."""

    min_ready_seconds: int | None = msgspec.field(default=None, name="minReadySeconds")
    """The minimum number of seconds for which a newly created DaemonSet pod should be ready
    without any of its container crashing, for it to be considered available. Defaults to 0
    (pod will be considered available as soon as it is ready).
    """
    revision_history_limit: int | None = msgspec.field(default=None, name="revisionHistoryLimit")
    """The number of old history to retain to allow rollback. This is a pointer to distinguish
    between explicit zero and not specified. Defaults to 10.
    """
    selector: clientset.meta_v1.LabelSelector | None = None
    """A label query over pods that are managed by the daemon set. Must match in order to be
    controlled. It must match the pod template's labels. More info:
    https://kubernetes.io/docs/concepts/overview/working-with-objects/labels/#label-selectors
    """
    template: clientset.core_v1.PodTemplateSpec = clientset.core_v1.PodTemplateSpec()
    """An object that describes the pod that will be created. The DaemonSet will create exactly
    one copy of this pod on every node that matches the template's node selector (or on every
    node if no node selector is specified). The only allowed template.spec.restartPolicy value
    is "Always". More info:
    https://kubernetes.io/docs/concepts/workloads/controllers/replicationcontroller#pod-template
    """
    update_strategy: DaemonSetUpdateStrategy = msgspec.field(
        default=DaemonSetUpdateStrategy(), name="updateStrategy"
    )
    """An update strategy to replace existing DaemonSet pods with new pods."""


class DaemonSetStatus(WireModel, frozen=True, kw_only=True, omit_defaults=True, gc=False):
    """DaemonSetStatus represents the current status of a daemon set."""

    collision_count: int | None = msgspec.field(default=None, name="collisionCount")
    """Count of hash collisions for the DaemonSet. The DaemonSet controller uses this field as a
    collision avoidance mechanism when it needs to create the name for the newest
    ControllerRevision.
    """
    conditions: Sequence[DaemonSetCondition] | None = None
    """Represents the latest available observations of a DaemonSet's current state."""
    current_number_scheduled: int | None = msgspec.field(
        default=None, name="currentNumberScheduled"
    )
    """The number of nodes that are running at least 1 daemon pod and are supposed to run the
    daemon pod. More info:
    https://kubernetes.io/docs/concepts/workloads/controllers/daemonset/
    """
    desired_number_scheduled: int | None = msgspec.field(
        default=None, name="desiredNumberScheduled"
    )
    """The total number of nodes that should be running the daemon pod (including nodes correctly
    running the daemon pod). More info:
    https://kubernetes.io/docs/concepts/workloads/controllers/daemonset/
    """
    number_available: int | None = msgspec.field(default=None, name="numberAvailable")
    """The number of nodes that should be running the daemon pod and have one or more of the
    daemon pod running and available (ready for at least spec.minReadySeconds)
    """
    number_misscheduled: int | None = msgspec.field(default=None, name="numberMisscheduled")
    """The number of nodes that are running the daemon pod, but are not supposed to run the
    daemon pod. More info:
    https://kubernetes.io/docs/concepts/workloads/controllers/daemonset/
    """
    number_ready: int | None = msgspec.field(default=None, name="numberReady")
    """numberReady is the number of nodes that should be running the daemon pod and have one or
    more of the daemon pod running with a Ready Condition.
    """
    number_unavailable: int | None = msgspec.field(default=None, name="numberUnavailable")
    """The number of nodes that should be running the daemon pod and have none of the daemon pod
    running and available (ready for at least spec.minReadySeconds)
    """
    observed_generation: int | None = msgspec.field(default=None, name="observedGeneration")
    """The most recent generation observed by the daemon set controller."""
    updated_number_scheduled: int | None = msgspec.field(
        default=None, name="updatedNumberScheduled"
    )
    """The total number of nodes that are running updated daemon pod"""


class DaemonSet(WireModel, frozen=True, kw_only=True, omit_defaults=True, gc=False):
    """DaemonSet represents the configuration of a daemon set."""

    __resource__: ClassVar[str] = "apps/v1/daemonsets"
    __gvk__: ClassVar[GroupVersionKind] = GroupVersionKind("apps", "v1", "DaemonSet")
    __gvr__: ClassVar[GroupVersionResource] = GroupVersionResource("apps", "v1", "daemonsets")
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
    spec: DaemonSetSpec = DaemonSetSpec()
    """The desired behavior of this daemon set. More info:
    https://git.k8s.io/community/contributors/devel/sig-architecture/api-conventions.md#spec-and-status
    """
    status: DaemonSetStatus = DaemonSetStatus()
    """The current status of this daemon set. This data may be out of date by some window of
    time. Populated by the system. Read-only. More info:
    https://git.k8s.io/community/contributors/devel/sig-architecture/api-conventions.md#spec-and-status
    """


class DaemonSetCondition(WireModel, frozen=True, kw_only=True, omit_defaults=True, gc=False):
    """DaemonSetCondition describes the state of a DaemonSet at a certain point."""

    last_transition_time: Time | None = msgspec.field(default=None, name="lastTransitionTime")
    """Last time the condition transitioned from one status to another."""
    message: str | None = None
    """A human readable message indicating details about the transition."""
    reason: str | None = None
    """The reason for the condition's last transition."""
    status: str | None = None
    """Status of the condition, one of True, False, Unknown."""
    type: str | None = None
    """Type of DaemonSet condition."""


class DeploymentStrategy(WireModel, frozen=True, kw_only=True, omit_defaults=True, gc=False):
    """DeploymentStrategy describes how to replace existing pods with new ones."""

    rolling_update: RollingUpdateDeployment | None = msgspec.field(
        default=None, name="rollingUpdate"
    )
    """Rolling update config params. Present only if DeploymentStrategyType = RollingUpdate."""
    type: str | None = None
    """Type of deployment. Can be "Recreate" or "RollingUpdate". Default is RollingUpdate.

    Possible enum values:
     - `"Recreate"` Kill all existing pods before creating new ones.
     - `"RollingUpdate"` Replace the old ReplicaSets by new one using rolling update i.e
     gradually scale down the old ReplicaSets and scale up the new one.
    """


class DeploymentSpec(WireModel, frozen=True, kw_only=True, omit_defaults=True, gc=False):
    """DeploymentSpec is the specification of the desired behavior of the Deployment."""

    min_ready_seconds: int | None = msgspec.field(default=None, name="minReadySeconds")
    """Minimum number of seconds for which a newly created pod should be ready without any of its
    container crashing, for it to be considered available. Defaults to 0 (pod will be
    considered available as soon as it is ready)
    """
    paused: bool | None = None
    """Indicates that the deployment is paused."""
    progress_deadline_seconds: int | None = msgspec.field(
        default=None, name="progressDeadlineSeconds"
    )
    """The maximum time in seconds for a deployment to make progress before it is considered to
    be failed. The deployment controller will continue to process failed deployments and a
    condition with a ProgressDeadlineExceeded reason will be surfaced in the deployment
    status. Note that progress will not be estimated during the time a deployment is paused.
    Defaults to 600s.
    """
    replicas: int | None = None
    """Number of desired pods. This is a pointer to distinguish between explicit zero and not
    specified. Defaults to 1.
    """
    revision_history_limit: int | None = msgspec.field(default=None, name="revisionHistoryLimit")
    """The number of old ReplicaSets to retain to allow rollback. This is a pointer to
    distinguish between explicit zero and not specified. Defaults to 10.
    """
    selector: clientset.meta_v1.LabelSelector | None = None
    """Label selector for pods. Existing ReplicaSets whose pods are selected by this will be the
    ones affected by this deployment. It must match the pod template's labels.
    """
    strategy: DeploymentStrategy = DeploymentStrategy()
    """The deployment strategy to use to replace existing pods with new ones."""
    template: clientset.core_v1.PodTemplateSpec = clientset.core_v1.PodTemplateSpec()
    """Template describes the pods that will be created. The only allowed
    template.spec.restartPolicy value is "Always".
    """


class DeploymentStatus(WireModel, frozen=True, kw_only=True, omit_defaults=True, gc=False):
    """DeploymentStatus is the most recently observed status of the Deployment."""

    available_replicas: int | None = msgspec.field(default=None, name="availableReplicas")
    """Total number of available non-terminating pods (ready for at least minReadySeconds)
    targeted by this deployment.
    """
    collision_count: int | None = msgspec.field(default=None, name="collisionCount")
    """Count of hash collisions for the Deployment. The Deployment controller uses this field as
    a collision avoidance mechanism when it needs to create the name for the newest
    ReplicaSet.
    """
    conditions: Sequence[DeploymentCondition] | None = None
    """Represents the latest available observations of a deployment's current state."""
    observed_generation: int | None = msgspec.field(default=None, name="observedGeneration")
    """The generation observed by the deployment controller."""
    ready_replicas: int | None = msgspec.field(default=None, name="readyReplicas")
    """Total number of non-terminating pods targeted by this Deployment with a Ready Condition."""
    replicas: int | None = None
    """Total number of non-terminating pods targeted by this deployment (their labels match the
    selector).
    """
    terminating_replicas: int | None = msgspec.field(default=None, name="terminatingReplicas")
    """Total number of terminating pods targeted by this deployment. Terminating pods have a
    non-null .metadata.deletionTimestamp and have not yet reached the Failed or Succeeded
    .status.phase.

    This is a beta field and requires enabling DeploymentReplicaSetTerminatingReplicas feature
    (enabled by default).
    """
    unavailable_replicas: int | None = msgspec.field(default=None, name="unavailableReplicas")
    """Total number of unavailable pods targeted by this deployment. This is the total number of
    pods that are still required for the deployment to have 100% available capacity. They may
    either be pods that are running but not yet available or pods that still have not been
    created.
    """
    updated_replicas: int | None = msgspec.field(default=None, name="updatedReplicas")
    """Total number of non-terminating pods targeted by this deployment that have the desired
    template spec.
    """


class Deployment(WireModel, frozen=True, kw_only=True, omit_defaults=True, gc=False):
    """Deployment enables declarative updates for Pods and ReplicaSets."""

    __resource__: ClassVar[str] = "apps/v1/deployments"
    __gvk__: ClassVar[GroupVersionKind] = GroupVersionKind("apps", "v1", "Deployment")
    __gvr__: ClassVar[GroupVersionResource] = GroupVersionResource("apps", "v1", "deployments")
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
    spec: DeploymentSpec = DeploymentSpec()
    """Specification of the desired behavior of the Deployment."""
    status: DeploymentStatus = DeploymentStatus()
    """Most recently observed status of the Deployment."""


class DeploymentCondition(WireModel, frozen=True, kw_only=True, omit_defaults=True, gc=False):
    """DeploymentCondition describes the state of a deployment at a certain point."""

    last_transition_time: Time | None = msgspec.field(default=None, name="lastTransitionTime")
    """Last time the condition transitioned from one status to another."""
    last_update_time: Time | None = msgspec.field(default=None, name="lastUpdateTime")
    """The last time this condition was updated."""
    message: str | None = None
    """A human readable message indicating details about the transition."""
    reason: str | None = None
    """The reason for the condition's last transition."""
    status: str | None = None
    """Status of the condition, one of True, False, Unknown."""
    type: str | None = None
    """Type of deployment condition."""


class ReplicaSetSpec(WireModel, frozen=True, kw_only=True, omit_defaults=True, gc=False):
    """ReplicaSetSpec is the specification of a ReplicaSet."""

    min_ready_seconds: int | None = msgspec.field(default=None, name="minReadySeconds")
    """Minimum number of seconds for which a newly created pod should be ready without any of its
    container crashing, for it to be considered available. Defaults to 0 (pod will be
    considered available as soon as it is ready)
    """
    replicas: int | None = None
    """Replicas is the number of desired pods. This is a pointer to distinguish between explicit
    zero and unspecified. Defaults to 1. More info:
    https://kubernetes.io/docs/concepts/workloads/controllers/replicaset
    """
    selector: clientset.meta_v1.LabelSelector | None = None
    """Selector is a label query over pods that should match the replica count. Label keys and
    values that must match in order to be controlled by this replica set. It must match the
    pod template's labels. More info:
    https://kubernetes.io/docs/concepts/overview/working-with-objects/labels/#label-selectors
    """
    template: clientset.core_v1.PodTemplateSpec = clientset.core_v1.PodTemplateSpec()
    """Template is the object that describes the pod that will be created if insufficient
    replicas are detected. More info:
    https://kubernetes.io/docs/concepts/workloads/controllers/replicaset/#pod-template
    """


class ReplicaSetStatus(WireModel, frozen=True, kw_only=True, omit_defaults=True, gc=False):
    """ReplicaSetStatus represents the current status of a ReplicaSet."""

    available_replicas: int | None = msgspec.field(default=None, name="availableReplicas")
    """The number of available non-terminating pods (ready for at least minReadySeconds) for this
    replica set.
    """
    conditions: Sequence[ReplicaSetCondition] | None = None
    """Represents the latest available observations of a replica set's current state."""
    fully_labeled_replicas: int | None = msgspec.field(default=None, name="fullyLabeledReplicas")
    """The number of non-terminating pods that have labels matching the labels of the pod
    template of the replicaset.
    """
    observed_generation: int | None = msgspec.field(default=None, name="observedGeneration")
    """ObservedGeneration reflects the generation of the most recently observed ReplicaSet."""
    ready_replicas: int | None = msgspec.field(default=None, name="readyReplicas")
    """The number of non-terminating pods targeted by this ReplicaSet with a Ready Condition."""
    replicas: int | None = None
    """Replicas is the most recently observed number of non-terminating pods. More info:
    https://kubernetes.io/docs/concepts/workloads/controllers/replicaset
    """
    terminating_replicas: int | None = msgspec.field(default=None, name="terminatingReplicas")
    """The number of terminating pods for this replica set. Terminating pods have a non-null
    .metadata.deletionTimestamp and have not yet reached the Failed or Succeeded
    .status.phase.

    This is a beta field and requires enabling DeploymentReplicaSetTerminatingReplicas feature
    (enabled by default).
    """


class ReplicaSet(WireModel, frozen=True, kw_only=True, omit_defaults=True, gc=False):
    """ReplicaSet ensures that a specified number of pod replicas are running at any given time."""

    __resource__: ClassVar[str] = "apps/v1/replicasets"
    __gvk__: ClassVar[GroupVersionKind] = GroupVersionKind("apps", "v1", "ReplicaSet")
    __gvr__: ClassVar[GroupVersionResource] = GroupVersionResource("apps", "v1", "replicasets")
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
    """If the Labels of a ReplicaSet are empty, they are defaulted to be the same as the Pod(s)
    that the ReplicaSet manages. Standard object's metadata. More info:
    https://git.k8s.io/community/contributors/devel/sig-architecture/api-conventions.md#metadata
    """
    spec: ReplicaSetSpec = ReplicaSetSpec()
    """Spec defines the specification of the desired behavior of the ReplicaSet. More info:
    https://git.k8s.io/community/contributors/devel/sig-architecture/api-conventions.md#spec-and-status
    """
    status: ReplicaSetStatus = ReplicaSetStatus()
    """Status is the most recently observed status of the ReplicaSet. This data may be out of
    date by some window of time. Populated by the system. Read-only. More info:
    https://git.k8s.io/community/contributors/devel/sig-architecture/api-conventions.md#spec-and-status
    """


class ReplicaSetCondition(WireModel, frozen=True, kw_only=True, omit_defaults=True, gc=False):
    """ReplicaSetCondition describes the state of a replica set at a certain point."""

    last_transition_time: Time | None = msgspec.field(default=None, name="lastTransitionTime")
    """The last time the condition transitioned from one status to another."""
    message: str | None = None
    """A human readable message indicating details about the transition."""
    reason: str | None = None
    """The reason for the condition's last transition."""
    status: str | None = None
    """Status of the condition, one of True, False, Unknown."""
    type: str | None = None
    """Type of replica set condition."""


class RollingUpdateDaemonSet(WireModel, frozen=True, kw_only=True, omit_defaults=True, gc=False):
    """Spec to control the desired behavior of daemon set rolling update."""

    max_surge: IntOrString | None = msgspec.field(default=None, name="maxSurge")
    """The maximum number of nodes with an existing available DaemonSet pod that can have an
    updated DaemonSet pod during during an update. Value can be an absolute number (ex: 5) or
    a percentage of desired pods (ex: 10%). This can not be 0 if MaxUnavailable is 0. Absolute
    number is calculated from percentage by rounding up to a minimum of 1. Default value is 0.
    Example: when this is set to 30%, at most 30% of the total number of nodes that should be
    running the daemon pod (i.e. status.desiredNumberScheduled) can have their a new pod
    created before the old pod is marked as deleted. The update starts by launching new pods
    on 30% of nodes. Once an updated pod is available (Ready for at least minReadySeconds) the
    old DaemonSet pod on that node is marked deleted. If the old pod becomes unavailable for
    any reason (Ready transitions to false, is evicted, or is drained) an updated pod is
    immediately created on that node without considering surge limits. Allowing surge implies
    the possibility that the resources consumed by the daemonset on any given node can double
    if the readiness check fails, and so resource intensive daemonsets should take into
    account that they may cause evictions during disruption.
    """
    max_unavailable: IntOrString | None = msgspec.field(default=None, name="maxUnavailable")
    """The maximum number of DaemonSet pods that can be unavailable during the update. Value can
    be an absolute number (ex: 5) or a percentage of total number of DaemonSet pods at the
    start of the update (ex: 10%). Absolute number is calculated from percentage by rounding
    up. This cannot be 0 if MaxSurge is 0 Default value is 1. Example: when this is set to
    30%, at most 30% of the total number of nodes that should be running the daemon pod (i.e.
    status.desiredNumberScheduled) can have their pods stopped for an update at any given
    time. The update starts by stopping at most 30% of those DaemonSet pods and then brings up
    new DaemonSet pods in their place. Once the new pods are available, it then proceeds onto
    other DaemonSet pods, thus ensuring that at least 70% of original number of DaemonSet pods
    are available at all times during the update.
    """


class RollingUpdateDeployment(WireModel, frozen=True, kw_only=True, omit_defaults=True, gc=False):
    """Spec to control the desired behavior of rolling update."""

    max_surge: IntOrString | None = msgspec.field(default=None, name="maxSurge")
    """The maximum number of pods that can be scheduled above the desired number of pods. Value
    can be an absolute number (ex: 5) or a percentage of desired pods (ex: 10%). This can not
    be 0 if MaxUnavailable is 0. Absolute number is calculated from percentage by rounding up.
    Defaults to 25%. Example: when this is set to 30%, the new ReplicaSet can be scaled up
    immediately when the rolling update starts, such that the total number of old and new pods
    do not exceed 130% of desired pods. Once old pods have been killed, new ReplicaSet can be
    scaled up further, ensuring that total number of pods running at any time during the
    update is at most 130% of desired pods.
    """
    max_unavailable: IntOrString | None = msgspec.field(default=None, name="maxUnavailable")
    """The maximum number of pods that can be unavailable during the update. Value can be an
    absolute number (ex: 5) or a percentage of desired pods (ex: 10%). Absolute number is
    calculated from percentage by rounding down. This can not be 0 if MaxSurge is 0. Defaults
    to 25%. Example: when this is set to 30%, the old ReplicaSet can be scaled down to 70% of
    desired pods immediately when the rolling update starts. Once new pods are ready, old
    ReplicaSet can be scaled down further, followed by scaling up the new ReplicaSet, ensuring
    that the total number of pods available at all times during the update is at least 70% of
    desired pods.
    """


class RollingUpdateStatefulSetStrategy(
    WireModel, frozen=True, kw_only=True, omit_defaults=True, gc=False
):
    """RollingUpdateStatefulSetStrategy is used to communicate parameter for
    RollingUpdateStatefulSetStrategyType.
    """

    max_unavailable: IntOrString | None = msgspec.field(default=None, name="maxUnavailable")
    """The maximum number of pods that can be unavailable during the update. Value can be an
    absolute number (ex: 5) or a percentage of desired pods (ex: 10%). Absolute number is
    calculated from percentage by rounding up. This can not be 0. Defaults to 1. This field is
    beta-level and is enabled by default. The field applies to all pods in the range 0 to
    Replicas-1. That means if there is any unavailable pod in the range 0 to Replicas-1, it
    will be counted towards MaxUnavailable. This setting might not be effective for the
    OrderedReady podManagementPolicy. That policy ensures pods are created and become ready
    one at a time.
    """
    partition: int | None = None
    """Partition indicates the ordinal at which the StatefulSet should be partitioned for
    updates. During a rolling update, all pods from ordinal Replicas-1 to Partition are
    updated. All pods from ordinal Partition-1 to 0 remain untouched. This is helpful in being
    able to do a canary based deployment. The default value is 0.
    """


class StatefulSetUpdateStrategy(WireModel, frozen=True, kw_only=True, omit_defaults=True, gc=False):
    """StatefulSetUpdateStrategy indicates the strategy that the StatefulSet controller will use
    to perform updates. It includes any additional parameters necessary to perform the update
    for the indicated strategy.
    """

    rolling_update: RollingUpdateStatefulSetStrategy | None = msgspec.field(
        default=None, name="rollingUpdate"
    )
    """RollingUpdate is used to communicate parameters when Type is
    RollingUpdateStatefulSetStrategyType.
    """
    type: str | None = None
    """Type indicates the type of the StatefulSetUpdateStrategy. Default is RollingUpdate.

    Possible enum values:
     - `"OnDelete"` triggers the legacy behavior. Version tracking and ordered rolling
     restarts are disabled. Pods are recreated from the StatefulSetSpec when they are manually
     deleted. When a scale operation is performed with this strategy,specification version
     indicated by the StatefulSet's currentRevision.
     - `"RollingUpdate"` indicates that update will be applied to all Pods in the StatefulSet
     with respect to the StatefulSet ordering constraints. When a scale operation is performed
     with this strategy, new Pods will be created from the specification version indicated by
     the StatefulSet's updateRevision.
    """


class StatefulSetSpec(WireModel, frozen=True, kw_only=True, omit_defaults=True, gc=False):
    """A StatefulSetSpec is the specification of a StatefulSet."""

    min_ready_seconds: int | None = msgspec.field(default=None, name="minReadySeconds")
    """Minimum number of seconds for which a newly created pod should be ready without any of its
    container crashing for it to be considered available. Defaults to 0 (pod will be
    considered available as soon as it is ready)
    """
    ordinals: StatefulSetOrdinals | None = None
    """ordinals controls the numbering of replica indices in a StatefulSet. The default ordinals
    behavior assigns a "0" index to the first replica and increments the index by one for each
    additional replica requested.
    """
    persistent_volume_claim_retention_policy: (
        StatefulSetPersistentVolumeClaimRetentionPolicy | None
    ) = msgspec.field(default=None, name="persistentVolumeClaimRetentionPolicy")
    """persistentVolumeClaimRetentionPolicy describes the lifecycle of persistent volume claims
    created from volumeClaimTemplates. By default, all persistent volume claims are created as
    needed and retained until manually deleted. This policy allows the lifecycle to be
    altered, for example by deleting persistent volume claims when their stateful set is
    deleted, or when their pod is scaled down.
    """
    pod_management_policy: str | None = msgspec.field(default=None, name="podManagementPolicy")
    """podManagementPolicy controls how pods are created during initial scale up, when replacing
    pods on nodes, or when scaling down. The default policy is `OrderedReady`, where pods are
    created in increasing order (pod-0, then pod-1, etc) and the controller will wait until
    each pod is ready before continuing. When scaling down, the pods are removed in the
    opposite order. The alternative policy is `Parallel` which will create pods in parallel to
    match the desired scale without waiting, and on scale down will delete all pods at once.

    Possible enum values:
     - `"OrderedReady"` will create pods in strictly increasing order on scale up and strictly
     decreasing order on scale down, progressing only when the previous pod is ready or
     terminated. At most one pod will be changed at any time.
     - `"Parallel"` will create and delete pods as soon as the stateful set replica count is
     changed, and will not wait for pods to be ready or complete termination.
    """
    replicas: int | None = None
    """replicas is the desired number of replicas of the given Template. These are replicas in
    the sense that they are instantiations of the same Template, but individual replicas also
    have a consistent identity. If unspecified, defaults to 1.
    """
    revision_history_limit: int | None = msgspec.field(default=None, name="revisionHistoryLimit")
    """revisionHistoryLimit is the maximum number of revisions that will be maintained in the
    StatefulSet's revision history. The revision history consists of all revisions not
    represented by a currently applied StatefulSetSpec version. The default value is 10.
    """
    selector: clientset.meta_v1.LabelSelector | None = None
    """selector is a label query over pods that should match the replica count. It must match the
    pod template's labels. More info:
    https://kubernetes.io/docs/concepts/overview/working-with-objects/labels/#label-selectors
    """
    service_name: str | None = msgspec.field(default=None, name="serviceName")
    """serviceName is the name of the service that governs this StatefulSet. This service must
    exist before the StatefulSet, and is responsible for the network identity of the set. Pods
    get DNS/hostnames that follow the pattern:
    pod-specific-string.serviceName.default.svc.cluster.local where "pod-specific-string" is
    managed by the StatefulSet controller.
    """
    template: clientset.core_v1.PodTemplateSpec = clientset.core_v1.PodTemplateSpec()
    """template is the object that describes the pod that will be created if insufficient
    replicas are detected. Each pod stamped out by the StatefulSet will fulfill this Template,
    but have a unique identity from the rest of the StatefulSet. Each pod will be named with
    the format <statefulsetname>-<podindex>. For example, a pod in a StatefulSet named "web"
    with index number "3" would be named "web-3". The only allowed template.spec.restartPolicy
    value is "Always".
    """
    update_strategy: StatefulSetUpdateStrategy = msgspec.field(
        default=StatefulSetUpdateStrategy(), name="updateStrategy"
    )
    """updateStrategy indicates the StatefulSetUpdateStrategy that will be employed to update
    Pods in the StatefulSet when a revision is made to Template.
    """
    volume_claim_templates: Sequence[clientset.core_v1.PersistentVolumeClaim] | None = (
        msgspec.field(default=None, name="volumeClaimTemplates")
    )
    """volumeClaimTemplates is a list of claims that pods are allowed to reference. The
    StatefulSet controller is responsible for mapping network identities to claims in a way
    that maintains the identity of a pod. Every claim in this list must have at least one
    matching (by name) volumeMount in one container in the template. A claim in this list
    takes precedence over any volumes in the template, with the same name.
    """


class StatefulSetStatus(WireModel, frozen=True, kw_only=True, omit_defaults=True, gc=False):
    """StatefulSetStatus represents the current state of a StatefulSet."""

    available_replicas: int | None = msgspec.field(default=None, name="availableReplicas")
    """Total number of available pods (ready for at least minReadySeconds) targeted by this
    statefulset.
    """
    collision_count: int | None = msgspec.field(default=None, name="collisionCount")
    """collisionCount is the count of hash collisions for the StatefulSet. The StatefulSet
    controller uses this field as a collision avoidance mechanism when it needs to create the
    name for the newest ControllerRevision.
    """
    conditions: Sequence[StatefulSetCondition] | None = None
    """Represents the latest available observations of a statefulset's current state."""
    current_replicas: int | None = msgspec.field(default=None, name="currentReplicas")
    """currentReplicas is the number of Pods created by the StatefulSet controller from the
    StatefulSet version indicated by currentRevision.
    """
    current_revision: str | None = msgspec.field(default=None, name="currentRevision")
    """currentRevision, if not empty, indicates the version of the StatefulSet used to generate
    Pods in the sequence [0,currentReplicas).
    """
    observed_generation: int | None = msgspec.field(default=None, name="observedGeneration")
    """observedGeneration is the most recent generation observed for this StatefulSet. It
    corresponds to the StatefulSet's generation, which is updated on mutation by the API
    Server.
    """
    ready_replicas: int | None = msgspec.field(default=None, name="readyReplicas")
    """readyReplicas is the number of pods created for this StatefulSet with a Ready Condition."""
    replicas: int | None = None
    """replicas is the number of Pods created by the StatefulSet controller."""
    update_revision: str | None = msgspec.field(default=None, name="updateRevision")
    """updateRevision, if not empty, indicates the version of the StatefulSet used to generate
    Pods in the sequence [replicas-updatedReplicas,replicas)
    """
    updated_replicas: int | None = msgspec.field(default=None, name="updatedReplicas")
    """updatedReplicas is the number of Pods created by the StatefulSet controller from the
    StatefulSet version indicated by updateRevision.
    """


class StatefulSet(WireModel, frozen=True, kw_only=True, omit_defaults=True, gc=False):
    """StatefulSet represents a set of pods with consistent identities. Identities are defined
    as:
      - Network: A single stable DNS and hostname.
      - Storage: As many VolumeClaims as requested.

    The StatefulSet guarantees that a given network identity will always map to the same
    storage identity.
    """

    __resource__: ClassVar[str] = "apps/v1/statefulsets"
    __gvk__: ClassVar[GroupVersionKind] = GroupVersionKind("apps", "v1", "StatefulSet")
    __gvr__: ClassVar[GroupVersionResource] = GroupVersionResource("apps", "v1", "statefulsets")
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
    spec: StatefulSetSpec = StatefulSetSpec()
    """Spec defines the desired identities of pods in this set."""
    status: StatefulSetStatus = StatefulSetStatus()
    """Status is the current status of Pods in this StatefulSet. This data may be out of date by
    some window of time.
    """


class StatefulSetCondition(WireModel, frozen=True, kw_only=True, omit_defaults=True, gc=False):
    """StatefulSetCondition describes the state of a statefulset at a certain point."""

    last_transition_time: Time | None = msgspec.field(default=None, name="lastTransitionTime")
    """Last time the condition transitioned from one status to another."""
    message: str | None = None
    """A human readable message indicating details about the transition."""
    reason: str | None = None
    """The reason for the condition's last transition."""
    status: str | None = None
    """Status of the condition, one of True, False, Unknown."""
    type: str | None = None
    """Type of statefulset condition."""


class StatefulSetOrdinals(WireModel, frozen=True, kw_only=True, omit_defaults=True, gc=False):
    """StatefulSetOrdinals describes the policy used for replica ordinal assignment in this
    StatefulSet.
    """

    start: int | None = None
    """start is the number representing the first replica's index. It may be used to number
    replicas from an alternate index (eg: 1-indexed) over the default 0-indexed names, or to
    orchestrate progressive movement of replicas from one StatefulSet to another. If set,
    replica indices will be in the range:
      [.spec.ordinals.start, .spec.ordinals.start + .spec.replicas).
    If unset, defaults to 0. Replica indices will be in the range:
      [0, .spec.replicas).
    """


class StatefulSetPersistentVolumeClaimRetentionPolicy(
    WireModel, frozen=True, kw_only=True, omit_defaults=True, gc=False
):
    """StatefulSetPersistentVolumeClaimRetentionPolicy describes the policy used for PVCs created
    from the StatefulSet VolumeClaimTemplates.
    """

    when_deleted: str | None = msgspec.field(default=None, name="whenDeleted")
    """WhenDeleted specifies what happens to PVCs created from StatefulSet VolumeClaimTemplates
    when the StatefulSet is deleted. The default policy of `Retain` causes PVCs to not be
    affected by StatefulSet deletion. The `Delete` policy causes those PVCs to be deleted.
    """
    when_scaled: str | None = msgspec.field(default=None, name="whenScaled")
    """WhenScaled specifies what happens to PVCs created from StatefulSet VolumeClaimTemplates
    when the StatefulSet is scaled down. The default policy of `Retain` causes PVCs to not be
    affected by a scaledown. The `Delete` policy causes the associated PVCs for any excess
    pods above the replica count to be deleted.
    """


if TYPE_CHECKING:
    from kinform.clientset import apps_v1 as apply
else:
    apply = sys.modules[__name__]
"""What to apply: every field of a model may be left out, so it is the models themselves."""
