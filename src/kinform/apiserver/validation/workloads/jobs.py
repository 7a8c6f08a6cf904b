"""Jobs and CronJobs."""

from __future__ import annotations

from typing import Final

from kinform.apiserver.scheme.field_errors import FieldError, invalid, required
from kinform.apiserver.serializer.json_values import Json
from kinform.apiserver.validation.labels import (
    check_label_selector,
    in_order,
    selector_matches,
    shown_selector,
    unsupported,
)
from kinform.apiserver.validation.metadata import IMMUTABLE
from kinform.apiserver.validation.names import dns_subdomain
from kinform.apiserver.validation.pods.internal_spec import shown_template
from kinform.apiserver.validation.pods.pod_spec import check_template
from kinform.apiserver.validation.pods.probes import at_least_zero
from kinform.apiserver.validation.workloads.cron_schedule import (
    ScheduleError,
    check_schedule,
    is_zone,
)
from kinform.apiserver.validation.workloads.job_policies import (
    check_failures,
    check_success,
    shown_failures,
)

__all__ = ["validate_cron_job", "validate_job", "validate_job_update"]

_COUNTS: Final = (
    "parallelism",
    "completions",
    "activeDeadlineSeconds",
    "backoffLimit",
    "ttlSecondsAfterFinished",
    "backoffLimitPerIndex",
    "maxFailedIndexes",
)
_MODES: Final = ("NonIndexed", "Indexed")
_REPLACEMENTS: Final = ("Failed", "TerminatingOrFailed")
_CONCURRENCY: Final = ("Allow", "Forbid", "Replace")
_MANY: Final = 100_000
_UID: Final = "batch.kubernetes.io/controller-uid"
_MUTABLE_WHILE_SUSPENDED: Final = ("affinity", "nodeSelector", "tolerations", "schedulingGates")


def validate_job(obj: Json) -> list[FieldError]:
    """Return the errors of a new Job, its metadata aside."""
    errors: list[FieldError] = []
    spec: Json = obj["spec"]
    _check_generated(obj, errors)
    _check_job_spec(spec, errors)
    return errors


def _check_job_spec(spec: Json, errors: list[FieldError]) -> None:
    _check_job_numbers(spec, "spec", errors)
    _check_match(spec, errors)
    _check_job_template(spec, "spec", errors)


def _check_generated(obj: Json, errors: list[FieldError]) -> None:
    """Validate the selector: one that is made by the server must be left as it is."""
    spec, metadata = obj["spec"], obj["metadata"]
    selector: Json | None = spec.get("selector")
    if selector is None:
        errors.append(required("spec.selector"))
    else:
        check_label_selector(selector, "spec.selector", errors)
    if spec.get("manualSelector"):
        return
    uid, name = metadata.get("uid") or "", metadata.get("name") or ""
    labels: Json = spec["template"]["metadata"].get("labels") or {}
    for key, value in (
        ("controller-uid", uid),
        ("job-name", name),
        (_UID, uid),
        ("batch.kubernetes.io/job-name", name),
    ):
        if labels.get(key) != value:
            at = f"spec.template.metadata.labels[{key}]"
            errors.append(invalid(at, dict(sorted(labels.items())), f"must be '{value}'"))
    if selector is not None and selector != {"matchLabels": {_UID: uid}}:
        detail = "`selector` not auto-generated"
        errors.append(invalid("spec.selector", shown_selector(selector), detail))


def _check_match(spec: Json, errors: list[FieldError]) -> None:
    """Validate that a Job will find the pods it makes."""
    labels: Json = spec["template"]["metadata"].get("labels") or {}
    selector: Json | None = spec.get("selector")
    if selector is None or not selector_matches(selector, labels):
        shown = dict(sorted(labels.items())) if labels else None
        detail = "`selector` does not match template `labels`"
        errors.append(invalid("spec.template.metadata.labels", shown, detail))


def _check_job_template(spec: Json, path: str, errors: list[FieldError]) -> None:
    template: Json = spec["template"]
    check_template(template, f"{path}.template", errors)
    policy = template["spec"].get("restartPolicy") or ""
    at = f"{path}.template.spec.restartPolicy"
    if policy in {"", "Always"}:
        errors.append(required(at, 'valid values: "OnFailure", "Never"'))
    elif policy == "OnFailure" and "podFailurePolicy" in spec:
        detail = 'only "Never" is supported when podFailurePolicy is specified'
        errors.append(invalid(at, policy, detail))


def _check_job_numbers(spec: Json, path: str, errors: list[FieldError]) -> None:
    for field in _COUNTS:
        at_least_zero(spec.get(field) or 0, f"{path}.{field}", errors)
    if (manager := spec.get("managedBy")) is not None:
        _check_manager(manager, f"{path}.managedBy", errors)
    mode = spec.get("completionMode")
    if mode is not None and mode not in _MODES:
        errors.append(unsupported(f"{path}.completionMode", mode, _MODES))
    if mode == "Indexed":
        _check_indexed(spec, path, errors)
    else:
        for field in ("backoffLimitPerIndex", "maxFailedIndexes"):
            if (value := spec.get(field) or 0) > 0:
                detail = "requires indexed completion mode"
                errors.append(invalid(f"{path}.{field}", value, detail))
    if "podFailurePolicy" in spec:
        check_failures(spec, f"{path}.podFailurePolicy", errors)
    if "successPolicy" in spec:
        check_success(spec, f"{path}.successPolicy", errors)
    replacement = spec.get("podReplacementPolicy")
    supported = ("Failed",) if "podFailurePolicy" in spec else _REPLACEMENTS
    if replacement is not None and replacement not in supported:
        errors.append(unsupported(f"{path}.podReplacementPolicy", replacement, supported))


