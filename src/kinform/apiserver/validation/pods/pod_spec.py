"""Validation of a pod's spec, in pods and in templates."""

from __future__ import annotations

import re
from typing import Final

from kinform.apiserver.scheme.field_errors import (
    FieldError,
    duplicate,
    forbidden,
    invalid,
    required,
)
from kinform.apiserver.serializer.json_values import Json, as_dict, as_list
from kinform.apiserver.validation.labels import (
    check_annotations,
    check_labels,
    in_order,
    unsupported,
)
from kinform.apiserver.validation.names import (
    dns_label,
    dns_subdomain,
    ip_address,
    qualified_name,
)
from kinform.apiserver.validation.pods.containers import (
    Surroundings,
    check_containers,
    check_init_containers,
)
from kinform.apiserver.validation.pods.pod_volumes import check_volumes
from kinform.apiserver.validation.pods.resources import check_pod_resources
from kinform.apiserver.validation.pods.scheduling import (
    check_affinity,
    check_gates,
    check_spread,
    check_tolerations,
)
from kinform.apiserver.validation.pods.security import check_pod_security

__all__ = ["check_pod_spec", "check_template", "validate_pod"]

_RESTART_POLICIES: Final = ("Always", "OnFailure", "Never")
_DNS_POLICIES: Final = ("ClusterFirstWithHostNet", "ClusterFirst", "Default", "None")
_SYSTEMS: Final = ("linux", "windows")
_LARGEST: Final = 2**31 - 1
_MIRROR: Final = "kubernetes.io/config.mirror"
_SEARCH: Final = re.compile(
    r"_?[a-z0-9]([-_a-z0-9]*[a-z0-9])?(\._?[a-z0-9]([-_a-z0-9]*[a-z0-9])?)*"
)
_SEARCH_TEXT: Final = (
    "a lowercase RFC 1123 subdomain must consist of lower case alphanumeric characters, '_', '-' "
    "or '.', and must start and end with an alphanumeric character (e.g. 'example.com', regex "
    f"used for validation is '{_SEARCH.pattern}')"
)


def validate_pod(pod: Json) -> list[FieldError]:
    """Return the errors of a new pod, its metadata aside."""
    errors: list[FieldError] = []
    spec: Json = pod.get("spec") or {}
    _check_mirror(pod, errors)
    check_pod_spec(spec, "spec", errors)
    _check_tokens(spec, errors)
    if spec.get("ephemeralContainers"):
        errors.append(forbidden("spec.ephemeralContainers", "cannot be set on create"))
    if spec.get("schedulingGates") and spec.get("nodeName"):
        detail = "cannot be set until all schedulingGates have been cleared"
        errors.append(forbidden("spec.nodeName", detail))
    return errors


def check_template(template: Json, path: str, errors: list[FieldError]) -> None:
    """Validate a template: the labels and annotations it gives, and the spec."""
    metadata: Json = template.get("metadata") or {}
    if labels := metadata.get("labels"):
        check_labels(labels, f"{path}.labels", errors)
    if annotations := metadata.get("annotations"):
        check_annotations(annotations, f"{path}.annotations", errors)
    spec: Json = template.get("spec") or {}
    check_pod_spec(spec, f"{path}.spec", errors)
    if spec.get("ephemeralContainers"):
        detail = "ephemeral containers not allowed in pod template"
        errors.append(forbidden(f"{path}.spec.ephemeralContainers", detail))


def check_pod_spec(spec: Json, path: str, errors: list[FieldError]) -> None:
    """Validate a spec with its defaults filled in."""
    volumes = check_volumes(as_list(spec.get("volumes")), f"{path}.volumes", errors)
    around = Surroundings(volumes, spec.get("terminationGracePeriodSeconds") or 0)
    _check_resource_claims(as_list(spec.get("resourceClaims")), f"{path}.resourceClaims", errors)
    check_containers(as_list(spec.get("containers")), f"{path}.containers", errors, around=around)
    if "initContainers" in spec:
        check_init_containers(spec, f"{path}.initContainers", errors, around=around)
    if "ephemeralContainers" in spec:
        _check_ephemeral(spec, f"{path}.ephemeralContainers", errors)
    if resources := spec.get("resources"):
        check_pod_resources(spec, f"{path}.resources", errors, resources=resources)
    _check_policies(spec, path, errors)
    if selector := spec.get("nodeSelector"):
        check_labels(selector, f"{path}.nodeSelector", errors)
    _check_host(spec, path, errors)
    if security := spec.get("securityContext"):
        check_pod_security(security, f"{path}.securityContext", errors)
    _check_scheduling(spec, path, errors)
    _check_names(spec, path, errors)
    if tolerations := spec.get("tolerations"):
        check_tolerations(tolerations, f"{path}.tolerations", errors)
    for index, alias in enumerate(spec.get("hostAliases") or ()):
        _check_alias(alias, f"{path}.hostAliases[{index}]", errors)
    _check_classes(spec, path, errors)


