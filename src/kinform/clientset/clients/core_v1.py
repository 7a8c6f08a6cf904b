"""Clients for the kinds of v1. Written by ``make clientset``."""

from __future__ import annotations

from typing import ClassVar, final

from kinform.clientset import autoscaling_v1, core_v1
from kinform.clientset.actions import Binds, Evicts, IssuesTokens
from kinform.clientset.typed import GroupClient, HasParts, InNamespaces, Objects, Part
from kinform.verbs.reading import Gets, Lists, ReadsLogs, Watches
from kinform.verbs.writing import Changes, Creates, Deletes

__all__ = [
    "BindingClient",
    "ComponentStatusClient",
    "ConfigMapClient",
    "CoreV1",
    "EndpointsClient",
    "EventClient",
    "LimitRangeClient",
    "NamespaceClient",
    "NodeClient",
    "PersistentVolumeClaimClient",
    "PersistentVolumeClient",
    "PodClient",
    "PodTemplateClient",
    "ReplicationControllerClient",
    "ResourceQuotaClient",
    "SecretClient",
    "ServiceAccountClient",
    "ServiceClient",
]


@final
class BindingClient(InNamespaces[core_v1.Binding], Creates[core_v1.Binding]):
    """Every Binding, or those of one namespace."""


@final
class ComponentStatusClient(Gets[core_v1.ComponentStatus], Lists[core_v1.ComponentStatus]):
    """Every ComponentStatus."""


@final
class ConfigMapClient(InNamespaces[core_v1.ConfigMap], Objects[core_v1.ConfigMap]):
    """Every ConfigMap, or those of one namespace."""


@final
class EndpointsClient(InNamespaces[core_v1.Endpoints], Objects[core_v1.Endpoints]):
    """Every Endpoints, or those of one namespace."""


@final
class EventClient(InNamespaces[core_v1.Event], Objects[core_v1.Event]):
    """Every Event, or those of one namespace."""


@final
class LimitRangeClient(InNamespaces[core_v1.LimitRange], Objects[core_v1.LimitRange]):
    """Every LimitRange, or those of one namespace."""


@final
class NamespaceClient(
    Gets[core_v1.Namespace],
    Lists[core_v1.Namespace],
    Watches[core_v1.Namespace],
    Creates[core_v1.Namespace],
    Changes[core_v1.Namespace],
    Deletes[core_v1.Namespace],
    HasParts[core_v1.Namespace],
):
    """Every Namespace."""

    @property
    def status(self) -> Part[core_v1.Namespace]:
        """The ``status`` of an object, by itself."""
        return self._part("status", core_v1.Namespace)


@final
class NodeClient(Objects[core_v1.Node], HasParts[core_v1.Node]):
    """Every Node."""

    @property
    def status(self) -> Part[core_v1.Node]:
        """The ``status`` of an object, by itself."""
        return self._part("status", core_v1.Node)


@final
class PersistentVolumeClaimClient(
    InNamespaces[core_v1.PersistentVolumeClaim],
    Objects[core_v1.PersistentVolumeClaim],
    HasParts[core_v1.PersistentVolumeClaim],
):
    """Every PersistentVolumeClaim, or those of one namespace."""

    @property
    def status(self) -> Part[core_v1.PersistentVolumeClaim]:
        """The ``status`` of an object, by itself."""
        return self._part("status", core_v1.PersistentVolumeClaim)


@final
class PersistentVolumeClient(Objects[core_v1.PersistentVolume], HasParts[core_v1.PersistentVolume]):
    """Every PersistentVolume."""

    @property
    def status(self) -> Part[core_v1.PersistentVolume]:
        """The ``status`` of an object, by itself."""
        return self._part("status", core_v1.PersistentVolume)


@final
class PodClient(
    InNamespaces[core_v1.Pod],
    Objects[core_v1.Pod],
    Binds[core_v1.Pod],
    Evicts[core_v1.Pod],
    ReadsLogs[core_v1.Pod],
    HasParts[core_v1.Pod],
):
    """Every Pod, or those of one namespace."""

    @property
    def ephemeral_containers(self) -> Part[core_v1.Pod]:
        """The ``ephemeralcontainers`` of an object, by itself."""
        return self._part("ephemeralcontainers", core_v1.Pod)

    @property
    def resize(self) -> Part[core_v1.Pod]:
        """The ``resize`` of an object, by itself."""
        return self._part("resize", core_v1.Pod)

    @property
    def status(self) -> Part[core_v1.Pod]:
        """The ``status`` of an object, by itself."""
        return self._part("status", core_v1.Pod)


@final
class PodTemplateClient(InNamespaces[core_v1.PodTemplate], Objects[core_v1.PodTemplate]):
    """Every PodTemplate, or those of one namespace."""


@final
class ReplicationControllerClient(
    InNamespaces[core_v1.ReplicationController],
    Objects[core_v1.ReplicationController],
    HasParts[core_v1.ReplicationController],
):
    """Every ReplicationController, or those of one namespace."""

    @property
    def scale(self) -> Part[autoscaling_v1.Scale]:
        """The ``scale`` of an object, by itself."""
        return self._part("scale", autoscaling_v1.Scale)

    @property
    def status(self) -> Part[core_v1.ReplicationController]:
        """The ``status`` of an object, by itself."""
        return self._part("status", core_v1.ReplicationController)


