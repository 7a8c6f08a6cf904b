"""`Groups`: from a blocking client to its kinds. Written by ``make clientset``."""

from __future__ import annotations

from typing import TYPE_CHECKING, cast, final

from kinform.sync._typed import Group

if TYPE_CHECKING:
    from kinform.clientset import (
        admissionregistration_v1,
        apiextensions_v1,
        apiregistration_v1,
        apps_v1,
        authentication_v1,
        authorization_v1,
        autoscaling_v1,
        autoscaling_v2,
        batch_v1,
        certificates_v1,
        coordination_v1,
        core_v1,
        discovery_v1,
        events_v1,
        flowcontrol_v1,
        networking_v1,
        node_v1,
        policy_v1,
        rbac_v1,
        resource_v1,
        scheduling_v1,
        storage_v1,
    )
    from kinform.sync.client import Client
    from kinform.sync.resource_client import ResourceClient

__all__ = [
    "AdmissionregistrationV1",
    "ApiextensionsV1",
    "ApiregistrationV1",
    "AppsV1",
    "AuthenticationV1",
    "AuthorizationV1",
    "AutoscalingV1",
    "AutoscalingV2",
    "BatchV1",
    "CertificatesV1",
    "CoordinationV1",
    "CoreV1",
    "DiscoveryV1",
    "EventsV1",
    "FlowcontrolV1",
    "Groups",
    "NetworkingV1",
    "NodeV1",
    "PolicyV1",
    "RbacV1",
    "ResourceV1",
    "SchedulingV1",
    "StorageV1",
]


@final
class AdmissionregistrationV1(Group):
    """The kinds of admissionregistration.k8s.io/v1."""

    def mutating_admission_policies(
        self,
    ) -> ResourceClient[admissionregistration_v1.MutatingAdmissionPolicy]:
        """Of the whole cluster."""
        from kinform.clientset import admissionregistration_v1

        return self._of(admissionregistration_v1.MutatingAdmissionPolicy)

    def mutating_admission_policy_bindings(
        self,
    ) -> ResourceClient[admissionregistration_v1.MutatingAdmissionPolicyBinding]:
        """Of the whole cluster."""
        from kinform.clientset import admissionregistration_v1

        return self._of(admissionregistration_v1.MutatingAdmissionPolicyBinding)

    def mutating_webhook_configurations(
        self,
    ) -> ResourceClient[admissionregistration_v1.MutatingWebhookConfiguration]:
        """Of the whole cluster."""
        from kinform.clientset import admissionregistration_v1

        return self._of(admissionregistration_v1.MutatingWebhookConfiguration)

    def validating_admission_policies(
        self,
    ) -> ResourceClient[admissionregistration_v1.ValidatingAdmissionPolicy]:
        """Of the whole cluster."""
        from kinform.clientset import admissionregistration_v1

        return self._of(admissionregistration_v1.ValidatingAdmissionPolicy)

    def validating_admission_policy_bindings(
        self,
    ) -> ResourceClient[admissionregistration_v1.ValidatingAdmissionPolicyBinding]:
        """Of the whole cluster."""
        from kinform.clientset import admissionregistration_v1

        return self._of(admissionregistration_v1.ValidatingAdmissionPolicyBinding)

    def validating_webhook_configurations(
        self,
    ) -> ResourceClient[admissionregistration_v1.ValidatingWebhookConfiguration]:
        """Of the whole cluster."""
        from kinform.clientset import admissionregistration_v1

        return self._of(admissionregistration_v1.ValidatingWebhookConfiguration)


@final
class ApiextensionsV1(Group):
    """The kinds of apiextensions.k8s.io/v1."""

    def custom_resource_definitions(
        self,
    ) -> ResourceClient[apiextensions_v1.CustomResourceDefinition]:
        """Of the whole cluster."""
        from kinform.clientset import apiextensions_v1

        return self._of(apiextensions_v1.CustomResourceDefinition)


@final
class ApiregistrationV1(Group):
    """The kinds of apiregistration.k8s.io/v1."""

    def api_services(self) -> ResourceClient[apiregistration_v1.APIService]:
        """Of the whole cluster."""
        from kinform.clientset import apiregistration_v1

        return self._of(apiregistration_v1.APIService)