def _check_classes(spec: Json, path: str, errors: list[FieldError]) -> None:
    for field in ("priorityClassName", "runtimeClassName"):
        if name := spec.get(field):
            problems = dns_subdomain(name)
            errors += [invalid(f"{path}.{field}", name, problem) for problem in problems]
    if (system := spec.get("os")) is not None:
        name = system.get("name") or ""
        if not name:
            errors.append(required(f"{path}.os.name"))
        elif name not in _SYSTEMS:
            errors.append(unsupported(f"{path}.os", name, _SYSTEMS))


def _check_policies(spec: Json, path: str, errors: list[FieldError]) -> None:
    policy = spec.get("restartPolicy") or ""
    if policy not in _RESTART_POLICIES:
        errors.append(unsupported(f"{path}.restartPolicy", policy, _RESTART_POLICIES))
    policy = spec.get("dnsPolicy") or ""
    if policy not in _DNS_POLICIES:
        errors.append(unsupported(f"{path}.dnsPolicy", policy, _DNS_POLICIES))


def _check_host(spec: Json, path: str, errors: list[FieldError]) -> None:
    """Validate what a pod shares with its node."""
    if spec.get("hostNetwork"):
        for kind in ("containers", "initContainers"):
            for index, container in enumerate(spec.get(kind) or ()):
                at = f"{path}.{kind}[{index}].ports"
                _check_same_ports(as_list(container.get("ports")), at, errors)
    if spec.get("hostPID") and spec.get("shareProcessNamespace"):
        at = f"{path}.securityContext.shareProcessNamespace"
        detail = "ShareProcessNamespace and HostPID cannot both be enabled"
        errors.append(invalid(at, value=True, detail=detail))
    if spec.get("hostUsers") is False:
        errors += [
            forbidden(f"{path}.{field}", "when `hostUsers` is false")
            for field in ("hostNetwork", "hostPID", "hostIPC")
            if spec.get(field)
        ]


def _check_same_ports(ports: list[Json], path: str, errors: list[FieldError]) -> None:
    for index, port in enumerate(ports):
        number = port.get("hostPort") or 0
        if number and number != port.get("containerPort"):
            detail = "must match `containerPort` when `hostNetwork` is true"
            errors.append(invalid(f"{path}[{index}].hostPort", number, detail))


def _check_scheduling(spec: Json, path: str, errors: list[FieldError]) -> None:
    if affinity := spec.get("affinity"):
        check_affinity(affinity, f"{path}.affinity", errors)
    _check_dns(spec, f"{path}.dnsConfig", errors)
    for index, gate in enumerate(spec.get("readinessGates") or ()):
        kind = gate.get("conditionType") or ""
        at = f"{path}.readinessGates[{index}].conditionType"
        errors += [invalid(at, kind, problem) for problem in qualified_name(kind)]
    if gates := spec.get("schedulingGates"):
        check_gates(gates, f"{path}.schedulingGates", errors)
    if constraints := spec.get("topologySpreadConstraints"):
        check_spread(constraints, f"{path}.topologySpreadConstraints", errors)


def _check_dns(spec: Json, path: str, errors: list[FieldError]) -> None:
    config: Json = spec.get("dnsConfig") or {}
    servers: list[str] = config.get("nameservers") or []
    if spec.get("dnsPolicy") == "None" and not servers:
        if "dnsConfig" not in spec:
            detail = "must provide `dnsConfig` when `dnsPolicy` is None"
            errors.append(required(path, detail))
        else:
            detail = "must provide at least one DNS nameserver when `dnsPolicy` is None"
            errors.append(required(f"{path}.nameservers", detail))
    if len(servers) > 3:
        detail = "must not have more than 3 nameservers"
        errors.append(invalid(f"{path}.nameservers", servers, detail))
    for index, server in enumerate(servers):
        at = f"{path}.nameservers[{index}]"
        errors += [invalid(at, server, problem) for problem in ip_address(server)]
    for index, domain in enumerate(config.get("searches") or ()):
        if domain != "." and _SEARCH.fullmatch(domain.removesuffix(".")) is None:
            errors.append(invalid(f"{path}.searches[{index}]", domain, _SEARCH_TEXT))
    for index, option in enumerate(config.get("options") or ()):
        if not option.get("name"):
            errors.append(required(f"{path}.options[{index}]", "must not be empty"))


