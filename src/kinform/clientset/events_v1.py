"""Kubernetes v1.36.4: the models of events/v1. Written by ``make clientset``."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, ClassVar

import msgspec

from kinform import clientset
from kinform.clientset.wire import Time, WireModel
from kinform.meta import GroupVersionKind, GroupVersionResource

__all__ = ["Event", "EventSeries", "apply"]


class Event(WireModel, frozen=True, kw_only=True, omit_defaults=True, gc=False):
    """Event is a report of an event somewhere in the cluster. It generally denotes some state
    change in the system. Events have a limited retention time and triggers and messages may
    evolve with time.  Event consumers should not rely on the timing of an event with a given
    Reason reflecting a consistent underlying trigger, or the continued existence of events
    with that Reason.  Events should be treated as informative, best-effort, supplemental
    data.
    """

    __resource__: ClassVar[str] = "events.k8s.io/v1/events"
    __gvk__: ClassVar[GroupVersionKind] = GroupVersionKind("events.k8s.io", "v1", "Event")
    __gvr__: ClassVar[GroupVersionResource] = GroupVersionResource("events.k8s.io", "v1", "events")
    __namespaced__: ClassVar[bool] = True

    action: str | None = None
    """action is what action was taken/failed regarding to the regarding object. It is
    machine-readable. This field cannot be empty for new Events and it can have at most 128
    characters.
    """
    api_version: str | None = msgspec.field(default=None, name="apiVersion")
    """APIVersion defines the versioned schema of this representation of an object. Servers
    should convert recognized schemas to the latest internal value, and may reject
    unrecognized values. More info:
    https://git.k8s.io/community/contributors/devel/sig-architecture/api-conventions.md#resources
    """
    deprecated_count: int | None = msgspec.field(default=None, name="deprecatedCount")
    """deprecatedCount is the deprecated field assuring backward compatibility with core.v1 Event
    type.
    """
    deprecated_first_timestamp: Time | None = msgspec.field(
        default=None, name="deprecatedFirstTimestamp"
    )
    """deprecatedFirstTimestamp is the deprecated field assuring backward compatibility with
    core.v1 Event type.
    """
    deprecated_last_timestamp: Time | None = msgspec.field(
        default=None, name="deprecatedLastTimestamp"
    )
    """deprecatedLastTimestamp is the deprecated field assuring backward compatibility with
    core.v1 Event type.
    """
    deprecated_source: clientset.core_v1.EventSource = msgspec.field(
        default=clientset.core_v1.EventSource(), name="deprecatedSource"
    )
    """deprecatedSource is the deprecated field assuring backward compatibility with core.v1
    Event type.
    """
    event_time: Time | None = msgspec.field(default=None, name="eventTime")
    """eventTime is the time when this Event was first observed. It is required."""
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
    note: str | None = None
    """note is a human-readable description of the status of this operation. Maximal length of
    the note is 1kB, but libraries should be prepared to handle values up to 64kB.
    """
    reason: str | None = None
    """reason is why the action was taken. It is human-readable. This field cannot be empty for
    new Events and it can have at most 128 characters.
    """
    regarding: clientset.core_v1.ObjectReference = clientset.core_v1.ObjectReference()
    """regarding contains the object this Event is about. In most cases it's an Object reporting
    controller implements, e.g. ReplicaSetController implements ReplicaSets and this event is
    emitted because it acts on some changes in a ReplicaSet object.
    """
    related: clientset.core_v1.ObjectReference | None = None
    """related is the optional secondary object for more complex actions. E.g. when regarding
    object triggers a creation or deletion of related object.
    """
    reporting_controller: str | None = msgspec.field(default=None, name="reportingController")
    """reportingController is the name of the controller that emitted this Event, e.g.
    `kubernetes.io/kubelet`. This field cannot be empty for new Events.
    """
    reporting_instance: str | None = msgspec.field(default=None, name="reportingInstance")
    """reportingInstance is the ID of the controller instance, e.g. `kubelet-xyzf`. This field
    cannot be empty for new Events and it can have at most 128 characters.
    """
    series: EventSeries | None = None
    """series is data about the Event series this event represents or nil if it's a singleton
    Event.
    """
    type: str | None = None
    """type is the type of this event (Normal, Warning), new types could be added in the future.
    It is machine-readable. This field cannot be empty for new Events.
    """


class EventSeries(WireModel, frozen=True, kw_only=True, omit_defaults=True, gc=False):
    """EventSeries contain information on series of events, i.e. thing that was/is happening
    continuously for some time. How often to update the EventSeries is up to the event
    reporters. The default event reporter in
    "k8s.io/client-go/tools/events/event_broadcaster.go" shows how this struct is updated on
    heartbeats and can guide customized reporter implementations.
    """

    count: int | None = None
    """count is the number of occurrences in this series up to the last heartbeat time."""
    last_observed_time: Time | None = msgspec.field(default=None, name="lastObservedTime")
    """lastObservedTime is the time when last Event from the series was seen before last
    heartbeat.
    """


if TYPE_CHECKING:
    from kinform.clientset import events_v1 as apply
else:
    apply = sys.modules[__name__]
"""What to apply: every field of a model may be left out, so it is the models themselves."""
