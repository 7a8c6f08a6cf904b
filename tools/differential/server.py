"""The server of a script: one pure function from a request and a time to a complete answer.

The future of a script is known, so an answer is known as a whole when its request arrives: each
byte with its time. Both clients are served by this code; they only play what it returns.
"""

from __future__ import annotations

import base64
import gzip
import json
from bisect import bisect_right
from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any, Final, TypeAlias, final
from urllib.parse import parse_qsl, urlsplit

from msgspec import Struct
from msgspec.structs import replace

from tools.differential.script import (
    KIND,
    PATH,
    TEXT,
    Change,
    Fault,
    Script,
    Verb,
    damaged_key,
    held,
    history,
)

__all__ = ["Asked", "Plan", "Server"]

LATENCY: Final = 0.01
BOOKMARK_PERIOD: Final = 60.0
TOO_LARGE_AFTER: Final = 3.0
GROUP: Final = "example.dev"
_MODIFIERS: Final = frozenset(
    {"no bookmarks", "odd bookmarks", "no end bookmark", "doubled", "replayed", "damaged"}
)
"""Faults that act beside others: the watch is opened, and ends as it would without them."""
_ENDINGS: Final = frozenset({"closed", "lost", "mute", "error", "unknown type"})

Json: TypeAlias = dict[str, Any]
Chunks: TypeAlias = list[tuple[float, bytes]]


class Asked(Struct, frozen=True):
    """A request that was made."""

    at: float
    kind: str
    """A verb; ``probe`` for a list of one object, ``page`` for a further page of a list."""
    version: str = ""
    """The resource version of the request."""
    failed: bool = False
    """Whether the answer was a failure from its head on."""
    retry_after: int = 0
    """What the answer asked for."""
    whole: float = 0.0
    """When all objects of a list had been sent; 0: they were not."""
    refused: float = 0.0
    """When the server has said that the version is too old or too large; 0: it did not."""
    invalid: str = ""
    """Why an API server refuses such a request, or client-go never sends it."""


class Plan(Struct, frozen=True):
    """An answer: when its head comes, what follows at which time after it, and how it ends."""

    delay: float = LATENCY
    fails: str = ""
    """``refused``, ``reset``, ``eof`` or ``silence``: there is no head."""
    status: int = 200
    content_type: str = "application/json"
    retry_after: int = 0
    encoding: str = ""
    chunks: Sequence[tuple[float, bytes]] = ()
    end: str = "eof"
    """``eof``, ``reset``, ``cut`` (the connection ends before the body does) or ``silence``."""
    ends: float = 0.0
    """When, after the head; not before the last chunk."""
    whole: float | None = None
    """When, after the head, the last object of a list has been sent; None: not in this answer."""
    refuses: float | None = None
    """When, after the head, the server says that the version is too old or too large."""

    def headers(self) -> dict[str, str]:
        """Return the head's fields."""
        again = {"Retry-After": str(self.retry_after)} if self.retry_after else {}
        encoding = {"Content-Encoding": self.encoding} if self.encoding else {}
        return {"Content-Type": self.content_type, **again, **encoding}

    def to_json(self) -> bytes:
        """Return the plan as a line for the Go program."""
        chunks = [(at, base64.b64encode(data).decode()) for at, data in self.chunks]
        return json.dumps(
            {
                "delay": self.delay, "fails": self.fails, "status": self.status,
                "headers": self.headers(), "chunks": chunks, "end": self.end, "ends": self.ends,
            }
        ).encode() + b"\n"  # fmt: skip