def _check_names(spec: Json, path: str, errors: list[FieldError]) -> None:
    for field in ("serviceAccountName", "nodeName"):
        if name := spec.get(field):
            problems = dns_subdomain(name)
            errors += [invalid(f"{path}.{field}", name, problem) for problem in problems]
    if (seconds := spec.get("activeDeadlineSeconds", 1)) is not None and not (
        1 <= seconds <= _LARGEST
    ):
        detail = f"must be between 1 and {_LARGEST}, inclusive"
        errors.append(invalid(f"{path}.activeDeadlineSeconds", seconds, detail))
    for field in ("hostname", "subdomain"):
        if name := spec.get(field):
            errors += [invalid(f"{path}.{field}", name, problem) for problem in dns_label(name)]


def _check_alias(alias: Json, path: str, errors: list[FieldError]) -> None:
    ip = alias.get("ip") or ""
    errors += [invalid(f"{path}.ip", ip, problem) for problem in ip_address(ip)]
    for index, name in enumerate(alias.get("hostnames") or ()):
        at = f"{path}.hostnames[{index}]"
        errors += [invalid(at, name, problem) for problem in dns_subdomain(name)]


def _check_ephemeral(spec: Json, path: str, errors: list[FieldError]) -> None:
    """Validate containers for debugging: beside names and images little is asked of them."""
    taken = {
        one.get("name") for kind in ("containers", "initContainers") for one in spec.get(kind) or ()
    }
    for index, container in enumerate(spec["ephemeralContainers"] or ()):
        at = f"{path}[{index}]"
        name = container.get("name") or ""
        if not name:
            errors.append(required(f"{at}.name"))
        elif name in taken:
            errors.append(duplicate(f"{at}.name", name))
        else:
            errors += [invalid(f"{at}.name", name, problem) for problem in dns_label(name)]
        taken.add(name)
        if not container.get("image"):
            errors.append(required(f"{at}.image"))


def _check_resource_claims(claims: list[Json], path: str, errors: list[FieldError]) -> None:
    names: set[str] = set()
    for index, claim in enumerate(claims):
        at = f"{path}[{index}]"
        name = claim.get("name") or ""
        if not name:
            errors.append(required(f"{at}.name"))
        elif name in names:
            errors.append(duplicate(f"{at}.name", name))
        else:
            errors += [invalid(f"{at}.name", name, problem) for problem in dns_label(name)]
        names.add(name)
        given, template = claim.get("resourceClaimName"), claim.get("resourceClaimTemplateName")
        shown = {
            "Name": name,
            "ResourceClaimName": given,
            "ResourceClaimTemplateName": template,
        }
        if given is None and template is None:
            detail = "must specify one of: `resourceClaimName`, `resourceClaimTemplateName`"
            errors.append(invalid(at, in_order(shown), detail))
        elif given is not None and template is not None:
            detail = (
                "at most one of `resourceClaimName` or `resourceClaimTemplateName` may be specified"
            )
            errors.append(invalid(at, in_order(shown), detail))


def _check_mirror(pod: Json, errors: list[FieldError]) -> None:
    annotations: Json = pod["metadata"].get("annotations") or {}
    if _MIRROR in annotations and not as_dict(pod.get("spec")).get("nodeName"):
        detail = "must set spec.nodeName if mirror pod annotation is set"
        errors.append(invalid(f"metadata.annotations[{_MIRROR}]", annotations[_MIRROR], detail))


def _check_tokens(spec: Json, errors: list[FieldError]) -> None:
    if spec.get("serviceAccountName"):
        return
    for index, volume in enumerate(spec.get("volumes") or ()):
        for place, source in enumerate(as_dict(volume.get("projected")).get("sources") or ()):
            if "serviceAccountToken" in source:
                at = f"spec.volumes[{index}].projected.sources[{place}].serviceAccountToken"
                detail = "must not be specified when serviceAccountName is not set"
                errors.append(forbidden(at, detail))
