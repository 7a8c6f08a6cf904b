"""Recorded decisions and refusals of a real kube-apiserver 1.36 with RBAC: ``data_rbac.json``.

``python -m tests.apiserver.recorded_rbac http://localhost:8001`` records it anew, through a proxy
whose user may impersonate others and write roles.
"""

from __future__ import annotations

import functools
import json
import sys
import time
from collections.abc import Sequence
from http import HTTPStatus
from http.client import HTTPConnection  # noqa: TID251 (records without what is recorded for)
from pathlib import Path
from typing import Any, NamedTuple
from urllib.parse import urlsplit

Json = dict[str, Any]

DATA = Path(__file__).with_name("data_rbac.json")
RBAC = "/apis/rbac.authorization.k8s.io/v1"
HOME = "rbac-here"
AUTHORIZATION = "/apis/authorization.k8s.io/v1"
AUTHENTICATION = "/apis/authentication.k8s.io/v1"
_GROUP = "rbac.authorization.k8s.io"


class Case(NamedTuple):
    """One request of one user."""

    user: str
    method: str
    path: str
    body: Json | None = None
    groups: tuple[str, ...] = ()
    content_type: str = "application/json"


def _rule(groups: str, resources: str, verbs: str, names: str = "") -> Json:
    rule: Json = {
        "verbs": verbs.split(),
        "apiGroups": groups.split(","),
        "resources": resources.split(),
    }
    return rule | {"resourceNames": names.split()} if names else rule


def _role(name: str, *rules: Json, labels: Json | None = None) -> Json:
    return {"metadata": {"name": name, "labels": labels or {}}, "rules": list(rules)}


def _binding(name: str, role: str, *subjects: str) -> Json:
    kind, role = role.split("/")
    found: list[Json] = []
    for subject in subjects:
        of, _, who = subject.partition("/")
        if of == "ServiceAccount":
            namespace, _, who = who.rpartition("/")
            found.append({"kind": of, "name": who, "namespace": namespace})
        else:
            found.append({"kind": of, "name": who, "apiGroup": _GROUP})
    ref = {"apiGroup": _GROUP, "kind": kind, "name": role}
    return {"metadata": {"name": name}, "roleRef": ref, "subjects": found}


_LOCAL = f"{RBAC}/namespaces/{HOME}"
SETUP: list[tuple[str, Json]] = [
    ("/api/v1/namespaces", {"metadata": {"name": HOME}}),
    (
        f"{_LOCAL}/roles",
        _role(
            "reader",
            _rule("", "pods pods/log", "get list watch"),
            _rule("", "configmaps", "get list watch update delete deletecollection", "one two"),
            _rule("apps", "*/scale", "get patch"),
            _rule("apps", "deployments/*", "update"),
            _rule("batch", "*", "list"),
            _rule("*", "leases", "*"),
            _rule("", "secrets", "create", "one"),
        ),
    ),
    (
        f"{_LOCAL}/roles",
        _role(
            "author",
            _rule("", "pods pods/log", "get list"),
            _rule(_GROUP, "roles rolebindings", "get create update patch"),
            _rule("", "configmaps", "get", "one"),
            _rule("apps", "*/scale", "get"),
        ),
    ),
    (
        f"{_LOCAL}/roles",
        _role("big", _rule("", "pods secrets", "get delete"), _rule("apps", "*", "*")),
    ),
    (f"{_LOCAL}/roles", _role("binder", _rule(_GROUP, "roles", "bind escalate", "big"))),
    (f"{RBAC}/clusterroles", _role("rbac-nodes", _rule("", "nodes namespaces", "get list"))),
    (f"{RBAC}/clusterroles", _role("rbac-roles", _rule(_GROUP, "clusterroles", "create"))),
    (
        f"{RBAC}/clusterroles",
        _role("rbac-urls", {"nonResourceURLs": ["/logs*", "/metrics", "/x/*"], "verbs": ["get"]}),
    ),
    (f"{_LOCAL}/rolebindings", _binding("bob-cluster", "ClusterRole/rbac-nodes", "User/bob")),
    (
        f"{_LOCAL}/rolebindings",
        _binding(
            "alice", "Role/reader", "User/alice", "Group/readers", f"ServiceAccount/{HOME}/bot"
        ),
    ),
    (
        f"{_LOCAL}/rolebindings",
        _binding("dave", "Role/author", "User/dave", "User/erin", "User/gina"),
    ),
    (f"{_LOCAL}/rolebindings", _binding("erin", "Role/binder", "User/erin")),
    (f"{_LOCAL}/rolebindings", _binding("lost", "Role/nowhere", "User/frank", "User/gina")),
    (f"{_LOCAL}/rolebindings", _binding("lost-more", "ClusterRole/gone", "User/alice")),
    (f"{RBAC}/clusterrolebindings", _binding("rbac-nodes", "ClusterRole/rbac-nodes", "Group/ops")),
    (f"{RBAC}/clusterrolebindings", _binding("rbac-urls", "ClusterRole/rbac-urls", "User/alice")),
    (f"{RBAC}/clusterrolebindings", _binding("rbac-dave", "ClusterRole/rbac-roles", "User/dave")),
]


