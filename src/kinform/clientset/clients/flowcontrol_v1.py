"""Clients for the kinds of flowcontrol.apiserver.k8s.io/v1. Written by ``make clientset``."""

from __future__ import annotations

from typing import ClassVar, final

from kinform.clientset import flowcontrol_v1
from kinform.clientset.typed import GroupClient, HasParts, Objects, Part

__all__ = ["FlowSchemaClient", "FlowcontrolV1", "PriorityLevelConfigurationClient"]


@final
class FlowSchemaClient(Objects[flowcontrol_v1.FlowSchema], HasParts[flowcontrol_v1.FlowSchema]):
    """Every FlowSchema."""

    @property
    def status(self) -> Part[flowcontrol_v1.FlowSchema]:
        """The ``status`` of an object, by itself."""
        return self._part("status", flowcontrol_v1.FlowSchema)


@final
class PriorityLevelConfigurationClient(
    Objects[flowcontrol_v1.PriorityLevelConfiguration],
    HasParts[flowcontrol_v1.PriorityLevelConfiguration],
):
    """Every PriorityLevelConfiguration."""

    @property
    def status(self) -> Part[flowcontrol_v1.PriorityLevelConfiguration]:
        """The ``status`` of an object, by itself."""
        return self._part("status", flowcontrol_v1.PriorityLevelConfiguration)


@final
class FlowcontrolV1(GroupClient):
    """The kinds of flowcontrol.apiserver.k8s.io/v1."""

    api_version: ClassVar[str] = "flowcontrol.apiserver.k8s.io/v1"

    def flow_schemas(self) -> FlowSchemaClient:
        """Of the whole cluster."""
        return self._of(FlowSchemaClient, flowcontrol_v1.FlowSchema)

    def priority_level_configurations(self) -> PriorityLevelConfigurationClient:
        """Of the whole cluster."""
        return self._of(PriorityLevelConfigurationClient, flowcontrol_v1.PriorityLevelConfiguration)