@final
class AppsV1(Group):
    """The kinds of apps/v1."""

    def controller_revisions(
        self, namespace: str | None = None
    ) -> ResourceClient[apps_v1.ControllerRevision]:
        """In ``namespace``; by default the client's own, with ``""`` in all."""
        from kinform.clientset import apps_v1

        return self._of(apps_v1.ControllerRevision, namespace)

    def daemon_sets(self, namespace: str | None = None) -> ResourceClient[apps_v1.DaemonSet]:
        """In ``namespace``; by default the client's own, with ``""`` in all."""
        from kinform.clientset import apps_v1

        return self._of(apps_v1.DaemonSet, namespace)

    def deployments(self, namespace: str | None = None) -> ResourceClient[apps_v1.Deployment]:
        """In ``namespace``; by default the client's own, with ``""`` in all."""
        from kinform.clientset import apps_v1

        return self._of(apps_v1.Deployment, namespace)

    def replica_sets(self, namespace: str | None = None) -> ResourceClient[apps_v1.ReplicaSet]:
        """In ``namespace``; by default the client's own, with ``""`` in all."""
        from kinform.clientset import apps_v1

        return self._of(apps_v1.ReplicaSet, namespace)

    def stateful_sets(self, namespace: str | None = None) -> ResourceClient[apps_v1.StatefulSet]:
        """In ``namespace``; by default the client's own, with ``""`` in all."""
        from kinform.clientset import apps_v1

        return self._of(apps_v1.StatefulSet, namespace)


@final
class AuthenticationV1(Group):
    """The kinds of authentication.k8s.io/v1."""

    def self_subject_reviews(self) -> ResourceClient[authentication_v1.SelfSubjectReview]:
        """Of the whole cluster."""
        from kinform.clientset import authentication_v1

        return self._of(authentication_v1.SelfSubjectReview)

    def token_reviews(self) -> ResourceClient[authentication_v1.TokenReview]:
        """Of the whole cluster."""
        from kinform.clientset import authentication_v1

        return self._of(authentication_v1.TokenReview)


@final
class AuthorizationV1(Group):
    """The kinds of authorization.k8s.io/v1."""

    def local_subject_access_reviews(
        self, namespace: str | None = None
    ) -> ResourceClient[authorization_v1.LocalSubjectAccessReview]:
        """In ``namespace``; by default the client's own, with ``""`` in all."""
        from kinform.clientset import authorization_v1

        return self._of(authorization_v1.LocalSubjectAccessReview, namespace)

    def self_subject_access_reviews(
        self,
    ) -> ResourceClient[authorization_v1.SelfSubjectAccessReview]:
        """Of the whole cluster."""
        from kinform.clientset import authorization_v1

        return self._of(authorization_v1.SelfSubjectAccessReview)

    def self_subject_rules_reviews(self) -> ResourceClient[authorization_v1.SelfSubjectRulesReview]:
        """Of the whole cluster."""
        from kinform.clientset import authorization_v1

        return self._of(authorization_v1.SelfSubjectRulesReview)

    def subject_access_reviews(self) -> ResourceClient[authorization_v1.SubjectAccessReview]:
        """Of the whole cluster."""
        from kinform.clientset import authorization_v1

        return self._of(authorization_v1.SubjectAccessReview)


@final
class AutoscalingV1(Group):
    """The kinds of autoscaling/v1."""

    def horizontal_pod_autoscalers(
        self, namespace: str | None = None
    ) -> ResourceClient[autoscaling_v1.HorizontalPodAutoscaler]:
        """In ``namespace``; by default the client's own, with ``""`` in all."""
        from kinform.clientset import autoscaling_v1

        return self._of(autoscaling_v1.HorizontalPodAutoscaler, namespace)


@final
class AutoscalingV2(Group):
    """The kinds of autoscaling/v2."""

    def horizontal_pod_autoscalers(
        self, namespace: str | None = None
    ) -> ResourceClient[autoscaling_v2.HorizontalPodAutoscaler]:
        """In ``namespace``; by default the client's own, with ``""`` in all."""
        from kinform.clientset import autoscaling_v2

        return self._of(autoscaling_v2.HorizontalPodAutoscaler, namespace)


