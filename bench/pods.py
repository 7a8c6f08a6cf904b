"""Realistic pods, about 6 KB each, the same for the same seed.

Written as a kube-apiserver writes them: compact, Go's key order, managedFields of two
managers. A pod is a template (an application: 60 of them, with their own containers, volumes,
probes and labels) filled with what differs from pod to pod: names, uids, digests, addresses,
times, env values. So neither a parser's caches nor a compressor see one pod over and over.
"""

from __future__ import annotations

import json
import random
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Final, TypeAlias

__all__ = ["list_body", "pods", "watch_lines"]

Json: TypeAlias = "Mapping[str, Json] | Sequence[Json] | str | int | float | bool | None"
JsonObject: TypeAlias = dict[str, Json]

_TEMPLATES: Final = 60
# fmt: off
_WORDS: Final = (
    "auth", "billing", "cart", "catalog", "checkout", "consent", "courier", "depot", "edge",
    "export", "feed", "gateway", "geo", "ingest", "invoice", "ledger", "loyalty", "mailer",
    "matcher", "media", "metrics", "notify", "orders", "payments", "photo", "planner",
    "pricing", "profile", "proxy", "quota", "ranking", "recs", "report", "router", "search",
    "session", "settle", "shipping", "stock", "stream", "tax", "tenant", "ticket", "tracking",
    "upload", "vault", "video", "wallet", "webhook", "worker",
)
# fmt: on
_TEAMS: Final = ("apollo", "borealis", "cascade", "delta", "ember", "fjord", "granite")
_REGISTRIES: Final = ("registry.example.com", "ghcr.io/example", "quay.io/example-corp")
_SUFFIX_LETTERS: Final = "bcdfghjklmnpqrstvwxz2456789"


@dataclass(frozen=True)
class _Template:
    """The values that all pods of one application share."""

    app: str
    team: str
    namespace: str
    registry: str
    containers: tuple[str, ...]
    config_maps: tuple[str, ...]
    env_names: tuple[str, ...]
    ports: tuple[int, ...]
    has_probes: bool
    tier: str


def _template(rng: random.Random) -> _Template:
    app = "-".join(rng.sample(_WORDS, rng.choice((1, 2, 2))))
    sidecars = rng.sample(("istio-proxy", "fluent-bit", "vault-agent"), rng.choice((0, 0, 1)))
    names = rng.sample(_WORDS, rng.randint(3, 7))
    return _Template(
        app=app,
        team=rng.choice(_TEAMS),
        namespace=f"{rng.choice(_TEAMS)}-{rng.choice(('prod', 'staging', 'batch'))}",
        registry=rng.choice(_REGISTRIES),
        containers=(app, *sidecars),
        config_maps=tuple(f"{app}-{name}" for name in rng.sample(_WORDS, rng.choice((0, 1, 1)))),
        env_names=tuple(f"{name.upper()}_{rng.choice(('URL', 'TOKEN_TTL'))}" for name in names),
        ports=tuple(rng.sample(range(3000, 9999), rng.choice((1, 1, 2)))),
        has_probes=rng.random() < 0.75,
        tier=rng.choice(("frontend", "backend", "data")),
    )


def _hex(rng: random.Random, digits: int) -> str:
    return f"{rng.getrandbits(digits * 4):0{digits}x}"


def _uid(rng: random.Random) -> str:
    text = _hex(rng, 32)
    return f"{text[:8]}-{text[8:12]}-4{text[13:16]}-a{text[17:20]}-{text[20:]}"


def _time(rng: random.Random) -> str:
    day, hour, minute, second = (rng.randrange(n) for n in (28, 24, 60, 60))
    return f"2026-0{rng.randint(1, 9)}-{day + 1:02}T{hour:02}:{minute:02}:{second:02}Z"


def _probe(path: str, port: int, *, delay: int) -> JsonObject:
    return {
        "httpGet": {"path": path, "port": port, "scheme": "HTTP"},
        "initialDelaySeconds": delay,
        "timeoutSeconds": 1,
        "periodSeconds": 10,
        "successThreshold": 1,
        "failureThreshold": 3,
    }


def _env(rng: random.Random, template: _Template) -> list[Json]:
    field: Json = {"fieldRef": {"apiVersion": "v1", "fieldPath": "metadata.name"}}
    env: list[Json] = [{"name": "POD_NAME", "valueFrom": field}]
    for name in template.env_names:
        value = f"https://{rng.choice(_WORDS)}.{template.namespace}.svc:{rng.randint(80, 9000)}"
        env.append({"name": name, "value": value if name.endswith("URL") else _hex(rng, 6)})
    return env