def _check_manager(manager: str, path: str, errors: list[FieldError]) -> None:
    domain, slash, name = manager.partition("/")
    if not (slash and domain and name):
        detail = 'must be a domain-prefixed path (such as "acme.io/foo")'
        errors.append(invalid(path, manager, detail))
    else:
        errors += [invalid(path, domain, problem) for problem in dns_subdomain(domain)]


def _check_indexed(spec: Json, path: str, errors: list[FieldError]) -> None:
    if spec.get("completions") is None:
        detail = "when completion mode is Indexed"
        errors.append(required(f"{path}.completions", detail))
    if (parallelism := spec.get("parallelism") or 0) > _MANY:
        detail = f"must be less than or equal to {_MANY} when completion mode is Indexed"
        errors.append(invalid(f"{path}.parallelism", parallelism, detail))
    if spec.get("maxFailedIndexes") is not None and spec.get("backoffLimitPerIndex") is None:
        detail = "when maxFailedIndexes is specified"
        errors.append(required(f"{path}.backoffLimitPerIndex", detail))


def validate_job_update(new: Json, old: Json) -> list[FieldError]:
    """Return the errors of a change of a Job, metadata aside."""
    errors = validate_job(new)
    after, before = new["spec"], old["spec"]
    _check_job_spec(after, errors)  # the server does so twice, and says all of it twice
    _check_completions(after, before, errors)
    if after.get("selector") != before.get("selector"):
        shown = shown_selector(after.get("selector"))
        errors.append(invalid("spec.selector", shown, IMMUTABLE))
    _check_template_unchanged(after, before, errors)
    if after.get("completionMode") != before.get("completionMode"):
        errors.append(invalid("spec.completionMode", after.get("completionMode"), IMMUTABLE))
    for field in ("podFailurePolicy", "backoffLimitPerIndex", "managedBy", "successPolicy"):
        value = after.get(field)
        if value != before.get(field):
            shown = (
                in_order(shown_failures(value)) if field == "podFailurePolicy" and value else value
            )
            errors.append(invalid(f"spec.{field}", shown, IMMUTABLE))
    return errors


def _check_completions(after: Json, before: Json, errors: list[FieldError]) -> None:
    completions = after.get("completions")
    if completions == before.get("completions"):
        return
    at = "spec.completions"
    if before.get("completionMode") != "Indexed":
        errors.append(invalid(at, completions, IMMUTABLE))
    elif completions != after.get("parallelism"):
        detail = "can only be modified in tandem with spec.parallelism"
        errors.append(invalid(at, completions, detail))


def _check_template_unchanged(after: Json, before: Json, errors: list[FieldError]) -> None:
    """Only where pods run can be changed, and only of a Job that has not begun."""
    template: Json = after["template"]
    compared = template
    if before.get("suspend"):
        known: Json = before["template"]
        spec = {**template["spec"]}
        for field in _MUTABLE_WHILE_SUSPENDED:
            spec.pop(field, None)
            if field in known["spec"]:
                spec[field] = known["spec"][field]
        compared = {**template, "metadata": known["metadata"], "spec": spec}
    if compared != before["template"]:
        errors.append(invalid("spec.template", in_order(shown_template(template)), IMMUTABLE))


def validate_cron_job(obj: Json) -> list[FieldError]:
    """Return the errors of a CronJob, its metadata aside."""
    errors: list[FieldError] = []
    spec: Json = obj["spec"]
    schedule = spec.get("schedule") or ""
    if not schedule:
        errors.append(required("spec.schedule"))
    else:
        _check_schedule(schedule, "spec.schedule", errors)
    at_least_zero(spec.get("startingDeadlineSeconds") or 0, "spec.startingDeadlineSeconds", errors)
    if (zone := spec.get("timeZone")) is not None:
        _check_zone(zone, "spec.timeZone", errors)
    policy = spec.get("concurrencyPolicy") or ""
    if policy not in _CONCURRENCY:
        errors.append(unsupported("spec.concurrencyPolicy", policy, _CONCURRENCY))
    job: Json = spec["jobTemplate"]["spec"]
    at = "spec.jobTemplate.spec"
    _check_job_numbers(job, at, errors)
    _check_job_template(job, at, errors)
    if (selector := job.get("selector")) is not None:
        detail = "`selector` will be auto-generated"
        errors.append(invalid(f"{at}.selector", shown_selector(selector), detail))
    if job.get("manualSelector"):
        errors.append(unsupported(f"{at}.manualSelector", value=True, supported=("nil", "false")))
    for field in ("successfulJobsHistoryLimit", "failedJobsHistoryLimit"):
        at_least_zero(spec.get(field) or 0, f"spec.{field}", errors)
    return errors


def _check_schedule(schedule: str, path: str, errors: list[FieldError]) -> None:
    try:
        check_schedule(schedule)
    except ScheduleError as error:
        errors.append(invalid(path, schedule, str(error)))
    if "TZ" in schedule:
        detail = "cannot use TZ or CRON_TZ in schedule, use timeZone field instead"
        errors.append(invalid(path, schedule, detail))


def _check_zone(zone: str, path: str, errors: list[FieldError]) -> None:
    if not zone:
        errors.append(invalid(path, zone, "timeZone must be nil or non-empty string"))
    elif zone.lower() == "local":
        detail = (
            "timeZone must be an explicit time zone as defined in https://www.iana.org/time-zones"
        )
        errors.append(invalid(path, zone, detail))
    elif not is_zone(zone):
        errors.append(invalid(path, zone, f"unknown time zone {zone}"))
