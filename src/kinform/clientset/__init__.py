"""Typed models and clients for every kind that Kubernetes brings along.

One module for each group and version holds the models: `core_v1.Pod`, `apps_v1.Deployment`.
Each is loaded when it is first used. Clients come from a `Client`: ``client.apps_v1``.
Written by ``make clientset``.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from kinform._lazy import lazy_exports

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
        meta_v1,
        networking_v1,
        node_v1,
        ownership,
        policy_v1,
        quantity,
        rbac_v1,
        resource_v1,
        scheduling_v1,
        storage_v1,
        times,
    )

__all__ = [
    "admissionregistration_v1",
    "apiextensions_v1",
    "apiregistration_v1",
    "apps_v1",
    "authentication_v1",
    "authorization_v1",
    "autoscaling_v1",
    "autoscaling_v2",
    "batch_v1",
    "certificates_v1",
    "coordination_v1",
    "core_v1",
    "discovery_v1",
    "events_v1",
    "flowcontrol_v1",
    "meta_v1",
    "networking_v1",
    "node_v1",
    "ownership",
    "policy_v1",
    "quantity",
    "rbac_v1",
    "resource_v1",
    "scheduling_v1",
    "storage_v1",
    "times",
]


if not TYPE_CHECKING:
    __getattr__, __dir__ = lazy_exports(__name__, {}, modules=__all__)