@final
class BatchV1(Group):
    """The kinds of batch/v1."""

    def cron_jobs(self, namespace: str | None = None) -> ResourceClient[batch_v1.CronJob]:
        """In ``namespace``; by default the client's own, with ``""`` in all."""
        from kinform.clientset import batch_v1

        return self._of(batch_v1.CronJob, namespace)

    def jobs(self, namespace: str | None = None) -> ResourceClient[batch_v1.Job]:
        """In ``namespace``; by default the client's own, with ``""`` in all."""
        from kinform.clientset import batch_v1

        return self._of(batch_v1.Job, namespace)


@final
class CertificatesV1(Group):
    """The kinds of certificates.k8s.io/v1."""

    def certificate_signing_requests(
        self,
    ) -> ResourceClient[certificates_v1.CertificateSigningRequest]:
        """Of the whole cluster."""
        from kinform.clientset import certificates_v1

        return self._of(certificates_v1.CertificateSigningRequest)


@final
class CoordinationV1(Group):
    """The kinds of coordination.k8s.io/v1."""

    def leases(self, namespace: str | None = None) -> ResourceClient[coordination_v1.Lease]:
        """In ``namespace``; by default the client's own, with ``""`` in all."""
        from kinform.clientset import coordination_v1

        return self._of(coordination_v1.Lease, namespace)


@final
class CoreV1(Group):
    """The kinds of v1."""

    def bindings(self, namespace: str | None = None) -> ResourceClient[core_v1.Binding]:
        """In ``namespace``; by default the client's own, with ``""`` in all."""
        from kinform.clientset import core_v1

        return self._of(core_v1.Binding, namespace)

    def component_statuses(self) -> ResourceClient[core_v1.ComponentStatus]:
        """Of the whole cluster."""
        from kinform.clientset import core_v1

        return self._of(core_v1.ComponentStatus)

    def config_maps(self, namespace: str | None = None) -> ResourceClient[core_v1.ConfigMap]:
        """In ``namespace``; by default the client's own, with ``""`` in all."""
        from kinform.clientset import core_v1

        return self._of(core_v1.ConfigMap, namespace)

    def endpoints(self, namespace: str | None = None) -> ResourceClient[core_v1.Endpoints]:
        """In ``namespace``; by default the client's own, with ``""`` in all."""
        from kinform.clientset import core_v1

        return self._of(core_v1.Endpoints, namespace)

    def events(self, namespace: str | None = None) -> ResourceClient[core_v1.Event]:
        """In ``namespace``; by default the client's own, with ``""`` in all."""
        from kinform.clientset import core_v1

        return self._of(core_v1.Event, namespace)

    def limit_ranges(self, namespace: str | None = None) -> ResourceClient[core_v1.LimitRange]:
        """In ``namespace``; by default the client's own, with ``""`` in all."""
        from kinform.clientset import core_v1

        return self._of(core_v1.LimitRange, namespace)

    def namespaces(self) -> ResourceClient[core_v1.Namespace]:
        """Of the whole cluster."""
        from kinform.clientset import core_v1

        return self._of(core_v1.Namespace)

    def nodes(self) -> ResourceClient[core_v1.Node]:
        """Of the whole cluster."""
        from kinform.clientset import core_v1

        return self._of(core_v1.Node)

    def persistent_volumes(self) -> ResourceClient[core_v1.PersistentVolume]:
        """Of the whole cluster."""
        from kinform.clientset import core_v1

        return self._of(core_v1.PersistentVolume)

    def persistent_volume_claims(
        self, namespace: str | None = None
    ) -> ResourceClient[core_v1.PersistentVolumeClaim]:
        """In ``namespace``; by default the client's own, with ``""`` in all."""
        from kinform.clientset import core_v1

        return self._of(core_v1.PersistentVolumeClaim, namespace)

    def pods(self, namespace: str | None = None) -> ResourceClient[core_v1.Pod]:
        """In ``namespace``; by default the client's own, with ``""`` in all."""
        from kinform.clientset import core_v1

        return self._of(core_v1.Pod, namespace)

    def pod_templates(self, namespace: str | None = None) -> ResourceClient[core_v1.PodTemplate]:
        """In ``namespace``; by default the client's own, with ``""`` in all."""
        from kinform.clientset import core_v1

        return self._of(core_v1.PodTemplate, namespace)

    def replication_controllers(
        self, namespace: str | None = None
    ) -> ResourceClient[core_v1.ReplicationController]:
        """In ``namespace``; by default the client's own, with ``""`` in all."""
        from kinform.clientset import core_v1

        return self._of(core_v1.ReplicationController, namespace)

    def resource_quotas(
        self, namespace: str | None = None
    ) -> ResourceClient[core_v1.ResourceQuota]:
        """In ``namespace``; by default the client's own, with ``""`` in all."""
        from kinform.clientset import core_v1

        return self._of(core_v1.ResourceQuota, namespace)

    def secrets(self, namespace: str | None = None) -> ResourceClient[core_v1.Secret]:
        """In ``namespace``; by default the client's own, with ``""`` in all."""
        from kinform.clientset import core_v1

        return self._of(core_v1.Secret, namespace)

    def services(self, namespace: str | None = None) -> ResourceClient[core_v1.Service]:
        """In ``namespace``; by default the client's own, with ``""`` in all."""
        from kinform.clientset import core_v1

        return self._of(core_v1.Service, namespace)

    def service_accounts(
        self, namespace: str | None = None
    ) -> ResourceClient[core_v1.ServiceAccount]:
        """In ``namespace``; by default the client's own, with ``""`` in all."""
        from kinform.clientset import core_v1

        return self._of(core_v1.ServiceAccount, namespace)


