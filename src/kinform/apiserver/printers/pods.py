"""The row of a pod, with its status in one word."""

from __future__ import annotations

from datetime import datetime
from typing import Final, final

from kinform.apiserver.printers import ages
from kinform.apiserver.printers.cell_texts import NONE
from kinform.apiserver.serializer.json_values import Json, JsonValue, text

__all__ = ["cells", "conditions"]

_COMPLETED: Final[dict[str, list[Json]]] = {
    phase: [{"type": "Completed", "status": "True", "reason": phase, "message": message}]
    for phase, message in (
        ("Succeeded", "The pod has completed successfully."),
        ("Failed", "The pod failed."),
    )
}


def conditions(obj: Json) -> list[Json] | None:
    """Return the conditions of a pod's row: one if it has ended, else None."""
    return _COMPLETED.get(text(obj, "status", "phase"))


@final
class _Tally:
    """A summary of a pod's containers."""

    __slots__ = ("last_restart", "ready", "reason", "restarts")

    def __init__(self, reason: str) -> None:
        self.reason = reason
        self.ready = 0
        self.restarts = 0
        self.last_restart = ""

    def count_restarts(self, container: Json) -> None:
        self.restarts += container.get("restartCount", 0)
        last = container.get("lastState")
        if last:
            # Times of objects have one form, so their texts are in their order.
            ended = text(last, "terminated", "finishedAt")
            self.last_restart = max(self.last_restart, ended)


def cells(obj: Json, now: datetime) -> list[JsonValue]:
    """Return the cells of a pod."""
    metadata: Json = obj["metadata"]
    spec: Json = obj.get("spec") or {}
    status: Json = obj.get("status") or {}
    tally = _Tally(_first_reason(status))
    sidecars = _sidecars(spec)
    is_initializing = False
    if status.get("initContainerStatuses"):
        is_initializing = _count_init(tally, spec, status)
    if not is_initializing or _is_true(status, "Initialized"):
        if is_initializing or status.get("initContainerStatuses"):
            _keep_sidecars_only(tally, sidecars, status)
        _count_containers(tally, status)
    if metadata.get("deletionTimestamp"):
        tally.reason = _deleted_reason(tally.reason, status)
    restarts = str(tally.restarts)
    if tally.restarts and tally.last_restart:
        restarts = f"{restarts} ({ages.since(tally.last_restart, now)} ago)"
    total = len(spec.get("containers") or ()) + len(sidecars)
    addresses = status.get("podIPs")
    return [
        metadata.get("name", ""),
        f"{tally.ready}/{total}",
        tally.reason,
        restarts,
        ages.age_of(obj, now),
        (addresses[0].get("ip") if addresses else status.get("podIP")) or NONE,
        spec.get("nodeName") or NONE,
        status.get("nominatedNodeName") or NONE,
        _gates(spec, status) if spec.get("readinessGates") else NONE,
    ]


def _first_reason(status: Json) -> str:
    for condition in status.get("conditions") or ():
        if condition.get("type") == "PodScheduled" and condition.get("reason") == "SchedulingGated":
            return "SchedulingGated"
    return text(status, "reason") or text(status, "phase")


def _sidecars(spec: Json) -> frozenset[str]:
    """Return the names of init containers that go on beside the others."""
    found = spec.get("initContainers")
    if not found:
        return frozenset()
    return frozenset(one.get("name", "") for one in found if one.get("restartPolicy") == "Always")


def _count_init(tally: _Tally, spec: Json, status: Json) -> bool:
    """Add the init containers. Return whether one of them has not done its work."""
    sidecars = _sidecars(spec)
    for index, container in enumerate(status["initContainerStatuses"]):
        tally.count_restarts(container)
        state: Json = container.get("state") or {}
        ended = state.get("terminated")
        if ended and not ended.get("exitCode"):
            continue
        if container.get("name") in sidecars and container.get("started"):
            tally.ready += bool(container.get("ready"))
            continue
        waiting = text(state, "waiting", "reason")
        if ended:
            tally.reason = f"Init:{ended.get('reason') or _exit(ended)}"
        elif waiting and waiting != "PodInitializing":
            tally.reason = f"Init:{waiting}"
        else:
            tally.reason = f"Init:{index}/{len(spec.get('initContainers') or ())}"
        return True
    return False


def _keep_sidecars_only(tally: _Tally, sidecars: frozenset[str], status: Json) -> None:
    """Forget the restarts of init containers that are done: only sidecars still count."""
    tally.restarts, tally.last_restart = 0, ""
    for container in status["initContainerStatuses"]:
        if container.get("name") in sidecars:
            tally.count_restarts(container)


def _count_containers(tally: _Tally, status: Json) -> None:
    is_one_running = False
    for container in reversed(status.get("containerStatuses") or ()):
        tally.count_restarts(container)
        state: Json = container.get("state") or {}
        waiting = state.get("waiting")
        ended = state.get("terminated")
        if waiting and waiting.get("reason"):
            tally.reason = waiting["reason"]
        elif ended:
            tally.reason = ended.get("reason") or _exit(ended)
        elif container.get("ready") and "running" in state:
            is_one_running = True
            tally.ready += 1
    if tally.reason == "Completed" and is_one_running:
        tally.reason = "Running" if _is_true(status, "Ready") else "NotReady"


def _exit(ended: Json) -> str:
    signal = ended.get("signal")
    return f"Signal:{signal}" if signal else f"ExitCode:{ended.get('exitCode', 0)}"


def _deleted_reason(reason: str, status: Json) -> str:
    if status.get("reason") == "NodeLost":
        return "Unknown"
    return reason if status.get("phase") in {"Succeeded", "Failed"} else "Terminating"


def _is_true(status: Json, condition: str) -> bool:
    return any(
        one.get("type") == condition and one.get("status") == "True"
        for one in status.get("conditions") or ()
    )


def _gates(spec: Json, status: Json) -> str:
    gates: list[Json] = spec["readinessGates"]
    passed = sum(_is_true(status, gate.get("conditionType", "")) for gate in gates)
    return f"{passed}/{len(gates)}"
