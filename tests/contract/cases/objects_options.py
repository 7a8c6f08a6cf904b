"""Options of writes: dry runs, field validation, and the manager of fields."""

from __future__ import annotations

import json

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
    whole,
)
from tests.contract.session import Session

MANAGED = only("metadata")
YAML = {"Content-Type": "application/yaml"}
UNKNOWN = named("a", data={"k": "v"}, colour="red", metadata={"colour": "red"})
TWICE = (
    '{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"a","name":"a"},'
    '"data":{"k":"v","k":"w"},"colour":"red"}'
)
TWICE_YAML = """\
apiVersion: v1
kind: ConfigMap
metadata:
  name: a
  labels: {x: y}
  labels: {x: z}
data:
  k: v
  k: w
colour: red
"""
MODES: dict[str, Body] = {
    "ignore": {"mode": "Ignore"},
    "warn": {"mode": "Warn"},
    "strict": {"mode": "Strict"},
    "default": {"mode": None},
    "garbage": {"mode": "Loud"},
}


# Dry runs.


@case("objects", "a dry run of a creation answers as if, and leaves nothing")
async def dry_create(s: Session) -> None:
    await s.post(CONFIGMAPS, named("a", data={"k": "v"}), dryRun="All")
    await s.get(f"{CONFIGMAPS}/a")
    await s.post(CONFIGMAPS, named("A"), dryRun="All")
    await s.configmap("b")
    await s.post(CONFIGMAPS, named("b"), dryRun="All")


@case("objects", "a dry run of an update or a patch keeps the version")
async def dry_update(s: Session) -> None:
    await s.configmap("a")
    await s.put(f"{CONFIGMAPS}/a", named("a", data={"k": "v"}), dryRun="All")
    await s.patch(f"{CONFIGMAPS}/a", {"data": {"k": "v"}}, dryRun="All")
    await s.get(f"{CONFIGMAPS}/a")


@case("objects", "a dry run of a deletion deletes nothing")
async def dry_delete(s: Session) -> None:
    await s.configmap("a")
    await s.delete(f"{CONFIGMAPS}/a", dryRun="All")
    await s.delete(f"{CONFIGMAPS}/a", {"kind": "DeleteOptions", "dryRun": ["All"]})
    await s.delete(CONFIGMAPS, dryRun="All", labelSelector="a!=b,x!=y", view=only("kind"))
    await s.get(f"{CONFIGMAPS}/a", view=MANAGED)


@case("objects", "a dry run of an apply")
async def dry_apply(s: Session) -> None:
    body = {"apiVersion": "v1", "kind": "ConfigMap", **named("a", data={"k": "v"})}
    await s.patch(f"{CONFIGMAPS}/a", body, kind="apply", fieldManager="m", dryRun="All")
    await s.get(f"{CONFIGMAPS}/a")


@case("objects", "an unknown kind of dry run is refused, for each verb")
async def dry_garbage(s: Session) -> None:
    await s.configmap("a")
    await s.post(CONFIGMAPS, named("b"), dryRun="Some")
    await s.put(f"{CONFIGMAPS}/a", named("a"), dryRun="Some")
    await s.patch(f"{CONFIGMAPS}/a", {}, dryRun="Some")
    await s.delete(f"{CONFIGMAPS}/a", dryRun="Some")
    await s.post(CONFIGMAPS, named("b"), dryRun="")


# Field validation.


@each("objects", "unknown fields of a creation", MODES)
async def unknown_create(s: Session, *, mode: str | None) -> None:
    await s.post(CONFIGMAPS, UNKNOWN, fieldValidation=mode)


@each("objects", "repeated fields of a creation", MODES)
async def repeated_create(s: Session, *, mode: str | None) -> None:
    await s.post(CONFIGMAPS, TWICE, fieldValidation=mode)


@each("objects", "repeated and unknown fields of a YAML body", MODES)
async def repeated_yaml(s: Session, *, mode: str | None) -> None:
    await s.post(CONFIGMAPS, TWICE_YAML, fieldValidation=mode, headers=YAML)


@each("objects", "unknown fields of an update", MODES)
async def unknown_update(s: Session, *, mode: str | None) -> None:
    await s.configmap("a")
    await s.put(f"{CONFIGMAPS}/a", UNKNOWN, fieldValidation=mode)


