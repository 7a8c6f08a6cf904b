"""kinform in blocking code against the official ``kubernetes`` client, side by side.

One process serves the same pods to both (6 KB each, as `bench.pods` makes them), each client runs
in a process of its own, and looks at the name, node and phase of every pod:

* *import*: CPU time of the imports a program needs, from byte code that is there.
* *list*: CPU time for each pod of a list.
* *watch*: CPU time for each event of a watch, and events for each second of it.
* *memory*: how much the process grows for each pod of a list that is kept.

Nothing here is a bar: the figures are for the guide "Coming from the official client".
"""

from __future__ import annotations

import argparse
import asyncio
import contextlib
import gc
import json
import os
import platform
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Generator, Sequence
from pathlib import Path
from typing import Any, Final

from bench import pods

__all__ = ["main"]

_STATM: Final = Path("/proc/self/statm")
_IMPORTS: Final = {
    "official": "import kubernetes.client, kubernetes.config, kubernetes.watch",
    "kinform": "from kinform.sync import connect, Client, ResourceClient, Watch",
}


# --- the server, in a process of its own


async def _serve(count: int) -> None:
    lists = b"".join(pods.list_body(count))
    events = b"".join(pods.watch_lines(count))
    head = b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nConnection: close\r\n"

    async def answer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        request = await reader.readuntil(b"\r\n\r\n")
        body = events if b"watch=" in request.split(b"\r\n")[0] else lists
        length = b"Content-Length: %d\r\n\r\n" % len(body)
        writer.write(head + length + body)
        await writer.drain()
        writer.close()

    server = await asyncio.start_server(answer, "127.0.0.1", 0)
    print(server.sockets[0].getsockname()[1], flush=True)
    await server.serve_forever()


@contextlib.contextmanager
def _server(count: int) -> Generator[str]:
    command = [sys.executable, "-m", "bench.official", "--serve", "--pods", str(count)]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
    try:
        assert process.stdout is not None
        yield f"http://127.0.0.1:{process.stdout.readline().strip()}"
    finally:
        process.terminate()
        process.wait()


# --- the clients, each in a process of its own: what is measured begins when all is imported


def _official(job: str, url: str) -> Callable[[], object]:
    from kubernetes import client, watch

    configuration = client.Configuration()
    configuration.host = url
    v1 = client.CoreV1Api(client.ApiClient(configuration))

    def look(pod: Any) -> None:
        assert pod.metadata.name
        assert pod.spec.node_name
        assert pod.status.phase

    def list_pods() -> object:
        found = v1.list_pod_for_all_namespaces()
        for pod in found.items:
            look(pod)
        return found

    def watch_pods() -> object:
        untyped: Any = watch.Watch
        for event in untyped().stream(v1.list_pod_for_all_namespaces, timeout_seconds=1):
            look(event["object"])
        return None

    return watch_pods if job == "watch" else list_pods


def _kinform(job: str, url: str) -> Callable[[], object]:
    from kinform.objects.object import Object
    from kinform.resource import Resource
    from kinform.sync import connect

    client = connect(url).open()
    resource = client.resource(Resource.of("v1/pods", kind="Pod", namespaced=True), namespace="")

    def look(pod: Object) -> None:
        assert pod.name
        assert pod.at("spec", "nodeName")
        assert pod.at("status", "phase")

    def list_pods() -> object:
        found = resource.list(page_size=None)
        for pod in found:
            look(pod)
        return found

    def watch_pods() -> object:
        with resource.watch() as events:
            for event in events:
                look(event.object)
        return None

    return watch_pods if job == "watch" else list_pods


def _client(name: str, job: str, url: str) -> None:
    work = (_official if name == "official" else _kinform)(job, url)
    gc.collect()
    before, began = _resident(), time.process_time()
    kept = work()
    cpu = time.process_time() - began
    gc.collect()
    print(json.dumps({"cpu": cpu, "bytes": _resident() - before}))
    del kept


def _resident() -> int:
    return int(_STATM.read_text(encoding="ascii").split()[1]) * os.sysconf("SC_PAGE_SIZE")


# --- the comparison


def _import_time(name: str, env: dict[str, str]) -> float:
    code = f"import time; t = time.process_time(); {_IMPORTS[name]}; print(time.process_time() - t)"
    return float(subprocess.check_output([sys.executable, "-c", code], env=env))


def _measure(name: str, job: str, url: str) -> dict[str, float]:
    command = [sys.executable, "-m", "bench.official", "--client", name, "--job", job]
    found: dict[str, float] = json.loads(subprocess.check_output([*command, "--url", url]))
    return found


def _compare(title: str, unit: str, figure: Callable[[str], float], *, rounds: int) -> None:
    both = {"official": list[float](), "kinform": list[float]()}
    for _ in range(rounds):
        for name, figures in both.items():
            figures.append(figure(name))
    official, kinform = (statistics.median(figures) for figures in both.values())
    ratio = statistics.median(a / b for a, b in zip(*both.values(), strict=True))
    print(
        f"{title:10}official {official:9.3g} {unit:14} kinform {kinform:9.3g} {unit:14}"
        f"{ratio:6.1f}x"
    )


def main(arguments: Sequence[str] = ()) -> bool:
    """Run and print the comparison; return that it was made."""
    parser = argparse.ArgumentParser(prog="python -m bench official")
    parser.add_argument("--pods", type=int, default=2_000)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--serve", action="store_true", help=argparse.SUPPRESS)
    parser.add_argument("--client", help=argparse.SUPPRESS)
    parser.add_argument("--job", help=argparse.SUPPRESS)
    parser.add_argument("--url", help=argparse.SUPPRESS)
    options = parser.parse_args(arguments)
    if options.serve:
        asyncio.run(_serve(options.pods))
    elif options.client:
        _client(options.client, options.job, options.url)
    else:
        _print(options.pods, options.rounds)
    return True


def _print(count: int, rounds: int) -> None:
    from importlib.metadata import version

    versions = f"kubernetes {version('kubernetes')}, Python {platform.python_version()}"
    print(f"{count} pods; {versions}; medians of {rounds} interleaved rounds\n")
    with tempfile.TemporaryDirectory() as cache:
        env = {**os.environ, "PYTHONPYCACHEPREFIX": cache, "PYTHONDONTWRITEBYTECODE": ""}
        for name in _IMPORTS:
            _import_time(name, env)  # writes the byte code
        _compare("import", "ms", lambda name: _import_time(name, env) * 1e3, rounds=2 * rounds)
    with _server(count) as url:

        def cpu(name: str, job: str) -> float:
            return _measure(name, job, url)["cpu"] / count * 1e6

        def memory(name: str) -> float:
            return _measure(name, "list", url)["bytes"] / count / 1e3

        _compare("list", "µs CPU a pod", lambda name: cpu(name, "list"), rounds=rounds)
        _compare("watch", "µs CPU an event", lambda name: cpu(name, "watch"), rounds=rounds)
        _compare("memory", "KB a pod", memory, rounds=rounds)


if __name__ == "__main__":
    sys.exit(not main(sys.argv[1:]))
