"""Empty fields that the server leaves out of pods and their templates.

The server's types tell "not set" from "set to zero" for some fields only. Zeros of the others
vanish on the way in: they never come back to a client.
"""

from __future__ import annotations

from typing import Final, cast

from kinform.apiserver.serializer.json_values import Json

__all__ = ["omit_empty", "section"]

_MAPS: Final = frozenset(
    "labels annotations nodeSelector matchLabels limits requests overhead data options "
    "volumeAttributes driverOptions".split()
)
"""Objects whose keys are the client's: nothing in them is left out."""

_KEPT: Final = frozenset(
    # Numbers and booleans with a difference between zero and nothing.
    "replicas optional privileged runAsUser runAsGroup runAsNonRoot allowPrivilegeEscalation "
    "readOnlyRootFilesystem fsGroup hostUsers shareProcessNamespace automountServiceAccountToken "
    "enableServiceLinks setHostnameAsFQDN terminationGracePeriodSeconds activeDeadlineSeconds "
    "ttlSecondsAfterFinished priority defaultMode mode tolerationSeconds backoffLimit completions "
    "parallelism revisionHistoryLimit progressDeadlineSeconds partition maxSurge maxUnavailable "
    "suspend manualSelector startingDeadlineSeconds successfulJobsHistoryLimit "
    "failedJobsHistoryLimit backoffLimitPerIndex maxFailedIndexes succeededCount minDomains "
    "expirationSeconds hostProcess port start lun seconds containerPort weight maxSkew "
    # Texts and lists that are shown even when empty.
    "name mountPath path key operator topologyKey whenUnsatisfiable conditionType type service "
    "serviceName claimName ip timeZone action containers schedule nodeSelectorTerms rules iqn "
    "targetPortal monitors".split()
)
"""Fields that stay although they are zero or empty; objects stay anyway: to be there says much."""


def omit_empty(obj: Json) -> None:
    """Take every field out that is as good as not set, in place and all the way down."""
    for key, value in list(obj.items()):
        if not value:
            is_kept = key not in _MAPS if isinstance(value, dict) else key in _KEPT
            if value is None or not is_kept:
                del obj[key]
        elif isinstance(value, dict):
            if key not in _MAPS:
                omit_empty(cast("Json", value))
        elif isinstance(value, list):
            for item in cast("list[object]", value):
                if isinstance(item, dict):
                    omit_empty(cast("Json", item))


def section(obj: Json, key: str) -> Json:
    """Return the object in a field, which becomes an empty one if there is none, or null."""
    value: Json | None = obj.get(key)
    if value is None:
        obj[key] = value = {}
    return value
