"""The kinds that keep pods running: Deployments, StatefulSets, DaemonSets and others."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from kinform.apiserver.scheme.field_errors import FieldError, forbidden, invalid, required
from kinform.apiserver.serializer.json_values import Json, as_dict
from kinform.apiserver.validation.labels import (
    check_label_selector,
    in_order,
    selector_matches,
    shown_selector,
    unsupported,
)
from kinform.apiserver.validation.metadata import IMMUTABLE
from kinform.apiserver.validation.names import dns_label
from kinform.apiserver.validation.pods.pod_spec import check_template, validate_pod
from kinform.apiserver.validation.pods.pod_volumes import check_claim_spec
from kinform.apiserver.validation.pods.probes import at_least_zero
from kinform.apiserver.validation.pods.update import validate_pod_update
from kinform.apiserver.validation.workloads.common import (
    MISMATCH,
    amount,
    check_always,
    check_counts,
    check_match,
    check_not_more,
    check_selector,
    check_share,
    labels_of,
)
from kinform.apiserver.validation.workloads.jobs import (
    validate_cron_job,
    validate_job,
    validate_job_update,
)

__all__ = ["VALIDATE", "VALIDATE_UPDATE"]

_RETENTION: Final = ("Retain", "Delete")
_MUTABLE_STATEFUL: Final = frozenset(
    {
        "replicas",
        "ordinals",
        "template",
        "updateStrategy",
        "revisionHistoryLimit",
        "persistentVolumeClaimRetentionPolicy",
        "minReadySeconds",
    }
)
_STATEFUL_UPDATE: Final = (
    "updates to statefulset spec for fields other than 'replicas', 'ordinals', 'template', "
    "'updateStrategy', 'revisionHistoryLimit', 'persistentVolumeClaimRetentionPolicy' and "
    "'minReadySeconds' are forbidden"
)


def _validate_deployment(obj: Json) -> list[FieldError]:
    errors: list[FieldError] = []
    spec: Json = obj["spec"]
    check_counts(spec, errors, fields=("replicas",))
    is_well_formed = check_selector(spec, errors, kind="deployment")
    if is_well_formed:
        check_match(spec, errors)
        check_template(spec["template"], "spec.template", errors)
        check_always(spec, errors, kind="ReplicaSet")
    else:
        shown = shown_selector(spec["selector"])
        errors.append(invalid("spec.selector", shown, "invalid label selector"))
    _check_strategy(as_dict(spec.get("strategy")), "spec.strategy", errors)
    check_counts(spec, errors, fields=("minReadySeconds", "revisionHistoryLimit"))
    progress = spec.get("progressDeadlineSeconds")
    if progress is not None:
        at_least_zero(progress, "spec.progressDeadlineSeconds", errors)
        if progress <= (spec.get("minReadySeconds") or 0):
            detail = "must be greater than minReadySeconds"
            errors.append(invalid("spec.progressDeadlineSeconds", progress, detail))
    return errors


def _check_strategy(strategy: Json, path: str, errors: list[FieldError]) -> None:
    kind = strategy.get("type") or ""
    rolling: Json | None = strategy.get("rollingUpdate")
    if kind == "Recreate":
        if rolling is not None:
            detail = "may not be specified when strategy `type` is 'Recreate'"
            errors.append(forbidden(f"{path}.rollingUpdate", detail))
    elif kind == "RollingUpdate":
        if rolling is None:
            detail = "this should be defaulted and never be nil"
            errors.append(required(f"{path}.rollingUpdate", detail))
        else:
            _check_rolling(rolling, f"{path}.rollingUpdate", errors)
    else:
        shown = in_order({"Type": kind, "RollingUpdate": None})
        errors.append(unsupported(path, shown, ("Recreate", "RollingUpdate")))


def _check_rolling(rolling: Json, path: str, errors: list[FieldError]) -> None:
    surge, unavailable = rolling.get("maxSurge", 0), rolling.get("maxUnavailable", 0)
    check_share(unavailable, f"{path}.maxUnavailable", errors)
    check_share(surge, f"{path}.maxSurge", errors)
    if amount(unavailable) == 0 and amount(surge) == 0:
        detail = "may not be 0 when `maxSurge` is 0"
        errors.append(invalid(f"{path}.maxUnavailable", unavailable, detail))
    check_not_more(unavailable, f"{path}.maxUnavailable", errors)


def _check_selector_unchanged(new: Json, old: Json, errors: list[FieldError]) -> None:
    selector = new["spec"].get("selector")
    if selector != as_dict(old.get("spec")).get("selector"):
        errors.append(invalid("spec.selector", shown_selector(selector), IMMUTABLE))


def _validate_replica_set(obj: Json) -> list[FieldError]:
    errors: list[FieldError] = []
    spec: Json = obj["spec"]
    check_counts(spec, errors, fields=("replicas", "minReadySeconds"))
    is_well_formed = check_selector(spec, errors, kind="deployment")
    if is_well_formed:
        check_match(spec, errors)
        check_template(spec["template"], "spec.template", errors)
        check_always(spec, errors, kind="ReplicaSet")
    else:
        shown = shown_selector(spec["selector"])
        errors.append(invalid("spec.selector", shown, "invalid label selector"))
    return errors


def _validate_replication_controller(obj: Json) -> list[FieldError]:
    errors: list[FieldError] = []
    spec: Json = obj["spec"]
    check_counts(spec, errors, fields=("minReadySeconds",))
    selector: Json = spec.get("selector") or {}
    if not selector:
        errors.append(required("spec.selector"))
    check_counts(spec, errors, fields=("replicas",))
    template: Json | None = spec.get("template")
    if template is None:
        errors.append(required("spec.template"))
        return errors
    labels = labels_of(template)
    if selector and not selector_matches({"matchLabels": selector}, labels or {}):
        errors.append(invalid("spec.template.metadata.labels", labels, MISMATCH))
    check_template(template, "spec.template", errors)
    check_always(spec, errors, kind="ReplicationController")
    return errors


def _validate_stateful_set(obj: Json) -> list[FieldError]:
    errors: list[FieldError] = []
    spec: Json = obj["spec"]
    policy = spec.get("podManagementPolicy") or ""
    if policy not in {"OrderedReady", "Parallel"}:
        detail = "must be 'OrderedReady' or 'Parallel'"
        errors.append(invalid("spec.podManagementPolicy", policy, detail))
    _check_stateful_strategy(as_dict(spec.get("updateStrategy")), "spec.updateStrategy", errors)
    retention: Json = spec.get("persistentVolumeClaimRetentionPolicy") or {}
    for field in ("whenDeleted", "whenScaled"):
        if (value := retention.get(field)) not in _RETENTION:
            at = f"spec.persistentVolumeClaimRetentionPolicy.{field}"
            errors.append(unsupported(at, value, _RETENTION))
    check_counts(spec, errors, fields=("replicas", "minReadySeconds"))
    start = as_dict(spec.get("ordinals")).get("start") or 0
    at_least_zero(start, "spec.ordinals.start", errors)
    is_well_formed = check_selector(spec, errors, kind="statefulset")
    for index, claim in enumerate(spec.get("volumeClaimTemplates") or ()):
        at = f"spec.volumeClaimTemplates[{index}].spec"
        check_claim_spec(as_dict(claim.get("spec")), at, errors)
    if is_well_formed:
        check_match(spec, errors)
        check_template(_with_claims(spec), "spec.template", errors)
    else:
        errors.append(invalid("spec.selector", shown_selector(spec["selector"]), ""))
    check_always(spec, errors, kind="StatefulSet")
    if name := spec.get("serviceName"):
        errors += [invalid("spec.serviceName", name, problem) for problem in dns_label(name)]
    return errors


def _check_stateful_strategy(strategy: Json, path: str, errors: list[FieldError]) -> None:
    kind = strategy.get("type") or ""
    rolling: Json | None = strategy.get("rollingUpdate")
    if kind == "OnDelete":
        if rolling is not None:
            partition, unavailable = rolling.get("partition") or 0, rolling.get("maxUnavailable")
            shown = in_order({"Partition": partition, "MaxUnavailable": unavailable})
            detail = "only allowed for updateStrategy 'RollingUpdate'"
            errors.append(invalid(f"{path}.rollingUpdate", shown, detail))
    elif kind == "RollingUpdate":
        partition = as_dict(rolling).get("partition") or 0
        at_least_zero(partition, f"{path}.rollingUpdate.partition", errors)
    else:
        shown = in_order({"Type": kind, "RollingUpdate": None})
        errors.append(invalid(path, shown, "must be 'RollingUpdate' or 'OnDelete'"))


def _with_claims(spec: Json) -> Json:
    """Return the template with a volume for each claim: containers mount them by their names."""
    template: Json = spec["template"]
    claims: list[Json] = spec.get("volumeClaimTemplates") or []
    if not claims:
        return template
    names = [as_dict(claim.get("metadata")).get("name") or "" for claim in claims]
    made = [{"name": name, "persistentVolumeClaim": {"claimName": name}} for name in names]
    pod: Json = template["spec"]
    kept = [one for one in pod.get("volumes") or () if one.get("name") not in names]
    return {**template, "spec": {**pod, "volumes": made + kept}}


def _update_stateful_set(new: Json, old: Json) -> list[FieldError]:
    errors = _validate_stateful_set(new)
    after, before = new["spec"], as_dict(old.get("spec"))
    fields = (after.keys() | before.keys()) - _MUTABLE_STATEFUL
    if any(after.get(field) != before.get(field) for field in fields):
        errors.append(forbidden("spec", _STATEFUL_UPDATE))
    return errors


def _validate_daemon_set(obj: Json) -> list[FieldError]:
    errors: list[FieldError] = []
    spec: Json = obj["spec"]
    before = len(errors)
    selector: Json | None = spec.get("selector")
    if selector is not None:
        check_label_selector(selector, "spec.selector", errors)
    if len(errors) == before:
        check_match(spec, errors)
    if selector is not None and not (
        selector.get("matchLabels") or selector.get("matchExpressions")
    ):
        detail = "empty selector is invalid for daemonset"
        errors.append(invalid("spec.selector", selector, detail))
    check_template(spec["template"], "spec.template", errors)
    check_always(spec, errors, kind="DaemonSet")
    check_counts(spec, errors, fields=("minReadySeconds",))
    _check_daemon_strategy(as_dict(spec.get("updateStrategy")), "spec.updateStrategy", errors)
    check_counts(spec, errors, fields=("revisionHistoryLimit",))
    return errors


def _check_daemon_strategy(strategy: Json, path: str, errors: list[FieldError]) -> None:
    kind = strategy.get("type") or ""
    if kind == "OnDelete":
        return
    if kind != "RollingUpdate":
        shown = in_order({"Type": kind, "RollingUpdate": None})
        errors.append(unsupported(path, shown, ("RollingUpdate", "OnDelete")))
        return
    at = f"{path}.rollingUpdate"
    rolling: Json | None = strategy.get("rollingUpdate")
    if rolling is None:
        errors.append(required(at))
        return
    surge, unavailable = rolling.get("maxSurge", 0), rolling.get("maxUnavailable", 0)
    check_share(unavailable, f"{at}.maxUnavailable", errors)
    check_share(surge, f"{at}.maxSurge", errors)
    check_not_more(unavailable, f"{at}.maxUnavailable", errors)
    check_not_more(surge, f"{at}.maxSurge", errors)
    if amount(unavailable) != 0 and amount(surge) != 0:
        detail = "may not be set when maxUnavailable is non-zero"
        errors.append(invalid(f"{at}.maxSurge", surge, detail))
    elif amount(unavailable) == 0 and amount(surge) == 0:
        detail = "cannot be 0 when maxSurge is 0"
        errors.append(required(f"{at}.maxUnavailable", detail))


def _validate_controller_revision(obj: Json) -> list[FieldError]:
    errors: list[FieldError] = []
    at_least_zero(obj.get("revision") or 0, "revision", errors)
    if obj.get("data") is None:
        errors.append(required("data", "data is mandatory"))
    return errors


def _update_controller_revision(new: Json, old: Json) -> list[FieldError]:
    errors = _validate_controller_revision(new)
    if new.get("data") != old.get("data"):
        errors.append(invalid("data", new.get("data"), IMMUTABLE))
    return errors


def _validate_pod_template(obj: Json) -> list[FieldError]:
    errors: list[FieldError] = []
    check_template(as_dict(obj.get("template")), "template", errors)
    return errors


def _keeping_selector(
    validate: Callable[[Json], list[FieldError]],
) -> Callable[[Json, Json], list[FieldError]]:
    def update(new: Json, old: Json) -> list[FieldError]:
        errors = validate(new)
        _check_selector_unchanged(new, old, errors)
        return errors

    return update


VALIDATE: Final[dict[str, Callable[[Json], list[FieldError]]]] = {
    "pods": validate_pod,
    "podtemplates": _validate_pod_template,
    "replicationcontrollers": _validate_replication_controller,
    "deployments.apps": _validate_deployment,
    "replicasets.apps": _validate_replica_set,
    "statefulsets.apps": _validate_stateful_set,
    "daemonsets.apps": _validate_daemon_set,
    "controllerrevisions.apps": _validate_controller_revision,
    "jobs.batch": validate_job,
    "cronjobs.batch": validate_cron_job,
}
"""By storage: judges a new object, metadata aside."""

VALIDATE_UPDATE: Final[dict[str, Callable[[Json, Json], list[FieldError]]]] = {
    "pods": validate_pod_update,
    "deployments.apps": _keeping_selector(_validate_deployment),
    "replicasets.apps": _keeping_selector(_validate_replica_set),
    "statefulsets.apps": _update_stateful_set,
    "daemonsets.apps": _keeping_selector(_validate_daemon_set),
    "controllerrevisions.apps": _update_controller_revision,
    "jobs.batch": validate_job_update,
}
"""By storage: judges a changed object, given it and the old one."""