@final
class Server:
    """The server as one client sees it: it counts that client's requests, and nothing else."""

    def __init__(self, script: Script) -> None:
        self.script: Final = script
        self.asked: Final[list[Asked]] = []
        self._matched: Counter[int] = Counter()
        self._times = [change.at for change in script.changes]
        self._histories: dict[int, list[Change]] = {}
        self._events: dict[Change, bytes] = {}

    def answer(self, target: str, now: float, *, accept: str = "") -> Plan:
        """Answer a GET for ``target`` (path and query) that arrives at ``now``."""
        parts = urlsplit(target)
        query = dict(parse_qsl(parts.query))
        verb = _verb(parts.path, query)
        kind: str = verb
        if verb == "list" and "continue" in query:
            kind = "page"
        elif verb == "list" and query.get("limit") == "1":
            kind = "probe"
        fault, modifiers = self._faults(verb, now)
        if fault is not None and (refusal := _refusal(fault)) is not None:
            plan = refusal
        elif verb == "discovery":
            plan = self._discovery(parts.path, now, aggregated="apidiscovery" in accept)
        elif "v1" not in self.script.versions(now):
            plan = _NO_PAGE
        else:
            if verb == "list":
                plan = self._list(query, now, fault)
            else:
                plan = self._watch(query, now, fault, modifiers=modifiers, is_list=verb == "stream")
            plan = self._packed(plan if fault is None else _damaged(plan, fault))
        self._note(plan, kind, query, now=now)
        return plan

    def _note(self, plan: Plan, kind: str, query: Mapping[str, str], *, now: float) -> None:
        is_whole = plan.whole is not None and plan.whole <= plan.ends
        asked = Asked(
            now,
            kind,
            version=query.get("resourceVersion", ""),
            failed=bool(plan.fails) or plan.status >= 400,
            retry_after=plan.retry_after,
            whole=now + plan.delay + (plan.whole or 0.0) if is_whole else 0.0,
            refused=0.0 if plan.refuses is None else now + plan.delay + plan.refuses,
            invalid=_invalid(kind, query),
        )
        self.asked.append(asked)

    def _faults(self, verb: Verb, now: float) -> tuple[Fault | None, dict[str, Fault]]:
        """Return the first fault that acts on a request, and by name those that act beside it."""
        first: Fault | None = None
        modifiers: dict[str, Fault] = {}
        for index, fault in enumerate(self.script.faults):
            is_modifier = fault.what in _MODIFIERS
            if verb not in fault.verbs or not fault.since <= now < fault.until:
                continue
            if first is not None and not is_modifier:
                continue
            self._matched[index] += 1
            if fault.skip < self._matched[index] <= fault.skip + fault.times:
                if is_modifier:
                    modifiers[fault.what] = fault
                else:
                    first = fault
        return first, modifiers

    def _history(self, now: float) -> list[Change]:
        place = bisect_right(self._times, now)
        if place not in self._histories:
            self._histories[place] = history(self.script, now)
        return self._histories[place]

    # --- documents

    def _write(self, document: Json) -> bytes:
        style = self.script.style
        if style.reordered:
            document = dict(reversed(document.items()))
        if style.unknown_fields:
            document = {"aNewField": {"x": [1, None, {"items": []}]}, **document}
        if style.pretty:
            return json.dumps(document, indent=2, ensure_ascii=False).encode() + b"\n"
        return json.dumps(document, separators=(",", ":"), ensure_ascii=False).encode() + b"\n"

    def _event(self, kind: str, document: Json) -> bytes:
        return self._write({"type": kind, "object": document})

    def _object(self, change: Change) -> Json:
        namespace, name = change.key.split("/")
        metadata: Json = {
            "name": name,
            "namespace": namespace,
            "uid": change.uid,
            "resourceVersion": str(change.rv),
            "creationTimestamp": "2026-01-01T00:00:00Z",
        }
        if self.script.style.nulls:
            absent = ("labels", "annotations", "finalizers", "ownerReferences", "managedFields")
            metadata |= dict.fromkeys((*absent, "deletionTimestamp", "generateName"))
        spec = {"n": str(change.n), "text": TEXT}
        return {"apiVersion": f"{GROUP}/v1", "kind": KIND, "metadata": metadata, "spec": spec}

    def _bookmark(self, rv: str, *, ends_list: bool = False) -> bytes:
        metadata: Json = {"resourceVersion": rv, "creationTimestamp": None}
        if ends_list:
            metadata["annotations"] = {"k8s.io/initial-events-end": "true"}
        document = {"apiVersion": f"{GROUP}/v1", "kind": KIND, "metadata": metadata}
        return self._event("BOOKMARK", document)

    # --- lists

    def _list(self, query: Mapping[str, str], now: float, fault: Fault | None) -> Plan:
        version = query.get("resourceVersion", "")
        # Without a version it is the storage that answers, else the watch cache.
        changes = self._history(self.script.cached(now) if version else now)
        newest, start = _newest(changes), 0
        if token := query.get("continue"):
            if fault is not None and fault.what == "expired pages":
                return _status(410, "Expired", "the provided continue parameter is too old")
            listed, start = (int(part) for part in token.split("."))
            changes = [change for change in self._history(now) if change.rv <= listed]
            newest = listed
        elif int(version or 0) > newest:
            return _too_large(newest)
        items = sorted(held(changes).values(), key=lambda change: change.key)
        limit = int(query.get("limit", 0))
        size = min(limit, self.script.page or limit) or len(items)
        metadata: Json = {"resourceVersion": str(newest)}
        if start + size < len(items):
            metadata["continue"] = f"{newest}.{start + size}"
            metadata["remainingItemCount"] = len(items) - start - size
        elif self.script.style.nulls:
            metadata |= {"continue": None, "remainingItemCount": None, "selfLink": None}
        document = {
            "apiVersion": f"{GROUP}/v1",
            "kind": f"{KIND}List",
            "metadata": metadata,
            "items": [self._object(change) for change in items[start : start + size]],
        }
        whole = None if metadata.get("continue") else 0.0
        return self._paced(Plan(chunks=[(0.0, self._write(document))], whole=whole))

    # --- watches

    def _watch(
        self,
        query: Mapping[str, str],
        now: float,
        fault: Fault | None,
        *,
        modifiers: Mapping[str, Fault],
        is_list: bool,
    ) -> Plan:
        script, changes = self.script, self._history(self.script.cached(now))
        newest, version = _newest(changes), int(query.get("resourceVersion") or 0)
        if is_list and max(version, _newest(self._history(now))) > newest:
            return _too_large(newest)
        oldest = max((rv for at, rv in script.compactions if at <= now), default=0)
        if not is_list and 0 < version < oldest:
            return self._expired(version)
        limit = float(query.get("timeoutSeconds", 3600))
        restores = [one.at - now for one in script.changes if one.op == "restore" and one.at > now]
        unserved = [at - now for at, names in script.served if at > now and "v1" not in names]
        drops = [at - now for at in script.drops if at > now]
        ends = min([limit, *restores, *unserved, *drops])
        if fault is not None and fault.what in _ENDINGS:
            ends = min(ends, fault.after + LATENCY)  # no need to know what would have come later
        chunks: Chunks = []
        start, whole = newest, None
        damaged = modifiers.get("damaged")
        if is_list or not version:  # begins with the objects that exist
            items = [replace(one, op="ADDED") for _, one in sorted(held(changes).items())]
            events = [self._change(one, damaged) for one in items]
            if "odd bookmarks" in modifiers:  # one that does not end the list
                events.insert(len(events) // 2, self._bookmark(str(newest)))
            if is_list and "no end bookmark" not in modifiers:
                events.append(self._bookmark(str(newest), ends_list=True))
                whole = script.spread if len(events) > 1 else 0.0
            pause = script.spread / max(1, len(events) - 1)
            chunks += [(place * pause, event) for place, event in enumerate(events)]
        else:
            start = version - (modifiers["replayed"].size if "replayed" in modifiers else 0)
            chunks += [(0.0, self._change(one, damaged)) for one in changes if one.rv > start]
        cached = script.cached(now)
        for one in script.changes:
            if cached < one.at and one.rv > start and one.op != "restore":
                after = chunks[-1][0] if chunks else 0.0
                if (at := max(script.visible(one.at) - now, after)) < ends:
                    chunks.append((at, self._change(one, damaged)))
        chunks += self._bookmarks(now, ends, start=max(start, version), modifiers=modifiers)
        chunks.sort(key=lambda chunk: chunk[0])
        if "doubled" in modifiers:
            chunks = [chunk for chunk in chunks for _ in range(2)]
        plan = Plan(chunks=chunks, ends=ends, whole=whole)
        plan = self._restored(plan) if ends in restores else plan
        return self._paced(self._disturbed(plan, fault) if fault is not None else plan)

    def _restored(self, plan: Plan) -> Plan:
        """End a watch as a server does that is restored: without a word, or with one."""
        if self.script.seed % 2:
            return replace(plan, end="reset")
        error = self._event("ERROR", _failure(410, "Expired", "etcd was restored"))
        return replace(plan, chunks=[*plan.chunks, (plan.ends, error)], refuses=plan.ends)

    def _change(self, change: Change, damage: Fault | None) -> bytes:
        if change not in self._events:
            self._events[change] = self._event(change.op, self._object(change))
        event = self._events[change]
        if damage is not None and change.key == damaged_key(self.script, damage):
            # No JSON, or no UTF-8.
            event = event.replace("é".encode(), b"\x01" if damage.code % 2 else b"\xff")
        return event

    def _bookmarks(
        self, now: float, ends: float, *, start: int, modifiers: Mapping[str, Fault]
    ) -> Chunks:
        if "no bookmarks" in modifiers:
            return []
        odd = modifiers.get("odd bookmarks")
        chunks: Chunks = []
        after = BOOKMARK_PERIOD
        while after < ends:
            newest = _newest(self._history(self.script.cached(now + after)))
            if newest >= start:  # a real server sends no bookmark from before the watch
                rv = str(newest)
                if odd is not None:
                    rv = ("", "0", "1", str(max(1, newest - 3)))[odd.code % 4]
                chunks.append((after, self._bookmark(rv)))
            after += BOOKMARK_PERIOD
        return chunks

    def _expired(self, version: int) -> Plan:
        message = f"too old resource version: {version}"
        if self.script.seed % 2:
            return _status(410, "Expired", message)
        error = _failure(410, "Expired", message)
        return Plan(chunks=[(0.0, self._event("ERROR", error))], refuses=0.0)

    def _disturbed(self, plan: Plan, fault: Fault) -> Plan:
        """Apply what happens in the events of a watch."""
        sent = [chunk for chunk in plan.chunks if chunk[0] <= fault.after]
        match fault.what:
            case "closed":
                return replace(plan, chunks=sent, end="eof", ends=fault.after)
            case "lost":
                return replace(plan, chunks=sent, end="reset", ends=fault.after)
            case "mute":
                return replace(plan, chunks=sent, end="silence", ends=fault.after)
            case "error":
                document = _failure(fault.code, fault.reason, "as the script says")
                event = (fault.after, self._event("ERROR", document))
                refuses = fault.after if fault.code == 410 else None
                sent.append(event)
                return replace(plan, chunks=sent, end="eof", ends=fault.after, refuses=refuses)
            case "unknown type":
                event = (fault.after, self._event("SHRUGGED", {"kind": KIND}))
                return replace(plan, chunks=[*sent, event], end="eof", ends=fault.after)
            case _:
                return plan

    def _packed(self, plan: Plan) -> Plan:
        """Compress the body of a list."""
        members = self.script.style.gzip
        if not members or plan.whole is None or plan.ends or plan.end != "eof":
            return plan
        body = b"".join(data for _, data in plan.chunks)
        size = max(1, -(-len(body) // members))
        parts = [body[start : start + size] for start in range(0, len(body), size)]
        packed = b"".join(gzip.compress(part, 1, mtime=0) for part in parts)
        return self._paced(replace(plan, encoding="gzip", chunks=[(0.0, packed)]))

    def _paced(self, plan: Plan) -> Plan:
        size = self.script.style.pieces
        if not size:
            return plan
        chunks = [
            (at, data[start : start + size])
            for at, data in plan.chunks
            for start in range(0, len(data), size)
        ]
        return replace(plan, chunks=chunks)

    # --- discovery

    def _discovery(self, path: str, now: float, *, aggregated: bool) -> Plan:
        versions = self.script.versions(now)
        document: Json
        names = [{"groupVersion": f"{GROUP}/{name}", "version": name} for name in versions]
        group = {"name": GROUP, "versions": names, "preferredVersion": names[0] if names else None}
        match path.strip("/").split("/"):
            case ["api" | "apis" as root] if aggregated and self.script.aggregated:
                items = [_discovered(versions)] if root == "apis" and versions else []
                kind = {"kind": "APIGroupDiscoveryList", "apiVersion": "apidiscovery.k8s.io/v2"}
                document = {**kind, "metadata": {}, "items": items}
            case ["api"]:
                document = {"kind": "APIVersions", "versions": ["v1"]}
            case ["api", "v1"]:
                document = {"kind": "APIResourceList", "groupVersion": "v1", "resources": []}
            case ["apis"]:
                groups = [group] if names else []
                document = {"kind": "APIGroupList", "apiVersion": "v1", "groups": groups}
            case ["apis", "example.dev"] if names:
                document = {"kind": "APIGroup", "apiVersion": "v1", **group}
            case ["apis", "example.dev", version] if version in versions:
                resource = {
                    "name": "widgets", "singularName": "widget", "namespaced": True,
                    "kind": KIND, "verbs": ["get", "list", "watch"],
                }  # fmt: skip
                document = {
                    "kind": "APIResourceList", "apiVersion": "v1",
                    "groupVersion": f"{GROUP}/{version}", "resources": [resource],
                }  # fmt: skip
            case _:
                return _NO_PAGE
        return Plan(chunks=[(0.0, self._write(document))])


def _verb(path: str, query: Mapping[str, str]) -> Verb:
    if path != PATH:
        return "discovery"
    if query.get("watch") not in {"true", "1"}:
        return "list"
    return "stream" if query.get("sendInitialEvents") == "true" else "watch"


def _invalid(kind: str, query: Mapping[str, str]) -> str:
    """Return what an API server's validation says of a request, or what client-go never sends."""
    version, match = query.get("resourceVersion", ""), query.get("resourceVersionMatch", "")
    if kind == "discovery":
        return ""
    if kind in {"list", "probe", "page"}:
        if match and (not version or "continue" in query):
            return "resourceVersionMatch without resourceVersion, or with continue"
        if "continue" in query and version not in {"", "0"}:
            return "resourceVersion with continue"
        return "sendInitialEvents without watch" if "sendInitialEvents" in query else ""
    if (kind == "stream") != (match == "NotOlderThan"):
        return f"resourceVersionMatch={match} for a {kind}"
    if kind == "watch" and version in {"", "0"}:
        return "a watch from no version"
    if query.get("allowWatchBookmarks") != "true":
        return "no bookmarks are asked for"
    seconds = int(query.get("timeoutSeconds", 0))
    return "" if 300 <= seconds <= 600 else f"a watch of {seconds} s"


def _discovered(versions: Sequence[str]) -> Json:
    resource = {
        "resource": "widgets", "scope": "Namespaced", "singularResource": "widget",
        "responseKind": {"group": GROUP, "version": "v1", "kind": KIND},
        "verbs": ["get", "list", "watch"],
    }  # fmt: skip
    served = [
        {"version": name, "freshness": "Current", "resources": [resource]} for name in versions
    ]
    return {"metadata": {"name": GROUP}, "versions": served}


def _newest(changes: Sequence[Change]) -> int:
    return max((change.rv for change in changes), default=1)


def _failure(code: int, reason: str, message: str) -> Json:
    return {
        "kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Failure",
        "message": message, "reason": reason, "code": code,
    }  # fmt: skip


def _status(code: int, reason: str, message: str, *, retry_after: int = 0) -> Plan:
    document = _failure(code, reason, message)
    if retry_after:
        document["details"] = {"retryAfterSeconds": retry_after}
    chunks = [(0.0, json.dumps(document).encode())]
    refuses = 0.0 if code == 410 else None
    return Plan(status=code, retry_after=retry_after, chunks=chunks, refuses=refuses)


def _too_large(newest: int) -> Plan:
    document = _failure(504, "Timeout", f"Too large resource version, current: {newest}")
    cause = {"reason": "ResourceVersionTooLarge", "message": "Too large resource version"}
    document["details"] = {"causes": [cause], "retryAfterSeconds": 1}
    chunks = [(0.0, json.dumps(document).encode())]
    return Plan(delay=TOO_LARGE_AFTER, status=504, chunks=chunks, refuses=0.0)


_NO_PAGE: Final = Plan(
    status=404,
    content_type="text/plain; charset=utf-8",
    chunks=((0.0, b"404 page not found\n"),),
)


def _refusal(fault: Fault) -> Plan | None:
    """Return the answer of a fault that needs nothing from the server."""
    match fault.what:
        case "refused" | "reset" | "eof" | "silence":
            return Plan(fails=fault.what)
        case "status":
            return _status(
                fault.code, fault.reason, "as the script says", retry_after=fault.retry_after
            )
        case "page":  # of something in between: a proxy, a load balancer
            body = b"<html><body>%d</body></html>\n" % fault.code
            return Plan(status=fault.code, content_type="text/html", chunks=[(0.0, body)])
        case "empty":
            return Plan()
        case _:
            return None


def _damaged(plan: Plan, fault: Fault) -> Plan:
    """Apply what happens to the bytes of a body, whatever they mean."""
    left = fault.size
    chunks: Chunks = []
    for at, data in plan.chunks:
        if len(data) >= left:
            break
        chunks.append((at, data))
        left -= len(data)
    else:
        if fault.what != "slow":
            return plan
        at, data = 0.0, b""
    whole = plan.whole if plan.whole is not None and plan.whole < at else None
    match fault.what:
        case "cut" | "broken" | "stalled":
            end = {"cut": "cut", "broken": "reset", "stalled": "silence"}[fault.what]
            left_of = [*chunks, (at, data[:left])]
            return replace(plan, chunks=left_of, end=end, ends=at, whole=whole)
        case "garbage":
            wrong = data[:left] + b'\x00{"type":"' + data[left:]
            return replace(plan, chunks=[*chunks, (at, wrong)], end="eof", ends=at, whole=whole)
        case "slow":
            late = [(max(at, n * fault.after), data) for n, (at, data) in enumerate(plan.chunks)]
            ends = max(plan.ends, late[-1][0] if late else 0.0)
            last = [
                at for at, old in zip(late, plan.chunks, strict=True) if old[0] <= (plan.whole or 0)
            ]
            whole = last[-1][0] if last and plan.whole is not None else None
            return replace(plan, chunks=late, end=plan.end, ends=ends, whole=whole)
        case _:
            return plan