@each(
    "objects",
    "unknown fields of a patch under strict validation and with a warning",
    {
        "merge": {"kind": "merge", "body": {"colour": "red", "data": {"k": "v"}}},
        "strategic": {"kind": "strategic-merge", "body": {"colour": "red", "data": {"k": "v"}}},
        "json": {
            "kind": "json",
            "body": [{"op": "add", "path": "/colour", "value": "red"}],
        },
        "merge_repeated": {"kind": "merge", "body": '{"data":{"k":"v","k":"w"}}'},
        "strategic_repeated": {"kind": "strategic-merge", "body": '{"data":{"k":"v","k":"w"}}'},
        "json_repeated": {
            "kind": "json",
            "body": '[{"op":"add","path":"/data","path":"/data","value":{"k":"v","k":"w"}}]',
        },
        "apply": {
            "kind": "apply",
            "body": {"apiVersion": "v1", "kind": "ConfigMap", **named("a", colour="red")},
        },
        "apply_repeated": {"kind": "apply", "body": TWICE_YAML},
    },
)
async def unknown_patch(s: Session, *, kind: str, body: object) -> None:
    await s.configmap("a")
    manager = "m" if kind == "apply" else None
    for mode in ("Strict", "Warn", "Ignore"):
        await s.patch(
            f"{CONFIGMAPS}/a",
            body,
            kind=kind,
            fieldValidation=mode,
            fieldManager=manager,
            view=quoted(whole),
        )


@case("objects", "unknown fields deep inside are named by their paths")
async def unknown_deep(s: Session) -> None:
    body = deployment(colour=1)
    body["spec"]["template"]["spec"]["containers"][0]["ports"] = [{"containerPort": 1, "shape": 2}]
    body["spec"]["template"]["spec"]["size"] = 3
    await s.post(DEPLOYMENTS, body, fieldValidation="Strict")
    await s.post(DEPLOYMENTS, body, view=only("metadata"))


@case("objects", "a field spelled with other capitals is unknown")
async def other_case(s: Session) -> None:
    await s.post(CONFIGMAPS, {"Metadata": {"name": "a"}, "Data": {"k": "v"}})
    await s.post(CONFIGMAPS, named("a", Data={"k": "v"}))
    await s.post(CONFIGMAPS, named("b", Data={"k": "v"}), fieldValidation="Strict")


@each(
    "objects",
    "values of a wrong type are refused",
    {
        "number_for_text": {"path": CONFIGMAPS, "body": named("a", data={"k": 5})},
        "text_for_map": {"path": CONFIGMAPS, "body": named("a", data="x")},
        "list_for_map": {"path": CONFIGMAPS, "body": named("a", data=[])},
        "text_for_number": {"path": DEPLOYMENTS, "body": deployment(replicas="3")},
        "fraction_for_number": {"path": DEPLOYMENTS, "body": deployment(replicas=1.5)},
        "large_number": {"path": DEPLOYMENTS, "body": deployment(replicas=3_000_000_000)},
        "text_for_list": {"path": PODS, "body": pod(containers="c")},
        "map_for_list": {"path": PODS, "body": pod(containers={"name": "c"})},
        "text_for_boolean": {"path": PODS, "body": pod(hostNetwork="true")},
        "bad_base64": {"path": CONFIGMAPS, "body": named("a", binaryData={"k": "%"})},
        "bad_time": {
            "path": CONFIGMAPS,
            "body": named("a", metadata={"creationTimestamp": "yesterday"}),
        },
        "bad_quantity": {
            "path": PODS,
            "body": pod(
                containers=[{"name": "c", "image": "i", "resources": {"limits": {"cpu": "lots"}}}]
            ),
        },
        "labels_list": {"path": CONFIGMAPS, "body": named("a", metadata={"labels": ["a"]})},
        "null_everywhere": {
            "path": PODS,
            "body": pod(nodeName=None, tolerations=None, hostNetwork=None, volumes=None),
        },
    },
)
async def wrong_type(s: Session, *, path: str, body: Body) -> None:
    await s.post(path, body)


# Who manages fields.