@final
class DiscoveryV1(Group):
    """The kinds of discovery.k8s.io/v1."""

    def endpoint_slices(
        self, namespace: str | None = None
    ) -> ResourceClient[discovery_v1.EndpointSlice]:
        """In ``namespace``; by default the client's own, with ``""`` in all."""
        from kinform.clientset import discovery_v1

        return self._of(discovery_v1.EndpointSlice, namespace)


@final
class EventsV1(Group):
    """The kinds of events.k8s.io/v1."""

    def events(self, namespace: str | None = None) -> ResourceClient[events_v1.Event]:
        """In ``namespace``; by default the client's own, with ``""`` in all."""
        from kinform.clientset import events_v1

        return self._of(events_v1.Event, namespace)


@final
class FlowcontrolV1(Group):
    """The kinds of flowcontrol.apiserver.k8s.io/v1."""

    def flow_schemas(self) -> ResourceClient[flowcontrol_v1.FlowSchema]:
        """Of the whole cluster."""
        from kinform.clientset import flowcontrol_v1

        return self._of(flowcontrol_v1.FlowSchema)

    def priority_level_configurations(
        self,
    ) -> ResourceClient[flowcontrol_v1.PriorityLevelConfiguration]:
        """Of the whole cluster."""
        from kinform.clientset import flowcontrol_v1

        return self._of(flowcontrol_v1.PriorityLevelConfiguration)


@final
class NetworkingV1(Group):
    """The kinds of networking.k8s.io/v1."""

    def ip_addresses(self) -> ResourceClient[networking_v1.IPAddress]:
        """Of the whole cluster."""
        from kinform.clientset import networking_v1

        return self._of(networking_v1.IPAddress)

    def ingresses(self, namespace: str | None = None) -> ResourceClient[networking_v1.Ingress]:
        """In ``namespace``; by default the client's own, with ``""`` in all."""
        from kinform.clientset import networking_v1

        return self._of(networking_v1.Ingress, namespace)

    def ingress_classes(self) -> ResourceClient[networking_v1.IngressClass]:
        """Of the whole cluster."""
        from kinform.clientset import networking_v1

        return self._of(networking_v1.IngressClass)

    def network_policies(
        self, namespace: str | None = None
    ) -> ResourceClient[networking_v1.NetworkPolicy]:
        """In ``namespace``; by default the client's own, with ``""`` in all."""
        from kinform.clientset import networking_v1

        return self._of(networking_v1.NetworkPolicy, namespace)

    def service_cidrs(self) -> ResourceClient[networking_v1.ServiceCIDR]:
        """Of the whole cluster."""
        from kinform.clientset import networking_v1

        return self._of(networking_v1.ServiceCIDR)


@final
class NodeV1(Group):
    """The kinds of node.k8s.io/v1."""

    def runtime_classes(self) -> ResourceClient[node_v1.RuntimeClass]:
        """Of the whole cluster."""
        from kinform.clientset import node_v1

        return self._of(node_v1.RuntimeClass)


