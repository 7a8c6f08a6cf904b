"""A spawner and its reflector, in blocking code: what JupyterHub's kubespawner writes by hand.

`PodReflector` has the pods with a label in memory. `spawn` creates one and waits until it
runs or has failed, and prints its Events meanwhile. The same for asyncio, with more features, is
``spawner_reflector.py``.

``python examples/blocking_reflector.py NAME [--image IMAGE] [--timeout SECONDS]``
``python examples/blocking_reflector.py --demo``

Against the cluster kubectl would use. ``--demo`` plays the kubelet, in a thread.
"""

# ci: --demo -n default

from __future__ import annotations

import argparse
import contextlib
import secrets
import sys
import threading
from collections.abc import Mapping, Sequence
from typing import Self

import kinform
from kinform.sync import Client, SharedInformer, connect, wait_for_cache_sync

LABEL = "example.com/blocking-spawner"
BY_POD = "pod"


class PodReflector:
    """The pods of a namespace that have the label, and the events about its pods."""

    def __init__(self, client: Client, namespace: str) -> None:
        self.pods: SharedInformer[kinform.Object] = client.informer(
            "v1/pods", namespace=namespace, label_selector=LABEL
        )
        self.events: SharedInformer[kinform.Object] = client.informer(
            "v1/events",
            namespace=namespace,
            field_selector="involvedObject.kind=Pod",
            indexers={BY_POD: lambda event: event.at("involvedObject", "uid")},
        )

    def __enter__(self) -> Self:
        self.events.start()
        self.pods.start()
        wait_for_cache_sync(self.pods, self.events, timeout=30)
        return self

    def __exit__(self, *exc_info: object) -> None:
        self.pods.stop()
        self.events.stop()

    def messages(self, pod: kinform.Object) -> list[str]:
        """Return the messages of a pod's Events, oldest first."""
        found = self.events.indexer.by_index(BY_POD, pod.uid)
        found.sort(key=lambda event: (event.metadata.creation_timestamp or "", event.name))
        return [str(event.at("message", default="")) for event in found]

    def wait_reported(self, pod: kinform.Object, timeout: float) -> list[str]:
        """Return the messages of a pod's Events, once there is one."""
        return self.events.wait_for(lambda _: self.messages(pod), timeout)

    def wait_settled(self, pod: kinform.Object, timeout: float) -> str:
        """Return the phase of a pod when it is not pending any more; ``Deleted`` if deleted."""
        self.pods.wait_until(pod.resource_version, timeout)  # from here on, not there means gone

        def phase(pods: kinform.Lister[kinform.Object]) -> str | None:
            now = pods.get(pod.key)
            if now is None or now.uid != pod.uid:
                return "Deleted"
            reached: str = now.at("status", "phase", default="Pending")
            return None if reached == "Pending" else reached

        return self.pods.wait_for(phase, timeout)


def spawn(
    client: Client,
    reflector: PodReflector,
    name: str,
    *,
    spec: Mapping[str, object],
    namespace: str,
    timeout: float,
) -> bool:
    """Create a pod and print its progress; delete it if it does not run."""
    pods = client.resource("v1/pods", namespace=namespace)
    pod = pods.create({"metadata": {"name": name, "labels": {LABEL: "yes"}}, "spec": spec})

    def tell(event: kinform.Added[kinform.Object]) -> None:
        if event.obj.at("involvedObject", "uid") == pod.uid:
            print(f"  [{event.obj.at('type')}] {event.obj.at('message')}", flush=True)

    printing = reflector.events.add_event_handler(on_add=tell)
    try:
        phase = reflector.wait_settled(pod, timeout)
    except TimeoutError as error:
        phase = f"not settled: {error}"
    finally:
        printing.shut_down()
    print(f"{name}: {phase}", flush=True)
    if phase != "Running":
        with contextlib.suppress(kinform.NotFoundError):
            pods.delete(name, uid=pod.uid, grace_period=0)
    return phase == "Running"


def demo(client: Client, namespace: str) -> bool:
    """Two pods: one starts, the image of the other does not exist."""
    mark = secrets.token_hex(3)
    spec = {
        "containers": [{"name": "main", "image": "example/never-runs"}],
        "schedulingGates": [{"name": "example.com/never"}],  # a real scheduler leaves it alone
    }
    with PodReflector(client, namespace) as reflector:
        kubelet = threading.Thread(target=play_kubelet, args=(client, reflector), daemon=True)
        kubelet.start()
        names = f"good-{mark}", f"bad-{mark}"
        runs = [
            spawn(client, reflector, name, spec=spec, namespace=namespace, timeout=30)
            for name in names
        ]
        client.resource("v1/pods", namespace=namespace).delete(names[0], grace_period=0)
        print("known at the end:", *sorted(pod.name[:4] for pod in reflector.pods.lister.list()))
    return runs == [True, False]


def play_kubelet(client: Client, reflector: PodReflector) -> None:
    """Let each new pod run, or fail, as its name says."""
    for event in reflector.pods.events():
        if isinstance(event, kinform.Added):
            pod, is_good = event.obj, event.key.name.startswith("good")
            events = client.resource("v1/events", namespace=pod.namespace)
            involved = {"kind": "Pod", "namespace": pod.namespace, "name": pod.name, "uid": pod.uid}
            message = "started" if is_good else "no such image"
            content = {"involvedObject": involved, "message": message, "reason": "Demo"}
            kind = {"type": "Normal" if is_good else "Warning"}
            events.create({"metadata": {"name": f"{pod.name}.demo"}, **content, **kind})
            reflector.wait_reported(pod, 10)
            status = {"status": {"phase": "Running" if is_good else "Failed"}}
            client.resource("v1/pods", namespace=pod.namespace).status.patch(pod.name, status)


def main(argv: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("name", nargs="?")
    parser.add_argument("-n", "--namespace", default="default")
    parser.add_argument("--image", default="nginx")
    parser.add_argument("--timeout", type=float, default=60.0)
    parser.add_argument("--demo", action="store_true", help="play a little story, and end")
    args = parser.parse_args(argv)
    if not args.demo and not args.name:
        parser.error("give a NAME, or --demo")
    with connect() as client:
        if args.demo:
            return 0 if demo(client, args.namespace) else 1
        spec = {"containers": [{"name": "main", "image": args.image}]}
        place, patience = args.namespace, args.timeout
        with PodReflector(client, place) as reflector:
            runs = spawn(client, reflector, args.name, spec=spec, namespace=place, timeout=patience)
    return 0 if runs else 1


if __name__ == "__main__":
    sys.exit(main())
