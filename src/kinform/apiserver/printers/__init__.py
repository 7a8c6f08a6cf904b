"""Tables: objects as ``kubectl get`` shows them, made by the server as cells and columns."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from datetime import datetime
from typing import Final

from kinform.apiserver import _recorded
from kinform.apiserver.endpoints import status
from kinform.apiserver.printers import core, custom, networking, others, pods, policies, workloads
from kinform.apiserver.scheme.kind_registry import Kind
from kinform.apiserver.serializer.json_values import Json, JsonValue

__all__ = ["cells", "check_include", "columns", "table"]

_INCLUDES: Final = frozenset({"", "None", "Metadata", "Object"})
_PODS: Final = "pods"
_FLOW_SCHEMAS: Final = "flowschemas.flowcontrol.apiserver.k8s.io"
_CELLS: Final[dict[str, Callable[[Json, datetime], list[JsonValue]]]] = {
    _PODS: pods.cells,
    "configmaps": core.config_map,
    "endpoints": core.endpoints,
    "events": core.event,
    "namespaces": core.namespace,
    "nodes": core.node,
    "persistentvolumeclaims": core.claim,
    "persistentvolumes": core.volume,
    "podtemplates": workloads.pod_template,
    "replicationcontrollers": workloads.replication_controller,
    "resourcequotas": core.resource_quota,
    "secrets": core.secret,
    "serviceaccounts": core.service_account,
    "services": core.service,
    "apiservices.apiregistration.k8s.io": networking.api_service,
    "controllerrevisions.apps": workloads.controller_revision,
    "daemonsets.apps": workloads.daemon_set,
    "deployments.apps": workloads.deployment,
    "replicasets.apps": workloads.replica_set,
    "statefulsets.apps": workloads.stateful_set,
    "horizontalpodautoscalers.autoscaling": policies.autoscaler,
    "cronjobs.batch": workloads.cron_job,
    "jobs.batch": workloads.job,
    "certificatesigningrequests.certificates.k8s.io": others.signing_request,
    "leases.coordination.k8s.io": others.lease,
    "endpointslices.discovery.k8s.io": networking.endpoint_slice,
    _FLOW_SCHEMAS: policies.flow_schema,
    "prioritylevelconfigurations.flowcontrol.apiserver.k8s.io": policies.priority_level,
    "ingressclasses.networking.k8s.io": networking.ingress_class,
    "ingresses.networking.k8s.io": networking.ingress,
    "ipaddresses.networking.k8s.io": networking.ip_address,
    "networkpolicies.networking.k8s.io": networking.network_policy,
    "servicecidrs.networking.k8s.io": networking.service_cidr,
    "runtimeclasses.node.k8s.io": others.runtime_class,
    "poddisruptionbudgets.policy": policies.disruption_budget,
    "clusterrolebindings.rbac.authorization.k8s.io": others.role_binding,
    "rolebindings.rbac.authorization.k8s.io": others.role_binding,
    "deviceclasses.resource.k8s.io": others.named,
    "resourceclaims.resource.k8s.io": others.resource_claim,
    "resourceclaimtemplates.resource.k8s.io": others.named,
    "resourceslices.resource.k8s.io": others.resource_slice,
    "priorityclasses.scheduling.k8s.io": policies.priority_class,
    "csidrivers.storage.k8s.io": others.csi_driver,
    "csinodes.storage.k8s.io": others.csi_node,
    "storageclasses.storage.k8s.io": others.storage_class,
    "volumeattachments.storage.k8s.io": others.volume_attachment,
    "volumeattributesclasses.storage.k8s.io": others.volume_attributes_class,
    "mutatingadmissionpolicies.admissionregistration.k8s.io": policies.mutating_policy,
    "mutatingadmissionpolicybindings.admissionregistration.k8s.io": policies.admission_binding,
    "mutatingwebhookconfigurations.admissionregistration.k8s.io": policies.webhooks,
    "validatingadmissionpolicies.admissionregistration.k8s.io": policies.validating_policy,
    "validatingadmissionpolicybindings.admissionregistration.k8s.io": policies.admission_binding,
    "validatingwebhookconfigurations.admissionregistration.k8s.io": policies.webhooks,
}


def columns(kind: Kind) -> list[Json]:
    """Return the column definitions of a kind. They are shared: callers must not change them."""
    if kind.custom is not None:
        name, _, age = _recorded.api().columns["/v1/configmaps"]
        return custom.columns(kind.custom, name, age)
    found = _recorded.api().columns.get(f"{kind.group}/{kind.version}/{kind.plural}")
    return found if found is not None else _recorded.api().columns["/v1/limitranges"]


def cells(kind: Kind, obj: Json, now: datetime) -> list[JsonValue]:
    """Return what the row of an object shows: as many values as there are `columns`.

    It works also for an object that has nothing but ``metadata``, such as a bookmark.
    """
    if kind.custom is not None:
        return custom.cells(kind.custom, obj, now)
    return _CELLS.get(kind.storage, others.created)(obj, now)


def check_include(include: str) -> None:
    """Validate the option ``includeObject``.

    Raises:
        StatusError: it has no such value.
    """
    if include not in _INCLUDES:
        raise status.bad_request(
            f'Unable to convert to Table as requested: includeObject: Invalid value: "{include}": '
            "must be 'Metadata', 'Object', 'None', or empty"
        )


def table(
    kind: Kind,
    objects: Iterable[Json],
    *,
    list_metadata: Json,
    now: datetime,
    include: str = "Metadata",
    with_columns: bool = True,
    group_version: str = "meta.k8s.io/v1",
) -> Json:
    """Return a Table of the objects, in their order.

    Args:
        list_metadata: the ``metadata`` of the Table: that of a list, or for one object (or the
            event of a watch) its ``resourceVersion``.
        include: what each row says of its object: ``None``, ``Metadata`` or ``Object``.
        with_columns: false in all events of a watch but the first.
        group_version: in which version of its API the Table was asked for.

    Raises:
        StatusError: ``include`` has no such value.
    """
    check_include(include)
    rows = [_row(kind, obj, include, group_version=group_version, now=now) for obj in objects]
    if kind.storage == _FLOW_SCHEMAS:
        rows.sort(key=lambda row: row["cells"][2])
    return {
        "kind": "Table",
        "apiVersion": group_version,
        "metadata": list_metadata,
        "columnDefinitions": columns(kind) if with_columns else None,
        "rows": rows,
    }


def _row(kind: Kind, obj: Json, include: str, *, group_version: str, now: datetime) -> Json:
    row: Json = {"cells": cells(kind, obj, now)}
    if kind.storage == _PODS:
        conditions = pods.conditions(obj)
        if conditions is not None:
            row["conditions"] = conditions
    if include == "None":
        row["object"] = None
    elif include == "Object":
        row["object"] = {"kind": kind.kind, "apiVersion": kind.api_version, **obj}
    else:
        row["object"] = {
            "kind": "PartialObjectMetadata",
            "apiVersion": group_version,
            "metadata": obj["metadata"],
        }
    return row