def _container(rng: random.Random, template: _Template, *, name: str) -> JsonObject:
    container: JsonObject = {
        "name": name,
        "image": f"{template.registry}/{name}:v{rng.randint(1, 9)}.{rng.randint(0, 40)}",
        "args": [f"--log-level={rng.choice(('info', 'debug'))}", f"--shard={rng.randint(0, 64)}"],
        "ports": [{"name": f"p{n}", "containerPort": n, "protocol": "TCP"} for n in template.ports],
        "env": _env(rng, template),
        "resources": {
            "limits": {"cpu": f"{rng.randint(1, 8)}", "memory": f"{rng.randint(1, 16)}Gi"},
            "requests": {"cpu": f"{rng.randint(50, 900)}m", "memory": f"{rng.randint(64, 999)}Mi"},
        },
        "volumeMounts": _mounts(rng, template),
    }
    if template.has_probes:
        container["livenessProbe"] = _probe("/healthz", template.ports[0], delay=rng.randint(5, 60))
        container["readinessProbe"] = _probe("/readyz", template.ports[0], delay=rng.randint(1, 10))
    container["terminationMessagePath"] = "/dev/termination-log"
    container["terminationMessagePolicy"] = "File"
    container["imagePullPolicy"] = "IfNotPresent"
    return container


def _mounts(rng: random.Random, template: _Template) -> list[Json]:
    token = f"kube-api-access-{_hex(rng, 5)}"
    path = "/var/run/secrets/kubernetes.io/serviceaccount"
    mounts: list[Json] = [{"name": m, "mountPath": f"/etc/{m}"} for m in template.config_maps]
    return [*mounts, {"name": token, "readOnly": True, "mountPath": path}]


def _volumes(rng: random.Random, template: _Template) -> list[Json]:
    volumes: list[Json] = [
        {"name": name, "configMap": {"name": name, "defaultMode": 420}}
        for name in template.config_maps
    ]
    ca: Json = {"name": "kube-root-ca.crt", "items": [{"key": "ca.crt", "path": "ca.crt"}]}
    field: Json = {"apiVersion": "v1", "fieldPath": "metadata.namespace"}
    sources: list[Json] = [
        {"serviceAccountToken": {"expirationSeconds": 3607, "path": "token"}},
        {"configMap": ca},
        {"downwardAPI": {"items": [{"path": "namespace", "fieldRef": field}]}},
    ]
    projected: Json = {"sources": sources, "defaultMode": 420}
    return [*volumes, {"name": f"kube-api-access-{_hex(rng, 5)}", "projected": projected}]


def _managed_by(
    manager: str, fields: JsonObject, *, time: str, subresource: str = ""
) -> JsonObject:
    entry: JsonObject = {
        "manager": manager,
        "operation": "Update",
        "apiVersion": "v1",
        "time": time,
        "fieldsType": "FieldsV1",
        "fieldsV1": fields,
    }
    return entry | ({"subresource": subresource} if subresource else {})


def _managed_fields(rng: random.Random, template: _Template, *, owner_uid: str) -> list[Json]:
    """Return managedFields: the part of a pod that every client receives and hardly any reads."""
    empty: JsonObject = {}
    leaf: JsonObject = {".": empty}
    keys = ("image", "imagePullPolicy", "name", "terminationMessagePath", "args")
    container = leaf | {f"f:{key}": empty for key in keys}
    env = leaf | {
        f'k:{{"name":"{name}"}}': {".": empty, "f:name": empty, "f:value": empty}
        for name in template.env_names
    }
    spec: JsonObject = {
        "f:containers": {
            f'k:{{"name":"{name}"}}': container | {"f:env": env} for name in template.containers
        },
        "f:dnsPolicy": empty,
        "f:restartPolicy": empty,
        "f:schedulerName": empty,
        "f:terminationGracePeriodSeconds": empty,
    }
    owner = leaf | {f'k:{{"uid":"{owner_uid}"}}': empty}
    labels = leaf | {"f:app.kubernetes.io/name": empty, "f:pod-template-hash": empty}
    metadata: JsonObject = {"f:generateName": empty, "f:labels": labels, "f:ownerReferences": owner}
    stamp = leaf | {"f:lastProbeTime": empty, "f:lastTransitionTime": empty, "f:status": empty}
    kinds = ("ContainersReady", "Initialized", "PodReadyToStartContainers", "Ready")
    conditions: JsonObject = {f'k:{{"type":"{kind}"}}': stamp for kind in kinds}
    ips = leaf | {f'k:{{"ip":"{_ip(rng)}"}}': {".": empty, "f:ip": empty}}
    status: JsonObject = {
        "f:conditions": conditions,
        "f:containerStatuses": empty,
        "f:hostIP": empty,
        "f:phase": empty,
        "f:podIPs": ips,
        "f:startTime": empty,
    }
    first: JsonObject = {"f:metadata": metadata, "f:spec": spec}
    return [
        _managed_by("kube-controller-manager", first, time=_time(rng)),
        _managed_by("kubelet", {"f:status": status}, time=_time(rng), subresource="status"),
    ]


def _ip(rng: random.Random) -> str:
    return f"10.{rng.randrange(256)}.{rng.randrange(256)}.{rng.randrange(1, 255)}"


