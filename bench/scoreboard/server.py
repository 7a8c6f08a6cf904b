"""The embedded API server of one cell, in its own process: commands add and remove faults.

Commands are JSON lines on its standard input, and it answers each with a line. It ends when its
input does. Writes come from within, past all faults; requests for pods are counted by two faults
that do nothing.
"""

from __future__ import annotations

import asyncio
import base64
import contextlib
import json
import os
import ssl
import sys
import tempfile
import threading
from collections.abc import Callable, Coroutine, Mapping
from pathlib import Path
from typing import Any, Final, TypeAlias, final

import yaml

from bench.peers.driver import SENT
from bench.scoreboard.front import Elsewhere, Front
from bench.scoreboard.scenarios import PODS, pod
from kinform.apiserver import APIServer, faults
from kinform.apiserver.endpoints.application import Application
from kinform.apiserver.endpoints.messages import ServerRequest
from kinform.apiserver.storage.versioned_store import ObjectDraft
from kinform.testing.controlplane._pki import CertificateAuthority

__all__ = ["main"]

Answer: TypeAlias = dict[str, object]

_COLLECTION: Final = "/api/v1/namespaces/default/pods"
_PADDING: Final = "x" * 4000
"""Makes an annotation the middle of its pod, where a damaged byte is to be."""
_NEXT_LINE: Final = f"left\x85right {_PADDING}"
_DEPTH: Final = 1_500
_ENDING: Final = 0.005
"""Seconds between two ends of all watches: a watch lives no longer than this."""


def _body(name: str, text: str) -> bytes:
    container = {"name": "main", "image": "registry.example.com/web:1"}
    value = {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": name, "annotations": {SENT: text}},
        "spec": {"nodeName": "node-0", "containers": [container]},
    }
    return json.dumps(value, ensure_ascii=False).encode()


@final
class _Server:
    """One API server and all that is done to it."""

    def __init__(self, server: APIServer) -> None:
        self._server = server
        self._writer = Application(server.cluster)
        self._lists = server.faults.add(faults.latency(0, verb="list", resource="pods"))
        self._watches = server.faults.add(faults.latency(0, verb="watch", resource="pods"))
        self._added: list[faults.Fault] = []
        self._writes = 0
        self._is_ending = False
        self._remembered = 0
        self._front: Front | None = None
        self._elsewhere = Elsewhere()

    # --- commands

    async def serve(self, command: Mapping[str, Any]) -> Answer:
        """Create the first pods, and the proxy in front of the server."""
        await self.write({"changes": [("create", pod(number)) for number in range(PODS)]})
        kind = command["front"]
        if not kind:
            return {"kubeconfig": self._server.kubeconfig()}
        port = int(self._server.url.rpartition(":")[2])
        self._front = Front(port)
        if kind == "plain":
            await self._front.open(None)
            text = self._server.kubeconfig().replace(f":{port}/", f":{self._front.port}/")
            return {"kubeconfig": text}
        authority = CertificateAuthority()
        context = _context(authority)
        await self._front.open(context)
        await self._elsewhere.open(context)
        url = f"https://127.0.0.1:{self._front.port}"
        return {"kubeconfig": _kubeconfig(url, self._server.token, authority)}

    async def write(self, command: Mapping[str, Any]) -> Answer:
        """Create, update and delete pods."""
        for what, name in command["changes"]:
            await self._change(what, name)
        return {"written": len(command["changes"])}

    async def _change(self, what: str, name: str) -> None:
        self._writes += 1
        padding = _NEXT_LINE if what == "next-line" else _PADDING
        path, text = f"{_COLLECTION}/{name}", f"{self._writes} {padding}"
        match what:
            case "create" | "poison":
                await self._ask("POST", _COLLECTION, _body(name, text))
            case "delete":
                await self._ask("DELETE", f"{path}?gracePeriodSeconds=0")
            case "update" | "next-line":
                patch = {"metadata": {"annotations": {SENT: text}}}
                await self._ask("PATCH", path, json.dumps(patch).encode())
            case _:
                raise ValueError(what)
        if what == "poison":
            self._poison(f"default/{name}")

    async def _ask(self, method: str, target: str, body: bytes = b"") -> None:
        media_type = "merge-patch+json" if method == "PATCH" else "json"
        headers = {"Content-Type": f"application/{media_type}"}
        answer = await self._writer.handle(
            ServerRequest.of(method, target, headers=headers, body=body)
        )
        if answer.status >= 300:
            raise RuntimeError(f"{method} {target}: {answer.status} {answer.body!r}")

    def _poison(self, key: str) -> None:
        """Put into storage what no validation would let in, and a custom resource may have."""
        storage = self._server.cluster.storage
        held = storage.table("pods").get(key)
        assert held is not None
        deep = '{"f:a":' * _DEPTH + "{}" + "}" * _DEPTH

        def encode(version: str) -> bytes:
            value = json.loads(held.raw)
            value["metadata"]["resourceVersion"] = version
            value["metadata"]["managedFields"][0]["fieldsV1"] = "deep"
            return json.dumps(value).replace('"deep"', deep).encode()

        draft = ObjectDraft(encode=encode, labels=held.labels, fields=held.fields, uid=held.uid)
        storage.update("pods", key, draft)

    async def faults(self, command: Mapping[str, Any]) -> Answer:
        """Add faults to the plan, given in the format of a fault file."""
        added = [self._server.faults.add(fault) for fault in faults.load(command["faults"])]
        self._added += added
        return {"added": len(added)}

    async def act(self, command: Mapping[str, Any]) -> Answer:
        """Do what no fault of the plan does."""
        storage = self._server.cluster.storage
        match command["what"]:
            case "end watches":
                storage.disconnect()
            case "end all watches":
                self._is_ending = True
            case "compact":
                self._server.compact()
            case "remember":
                self._remembered = storage.revision
            case "restore":
                self._server.restore(self._remembered)
            case "freeze" if self._front is not None:
                self._front.freeze()
            case "redirect" if self._front is not None:
                self._front.redirect(self._elsewhere.port)
            case other:
                raise ValueError(other)
        return {"done": command["what"]}

    async def heal(self, _: Mapping[str, Any]) -> Answer:
        """Remove all faults, except frozen connections."""
        for fault in self._added:
            self._server.faults.remove(fault)
        self._added.clear()
        self._is_ending = False
        if self._front is not None and self._elsewhere.port:
            self._front.redirect(None)
        return {"healed": True}

    async def look(self, _: Mapping[str, Any]) -> Answer:
        """Return the objects on the server, and the requests so far."""
        table = self._server.cluster.storage.table("pods")
        objects = {
            stored.key: (str(stored.revision), stored.uid, _sent(stored.raw))
            for stored in table.now()
        }
        return {
            "objects": objects,
            "lists": self._lists.seen,
            "watches": self._watches.seen,
            "redirected": self._front.redirected if self._front is not None else 0,
            "elsewhere": self._elsewhere.requests,
            "credentials": self._elsewhere.credentials,
        }

    async def end_watches(self) -> None:
        """End every watch as soon as it is open, while that is wanted. Never returns."""
        while True:
            if self._is_ending:
                self._server.cluster.storage.disconnect()
            await asyncio.sleep(_ENDING)


