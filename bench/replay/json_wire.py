"""Lists and events in JSON, as a kube-apiserver writes them."""

from __future__ import annotations

import json
import mmap
from typing import Final, final

from bench import corpus
from bench.replay.wire import INITIAL_EVENTS_END, Buffer, Failure, Places

__all__ = ["JsonWire", "compact"]

_NAME: Final = b'{"metadata":{"name":"'
_NAMESPACE: Final = b'"namespace":"'
_UID: Final = b'"uid":"'
_VERSION: Final = b'"resourceVersion":"'
_NODE: Final = b'"nodeName":"ip-10-'
_RESTARTS: Final = b'"restartCount":'


def compact(value: object) -> bytes:
    """Return a value as Go writes it, with its newline."""
    return json.dumps(value, separators=(",", ":"), ensure_ascii=False).encode() + b"\n"


@final
class JsonWire:
    """The encoding `bench.replay.wire.Wire` for JSON."""

    list_type = watch_type = "application/json"
    list_tail = b"]}\n"
    event_tail = b"}\n"
    skipped = 1  # the brace, which comes before the kind
    zero = ord("0")
    sent_mark = corpus.SENT.encode() + b'":"'

    def places(self, data: mmap.mmap | bytes, start: int, end: int) -> Places:
        """Find the fields of the pod that is at ``data[start:end]``."""

        def after(mark: bytes, position: int) -> int:
            found = data.find(mark, position, end)
            if found < 0:
                raise ValueError(f"the pod at byte {start} has no {mark.decode()}")
            return found + len(mark)

        name_end = data.find(b'"', after(_NAME, start), end)
        namespace = after(_NAMESPACE, name_end)
        uid = after(_UID, namespace)
        version = after(_VERSION, uid)
        sent = after(self.sent_mark, version)
        node = after(_NODE, sent)
        restarts = after(_RESTARTS, node)
        found = (name_end - 5, namespace, uid + 24, version, sent, node, restarts)
        return Places(*(place - start for place in found))

    def moved(self, pod: Buffer, places: Places, *, namespace: bytes) -> bytes:
        """Return the pod in another namespace."""
        text = bytes(pod)
        end = text.index(b'"', places.namespace)
        return text[: places.namespace] + namespace + text[end:]

    def list_head(self, *, version: int, token: str, remaining: int, size: int) -> bytes:
        """Begin a list; the size of its items is not needed."""
        del size
        more = f',"continue":"{token}","remainingItemCount":{remaining}' if token else ""
        return (
            b'{"kind":"PodList","apiVersion":"v1","metadata":{"resourceVersion":"%d"%b},"items":['
            % (version, more.encode())
        )

    def item_head(self, size: int, *, is_first: bool) -> bytes:
        """Begin an item."""
        del size
        return b"" if is_first else b","

    def event_head(self, kind: bytes, size: int) -> bytes:
        """Begin an event with a pod."""
        del size
        return b'{"type":"%b","object":{"kind":"Pod","apiVersion":"v1",' % kind

    def bookmark(self, version: int, *, ends_list: bool = False) -> bytes:
        """Return a whole BOOKMARK event."""
        metadata: dict[str, object] = {"resourceVersion": str(version)}
        if ends_list:
            metadata["annotations"] = {INITIAL_EVENTS_END: "true"}
        pod = {
            "kind": "Pod",
            "apiVersion": "v1",
            "metadata": metadata,
            "spec": {"containers": None},
            "status": {},
        }
        return compact({"type": "BOOKMARK", "object": pod})

    def status(self, failure: Failure) -> bytes:
        """Return the body of a refusal."""
        return compact(_status(failure))

    def error(self, failure: Failure) -> bytes:
        """Return a whole ERROR event."""
        return compact({"type": "ERROR", "object": _status(failure)})


def _status(failure: Failure) -> dict[str, object]:
    return {
        "kind": "Status",
        "apiVersion": "v1",
        "metadata": {},
        "status": "Failure",
        "message": failure.message,
        "reason": failure.reason,
        "code": failure.code,
    }
