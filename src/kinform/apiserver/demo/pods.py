"""The demo's scheduler and kubelets: they run nodes and pods.

Everything a kubelet knows of a pod is in the pod's status; how long something takes is decided by
chance in each step. So a demo that is stopped and started again goes on where it was.
"""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Final, final

from kinform.apiserver.demo.manifests import NODES
from kinform.apiserver.demo.world import DemoWorld, condition, is_going
from kinform.apiserver.serializer.json_values import Json, as_dict, as_list, text

__all__ = ["Kubelets", "choose_node", "crash", "is_ready"]

_KUBELET: Final = "kubelet"
_SCHEDULER: Final = "default-scheduler"
_LEASE_STEPS: Final = 20
"""Steps from one renewal of a node's lease to the next."""
_STATUS_STEPS: Final = 120
"""Steps from one report of a node's conditions to the next."""
_PRESSURES: Final = ("MemoryPressure", "DiskPressure", "PIDPressure")


def is_ready(pod: Json) -> bool:
    """Return whether a pod serves."""
    conditions = as_list(as_dict(pod.get("status")).get("conditions"))
    return any(it["type"] == "Ready" and it["status"] == "True" for it in conditions)


def choose_node(pod: Json, load: Mapping[str, int], nodes: Sequence[Json]) -> str:
    """Return the schedulable node that fits and has the fewest pods, ``""`` if there is none."""
    wanted = as_dict(pod["spec"].get("nodeSelector"))
    fitting = [
        text(node, "metadata", "name")
        for node in nodes
        if not as_dict(node.get("spec")).get("unschedulable")
        and wanted.items() <= as_dict(node["metadata"].get("labels")).items()
    ]
    return min(fitting, key=lambda name: (load.get(name, 0), name), default="")


@final
class Kubelets:
    """Plays the nodes of a cluster, and the scheduler."""

    def __init__(self, world: DemoWorld) -> None:
        self._world = world

    def step(self, number: int) -> None:
        """Do what is due on all nodes."""
        nodes = self._world.all("nodes")
        for index, node in enumerate(nodes):
            if node["metadata"]["name"] in NODES:
                self._beat(node, number + index * 7)
        pods = self._world.all("pods")
        load = Counter(text(it, "spec", "nodeName") for it in pods)
        for pod in pods:
            if not is_going(pod) and not text(pod, "spec", "nodeName"):
                self._schedule(pod, load, nodes)
        for pod in self._world.all("pods"):
            if text(pod, "spec", "nodeName"):
                self._tend(pod)

    # --- nodes

    def _beat(self, node: Json, number: int) -> None:
        """Report that a node is alive."""
        if number % _LEASE_STEPS == 0:
            self._renew(text(node, "metadata", "name"))
        if number % _STATUS_STEPS == 0 or "conditions" not in as_dict(node.get("status")):
            state, now = as_dict(node.get("status")), self._world.now
            facts: dict[str, tuple[str, str]] = {}
            facts |= dict.fromkeys(_PRESSURES, ("False", "KubeletHasSufficient"))
            facts["Ready"] = ("True", "KubeletReady")
            conditions = [
                {
                    **condition(kind, value, state=state, now=now, reason=reason),
                    "lastHeartbeatTime": now,
                }
                for kind, (value, reason) in facts.items()
            ]
            state = {**state, "conditions": conditions}
            self._world.set_status(node, state, manager=_KUBELET)

    def _renew(self, node: str) -> None:
        meta = {"name": node, "namespace": "kube-node-lease"}
        lease: Json = {"apiVersion": "coordination.k8s.io/v1", "kind": "Lease", "metadata": meta}
        now = self._world.micro_now

        def change(held: Json) -> None:
            held["spec"] = {**as_dict(held.get("spec")), "renewTime": now}

        self._world.change(lease, change, manager=_KUBELET)

    # --- the scheduler

    def _schedule(self, pod: Json, load: Counter[str], nodes: Sequence[Json]) -> None:
        node = choose_node(pod, load, nodes)
        now = self._world.now
        if not node:
            waiting = {**as_dict(pod.get("status")), "phase": "Pending"}
            why = "no node is available"
            waiting["conditions"] = [
                condition(
                    "PodScheduled",
                    "False",
                    state=waiting,
                    now=now,
                    reason="Unschedulable",
                    message=why,
                )
            ]
            if waiting != pod.get("status"):
                self._world.tell(pod, "FailedScheduling", why, by=_SCHEDULER, kind="Warning")
            self._world.set_status(pod, waiting, manager=_SCHEDULER)
            return

        def bind(held: Json) -> None:
            held["spec"]["nodeName"] = node
            state = as_dict(held.get("status"))
            scheduled = condition("PodScheduled", "True", state=state, now=now)
            held["status"] = {**state, "conditions": [scheduled]}

        if self._world.change(pod, bind, manager=_SCHEDULER, subresource="binding"):
            load[node] += 1
            meta = pod["metadata"]
            message = f"Successfully assigned {meta['namespace']}/{meta['name']} to {node}"
            self._world.tell(pod, "Scheduled", message, by=_SCHEDULER)

    # --- pods

    def _tend(self, pod: Json) -> None:
        """Bring a pod one step further, perhaps."""
        chance, state = self._world.random, as_dict(pod.get("status"))
        phase = text(pod, "status", "phase")
        waiting = _waiting(state)
        if is_going(pod):
            self._end(pod, chance)
        elif phase in {"Succeeded", "Failed"}:
            return
        elif not as_list(state.get("containerStatuses")):
            self._create_containers(pod)
        elif waiting == "CrashLoopBackOff":
            if chance.random() < 0.1:
                self._start(pod)
        elif waiting:
            if chance.random() < 0.4:
                self._start(pod)
        elif pod["spec"].get("restartPolicy") == "Never" and chance.random() < 0.15:
            self._complete(pod)

    def _end(self, pod: Json, chance: random.Random) -> None:
        self._world.tell(pod, "Killing", f"Stopping container {_first(pod)}", by=_KUBELET)
        if chance.random() < 0.5:
            self._world.delete(pod, grace=0)

    def _create_containers(self, pod: Json) -> None:
        state = {"waiting": {"reason": "ContainerCreating"}}
        status = _status(pod, self._world.now, phase="Pending", state=state)
        number = NODES.index(node) + 1 if (node := pod["spec"]["nodeName"]) in NODES else 9
        status["hostIP"] = f"192.168.0.{number}"
        status["hostIPs"] = [{"ip": status["hostIP"]}]
        self._world.set_status(pod, status, manager=_KUBELET)
        image = pod["spec"]["containers"][0]["image"]
        self._world.tell(pod, "Pulled", f"Container image {image} is present", by=_KUBELET)

    def _start(self, pod: Json) -> None:
        now = self._world.now
        state = {"running": {"startedAt": now}}
        status = _status(pod, now, phase="Running", state=state, is_ready=True)
        if "podIP" not in status:
            third = status["hostIP"].rpartition(".")[2]
            status["podIP"] = f"10.244.{third}.{self._world.random.randrange(2, 255)}"
            status["podIPs"] = [{"ip": status["podIP"]}]
        self._world.set_status(pod, status, manager=_KUBELET)
        self._world.tell(pod, "Started", f"Started container {_first(pod)}", by=_KUBELET)

    def _complete(self, pod: Json) -> None:
        now = self._world.now
        ended = {"exitCode": 0, "reason": "Completed", "finishedAt": now}
        ended["startedAt"] = _started(pod) or now
        status = _status(pod, now, phase="Succeeded", state={"terminated": ended})
        self._world.set_status(pod, status, manager=_KUBELET)


