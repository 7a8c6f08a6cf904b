"""etcd's HTTP gateway: compaction and snapshots."""

from __future__ import annotations

import base64
import json
import os
import ssl
from dataclasses import dataclass
from pathlib import Path
from typing import Final, final

from kinform.testing.controlplane._raw_api import Json, RawApi, text_at
from kinform.testing.errors import ControlPlaneError

__all__ = ["EtcdGateway", "Snapshot"]

_COMPACT_REV_KEY: Final = "compact_rev_key"
"""The key in which apiservers share the compacted revision (apiserver: etcd3/compact.go)."""


@dataclass(frozen=True, slots=True)
class Snapshot:
    """The whole of etcd at one revision. It goes with the control plane that made it."""

    path: Path
    revision: int
    """The newest resourceVersion in it."""


@final
class EtcdGateway:
    """One etcd, spoken to in JSON. Every method blocks, and fails with `ControlPlaneError`.

    Args:
        port: where it serves clients, on loopback.
        context: trusts etcd's authority, and shows a certificate of it.
    """

    def __init__(self, port: int, *, context: ssl.SSLContext) -> None:
        self._api = RawApi(port, context=context)

    def is_ready(self) -> bool:
        """Ask whether it serves; any failure to answer is a no."""
        return self._api.is_ok("/readyz")

    def revision(self) -> int:
        """Return the current revision, which is the newest resourceVersion."""
        return _revision(
            self._api.call("POST", "/v3/kv/range", body={"key": _encode(_COMPACT_REV_KEY)})
        )

    def compact(self) -> int:
        """Compact all older versions now, on disk too; return the revision compacted to.

        Reads before that revision fail. The apiservers are notified in the way they notify each
        other, and drop the versions they kept in memory for continue tokens.
        """
        # The put moves the revision on, so that all a client can know by now lies before it.
        revision = self._put(_COMPACT_REV_KEY, str(self.revision()))
        wanted = {"revision": str(revision), "physical": True}
        self._api.call("POST", "/v3/kv/compaction", body=wanted)
        self._put(_COMPACT_REV_KEY, str(revision))
        return revision

    def save_snapshot(self, path: Path) -> None:
        """Write the whole database to ``path``, with the checksum ``etcdutl`` checks."""
        descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
        with os.fdopen(descriptor, "wb") as file:
            for line in self._api.lines("POST", "/v3/maintenance/snapshot", body={}):
                message: Json = json.loads(line)
                if "result" not in message:
                    reason = text_at(message, "error", "message")
                    raise ControlPlaneError(f"etcd broke off its snapshot: {reason}")
                file.write(base64.b64decode(text_at(message, "result", "blob")))

    def _put(self, key: str, value: str) -> int:
        body = {"key": _encode(key), "value": _encode(value)}
        return _revision(self._api.call("POST", "/v3/kv/put", body=body))


def _encode(text: str) -> str:
    return base64.b64encode(text.encode()).decode()


def _revision(answer: Json) -> int:
    return int(text_at(answer, "header", "revision"))
