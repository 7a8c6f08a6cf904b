"""Strategic merge patches: lists that are merged by a key, and directives."""

from __future__ import annotations

from tests.contract.case import case, each
from tests.contract.cases import CONFIGMAPS, PODS, SERVICES
from tests.contract.cases.kinds_bodies import (
    DEPLOYMENTS,
    SERVICEACCOUNTS,
    Body,
    deployment,
    named,
    only,
    pod,
    seen,
    service,
    template,
)
from tests.contract.session import Session

KIND = "strategic-merge"


def of_template(body: Body) -> object:
    """Reduce a Deployment to the spec of its pods."""
    return body["spec"]["template"]["spec"] if "spec" in body else body


def rich() -> Body:
    """Return a Deployment with lists of many sorts."""
    containers = [
        {
            "name": "c",
            "image": "example.com/c:1",
            "args": ["x", "y"],
            "env": [{"name": "A", "value": "1"}, {"name": "B", "value": "2"}],
            "ports": [{"containerPort": 80, "name": "http"}, {"containerPort": 443}],
            "volumeMounts": [{"name": "v", "mountPath": "/v"}],
        },
        {"name": "d", "image": "example.com/d:1"},
    ]
    volumes = [{"name": "v", "emptyDir": {}}]
    tolerations = [{"key": "k", "operator": "Exists"}]
    return deployment(
        template=template(containers=containers, volumes=volumes, tolerations=tolerations)
    )


def pods_patch(spec: Body) -> Body:
    """Return a patch of the pods of a Deployment."""
    return {"spec": {"template": {"spec": spec}}}


@each(
    "patch",
    "a strategic merge of the pods of a deployment",
    {
        "container_changed": {"spec": {"containers": [{"name": "c", "image": "example.com/c:2"}]}},
        "container_added": {"spec": {"containers": [{"name": "e", "image": "example.com/e:1"}]}},
        "container_deleted": {"spec": {"containers": [{"name": "d", "$patch": "delete"}]}},
        "containers_replaced": {
            "spec": {"containers": [{"$patch": "replace"}, {"name": "z", "image": "example.com/z"}]}
        },
        "no_merge_key": {"spec": {"containers": [{"image": "example.com/c:2"}]}},
        "env": {
            "spec": {
                "containers": [
                    {
                        "name": "c",
                        "env": [{"name": "B", "value": "3"}, {"name": "C", "value": "4"}],
                    }
                ]
            }
        },
        "env_deleted": {
            "spec": {
                "containers": [{"name": "c", "env": [{"name": "A", "$patch": "delete"}]}],
            }
        },
        "args_replaced": {"spec": {"containers": [{"name": "c", "args": ["z"]}]}},
        "ports": {
            "spec": {
                "containers": [
                    {"name": "c", "ports": [{"containerPort": 80, "name": "web"}]},
                ]
            }
        },
        "ports_added": {
            "spec": {"containers": [{"name": "c", "ports": [{"containerPort": 8080}]}]}
        },
        "order": {
            "spec": {
                "$setElementOrder/containers": [{"name": "d"}, {"name": "c"}],
                "containers": [{"name": "c", "image": "example.com/c:2"}],
            }
        },
        "order_with_new": {
            "spec": {
                "$setElementOrder/containers": [{"name": "e"}, {"name": "c"}, {"name": "d"}],
                "containers": [{"name": "e", "image": "example.com/e:1"}],
            }
        },
        "order_not_matching": {
            "spec": {
                "$setElementOrder/containers": [{"name": "c"}],
                "containers": [{"name": "q", "image": "example.com/q"}],
            }
        },
        "volume_source_kept": {
            "spec": {"volumes": [{"name": "v", "hostPath": {"path": "/x"}}]},
        },
        "volume_source_retained": {
            "spec": {
                "volumes": [
                    {"name": "v", "$retainKeys": ["name", "hostPath"], "hostPath": {"path": "/x"}}
                ]
            },
        },
        "tolerations_replaced": {"spec": {"tolerations": [{"key": "l", "operator": "Exists"}]}},
        "map_replaced": {
            "spec": {"securityContext": {"$patch": "replace", "runAsUser": 5}},
        },
        "list_removed": {"spec": {"tolerations": None}},
        "unknown_directive": {"spec": {"containers": [{"name": "c", "$patch": "explode"}]}},
        "containers_text": {"spec": {"containers": "c"}},
        "container_text": {"spec": {"containers": ["c"]}},
    },
)
async def strategic(s: Session, *, spec: Body) -> None:
    await s.make(DEPLOYMENTS, rich())
    await s.patch(f"{DEPLOYMENTS}/a", pods_patch(spec), kind=KIND, view=of_template)


