"""JSON patches and merge patches."""

from __future__ import annotations

from tests.contract.case import case, each
from tests.contract.cases import CONFIGMAPS, PODS, rv
from tests.contract.cases.kinds_bodies import (
    DEPLOYMENTS,
    Body,
    deployment,
    named,
    only,
    pod,
    quoted,
    seen,
)
from tests.contract.session import Session

DATA = quoted(only("data", "metadata"))


def op(name: str, path: str, **more: object) -> Body:
    """Return an operation."""
    return {"op": name, "path": path, **more}


@each(
    "patch",
    "a JSON patch",
    {
        "add": {"patch": [op("add", "/data/n", value="1")]},
        "add_existing": {"patch": [op("add", "/data/k", value="1")]},
        "add_no_parent": {"patch": [op("add", "/binaryData/k", value="aGk=")]},
        "remove": {"patch": [op("remove", "/data/k")]},
        "remove_missing": {"patch": [op("remove", "/data/none")]},
        "replace": {"patch": [op("replace", "/data/k", value="1")]},
        "replace_missing": {"patch": [op("replace", "/data/none", value="1")]},
        "move": {"patch": [op("move", "/data/n", **{"from": "/data/k"})]},
        "move_missing": {"patch": [op("move", "/data/n", **{"from": "/data/none"})]},
        "copy": {"patch": [op("copy", "/data/n", **{"from": "/data/k"})]},
        "test": {"patch": [op("test", "/data/k", value="v"), op("remove", "/data/k")]},
        "test_fails": {"patch": [op("test", "/data/k", value="w"), op("remove", "/data/k")]},
        "test_missing": {"patch": [op("test", "/data/none", value="w")]},
        "test_null": {"patch": [op("test", "/data/none", value=None)]},
        "escaped": {"patch": [op("add", "/metadata/labels/a~1b", value="x")]},
        "unknown_op": {"patch": [op("increase", "/data/k", value="1")]},
        "no_op": {"patch": [{"path": "/data/k", "value": "1"}]},
        "no_path": {"patch": [{"op": "remove"}]},
        "no_value": {"patch": [{"op": "add", "path": "/data/k"}]},
        "relative": {"patch": [op("remove", "data/k")]},
        "none": {"patch": []},
        "map": {"patch": {"data": {"k": "1"}}},
        "broken": {"patch": "[{"},
        "text": {"patch": '"x"'},
        "whole": {"patch": [op("replace", "", value=named("a", data={"z": "z"}))]},
        "wrong_type": {"patch": [op("replace", "/data/k", value=5)]},
        "same": {"patch": [op("replace", "/data/k", value="v")]},
        "list_end": {"patch": [op("add", "/metadata/finalizers/-", value="example.com/b")]},
        "list_index": {"patch": [op("add", "/metadata/finalizers/0", value="example.com/b")]},
        "list_beyond": {"patch": [op("add", "/metadata/finalizers/7", value="example.com/b")]},
        "list_remove": {"patch": [op("remove", "/metadata/finalizers/0")]},
        "list_replace_beyond": {
            "patch": [op("replace", "/metadata/finalizers/4", value="example.com/b")]
        },
    },
)
async def json_patch(s: Session, *, patch: object) -> None:
    metadata = {"labels": {"x": "y"}, "finalizers": ["example.com/a"]}
    await s.make(CONFIGMAPS, named("a", data={"k": "v"}, metadata=metadata))
    await s.patch(f"{CONFIGMAPS}/a", patch, kind="json", view=DATA)
    await s.change(f"{CONFIGMAPS}/a", {"metadata": {"finalizers": None}})


@each(
    "patch",
    "a merge patch",
    {
        "set": {"patch": {"data": {"n": "1"}}},
        "remove": {"patch": {"data": {"k": None}}},
        "remove_map": {"patch": {"data": None}},
        "remove_missing": {"patch": {"data": {"none": None}}},
        "empty": {"patch": {}},
        "null": {"patch": "null"},
        "list": {"patch": []},
        "text": {"patch": '"x"'},
        "broken": {"patch": '{"data":'},
        "no_body": {"patch": ""},
        "map_for_text": {"patch": {"data": {"k": {"deep": "x"}}}},
        "text_for_map": {"patch": {"data": "x"}},
        "finalizers_replaced": {"patch": {"metadata": {"finalizers": ["example.com/b"]}}},
        "kind": {"patch": {"kind": "ServiceAccount"}},
        "api_version": {"patch": {"apiVersion": "v2"}},
        "kind_same": {"patch": {"kind": "ConfigMap", "apiVersion": "v1", "data": {"n": "1"}}},
        "metadata_removed": {"patch": {"metadata": None}},
        "name_removed": {"patch": {"metadata": {"name": None}}},
        "version_zero": {"patch": {"metadata": {"resourceVersion": "0"}, "data": {"n": "1"}}},
        "version_garbage": {"patch": {"metadata": {"resourceVersion": "x"}}},
        "generate_name": {"patch": {"metadata": {"generateName": "b-"}}},
        "bad_label": {"patch": {"metadata": {"labels": {"k": "a b"}}}},
    },
)
async def merge_patch(s: Session, *, patch: object) -> None:
    metadata = {"labels": {"x": "y"}, "finalizers": ["example.com/a"]}
    await s.make(CONFIGMAPS, named("a", data={"k": "v"}, metadata=metadata))
    await s.patch(f"{CONFIGMAPS}/a", patch, view=DATA)
    await s.change(f"{CONFIGMAPS}/a", {"metadata": {"finalizers": None}})


