"""The demo's controllers: they create pods for deployments, replica sets and jobs.

Each step reads all objects again, so changes by clients in between are taken into account.
"""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from typing import Final, NamedTuple, final

import msgspec

from kinform.apiserver.demo.pods import is_ready
from kinform.apiserver.demo.world import DemoWorld, condition, is_going, is_owned, owner_reference
from kinform.apiserver.serializer.json_values import Json, as_dict, as_list, text

__all__ = ["Controllers", "Rollout", "rollout", "template_hash"]

_HASH: Final = "pod-template-hash"
_REVISION: Final = "deployment.kubernetes.io/revision"
_LETTERS: Final = "bcdfghjklmnpqrstvwxz2456789"
_BURST: Final = 3
"""The most pods that a replica set creates in one step."""
_HISTORY: Final = 3
"""The number of finished jobs that are kept of a CronJob."""


class Rollout(NamedTuple):
    """The replicas of the new replica set, and of the old ones together."""

    new: int
    old: int


def rollout(desired: int, *, new: int, old: int, ready: int) -> Rollout:
    """Decide one step from old pods to new ones.

    There is never more than one pod too many, and an old one goes only if enough are ready.
    """
    if not old:
        return Rollout(desired, 0)
    grown = max(min(desired, desired + 1 - old), min(new, desired))
    spare = ready - desired
    is_over = grown + old > desired + 1
    return Rollout(grown, old - 1 if spare > 0 or is_over or not desired else old)


def template_hash(template: Json) -> str:
    """Return what tells the pods of one template from those of another."""
    digest = hashlib.sha256(msgspec.json.encode(template, order="sorted")).digest()
    return "".join(_LETTERS[byte % len(_LETTERS)] for byte in digest[:10])