def _gets(user: str, *paths: str, groups: tuple[str, ...] = ()) -> list[Case]:
    return [Case(user, "GET", path, groups=groups) for path in paths]


def _access(user: str, groups: Sequence[str] = (), **asked: str) -> Case:
    what = "nonResourceAttributes" if "path" in asked else "resourceAttributes"
    spec: Json = {"user": user, "groups": list(groups), what: asked}
    return Case(
        "admin",
        "POST",
        f"{AUTHORIZATION}/subjectaccessreviews",
        {"spec": spec},
        ("system:masters",),
    )


def _new_role(*rules: Json, user: str = "dave", name: str = "new") -> Case:
    return Case(user, "POST", f"{_LOCAL}/roles?dryRun=All", _role(name, *rules))


def _new_binding(role: str, user: str = "dave", groups: tuple[str, ...] = ()) -> Case:
    body = _binding("new", role, "User/zoe")
    return Case(user, "POST", f"{_LOCAL}/rolebindings?dryRun=All", body, groups)


_PODS = f"/api/v1/namespaces/{HOME}/pods"
_MAPS = f"/api/v1/namespaces/{HOME}/configmaps"
_APPS = f"/apis/apps/v1/namespaces/{HOME}"
_BOT = f"system:serviceaccount:{HOME}:bot"
_SELF = f"{AUTHORIZATION}/selfsubjectaccessreviews"
_MERGE = "application/merge-patch+json"
_ASK = {"spec": {"resourceAttributes": {"namespace": HOME, "verb": "list", "resource": "pods"}}}