def crash(world: DemoWorld, pod: Json) -> None:
    """Let a pod's containers fail; they are started again after a while."""
    now = world.now
    state = {"waiting": {"reason": "CrashLoopBackOff", "message": "back-off restarting"}}
    status = _status(pod, now, phase="Running", state=state)
    ended = {"exitCode": 137, "reason": "Error", "finishedAt": now}
    ended["startedAt"] = _started(pod) or now
    for container in status["containerStatuses"]:
        container["restartCount"] += 1
        container["lastState"] = {"terminated": ended}
    world.set_status(pod, status, manager=_KUBELET)
    message = f"Back-off restarting failed container {_first(pod)}"
    world.tell(pod, "BackOff", message, by=_KUBELET, kind="Warning")


def _status(pod: Json, now: str, *, phase: str, state: Json, is_ready: bool = False) -> Json:
    """Return a pod's status with all its containers in one state."""
    old = as_dict(pod.get("status"))
    known = {it["name"]: it for it in as_list(old.get("containerStatuses"))}
    containers = [
        {
            "lastState": {},
            "restartCount": 0,
            "imageID": "",
            **known.get(it["name"], {}),
            "name": it["name"],
            "image": it["image"],
            "ready": is_ready,
            "started": is_ready,
            "state": state,
        }
        for it in pod["spec"]["containers"]
    ]
    facts = {"PodScheduled": True, "Initialized": True}
    facts |= {"ContainersReady": is_ready, "Ready": is_ready}
    conditions = [condition(kind, str(value), state=old, now=now) for kind, value in facts.items()]
    status = {**old, "phase": phase, "conditions": conditions, "containerStatuses": containers}
    return {"startTime": now, **status}


def _waiting(state: Json) -> str:
    """Return why a pod's containers wait, ``""`` if they do not."""
    states = (as_dict(it.get("state")) for it in as_list(state.get("containerStatuses")))
    return next((reason for it in states if (reason := text(it, "waiting", "reason"))), "")


def _started(pod: Json) -> str:
    """Return since when a pod's containers run."""
    statuses = as_list(as_dict(pod.get("status")).get("containerStatuses"))
    return text(statuses[0], "state", "running", "startedAt") if statuses else ""


def _first(pod: Json) -> str:
    return text(pod["spec"]["containers"][0], "name")