@final
class PolicyV1(Group):
    """The kinds of policy/v1."""

    def pod_disruption_budgets(
        self, namespace: str | None = None
    ) -> ResourceClient[policy_v1.PodDisruptionBudget]:
        """In ``namespace``; by default the client's own, with ``""`` in all."""
        from kinform.clientset import policy_v1

        return self._of(policy_v1.PodDisruptionBudget, namespace)


@final
class RbacV1(Group):
    """The kinds of rbac.authorization.k8s.io/v1."""

    def cluster_roles(self) -> ResourceClient[rbac_v1.ClusterRole]:
        """Of the whole cluster."""
        from kinform.clientset import rbac_v1

        return self._of(rbac_v1.ClusterRole)

    def cluster_role_bindings(self) -> ResourceClient[rbac_v1.ClusterRoleBinding]:
        """Of the whole cluster."""
        from kinform.clientset import rbac_v1

        return self._of(rbac_v1.ClusterRoleBinding)

    def roles(self, namespace: str | None = None) -> ResourceClient[rbac_v1.Role]:
        """In ``namespace``; by default the client's own, with ``""`` in all."""
        from kinform.clientset import rbac_v1

        return self._of(rbac_v1.Role, namespace)

    def role_bindings(self, namespace: str | None = None) -> ResourceClient[rbac_v1.RoleBinding]:
        """In ``namespace``; by default the client's own, with ``""`` in all."""
        from kinform.clientset import rbac_v1

        return self._of(rbac_v1.RoleBinding, namespace)


@final
class ResourceV1(Group):
    """The kinds of resource.k8s.io/v1."""

    def device_classes(self) -> ResourceClient[resource_v1.DeviceClass]:
        """Of the whole cluster."""
        from kinform.clientset import resource_v1

        return self._of(resource_v1.DeviceClass)

    def resource_claims(
        self, namespace: str | None = None
    ) -> ResourceClient[resource_v1.ResourceClaim]:
        """In ``namespace``; by default the client's own, with ``""`` in all."""
        from kinform.clientset import resource_v1

        return self._of(resource_v1.ResourceClaim, namespace)

    def resource_claim_templates(
        self, namespace: str | None = None
    ) -> ResourceClient[resource_v1.ResourceClaimTemplate]:
        """In ``namespace``; by default the client's own, with ``""`` in all."""
        from kinform.clientset import resource_v1

        return self._of(resource_v1.ResourceClaimTemplate, namespace)

    def resource_slices(self) -> ResourceClient[resource_v1.ResourceSlice]:
        """Of the whole cluster."""
        from kinform.clientset import resource_v1

        return self._of(resource_v1.ResourceSlice)


@final
class SchedulingV1(Group):
    """The kinds of scheduling.k8s.io/v1."""

    def priority_classes(self) -> ResourceClient[scheduling_v1.PriorityClass]:
        """Of the whole cluster."""
        from kinform.clientset import scheduling_v1

        return self._of(scheduling_v1.PriorityClass)


@final
class StorageV1(Group):
    """The kinds of storage.k8s.io/v1."""

    def csi_drivers(self) -> ResourceClient[storage_v1.CSIDriver]:
        """Of the whole cluster."""
        from kinform.clientset import storage_v1

        return self._of(storage_v1.CSIDriver)

    def csi_nodes(self) -> ResourceClient[storage_v1.CSINode]:
        """Of the whole cluster."""
        from kinform.clientset import storage_v1

        return self._of(storage_v1.CSINode)

    def csi_storage_capacities(
        self, namespace: str | None = None
    ) -> ResourceClient[storage_v1.CSIStorageCapacity]:
        """In ``namespace``; by default the client's own, with ``""`` in all."""
        from kinform.clientset import storage_v1

        return self._of(storage_v1.CSIStorageCapacity, namespace)

    def storage_classes(self) -> ResourceClient[storage_v1.StorageClass]:
        """Of the whole cluster."""
        from kinform.clientset import storage_v1

        return self._of(storage_v1.StorageClass)

    def volume_attachments(self) -> ResourceClient[storage_v1.VolumeAttachment]:
        """Of the whole cluster."""
        from kinform.clientset import storage_v1

        return self._of(storage_v1.VolumeAttachment)

    def volume_attributes_classes(self) -> ResourceClient[storage_v1.VolumeAttributesClass]:
        """Of the whole cluster."""
        from kinform.clientset import storage_v1

        return self._of(storage_v1.VolumeAttributesClass)