CASES: list[Case] = [
    *_gets("alice", _PODS, "/api/v1/pods", "/api/v1/namespaces/default/pods", f"{_PODS}/x"),
    *_gets("alice", f"{_PODS}/x/status", f"{_PODS}?watch=1&timeoutSeconds=0&limit=x"),
    *_gets("alice", f"/api/v1/watch/namespaces/{HOME}/services", f"{_PODS}/x?watch=1"),
    *_gets("alice", _MAPS, f"{_MAPS}/one", f"{_MAPS}/three"),
    *_gets("alice", f"{_MAPS}?fieldSelector=metadata.name%3Done"),
    *_gets("alice", f"{_MAPS}?fieldSelector=metadata.name%3D%3Dthree"),
    *_gets("alice", f"{_MAPS}?fieldSelector=metadata.name!%3Done"),
    *_gets("alice", f"{_MAPS}?fieldSelector=metadata.namespace%3D{HOME},metadata.name%3Dtwo"),
    Case("alice", "DELETE", f"{_MAPS}/one"),
    Case("alice", "DELETE", f"{_MAPS}/three"),
    Case("alice", "DELETE", _MAPS),
    Case("alice", "DELETE", f"{_MAPS}?fieldSelector=metadata.name%3Done"),
    Case("alice", "POST", _PODS, {}),
    Case("alice", "PUT", f"{_PODS}/x", {}),
    Case("alice", "PATCH", f"{_PODS}/x", {}, content_type=_MERGE),
    Case("alice", "POST", f"/api/v1/namespaces/{HOME}/secrets", {"metadata": {"name": "one"}}),
    *_gets("alice", f"{_APPS}/deployments/x/scale", f"{_APPS}/deployments/x"),
    Case("alice", "PUT", f"{_APPS}/deployments/x/status", {}),
    Case("alice", "PUT", f"{_APPS}/deployments/x/scale", {}),
    Case("alice", "PATCH", f"{_APPS}/replicasets/x/scale", {}, content_type=_MERGE),
    *_gets(
        "alice",
        f"/apis/batch/v1/namespaces/{HOME}/jobs",
        f"/apis/batch/v1/namespaces/{HOME}/jobs/x",
    ),
    *_gets("alice", f"/apis/coordination.k8s.io/v1/namespaces/{HOME}/leases/x"),
    *_gets("alice", "/apis/nope.io/v1/things", "/apis/apps/v1/nopes", "/nope", "/x", "/"),
    *_gets(
        "zoe", _PODS, "/metrics", "/api", "/apis/apps/v1", "/healthz", "/version", "/livez/ping"
    ),
    *_gets("zoe", _PODS, groups=("readers",)),
    *_gets(_BOT, _PODS, f"{_PODS}/x", "/api/v1/nodes"),
    *_gets("system:serviceaccount:other:bot", _PODS),
    *_gets("bob", "/api/v1/nodes", f"/api/v1/namespaces/{HOME}", "/api/v1/namespaces"),
    *_gets("bob", "/api/v1/namespaces/default"),
    *_gets("olga", "/api/v1/nodes?limit=1&labelSelector=a=b", "/api/v1/nodes/x", groups=("ops",)),
    *_gets("system:anonymous", "/api", "/healthz", _PODS, "/version"),
    *_gets("frank", _PODS, f"{_PODS}/x/log"),
    Case("zoe", "PUT", f"/api/v1/namespaces/{HOME}/finalize", {}),
    Case("zoe", "GET", f"/api/v1/namespaces/{HOME}/services/x/proxy/a/b"),
    Case("zoe", "POST", "/api/v1/namespaces", {}),
    Case("zoe", "OPTIONS", "/api/v1/pods"),
    # reviews
    _access("alice", verb="list", resource="pods", namespace=HOME),
    _access("alice", verb="list", resource="pods"),
    _access("alice", verb="get", resource="pods", subresource="log", namespace=HOME),
    _access(
        "alice",
        verb="get",
        resource="deployments",
        subresource="scale",
        namespace=HOME,
        group="apps",
    ),
    _access(
        "alice",
        verb="update",
        resource="deployments",
        subresource="x",
        namespace=HOME,
        group="apps",
    ),
    _access("alice", verb="get", resource="configmaps", name="one", namespace=HOME),
    _access("alice", verb="get", resource="configmaps", namespace=HOME),
    _access("alice", verb="get", path="/logs/a/b"),
    _access("alice", verb="get", path="/logsx"),
    _access("alice", verb="get", path="/x"),
    _access("alice", verb="get", path="/x/y"),
    _access("alice", verb="post", path="/metrics"),
    _access("x", ["ops"], verb="list", resource="nodes"),
    _access(_BOT, verb="watch", resource="pods", namespace=HOME),
    _access("x", ["system:masters"], verb="any", resource="thing"),
    _access("x", ["system:authenticated"], verb="get", path="/apis/foo"),
    _access("*", verb="list", resource="pods", namespace=HOME),
    Case("alice", "POST", _SELF, _ASK),
    Case("zoe", "POST", _SELF, _ASK),
    Case("zoe", "POST", f"{AUTHORIZATION}/subjectaccessreviews", _ASK),
    Case("system:anonymous", "POST", _SELF, _ASK),
    Case(
        "alice", "POST", f"{AUTHORIZATION}/selfsubjectrulesreviews", {"spec": {"namespace": HOME}}
    ),
    Case("zoe", "POST", f"{AUTHORIZATION}/selfsubjectrulesreviews", {"spec": {"namespace": HOME}}),
    Case("zoe", "POST", f"{AUTHORIZATION}/selfsubjectrulesreviews", {"spec": {}}),
    Case("alice", "POST", f"{AUTHENTICATION}/selfsubjectreviews", {}, ("readers", "ops")),
    Case(_BOT, "POST", f"{AUTHENTICATION}/selfsubjectreviews", {}),
    Case("zoe", "POST", f"{AUTHENTICATION}/tokenreviews", {"spec": {"token": "x"}}),
    # roles and bindings
    _new_role(_rule("", "pods", "get")),
    _new_role(_rule("", "pods secrets", "get delete"), _rule("apps", "*", "*")),
    _new_role(_rule("", "configmaps", "get", "one two")),
    _new_role(_rule("", "configmaps", "get")),
    _new_role(_rule("apps", "deployments/scale", "get")),
    _new_role(_rule("apps", "deployments", "get")),
    _new_role(_rule(",apps", "pods b", "get watch"), _rule("a", "z", "x")),
    _new_role(_rule("zz", "q", "x a", "n m"), _rule("b", "z", "x"), user="erin"),
    _new_role(_rule("zz", "q", "x"), user="erin", name="big"),
    _new_role(_rule("", "pods", "get"), user="zoe"),
    _new_role(_rule("", "pods", "watch"), user="gina"),
    _new_binding("Role/big"),
    _new_binding("Role/big", "erin"),
    _new_binding("Role/reader", "erin"),
    _new_binding("Role/author"),
    _new_binding("Role/nope"),
    _new_binding("ClusterRole/nope"),
    _new_binding("ClusterRole/cluster-admin", "dave", ("dev",)),
    _new_binding("ClusterRole/system:public-info-viewer"),
    Case(
        "dave",
        "PATCH",
        f"{_LOCAL}/roles/author?dryRun=All",
        {"rules": [_rule("", "pods", "delete")]},
        content_type=_MERGE,
    ),
    Case(
        "dave",
        "PATCH",
        f"{_LOCAL}/roles/big?dryRun=All",
        {"metadata": {"finalizers": ["a.b/c"]}},
        content_type=_MERGE,
    ),
    Case(
        "dave",
        "PATCH",
        f"{_LOCAL}/roles/big?dryRun=All",
        {"metadata": {"labels": {"a": "b"}}},
        content_type=_MERGE,
    ),
    Case(
        "dave",
        "POST",
        f"{RBAC}/clusterroles?dryRun=All",
        {
            "metadata": {"name": "rbac-new"},
            "aggregationRule": {"clusterRoleSelectors": [{"matchLabels": {"a": "b"}}]},
        },
    ),
    Case(
        "dave",
        "POST",
        f"{RBAC}/clusterroles?dryRun=All",
        _role("rbac-new", {"nonResourceURLs": ["/x/*", "/api/v1", "/y"], "verbs": ["get", "post"]}),
    ),
]