@each(
    "objects",
    "the manager is the first part of the user agent",
    {
        "plain": {"agent": "curl/8.0", "manager": None},
        "no_slash": {"agent": "thing", "manager": None},
        "browser": {"agent": "Mozilla/5.0 (X11)", "manager": None},
        "empty": {"agent": "", "manager": None},
        "long": {"agent": "x" * 200, "manager": None},
        "stated": {"agent": "curl/8.0", "manager": "me"},
        "stated_long": {"agent": "curl/8.0", "manager": "x" * 129},
        "stated_unprintable": {"agent": "curl/8.0", "manager": "a\tb"},
    },
)
async def manager(s: Session, *, agent: str, manager: str | None) -> None:
    headers = {"User-Agent": agent}
    await s.post(CONFIGMAPS, named("a"), headers=headers, fieldManager=manager, view=MANAGED)


@case("objects", "each manager has an entry of what it set last")
async def several_managers(s: Session) -> None:
    await s.post(CONFIGMAPS, named("a", data={"k": "v", "l": "v"}), fieldManager="one", quiet=True)
    await s.patch(f"{CONFIGMAPS}/a", {"data": {"k": "w"}}, fieldManager="two", view=MANAGED)
    await s.patch(f"{CONFIGMAPS}/a", {"data": {"m": "v"}}, fieldManager="one", view=MANAGED)
    await s.patch(f"{CONFIGMAPS}/a", {"data": None}, fieldManager="three", view=MANAGED)


@case("objects", "the status has entries of its own")
async def status_manager(s: Session) -> None:
    await s.make(DEPLOYMENTS, deployment())
    await s.patch(f"{DEPLOYMENTS}/a/status", {"status": {"replicas": 3}}, view=MANAGED)
    status = {"conditions": [{"type": "Available", "status": "True"}]}
    await s.patch(
        f"{DEPLOYMENTS}/a/status",
        {"status": status},
        kind="strategic-merge",
        fieldManager="other",
        view=MANAGED,
    )


@case("objects", "managed fields name list items by their keys and sets by their values")
async def managed_lists(s: Session) -> None:
    container = {
        "name": "c",
        "image": "example.com/c",
        "ports": [{"containerPort": 80}, {"containerPort": 80, "protocol": "UDP"}],
        "env": [{"name": "A", "value": "1"}],
        "args": ["x", "y"],
    }
    metadata = {"finalizers": ["example.com/f"], "labels": {"a": "b"}}
    body = {**pod(containers=[container]), "metadata": {"name": "a", **metadata}}
    await s.post(PODS, body, view=MANAGED)
    await s.change(f"{PODS}/a", {"metadata": {"finalizers": None}})


@case("objects", "managedFields of a body: an empty list clears them, others are checked")
async def managed_in_body(s: Session) -> None:
    await s.make(CONFIGMAPS, named("a", data={"k": "v"}))
    empty: Body = {"metadata": {"managedFields": [{}]}}
    await s.patch(f"{CONFIGMAPS}/a", empty, view=MANAGED)
    await s.patch(f"{CONFIGMAPS}/a", {"data": {"k": "w"}}, view=MANAGED)
    for entry in (
        {"manager": "m", "operation": "Guess", "apiVersion": "v1", "fieldsType": "FieldsV1"},
        {"manager": "m", "operation": "Update", "apiVersion": "v1", "fieldsType": "FieldsV2"},
        {"manager": "m", "operation": "Update", "fieldsType": "FieldsV1"},
    ):
        body = {"metadata": {"managedFields": [{**entry, "fieldsV1": {"f:data": {}}}]}}
        await s.patch(f"{CONFIGMAPS}/a", body, view=MANAGED)


@case("objects", "an update by the same manager and of the same fields keeps the entry")
async def managed_no_op(s: Session) -> None:
    made = await s.make(CONFIGMAPS, named("a", data={"k": "v"}))
    await s.put(f"{CONFIGMAPS}/a", made, fieldManager="other", view=MANAGED)
    await s.put(f"{CONFIGMAPS}/a", named("a", data={"k": "w"}), fieldManager="other", view=MANAGED)


@case("objects", "a body as YAML, and an answer as YAML")
async def yaml_body(s: Session) -> None:
    text = "metadata:\n  name: a\ndata:\n  k: |\n    one\n    two\n"
    await s.post(CONFIGMAPS, text, headers=YAML)
    await s.get(f"{CONFIGMAPS}/a", headers={"Accept": "application/yaml"}, view=only("data"))
    made = await s.look(f"{CONFIGMAPS}/a")
    body = json.dumps(named("a", data={"k": "v"}, metadata={"resourceVersion": rv(made)}))
    await s.put(f"{CONFIGMAPS}/a", body, headers=YAML)
    s.exchanges[-1].body = "<JSON with the current version>"
