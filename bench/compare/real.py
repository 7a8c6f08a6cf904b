"""A real kube-apiserver full of pods, for the first sync over TLS.

The pods are valid ones, made of those that are replayed: about 6 KB each as the server shows
them, with the managedFields that it adds.
"""

from __future__ import annotations

import asyncio
import contextlib
import itertools
import json
from collections.abc import Callable, Generator, Iterator
from pathlib import Path
from typing import Any, Final

from bench import corpus
from kinform.client import Client
from kinform.testing import ControlPlane

__all__ = ["filled_control_plane", "valid_pod"]

_CREATORS: Final = 24
_NAMESPACES: Final = 10
_SIZE: Final = 5_100
"""Bytes of a pod as it is sent; the server adds managedFields and its defaults."""
_PROGRESS: Final = 1_000
_TIMEOUT: Final = 900.0
_SEED: Final = 1


def valid_pod(record: bytes, number: int) -> dict[str, Any]:
    """Return a pod that a server accepts, much like the one in ``record``.

    It has no volumes, because their objects would have to exist, and no status, which is written
    separately. An annotation of digests makes up for the missing size.
    """
    pod = json.loads(record)
    metadata, spec = pod["metadata"], pod["spec"]
    containers = [_container(c, place) for place, c in enumerate(spec["containers"])]
    kept: dict[str, Any] = {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {
            "name": f"{metadata['name'][:40]}-{number}",
            "namespace": f"bench-{number % _NAMESPACES}",
            "labels": metadata["labels"],
            "annotations": dict(metadata["annotations"]),
        },
        "spec": {
            "containers": containers,
            "nodeName": spec["nodeName"],
            "terminationGracePeriodSeconds": 30,
            "securityContext": spec["securityContext"],
            "tolerations": spec["tolerations"],
        },
    }
    lacking = _SIZE - len(json.dumps(kept, separators=(",", ":")))
    if lacking > 0:
        left = json.dumps([pod.get("status"), spec.get("volumes"), metadata.get("managedFields")])
        kept["metadata"]["annotations"]["bench.example.com/left-out"] = left[:lacking]
    return kept


def _container(container: dict[str, Any], place: int) -> dict[str, Any]:
    """Return the container without mounts and limits, its ports named for their container."""
    resources = container["resources"]
    kept = {name: value for name, value in container.items() if name != "volumeMounts"}
    kept["resources"] = {"requests": resources["requests"]}
    ports = {port["containerPort"]: port for port in container.get("ports", ())}
    kept["ports"] = [{**port, "name": f"c{place}-{port['name']}"} for port in ports.values()]
    names = {variable["name"]: variable for variable in container.get("env", ())}
    kept["env"] = list(names.values())
    return kept


@contextlib.contextmanager
def filled_control_plane(
    objects: int, source: Path, *, tell: Callable[[str], None]
) -> Generator[Path]:
    """Start a control plane with so many pods; give the administrator's kubeconfig.

    Raises:
        ControlPlaneUnavailable: There are no binaries.
        ControlPlaneError: A server does not come up.
        TimeoutError: The pods are not created in time.
    """
    plane = ControlPlane()
    tell("starting etcd and kube-apiserver")
    plane.start()
    try:
        asyncio.run(_fill(plane, objects, source, tell=tell))
        yield plane.kubeconfig_path
    finally:
        plane.close()


async def _fill(
    plane: ControlPlane, objects: int, source: Path, *, tell: Callable[[str], None]
) -> None:
    records = itertools.islice(itertools.cycle(corpus.records(source)), objects)
    numbered = enumerate(records)
    async with asyncio.timeout(_TIMEOUT), plane.connect() as client:
        namespaces = client.resource("v1/namespaces")
        for number in range(_NAMESPACES):
            name = {"name": f"bench-{number}"}
            await namespaces.create({"apiVersion": "v1", "kind": "Namespace", "metadata": name})
        async with asyncio.TaskGroup() as group:
            for _ in range(_CREATORS):
                group.create_task(_create(client, numbered, objects=objects, tell=tell))


async def _create(
    client: Client,
    numbered: Iterator[tuple[int, bytes]],
    *,
    objects: int,
    tell: Callable[[str], None],
) -> None:
    """Create pods until the shared counter is used up."""
    for number, record in numbered:  # no await between two of them: each is taken once
        pod = valid_pod(record, number)
        namespace = pod["metadata"]["namespace"]
        await client.resource("v1/pods", namespace=namespace).create(pod)
        if number % _PROGRESS == 0:
            tell(f"creating {objects:,} pods: {number:,}")