def _sent(raw: bytes) -> str:
    start = raw.find(b'"%b":' % SENT.encode())
    text, _ = json.JSONDecoder().raw_decode(raw[start + len(SENT) + 3 :].decode().lstrip())
    return str(text)


def _context(authority: CertificateAuthority) -> ssl.SSLContext:
    pair = authority.server("kube-apiserver")
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    with tempfile.TemporaryDirectory() as folder:
        certificate, key = Path(folder) / "cert.pem", Path(folder) / "key.pem"
        certificate.write_bytes(pair.cert_pem)
        key.write_bytes(pair.key_pem)
        context.load_cert_chain(certificate, key)
    return context


def _kubeconfig(url: str, token: str, authority: CertificateAuthority) -> str:
    ca = base64.b64encode(authority.cert_pem).decode()
    cluster = {"server": url, "certificate-authority-data": ca}
    document = {
        "apiVersion": "v1",
        "kind": "Config",
        "clusters": [{"name": "board", "cluster": cluster}],
        "users": [{"name": "board", "user": {"token": token}}],
        "contexts": [{"name": "board", "context": {"cluster": "board", "user": "board"}}],
        "current-context": "board",
    }
    text: str = yaml.safe_dump(document, sort_keys=False)
    return text


# --- the process ------------------------------------------------------------------------------


def _read_commands(loop: asyncio.AbstractEventLoop, queue: asyncio.Queue[bytes]) -> None:
    rest = b""
    while piece := os.read(0, 65536):
        *lines, rest = (rest + piece).split(b"\n")
        for line in lines:
            loop.call_soon_threadsafe(queue.put_nowait, line)
    os._exit(0)


def _say(answer: Answer) -> None:
    print(json.dumps(answer), flush=True)


async def main() -> None:
    """Execute commands until the input is closed."""
    lines: asyncio.Queue[bytes] = asyncio.Queue()
    arguments = (asyncio.get_running_loop(), lines)
    threading.Thread(target=_read_commands, args=arguments, daemon=True).start()
    async with APIServer(seed=1) as embedded, asyncio.TaskGroup() as group:
        server = _Server(embedded)
        group.create_task(server.end_watches())
        commands: dict[str, Callable[[Mapping[str, Any]], Coroutine[Any, Any, Answer]]] = {
            name: getattr(server, name)
            for name in ("serve", "write", "faults", "act", "heal", "look")
        }
        _say({"ready": True})
        while True:
            command = json.loads(await lines.get())
            _say(await commands[command["do"]](command))


if __name__ == "__main__":
    with contextlib.suppress(KeyboardInterrupt):
        sys.exit(asyncio.run(main()))