@final
class ResourceQuotaClient(
    InNamespaces[core_v1.ResourceQuota],
    Objects[core_v1.ResourceQuota],
    HasParts[core_v1.ResourceQuota],
):
    """Every ResourceQuota, or those of one namespace."""

    @property
    def status(self) -> Part[core_v1.ResourceQuota]:
        """The ``status`` of an object, by itself."""
        return self._part("status", core_v1.ResourceQuota)


@final
class SecretClient(InNamespaces[core_v1.Secret], Objects[core_v1.Secret]):
    """Every Secret, or those of one namespace."""


@final
class ServiceAccountClient(
    InNamespaces[core_v1.ServiceAccount],
    Objects[core_v1.ServiceAccount],
    IssuesTokens[core_v1.ServiceAccount],
):
    """Every ServiceAccount, or those of one namespace."""


@final
class ServiceClient(
    InNamespaces[core_v1.Service], Objects[core_v1.Service], HasParts[core_v1.Service]
):
    """Every Service, or those of one namespace."""

    @property
    def status(self) -> Part[core_v1.Service]:
        """The ``status`` of an object, by itself."""
        return self._part("status", core_v1.Service)


@final
class CoreV1(GroupClient):
    """The kinds of v1."""

    api_version: ClassVar[str] = "v1"

    def bindings(self, namespace: str | None = None) -> BindingClient:
        """In ``namespace``; by default in the client's own, with ``""`` in all."""
        return self._of(BindingClient, core_v1.Binding, namespace)

    def component_statuses(self) -> ComponentStatusClient:
        """Of the whole cluster."""
        return self._of(ComponentStatusClient, core_v1.ComponentStatus)

    def config_maps(self, namespace: str | None = None) -> ConfigMapClient:
        """In ``namespace``; by default in the client's own, with ``""`` in all."""
        return self._of(ConfigMapClient, core_v1.ConfigMap, namespace)

    def endpoints(self, namespace: str | None = None) -> EndpointsClient:
        """In ``namespace``; by default in the client's own, with ``""`` in all."""
        return self._of(EndpointsClient, core_v1.Endpoints, namespace)

    def events(self, namespace: str | None = None) -> EventClient:
        """In ``namespace``; by default in the client's own, with ``""`` in all."""
        return self._of(EventClient, core_v1.Event, namespace)

    def limit_ranges(self, namespace: str | None = None) -> LimitRangeClient:
        """In ``namespace``; by default in the client's own, with ``""`` in all."""
        return self._of(LimitRangeClient, core_v1.LimitRange, namespace)

    def namespaces(self) -> NamespaceClient:
        """Of the whole cluster."""
        return self._of(NamespaceClient, core_v1.Namespace)

    def nodes(self) -> NodeClient:
        """Of the whole cluster."""
        return self._of(NodeClient, core_v1.Node)

    def persistent_volume_claims(self, namespace: str | None = None) -> PersistentVolumeClaimClient:
        """In ``namespace``; by default in the client's own, with ``""`` in all."""
        return self._of(PersistentVolumeClaimClient, core_v1.PersistentVolumeClaim, namespace)

    def persistent_volumes(self) -> PersistentVolumeClient:
        """Of the whole cluster."""
        return self._of(PersistentVolumeClient, core_v1.PersistentVolume)

    def pods(self, namespace: str | None = None) -> PodClient:
        """In ``namespace``; by default in the client's own, with ``""`` in all."""
        return self._of(PodClient, core_v1.Pod, namespace)

    def pod_templates(self, namespace: str | None = None) -> PodTemplateClient:
        """In ``namespace``; by default in the client's own, with ``""`` in all."""
        return self._of(PodTemplateClient, core_v1.PodTemplate, namespace)

    def replication_controllers(self, namespace: str | None = None) -> ReplicationControllerClient:
        """In ``namespace``; by default in the client's own, with ``""`` in all."""
        return self._of(ReplicationControllerClient, core_v1.ReplicationController, namespace)

    def resource_quotas(self, namespace: str | None = None) -> ResourceQuotaClient:
        """In ``namespace``; by default in the client's own, with ``""`` in all."""
        return self._of(ResourceQuotaClient, core_v1.ResourceQuota, namespace)

    def secrets(self, namespace: str | None = None) -> SecretClient:
        """In ``namespace``; by default in the client's own, with ``""`` in all."""
        return self._of(SecretClient, core_v1.Secret, namespace)

    def service_accounts(self, namespace: str | None = None) -> ServiceAccountClient:
        """In ``namespace``; by default in the client's own, with ``""`` in all."""
        return self._of(ServiceAccountClient, core_v1.ServiceAccount, namespace)

    def services(self, namespace: str | None = None) -> ServiceClient:
        """In ``namespace``; by default in the client's own, with ``""`` in all."""
        return self._of(ServiceClient, core_v1.Service, namespace)
