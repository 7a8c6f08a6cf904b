"""Kubernetes v1.36.4: the models of apiregistration/v1. Written by ``make clientset``."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from typing import TYPE_CHECKING, ClassVar

import msgspec

from kinform import clientset
from kinform.clientset.wire import Time, WireModel
from kinform.meta import GroupVersionKind, GroupVersionResource

__all__ = [
    "APIService",
    "APIServiceCondition",
    "APIServiceSpec",
    "APIServiceStatus",
    "ServiceReference",
    "apply",
]


class APIServiceSpec(WireModel, frozen=True, kw_only=True, omit_defaults=True, gc=False):
    """APIServiceSpec contains information for locating and communicating with a server. Only
    https is supported, though you are able to disable certificate verification.
    """

    ca_bundle: bytes | None = msgspec.field(default=None, name="caBundle")
    """CABundle is a PEM encoded CA bundle which will be used to validate an API server's serving
    certificate. If unspecified, system trust roots on the apiserver are used.
    """
    group: str | None = None
    """Group is the API group name this server hosts"""
    group_priority_minimum: int | None = msgspec.field(default=None, name="groupPriorityMinimum")
    """GroupPriorityMinimum is the priority this group should have at least. Higher priority
    means that the group is preferred by clients over lower priority ones. Note that other
    versions of this group might specify even higher GroupPriorityMinimum values such that the
    whole group gets a higher priority. The primary sort is based on GroupPriorityMinimum,
    ordered highest number to lowest (20 before 10). The secondary sort is based on the
    alphabetical comparison of the name of the object.  (v1.bar before v1.foo) We'd recommend
    something like: *.k8s.io (except extensions) at 18000 and PaaSes (OpenShift, Deis) are
    recommended to be in the 2000s
    """
    insecure_skip_tls_verify: bool | None = msgspec.field(
        default=None, name="insecureSkipTLSVerify"
    )
    """InsecureSkipTLSVerify disables TLS certificate verification when communicating with this
    server. This is strongly discouraged.  You should use the CABundle instead.
    """
    service: ServiceReference | None = None
    """Service is a reference to the service for this API server.  It must communicate on port
    443. If the Service is nil, that means the handling for the API groupversion is handled
    locally on this server. The call will simply delegate to the normal handler chain to be
    fulfilled.
    """
    version: str | None = None
    """Version is the API version this server hosts.  For example, "v1" """
    version_priority: int | None = msgspec.field(default=None, name="versionPriority")
    """VersionPriority controls the ordering of this API version inside of its group.  Must be
    greater than zero. The primary sort is based on VersionPriority, ordered highest to lowest
    (20 before 10). Since it's inside of a group, the number can be small, probably in the
    10s. In case of equal version priorities, the version string will be used to compute the
    order inside a group. If the version string is "kube-like", it will sort above non
    "kube-like" version strings, which are ordered lexicographically. "Kube-like" versions
    start with a "v", then are followed by a number (the major version), then optionally the
    string "alpha" or "beta" and another number (the minor version). These are sorted first by
    GA > beta > alpha (where GA is a version with no suffix such as beta or alpha), and then
    by comparing major version, then minor version. An example sorted list of versions: v10,
    v2, v1, v11beta2, v10beta3, v3beta1, v12alpha1, v11alpha2, foo1, foo10.
    """


class APIServiceStatus(WireModel, frozen=True, kw_only=True, omit_defaults=True, gc=False):
    """APIServiceStatus contains derived information about an API server"""

    conditions: Sequence[APIServiceCondition] | None = None
    """Current service state of apiService."""


class APIService(WireModel, frozen=True, kw_only=True, omit_defaults=True, gc=False):
    """APIService represents a server for a particular GroupVersion. Name must be
    "version.group".
    """

    __resource__: ClassVar[str] = "apiregistration.k8s.io/v1/apiservices"
    __gvk__: ClassVar[GroupVersionKind] = GroupVersionKind(
        "apiregistration.k8s.io", "v1", "APIService"
    )
    __gvr__: ClassVar[GroupVersionResource] = GroupVersionResource(
        "apiregistration.k8s.io", "v1", "apiservices"
    )
    __namespaced__: ClassVar[bool] = False

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
    spec: APIServiceSpec = APIServiceSpec()
    """Spec contains information for locating and communicating with a server"""
    status: APIServiceStatus = APIServiceStatus()
    """Status contains derived information about an API server"""


class APIServiceCondition(WireModel, frozen=True, kw_only=True, omit_defaults=True, gc=False):
    """APIServiceCondition describes the state of an APIService at a particular point"""

    last_transition_time: Time | None = msgspec.field(default=None, name="lastTransitionTime")
    """Last time the condition transitioned from one status to another."""
    message: str | None = None
    """Human-readable message indicating details about last transition."""
    reason: str | None = None
    """Unique, one-word, CamelCase reason for the condition's last transition."""
    status: str | None = None
    """Status is the status of the condition. Can be True, False, Unknown."""
    type: str | None = None
    """Type is the type of the condition."""


class ServiceReference(WireModel, frozen=True, kw_only=True, omit_defaults=True, gc=False):
    """ServiceReference holds a reference to Service.legacy.k8s.io"""

    name: str | None = None
    """Name is the name of the service"""
    namespace: str | None = None
    """Namespace is the namespace of the service"""
    port: int | None = None
    """If specified, the port on the service that hosting webhook. Default to 443 for backward
    compatibility. `port` should be a valid port number (1-65535, inclusive).
    """


if TYPE_CHECKING:
    from kinform.clientset import apiregistration_v1 as apply
else:
    apply = sys.modules[__name__]
"""What to apply: every field of a model may be left out, so it is the models themselves."""