@final
class Controllers:
    """Plays the controllers of a cluster."""

    def __init__(self, world: DemoWorld) -> None:
        self._world = world

    def step(self) -> None:
        """Do what all controllers have to do."""
        for deployment in self._world.all("deployments.apps"):
            if not is_going(deployment):
                self._roll_out(deployment)
        pods = self._world.all("pods")
        for replica_set in self._world.all("replicasets.apps"):
            if not is_going(replica_set):
                self._replicate(replica_set, [it for it in pods if is_owned(it, replica_set)])
        for cron in self._world.all("cronjobs.batch"):
            if not is_going(cron):
                self._fire(cron)
        for job in self._world.all("jobs.batch"):
            if not is_going(job):
                self._work(job, [it for it in pods if is_owned(it, job)])

    # --- deployments

    def _roll_out(self, deployment: Json) -> None:
        spec = deployment["spec"]
        owned = [it for it in self._world.all("replicasets.apps") if is_owned(it, deployment)]
        digest = template_hash(spec["template"])
        name = f"{deployment['metadata']['name']}-{digest}"
        current = next((it for it in owned if it["metadata"]["name"] == name), None)
        olds = [it for it in owned if it is not current]
        if current is None:
            if spec.get("paused"):
                return
            self._create_replica_set(deployment, digest, olds)
            return
        old = sum(it["spec"]["replicas"] for it in olds)
        ready = sum(as_dict(it.get("status")).get("readyReplicas", 0) for it in owned)
        new: int = current["spec"]["replicas"]
        wanted = rollout(spec["replicas"], new=new, old=old, ready=ready)
        self._scale(deployment, current, wanted.new)
        active = [it for it in olds if it["spec"]["replicas"]]
        if wanted.old < old:
            oldest = min(active, key=_revision)
            self._scale(deployment, oldest, oldest["spec"]["replicas"] - 1)
        idle = sorted((it for it in olds if not it["spec"]["replicas"]), key=_revision)
        for it in idle[: max(0, len(idle) - spec.get("revisionHistoryLimit", 10))]:
            self._world.delete(it)
        self._report_deployment(deployment, current, owned)

    def _create_replica_set(self, deployment: Json, digest: str, olds: Sequence[Json]) -> None:
        meta, spec = deployment["metadata"], deployment["spec"]
        labels = {**as_dict(spec["template"]["metadata"].get("labels")), _HASH: digest}
        revision = str(max(map(_revision, olds), default=0) + 1)
        selector = spec["selector"]
        matched = {**as_dict(selector.get("matchLabels")), _HASH: digest}
        created = self._world.create(
            {
                "apiVersion": "apps/v1",
                "kind": "ReplicaSet",
                "metadata": {
                    "name": f"{meta['name']}-{digest}",
                    "namespace": meta["namespace"],
                    "labels": labels,
                    "annotations": {_REVISION: revision},
                    "ownerReferences": [owner_reference(deployment)],
                },
                "spec": {
                    "replicas": 0,
                    "selector": {**selector, "matchLabels": matched},
                    "template": {
                        **spec["template"],
                        "metadata": {**spec["template"]["metadata"], "labels": labels},
                    },
                },
            }
        )
        if created is not None:
            self._annotate(deployment, revision)

    def _annotate(self, deployment: Json, revision: str) -> None:
        def change(held: Json) -> None:
            meta = held["metadata"]
            meta["annotations"] = {**as_dict(meta.get("annotations")), _REVISION: revision}

        self._world.change(deployment, change)

    def _scale(self, deployment: Json, replica_set: Json, replicas: int) -> None:
        held = replica_set["spec"]["replicas"]
        if held == replicas:
            return

        def change(obj: Json) -> None:
            obj["spec"]["replicas"] = replicas

        self._world.change(replica_set, change)
        verb = "up" if replicas > held else "down"
        name = replica_set["metadata"]["name"]
        message = f"Scaled {verb} replica set {name} from {held} to {replicas}"
        self._world.tell(deployment, "ScalingReplicaSet", message, by="deployment-controller")

    def _report_deployment(self, deployment: Json, current: Json, owned: Sequence[Json]) -> None:
        desired: int = deployment["spec"]["replicas"]
        states = [as_dict(it.get("status")) for it in owned]
        total = sum(it.get("replicas", 0) for it in states)
        ready = sum(it.get("readyReplicas", 0) for it in states)
        updated = as_dict(current.get("status")).get("replicas", 0)
        is_done = updated == total == desired and ready >= desired
        state, now = as_dict(deployment.get("status")), self._world.now
        is_available = ready >= max(0, desired - 1)
        reason = "MinimumReplicasAvailable" if is_available else "MinimumReplicasUnavailable"
        progress = "NewReplicaSetAvailable" if is_done else "ReplicaSetUpdated"
        conditions = [
            condition("Available", str(is_available), state=state, now=now, reason=reason),
            condition("Progressing", "True", state=state, now=now, reason=progress),
        ]
        counts = {
            "replicas": total,
            "updatedReplicas": updated,
            "readyReplicas": ready,
            "availableReplicas": ready,
            "unavailableReplicas": max(0, max(total, desired) - ready),
        }
        for it in conditions:
            it["lastUpdateTime"] = it["lastTransitionTime"]
        self._report(deployment, counts, {"conditions": conditions})

    def _report(self, obj: Json, counts: dict[str, int], more: Json) -> None:
        """Set a status; a count of nothing is left out, as the API does."""
        state: Json = {"observedGeneration": obj["metadata"].get("generation", 1)}
        state |= {name: count for name, count in counts.items() if count or name == "replicas"}
        if obj["kind"] == "Deployment" and not counts["replicas"]:
            del state["replicas"]
        self._world.set_status(obj, {**state, **more})

    # --- replica sets

    def _replicate(self, replica_set: Json, pods: Sequence[Json]) -> None:
        desired = replica_set["spec"]["replicas"]
        active = [it for it in pods if not is_going(it) and not _is_over(it)]
        for _ in range(min(_BURST, desired - len(active))):
            self._create_pod(replica_set, by="replicaset-controller")
        if len(active) > desired:
            # First those that do not serve, then the youngest.
            active.sort(key=lambda it: (is_ready(it), -int(it["metadata"]["resourceVersion"])))
            for pod in active[: len(active) - desired]:
                self._world.delete(pod)
                message = f"Deleted pod: {pod['metadata']['name']}"
                self._world.tell(
                    replica_set, "SuccessfulDelete", message, by="replicaset-controller"
                )
        ready = sum(map(is_ready, active))
        counts = {"replicas": len(active), "fullyLabeledReplicas": len(active)}
        self._report(
            replica_set, {**counts, "readyReplicas": ready, "availableReplicas": ready}, {}
        )

    def _create_pod(self, owner: Json, *, by: str) -> None:
        template = owner["spec"]["template"]
        meta = owner["metadata"]
        pod: Json = {"apiVersion": "v1", "kind": "Pod", "spec": template["spec"]}
        pod["metadata"] = {
            **as_dict(template.get("metadata")),
            "name": f"{meta['name'][:57]}-{self._world.suffix()}",
            "generateName": f"{meta['name']}-",
            "namespace": meta["namespace"],
            "ownerReferences": [owner_reference(owner)],
        }
        if created := self._world.create(pod):
            message = f"Created pod: {created['metadata']['name']}"
            self._world.tell(owner, "SuccessfulCreate", message, by=by)

    # --- jobs

    def _fire(self, cron: Json) -> None:
        """Create the job of this minute, and forget the oldest. Every schedule is that one."""
        meta, spec = cron["metadata"], cron["spec"]
        jobs = [it for it in self._world.all("jobs.batch") if is_owned(it, cron)]
        done = sorted((it for it in jobs if _is_done(it)), key=lambda it: it["metadata"]["name"])
        for job in done[: max(0, len(done) - _HISTORY)]:
            self._world.delete(job)
        job = {"apiVersion": "batch/v1", "kind": "Job", "spec": spec["jobTemplate"]["spec"]}
        job["metadata"] = {
            "name": f"{meta['name'][:52]}-{self._world.minute}",
            "namespace": meta["namespace"],
            "ownerReferences": [owner_reference(cron)],
        }
        if spec.get("suspend") or self._world.has(job):
            return
        if self._world.create(job):
            now = self._world.now
            self._world.set_status(cron, {**as_dict(cron.get("status")), "lastScheduleTime": now})
            message = f"Created job {job['metadata']['name']}"
            self._world.tell(cron, "SuccessfulCreate", message, by="cronjob-controller")

    def _work(self, job: Json, pods: Sequence[Json]) -> None:
        if _is_done(job) or job["spec"].get("suspend"):
            return
        wanted = job["spec"].get("completions") or 1
        succeeded = sum(text(it, "status", "phase") == "Succeeded" for it in pods)
        active = [it for it in pods if not is_going(it) and not _is_over(it)]
        state, now = as_dict(job.get("status")), self._world.now
        new: Json = {"startTime": state.get("startTime", now), "active": len(active)}
        new |= {"ready": sum(map(is_ready, active)), "succeeded": succeeded}
        new |= {"terminating": 0, "uncountedTerminatedPods": {}}
        if succeeded >= wanted:
            new["completionTime"] = now
            new["conditions"] = [
                {**condition(kind, "True", state=state, now=now), "lastProbeTime": now}
                for kind in ("SuccessCriteriaMet", "Complete")
            ]
            self._world.tell(job, "Completed", "Job completed", by="job-controller")
        elif not active:
            self._create_pod(job, by="job-controller")
        self._world.set_status(job, {key: it for key, it in new.items() if it or it == {}})


def _revision(replica_set: Json) -> int:
    text_ = text(replica_set, "metadata", "annotations", _REVISION)
    return int(text_) if text_.isdigit() else 0


def _is_over(pod: Json) -> bool:
    return text(pod, "status", "phase") in {"Succeeded", "Failed"}


def _is_done(job: Json) -> bool:
    conditions = as_list(as_dict(job.get("status")).get("conditions"))
    return any(it["type"] in {"Complete", "Failed"} and it["status"] == "True" for it in conditions)
