"""Kubernetes v1.36.4: the models of coordination/v1. Written by ``make clientset``."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, ClassVar

import msgspec

from kinform import clientset
from kinform.clientset.wire import Time, WireModel
from kinform.meta import GroupVersionKind, GroupVersionResource

__all__ = ["Lease", "LeaseSpec", "apply"]


class LeaseSpec(WireModel, frozen=True, kw_only=True, omit_defaults=True, gc=False):
    """LeaseSpec is a specification of a Lease."""

    acquire_time: Time | None = msgspec.field(default=None, name="acquireTime")
    """acquireTime is a time when the current lease was acquired."""
    holder_identity: str | None = msgspec.field(default=None, name="holderIdentity")
    """holderIdentity contains the identity of the holder of a current lease. If Coordinated
    Leader Election is used, the holder identity must be equal to the elected
    LeaseCandidate.metadata.name field.
    """
    lease_duration_seconds: int | None = msgspec.field(default=None, name="leaseDurationSeconds")
    """leaseDurationSeconds is a duration that candidates for a lease need to wait to force
    acquire it. This is measured against the time of last observed renewTime.
    """
    lease_transitions: int | None = msgspec.field(default=None, name="leaseTransitions")
    """leaseTransitions is the number of transitions of a lease between holders."""
    preferred_holder: str | None = msgspec.field(default=None, name="preferredHolder")
    """PreferredHolder signals to a lease holder that the lease has a more optimal holder and
    should be given up. This field can only be set if Strategy is also set.
    """
    renew_time: Time | None = msgspec.field(default=None, name="renewTime")
    """renewTime is a time when the current holder of a lease has last updated the lease."""
    strategy: str | None = None
    """Strategy indicates the strategy for picking the leader for coordinated leader election. If
    the field is not specified, there is no active coordination for this lease. (Alpha) Using
    this field requires the CoordinatedLeaderElection feature gate to be enabled.
    """


class Lease(WireModel, frozen=True, kw_only=True, omit_defaults=True, gc=False):
    """Lease defines a lease concept."""

    __resource__: ClassVar[str] = "coordination.k8s.io/v1/leases"
    __gvk__: ClassVar[GroupVersionKind] = GroupVersionKind("coordination.k8s.io", "v1", "Lease")
    __gvr__: ClassVar[GroupVersionResource] = GroupVersionResource(
        "coordination.k8s.io", "v1", "leases"
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
    """More info:
    https://git.k8s.io/community/contributors/devel/sig-architecture/api-conventions.md#metadata
    """
    spec: LeaseSpec = LeaseSpec()
    """spec contains the specification of the Lease. More info:
    https://git.k8s.io/community/contributors/devel/sig-architecture/api-conventions.md#spec-and-status
    """


if TYPE_CHECKING:
    from kinform.clientset import coordination_v1 as apply
else:
    apply = sys.modules[__name__]
"""What to apply: every field of a model may be left out, so it is the models themselves."""