@case("patch", "retainKeys clears the other fields of a strategy")
async def retain_keys(s: Session) -> None:
    await s.make(DEPLOYMENTS, deployment())
    view = seen(lambda body: body["spec"]["strategy"] if "spec" in body else body)
    recreate = {"type": "Recreate"}
    await s.patch(f"{DEPLOYMENTS}/a", {"spec": {"strategy": recreate}}, kind=KIND, view=view)
    retained = {"$retainKeys": ["type"], **recreate}
    await s.patch(f"{DEPLOYMENTS}/a", {"spec": {"strategy": retained}}, kind=KIND, view=view)


@each(
    "patch",
    "a strategic merge of finalizers, which are a set",
    {
        "added": {"metadata": {"finalizers": ["example.com/b"]}},
        "known": {"metadata": {"finalizers": ["example.com/a"]}},
        "deleted": {"metadata": {"$deleteFromPrimitiveList/finalizers": ["example.com/a"]}},
        "ordered": {
            "metadata": {
                "$setElementOrder/finalizers": ["example.com/b", "example.com/a"],
                "finalizers": ["example.com/b"],
            }
        },
        "removed": {"metadata": {"finalizers": None}},
    },
)
async def finalizers(s: Session, *, metadata: Body) -> None:
    await s.make(CONFIGMAPS, named("a", metadata={"finalizers": ["example.com/a"]}))
    await s.patch(f"{CONFIGMAPS}/a", {"metadata": metadata}, kind=KIND, view=only("metadata"))
    await s.change(f"{CONFIGMAPS}/a", {"metadata": {"finalizers": None}})


@case("patch", "owners are merged by their uid")
async def owners(s: Session) -> None:
    owner = (await s.configmap("owner"))["metadata"]["uid"]
    reference = {"apiVersion": "v1", "kind": "ConfigMap", "name": "owner", "uid": owner}
    await s.configmap("a")
    path = f"{CONFIGMAPS}/a"
    add = {"metadata": {"ownerReferences": [reference]}}
    await s.patch(path, add, kind=KIND, view=only("metadata"))
    change = {"metadata": {"ownerReferences": [{"uid": owner, "blockOwnerDeletion": True}]}}
    await s.patch(path, change, kind=KIND, view=only("metadata"))
    gone = {"metadata": {"ownerReferences": [{"$patch": "delete", "uid": owner}]}}
    await s.patch(path, gone, kind=KIND, view=only("metadata"))


@case("patch", "the ports of a service are merged by their number")
async def service_ports(s: Session) -> None:
    ports = [{"name": "a", "port": 80}, {"name": "b", "port": 81}]
    await s.make(SERVICES, service(ports=ports))
    view = seen(lambda body: body["spec"]["ports"] if "spec" in body else body)
    for patch in (
        [{"port": 80, "targetPort": "http"}],
        [{"name": "c", "port": 82}],
        [{"port": 81, "$patch": "delete"}],
        [{"name": "u", "port": 80, "protocol": "UDP"}],
    ):
        await s.patch(f"{SERVICES}/a", {"spec": {"ports": patch}}, kind=KIND, view=view)


@case("patch", "the secrets of a service account are merged by name")
async def service_account(s: Session) -> None:
    await s.make(SERVICEACCOUNTS, named("a", imagePullSecrets=[{"name": "one"}]))
    body = {"imagePullSecrets": [{"name": "two"}]}
    await s.patch(f"{SERVICEACCOUNTS}/a", body, kind=KIND)


@case("patch", "conditions of a pod's status are merged by type")
async def conditions(s: Session) -> None:
    await s.make(PODS, pod())
    view = seen(lambda body: body.get("status", body))
    for kind, status in (("Ready", "True"), ("Initialized", "True"), ("Ready", "False")):
        body = {"status": {"conditions": [{"type": kind, "status": status}]}}
        await s.patch(f"{PODS}/a/status", body, kind=KIND, view=view)


@case("patch", "custom resources know no strategic merge")
async def custom_strategic(s: Session) -> None:
    group = await s.crd()
    path = f"/apis/{group}/v1/namespaces/{{ns}}/widgets"
    await s.make(path, {"apiVersion": f"{group}/v1", "kind": "Widget", **named("a")})
    await s.patch(f"{path}/a", {"spec": {"a": 1}}, kind=KIND)
    await s.patch(f"{path}/a", {"spec": {"a": 1}})
    await s.patch(f"{path}/a", [{"op": "add", "path": "/spec/b", "value": 2}], kind="json")


@case("patch", "deletion and replacement of the whole object by a directive")
async def whole(s: Session) -> None:
    await s.make(CONFIGMAPS, named("a", data={"k": "v"}, metadata={"labels": {"x": "y"}}))
    path = f"{CONFIGMAPS}/a"
    await s.patch(path, {"data": {"$patch": "replace", "n": "1"}}, kind=KIND)
    await s.patch(path, {"data": {"$patch": "delete"}}, kind=KIND)
    await s.patch(path, {"$patch": "replace", "data": {"n": "1"}}, kind=KIND)
    await s.patch(path, {"$patch": "delete"}, kind=KIND)
    await s.patch(path, [], kind=KIND)
    await s.patch(path, '{"data":', kind=KIND)