def _metadata(rng: random.Random, template: _Template, *, version: int) -> JsonObject:
    hashed = "".join(rng.choices(_SUFFIX_LETTERS, k=10))
    base = f"{template.app}-{hashed}-"
    owner: JsonObject = {
        "apiVersion": "apps/v1",
        "kind": "ReplicaSet",
        "name": base[:-1],
        "uid": _uid(rng),
        "controller": True,
        "blockOwnerDeletion": True,
    }
    return {
        "name": base + "".join(rng.choices(_SUFFIX_LETTERS, k=5)),
        "generateName": base,
        "namespace": template.namespace,
        "uid": _uid(rng),
        "resourceVersion": str(version),
        "generation": 1,
        "creationTimestamp": _time(rng),
        "labels": {
            "app.kubernetes.io/name": template.app,
            "app.kubernetes.io/version": f"{rng.randint(1, 9)}.{rng.randint(0, 60)}",
            "example.com/team": template.team,
            "pod-template-hash": hashed,
            "tier": template.tier,
        },
        "annotations": {
            "checksum/config": _hex(rng, 64),
            "prometheus.io/scrape": "true",
            "prometheus.io/port": str(template.ports[0]),
        },
        "ownerReferences": [owner],
        "managedFields": _managed_fields(rng, template, owner_uid=str(owner["uid"])),
    }


def _spec(rng: random.Random, template: _Template) -> JsonObject:
    tolerations: list[Json] = [
        {"key": f"node.kubernetes.io/{why}", "operator": "Exists", "effect": "NoExecute"}
        for why in ("not-ready", "unreachable")
    ]
    return {
        "volumes": _volumes(rng, template),
        "containers": [_container(rng, template, name=name) for name in template.containers],
        "restartPolicy": "Always",
        "terminationGracePeriodSeconds": 30,
        "dnsPolicy": "ClusterFirst",
        "serviceAccountName": template.app,
        "serviceAccount": template.app,
        "nodeName": f"ip-{_ip(rng).replace('.', '-')}.eu-central-1.compute.internal",
        "securityContext": {"runAsNonRoot": True, "fsGroup": rng.randint(1000, 65000)},
        "schedulerName": "default-scheduler",
        "tolerations": tolerations,
        "priority": 0,
        "enableServiceLinks": True,
        "preemptionPolicy": "PreemptLowerPriority",
    }


def _status(rng: random.Random, template: _Template) -> JsonObject:
    host, pod = _ip(rng), _ip(rng)
    conditions: list[Json] = [
        {"type": kind, "status": "True", "lastProbeTime": None, "lastTransitionTime": _time(rng)}
        for kind in ("PodReadyToStartContainers", "Initialized", "Ready", "ContainersReady")
    ]
    containers: list[Json] = [
        {
            "name": name,
            "state": {"running": {"startedAt": _time(rng)}},
            "lastState": {},
            "ready": True,
            "restartCount": rng.choice((0, 0, 0, 1, 7)),
            "image": f"{template.registry}/{name}:v1",
            "imageID": f"{template.registry}/{name}@sha256:{_hex(rng, 64)}",
            "containerID": f"containerd://{_hex(rng, 64)}",
            "started": True,
        }
        for name in template.containers
    ]
    return {
        "phase": "Running",
        "conditions": conditions,
        "hostIP": host,
        "hostIPs": [{"ip": host}],
        "podIP": pod,
        "podIPs": [{"ip": pod}],
        "startTime": _time(rng),
        "containerStatuses": containers,
        "qosClass": "Burstable",
    }


def pods(count: int, *, seed: int = 1, typed: bool = True) -> Iterator[bytes]:
    """Yield ``count`` pods as compact JSON; ``typed=False`` leaves out kind and apiVersion."""
    rng = random.Random(seed)
    templates = [_template(rng) for _ in range(_TEMPLATES)]
    head: JsonObject = {"kind": "Pod", "apiVersion": "v1"} if typed else {}
    for number in range(count):
        template = rng.choice(templates)
        pod = head | {
            "metadata": _metadata(rng, template, version=1_000_000 + number),
            "spec": _spec(rng, template),
            "status": _status(rng, template),
        }
        yield json.dumps(pod, separators=(",", ":"), ensure_ascii=False).encode()


def watch_lines(count: int, *, seed: int = 1) -> list[bytes]:
    """Return ``count`` MODIFIED events, one line each, newline included."""
    return [b'{"type":"MODIFIED","object":%b}\n' % pod for pod in pods(count, seed=seed)]


def list_body(count: int, *, seed: int = 1) -> Iterator[bytes]:
    """Yield the body of a ``PodList`` as a server writes it, in pieces of one pod."""
    yield b'{"kind":"PodList","apiVersion":"v1","metadata":{"resourceVersion":"2000000"},"items":['
    for number, pod in enumerate(pods(count, seed=seed, typed=False)):
        yield b"," + pod if number else pod
    yield b"]}\n"