class Groups:
    """The API versions of a blocking client."""

    @property
    def admissionregistration_v1(self) -> AdmissionregistrationV1:
        """The kinds of `kinform.clientset.admissionregistration_v1`."""
        return AdmissionregistrationV1(cast("Client", self))

    @property
    def apiextensions_v1(self) -> ApiextensionsV1:
        """The kinds of `kinform.clientset.apiextensions_v1`."""
        return ApiextensionsV1(cast("Client", self))

    @property
    def apiregistration_v1(self) -> ApiregistrationV1:
        """The kinds of `kinform.clientset.apiregistration_v1`."""
        return ApiregistrationV1(cast("Client", self))

    @property
    def apps_v1(self) -> AppsV1:
        """The kinds of `kinform.clientset.apps_v1`."""
        return AppsV1(cast("Client", self))

    @property
    def authentication_v1(self) -> AuthenticationV1:
        """The kinds of `kinform.clientset.authentication_v1`."""
        return AuthenticationV1(cast("Client", self))

    @property
    def authorization_v1(self) -> AuthorizationV1:
        """The kinds of `kinform.clientset.authorization_v1`."""
        return AuthorizationV1(cast("Client", self))

    @property
    def autoscaling_v1(self) -> AutoscalingV1:
        """The kinds of `kinform.clientset.autoscaling_v1`."""
        return AutoscalingV1(cast("Client", self))

    @property
    def autoscaling_v2(self) -> AutoscalingV2:
        """The kinds of `kinform.clientset.autoscaling_v2`."""
        return AutoscalingV2(cast("Client", self))

    @property
    def batch_v1(self) -> BatchV1:
        """The kinds of `kinform.clientset.batch_v1`."""
        return BatchV1(cast("Client", self))

    @property
    def certificates_v1(self) -> CertificatesV1:
        """The kinds of `kinform.clientset.certificates_v1`."""
        return CertificatesV1(cast("Client", self))

    @property
    def coordination_v1(self) -> CoordinationV1:
        """The kinds of `kinform.clientset.coordination_v1`."""
        return CoordinationV1(cast("Client", self))

    @property
    def core_v1(self) -> CoreV1:
        """The kinds of `kinform.clientset.core_v1`."""
        return CoreV1(cast("Client", self))

    @property
    def discovery_v1(self) -> DiscoveryV1:
        """The kinds of `kinform.clientset.discovery_v1`."""
        return DiscoveryV1(cast("Client", self))

    @property
    def events_v1(self) -> EventsV1:
        """The kinds of `kinform.clientset.events_v1`."""
        return EventsV1(cast("Client", self))

    @property
    def flowcontrol_v1(self) -> FlowcontrolV1:
        """The kinds of `kinform.clientset.flowcontrol_v1`."""
        return FlowcontrolV1(cast("Client", self))

    @property
    def networking_v1(self) -> NetworkingV1:
        """The kinds of `kinform.clientset.networking_v1`."""
        return NetworkingV1(cast("Client", self))

    @property
    def node_v1(self) -> NodeV1:
        """The kinds of `kinform.clientset.node_v1`."""
        return NodeV1(cast("Client", self))

    @property
    def policy_v1(self) -> PolicyV1:
        """The kinds of `kinform.clientset.policy_v1`."""
        return PolicyV1(cast("Client", self))

    @property
    def rbac_v1(self) -> RbacV1:
        """The kinds of `kinform.clientset.rbac_v1`."""
        return RbacV1(cast("Client", self))

    @property
    def resource_v1(self) -> ResourceV1:
        """The kinds of `kinform.clientset.resource_v1`."""
        return ResourceV1(cast("Client", self))

    @property
    def scheduling_v1(self) -> SchedulingV1:
        """The kinds of `kinform.clientset.scheduling_v1`."""
        return SchedulingV1(cast("Client", self))

    @property
    def storage_v1(self) -> StorageV1:
        """The kinds of `kinform.clientset.storage_v1`."""
        return StorageV1(cast("Client", self))
