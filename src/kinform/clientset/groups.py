"""`Groups`: from a client to its typed clients. Written by ``make clientset``."""

from __future__ import annotations

from typing import TYPE_CHECKING, cast

if TYPE_CHECKING:
    from kinform.clientset.clients.admissionregistration_v1 import AdmissionregistrationV1
    from kinform.clientset.clients.apiextensions_v1 import ApiextensionsV1
    from kinform.clientset.clients.apiregistration_v1 import ApiregistrationV1
    from kinform.clientset.clients.apps_v1 import AppsV1
    from kinform.clientset.clients.authentication_v1 import AuthenticationV1
    from kinform.clientset.clients.authorization_v1 import AuthorizationV1
    from kinform.clientset.clients.autoscaling_v1 import AutoscalingV1
    from kinform.clientset.clients.autoscaling_v2 import AutoscalingV2
    from kinform.clientset.clients.batch_v1 import BatchV1
    from kinform.clientset.clients.certificates_v1 import CertificatesV1
    from kinform.clientset.clients.coordination_v1 import CoordinationV1
    from kinform.clientset.clients.core_v1 import CoreV1
    from kinform.clientset.clients.discovery_v1 import DiscoveryV1
    from kinform.clientset.clients.events_v1 import EventsV1
    from kinform.clientset.clients.flowcontrol_v1 import FlowcontrolV1
    from kinform.clientset.clients.networking_v1 import NetworkingV1
    from kinform.clientset.clients.node_v1 import NodeV1
    from kinform.clientset.clients.policy_v1 import PolicyV1
    from kinform.clientset.clients.rbac_v1 import RbacV1
    from kinform.clientset.clients.resource_v1 import ResourceV1
    from kinform.clientset.clients.scheduling_v1 import SchedulingV1
    from kinform.clientset.clients.storage_v1 import StorageV1
    from kinform.clientset.typed import Connected

__all__ = ["Groups"]


class Groups:
    """The API versions of a client, each loaded when it is first asked for."""

    __slots__ = ()

    @property
    def admissionregistration_v1(self) -> AdmissionregistrationV1:
        """The kinds of `kinform.clientset.admissionregistration_v1`."""
        from kinform.clientset.clients.admissionregistration_v1 import AdmissionregistrationV1

        return AdmissionregistrationV1(cast("Connected", self))

    @property
    def apiextensions_v1(self) -> ApiextensionsV1:
        """The kinds of `kinform.clientset.apiextensions_v1`."""
        from kinform.clientset.clients.apiextensions_v1 import ApiextensionsV1

        return ApiextensionsV1(cast("Connected", self))

    @property
    def apiregistration_v1(self) -> ApiregistrationV1:
        """The kinds of `kinform.clientset.apiregistration_v1`."""
        from kinform.clientset.clients.apiregistration_v1 import ApiregistrationV1

        return ApiregistrationV1(cast("Connected", self))

    @property
    def apps_v1(self) -> AppsV1:
        """The kinds of `kinform.clientset.apps_v1`."""
        from kinform.clientset.clients.apps_v1 import AppsV1

        return AppsV1(cast("Connected", self))

    @property
    def authentication_v1(self) -> AuthenticationV1:
        """The kinds of `kinform.clientset.authentication_v1`."""
        from kinform.clientset.clients.authentication_v1 import AuthenticationV1

        return AuthenticationV1(cast("Connected", self))

    @property
    def authorization_v1(self) -> AuthorizationV1:
        """The kinds of `kinform.clientset.authorization_v1`."""
        from kinform.clientset.clients.authorization_v1 import AuthorizationV1

        return AuthorizationV1(cast("Connected", self))

    @property
    def autoscaling_v1(self) -> AutoscalingV1:
        """The kinds of `kinform.clientset.autoscaling_v1`."""
        from kinform.clientset.clients.autoscaling_v1 import AutoscalingV1

        return AutoscalingV1(cast("Connected", self))

    @property
    def autoscaling_v2(self) -> AutoscalingV2:
        """The kinds of `kinform.clientset.autoscaling_v2`."""
        from kinform.clientset.clients.autoscaling_v2 import AutoscalingV2

        return AutoscalingV2(cast("Connected", self))

    @property
    def batch_v1(self) -> BatchV1:
        """The kinds of `kinform.clientset.batch_v1`."""
        from kinform.clientset.clients.batch_v1 import BatchV1

        return BatchV1(cast("Connected", self))

    @property
    def certificates_v1(self) -> CertificatesV1:
        """The kinds of `kinform.clientset.certificates_v1`."""
        from kinform.clientset.clients.certificates_v1 import CertificatesV1

        return CertificatesV1(cast("Connected", self))

    @property
    def coordination_v1(self) -> CoordinationV1:
        """The kinds of `kinform.clientset.coordination_v1`."""
        from kinform.clientset.clients.coordination_v1 import CoordinationV1

        return CoordinationV1(cast("Connected", self))

    @property
    def core_v1(self) -> CoreV1:
        """The kinds of `kinform.clientset.core_v1`."""
        from kinform.clientset.clients.core_v1 import CoreV1

        return CoreV1(cast("Connected", self))

    @property
    def discovery_v1(self) -> DiscoveryV1:
        """The kinds of `kinform.clientset.discovery_v1`."""
        from kinform.clientset.clients.discovery_v1 import DiscoveryV1

        return DiscoveryV1(cast("Connected", self))

    @property
    def events_v1(self) -> EventsV1:
        """The kinds of `kinform.clientset.events_v1`."""
        from kinform.clientset.clients.events_v1 import EventsV1

        return EventsV1(cast("Connected", self))

    @property
    def flowcontrol_v1(self) -> FlowcontrolV1:
        """The kinds of `kinform.clientset.flowcontrol_v1`."""
        from kinform.clientset.clients.flowcontrol_v1 import FlowcontrolV1

        return FlowcontrolV1(cast("Connected", self))

    @property
    def networking_v1(self) -> NetworkingV1:
        """The kinds of `kinform.clientset.networking_v1`."""
        from kinform.clientset.clients.networking_v1 import NetworkingV1

        return NetworkingV1(cast("Connected", self))

    @property
    def node_v1(self) -> NodeV1:
        """The kinds of `kinform.clientset.node_v1`."""
        from kinform.clientset.clients.node_v1 import NodeV1

        return NodeV1(cast("Connected", self))

    @property
    def policy_v1(self) -> PolicyV1:
        """The kinds of `kinform.clientset.policy_v1`."""
        from kinform.clientset.clients.policy_v1 import PolicyV1

        return PolicyV1(cast("Connected", self))

    @property
    def rbac_v1(self) -> RbacV1:
        """The kinds of `kinform.clientset.rbac_v1`."""
        from kinform.clientset.clients.rbac_v1 import RbacV1

        return RbacV1(cast("Connected", self))

    @property
    def resource_v1(self) -> ResourceV1:
        """The kinds of `kinform.clientset.resource_v1`."""
        from kinform.clientset.clients.resource_v1 import ResourceV1

        return ResourceV1(cast("Connected", self))

    @property
    def scheduling_v1(self) -> SchedulingV1:
        """The kinds of `kinform.clientset.scheduling_v1`."""
        from kinform.clientset.clients.scheduling_v1 import SchedulingV1

        return SchedulingV1(cast("Connected", self))

    @property
    def storage_v1(self) -> StorageV1:
        """The kinds of `kinform.clientset.storage_v1`."""
        from kinform.clientset.clients.storage_v1 import StorageV1

        return StorageV1(cast("Connected", self))
