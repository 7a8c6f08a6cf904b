"""A server that cases can talk to."""

from __future__ import annotations

import base64
import ssl
import tempfile
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Final

import yaml

if TYPE_CHECKING:
    from kinform.apiserver import APIServer
    from kinform.testing import ControlPlane

__all__ = [
    "APISERVER_FLAGS",
    "CONTROLLERS",
    "Target",
    "of_control_plane",
    "of_embedded",
    "of_kubeconfig",
]

CONTROLLERS: Final = (
    "garbage-collector-controller",
    "namespace-controller",
    "serviceaccount-controller",
)
APISERVER_FLAGS: Final = ("--disable-admission-plugins=ServiceAccount",)
"""Pods must not wait for the service account that a controller makes."""


async def _cannot_compact() -> None:
    raise RuntimeError("this server is shared: its history cannot be compacted")


@dataclass(frozen=True)
class Target:
    """The address of the server, and its credentials."""

    url: str
    headers: dict[str, str] = field(default_factory=dict[str, str])
    ssl: ssl.SSLContext | bool = True
    compact: Callable[[], Awaitable[object]] = _cannot_compact
    is_ours: bool = False
    """The server is used by this run only and removed afterwards, so its namespaces are not
    deleted: a real server deletes only a few of them per second."""


def of_embedded(server: APIServer) -> Target:
    """Return an embedded server that runs."""

    async def compact() -> None:
        server.compact()

    return Target(server.url, {"Authorization": f"Bearer {server.token}"}, compact=compact)


def of_control_plane(plane: ControlPlane) -> Target:
    """Return the first apiserver of a control plane, for its administrator."""
    shared = of_kubeconfig(plane.kubeconfig_path)
    return Target(shared.url, ssl=shared.ssl, compact=plane.compact, is_ours=True)


def of_kubeconfig(path: Path) -> Target:
    """Return the first cluster of a kubeconfig with client certificates."""
    config = yaml.safe_load(path.read_text("utf-8"))
    cluster, user = config["clusters"][0]["cluster"], config["users"][0]["user"]
    authority = base64.b64decode(cluster["certificate-authority-data"]).decode()
    context = ssl.create_default_context(cadata=authority)
    with tempfile.TemporaryDirectory() as folder:
        pair = Path(folder, "pair.pem")
        pair.write_bytes(
            base64.b64decode(user["client-certificate-data"])
            + b"\n"
            + base64.b64decode(user["client-key-data"])
        )
        context.load_cert_chain(pair)
    return Target(cluster["server"], ssl=context)