@each(
    "patch",
    "the content type decides what a patch means",
    {
        "json": {"media": "application/json"},
        "yaml": {"media": "application/yaml"},
        "none": {"media": ""},
        "text": {"media": "text/plain"},
        "garbage": {"media": "x"},
        "charset": {"media": "application/merge-patch+json; charset=utf-8"},
        "strategic_yaml": {"media": "application/strategic-merge-patch+yaml"},
    },
)
async def content_type(s: Session, *, media: str) -> None:
    await s.configmap("a")
    body = {"data": {"k": "v"}}
    await s.patch(f"{CONFIGMAPS}/a", body, headers={"Content-Type": media}, view=DATA)


@case("patch", "a patch of what is not there is not found")
async def missing(s: Session) -> None:
    await s.patch(f"{CONFIGMAPS}/a", {"data": {"k": "v"}})
    await s.patch(f"{CONFIGMAPS}/a", [op("add", "/data", value={})], kind="json")
    await s.patch(f"{CONFIGMAPS}/a", {"data": {"k": "v"}}, kind="strategic-merge")
    await s.patch(f"{DEPLOYMENTS}/a/status", {"status": {}})
    await s.patch(CONFIGMAPS, {"data": {"k": "v"}})


@case("patch", "a version in a patch is a condition")
async def version(s: Session) -> None:
    made = await s.configmap("a")
    await s.change(f"{CONFIGMAPS}/a", {"data": {"k": "v"}})
    stale = {"metadata": {"resourceVersion": rv(made)}, "data": {"k": "w"}}
    await s.patch(f"{CONFIGMAPS}/a", stale)
    now = await s.look(f"{CONFIGMAPS}/a")
    await s.patch(f"{CONFIGMAPS}/a", {"metadata": {"resourceVersion": rv(now)}, "data": {}})
    stale_op = [op("replace", "/metadata/resourceVersion", value=rv(made))]
    await s.patch(f"{CONFIGMAPS}/a", [*stale_op, op("add", "/data/n", value="1")], kind="json")
    s.exchanges[-1].body = "<an operation that sets the stale version>"


@case("patch", "a patch of the main resource leaves the status, and the other way round")
async def status(s: Session) -> None:
    await s.make(DEPLOYMENTS, deployment())
    both = {"spec": {"replicas": 3}, "status": {"replicas": 2}}
    view = seen(lambda body: [body["spec"]["replicas"], body["status"]])
    await s.patch(f"{DEPLOYMENTS}/a", both, view=view)
    await s.patch(f"{DEPLOYMENTS}/a/status", {**both, "spec": {"replicas": 7}}, view=view)
    labels = {"metadata": {"labels": {"of": "status"}, "annotations": {"of": "status"}}}
    await s.patch(f"{DEPLOYMENTS}/a/status", labels, view=only("metadata"))


@case("patch", "a patch may not exceed ten thousand operations")
async def too_many(s: Session) -> None:
    await s.configmap("a")
    many = [op("test", "/metadata/name", value="a")] * 10_001
    await s.patch(f"{CONFIGMAPS}/a", many, kind="json")
    s.exchanges[-1].body = "<large>"


@case("patch", "a JSON patch reaches into lists of a pod")
async def pod_lists(s: Session) -> None:
    await s.make(PODS, pod())
    patch = [
        op("test", "/spec/containers/0/name", value="c"),
        op("replace", "/spec/containers/0/image", value="example.com/c:2"),
    ]
    view = seen(lambda body: body["spec"]["containers"])
    await s.patch(f"{PODS}/a", patch, kind="json", view=view)
    await s.patch(f"{PODS}/a", [op("remove", "/spec/containers/0")], kind="json", view=only("spec"))
