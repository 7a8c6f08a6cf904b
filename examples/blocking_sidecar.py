"""A sidecar that keeps labelled ConfigMaps as files in a folder, in blocking code.

Every key of every ConfigMap that has the label becomes the file ``NAMESPACE.NAME.KEY``; what goes
from the cluster goes from the folder. The same for asyncio, and for more, is
``configmap_sidecar.py``.

``python examples/blocking_sidecar.py --label app=dashboards --folder /tmp/dashboards``
``python examples/blocking_sidecar.py --demo``

Against the cluster kubectl would use. SIGTERM and Ctrl-C end it.
"""

# ci: --demo -n default

from __future__ import annotations

import argparse
import contextlib
import secrets
import signal
import sys
import tempfile
import threading
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

import kinform
from kinform.sync import Client, SharedInformer, connect

LOOK = 0.2
"""Seconds between two looks at whether it was stopped."""


def plan(maps: Sequence[kinform.Object]) -> dict[str, str]:
    """Return what the files should hold, by name."""
    files: dict[str, str] = {}
    for one in maps:
        data: Mapping[str, str] = one.at("data", default={})
        files |= {f"{one.namespace}.{one.name}.{key}": text for key, text in data.items()}
    return files


def make_equal(folder: Path, files: Mapping[str, str]) -> list[str]:
    """Write what differs, remove what is not wanted; return what was done."""
    done: list[str] = []
    folder.mkdir(parents=True, exist_ok=True)
    there = {path.name: path for path in folder.iterdir() if path.is_file()}
    for name in sorted(there.keys() - files.keys()):
        there[name].unlink()
        done.append(f"removed {name}")
    for name, text in sorted(files.items()):
        path = folder / name
        if name not in there or path.read_text(encoding="utf-8") != text:
            half = folder / f".{name}"
            half.write_text(text, encoding="utf-8")
            half.replace(path)  # atomic: a reader sees the old file or the new one
            done.append(f"wrote {name}")
    return done


def follow(
    maps: SharedInformer[kinform.Object], folder: Path, report: Callable[[str], object]
) -> None:
    """Keep the folder equal until the informer stops."""
    dirty = threading.Event()
    maps.add_event_handler(
        on_add=lambda _: dirty.set(),
        on_update=lambda _: dirty.set(),
        on_delete=lambda _: dirty.set(),
    )
    with maps:
        maps.wait_synced()
        while not maps.is_stopped:
            dirty.clear()
            for line in make_equal(folder, plan(maps.lister.list())):
                report(line)
            while not dirty.wait(LOOK) and not maps.is_stopped:
                pass


def demo(client: Client, namespace: str) -> None:
    """A ConfigMap comes, changes and goes; the folder follows."""
    mark = secrets.token_hex(4)
    informer = client.informer(
        "v1/configmaps", namespace=namespace, label_selector=f"kinform-demo={mark}"
    )
    resource = client.resource("v1/configmaps", namespace=namespace)
    name = f"board-{mark}"

    def tell(line: str) -> None:
        print(line.replace(mark, "demo"))
        if line == f"wrote {namespace}.{name}.old.json":
            resource.patch(name, {"data": {"old.json": None, "new.json": "[]"}})
        elif line == f"wrote {namespace}.{name}.new.json":
            resource.delete(name)
        elif line == f"removed {namespace}.{name}.new.json":
            informer.stop()

    with tempfile.TemporaryDirectory(prefix="kinform-") as folder:
        metadata = {"name": name, "labels": {"kinform-demo": mark}}
        resource.create({"metadata": metadata, "data": {"old.json": "{}"}})
        follow(informer, Path(folder), tell)


def main(argv: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--label", help="which ConfigMaps: a label selector")
    parser.add_argument("--folder", type=Path, help="where their files go: for these alone")
    parser.add_argument("-n", "--namespace", default="default")
    parser.add_argument("--demo", action="store_true", help="play a little story, and end")
    args = parser.parse_args(argv)
    if not args.demo and not (args.label and args.folder):
        parser.error("--label and --folder are needed, or --demo")
    with contextlib.suppress(KeyboardInterrupt), connect() as client:
        if args.demo:
            demo(client, args.namespace)
            return 0
        informer = client.informer(
            "v1/configmaps", namespace=args.namespace, label_selector=args.label
        )
        signal.signal(signal.SIGTERM, lambda _signum, _frame: informer.stop())
        follow(informer, args.folder, print)
    return 0


if __name__ == "__main__":
    sys.exit(main())