def essence(code: int, body: bytes) -> Json:
    """Return what of an answer does not depend on time and other objects."""
    try:
        found = json.loads(body)
    except ValueError:
        return {"code": code}
    if found.get("kind") == "Status" and "message" in found:
        return {"code": code, "message": found["message"], "details": found.get("details")}
    if "Review" in found.get("kind", ""):
        return {"code": code, "status": {k: _sorted(it) for k, it in found["status"].items()}}
    return {"code": code}


def _sorted(value: object) -> object:
    """Return a list of rules in one order: the server has none."""
    return sorted(value, key=repr) if isinstance(value, list) else value


@functools.cache
def recorded() -> list[Json]:
    """Return the answers to `CASES`, in their order."""
    found: list[Json] = json.loads(DATA.read_text())
    return found


class _Proxy:
    """The way to the real server."""

    def __init__(self, url: str) -> None:
        parts = urlsplit(url)
        self._connection = HTTPConnection(parts.hostname or "localhost", parts.port)

    def send(self, case: Case) -> tuple[int, bytes]:
        connection = self._connection
        connection.putrequest(case.method, case.path)
        body = b"" if case.body is None else json.dumps(case.body).encode()
        connection.putheader("Content-Type", case.content_type)
        connection.putheader("Content-Length", str(len(body)))
        if case.user:
            connection.putheader("Impersonate-User", case.user)
        for group in case.groups:
            connection.putheader("Impersonate-Group", group)
        connection.endheaders(body)
        answer = connection.getresponse()
        return answer.status, answer.read()


def _record(url: str) -> None:
    proxy = _Proxy(url)
    for path, body in SETUP:
        code, said = proxy.send(Case("", "POST", path, body))
        assert code == HTTPStatus.CREATED, said
    time.sleep(1)  # until its authorizer has seen them
    answers = [essence(*proxy.send(case)) for case in CASES]
    for path, body in reversed(SETUP):
        proxy.send(Case("", "DELETE", f"{path}/{body['metadata']['name']}"))
    DATA.write_text("[\n" + ",\n".join(map(json.dumps, answers)) + "\n]\n")


if __name__ == "__main__":
    _record(sys.argv[1])
