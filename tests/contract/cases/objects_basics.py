"""Common properties of objects: identity, versions, generations, and valid names."""

from __future__ import annotations

from tests.contract.case import case, each
from tests.contract.cases import CONFIGMAPS, NAMESPACES, PODS, SERVICES, rv
from tests.contract.cases.kinds_bodies import (
    DEPLOYMENTS,
    LEASES,
    NODES,
    Body,
    deployment,
    named,
    only,
    pod,
    seen,
)
from tests.contract.session import Session

META = only("metadata")


@case("objects", "a created object has a uid, a time, a version and its managed fields")
async def created(s: Session) -> None:
    await s.post(CONFIGMAPS, named("a", data={"k": "v"}))
    await s.get(f"{CONFIGMAPS}/a")


@case("objects", "apiVersion and kind of the answer are the resource's, stated or not")
async def kind_is_filled(s: Session) -> None:
    await s.post(CONFIGMAPS, named("a"))
    await s.post(CONFIGMAPS, {"apiVersion": "v1", "kind": "ConfigMap", **named("b")})


@case("objects", "generateName is completed with five characters")
async def generate_name(s: Session) -> None:
    await s.post(CONFIGMAPS, {"metadata": {"generateName": "a-"}})
    await s.post(CONFIGMAPS, {"metadata": {"generateName": "a-"}})
    await s.post(CONFIGMAPS, {"metadata": {"generateName": "a-", "name": "given"}})


@case("objects", "a long generateName is cut so that the name fits")
async def generate_name_long(s: Session) -> None:
    made = await s.post(
        CONFIGMAPS,
        {"metadata": {"generateName": "a" * 70}},
        view=seen(lambda body: len(body["metadata"]["name"])),
    )
    await s.delete(f"{CONFIGMAPS}/{made.meta['name']}", quiet=True)


@each(
    "objects",
    "an object without a usable name is refused",
    {
        "none": {"metadata": {}},
        "empty": {"metadata": {"name": ""}},
        "no_metadata": {"metadata": None},
        "upper_case": {"metadata": {"name": "Abc"}},
        "underscore": {"metadata": {"name": "a_b"}},
        "slash": {"metadata": {"name": "a/b"}},
        "percent": {"metadata": {"name": "a%b"}},
        "dot": {"metadata": {"name": "."}},
        "two_dots": {"metadata": {"name": ".."}},
        "ends_with_dash": {"metadata": {"name": "a-"}},
        "too_long": {"metadata": {"name": "a" * 254}},
        "space": {"metadata": {"name": "a b"}},
        "not_a_string": {"metadata": {"name": 5}},
    },
)
async def name(s: Session, *, metadata: Body | None) -> None:
    await s.post(CONFIGMAPS, {"metadata": metadata, "data": {"k": "v"}})


@case("objects", "a generateName that cannot begin a name is refused")
async def generate_name_bad(s: Session) -> None:
    fields = seen(lambda body: [each["field"] for each in body["details"]["causes"]])
    await s.post(CONFIGMAPS, {"metadata": {"generateName": "A_"}}, view=fields)


@each(
    "objects",
    "a name must be what its kind allows",
    {
        "service_digit": {"path": SERVICES, "body": named("1a", spec={"ports": [{"port": 1}]})},
        "service_dot": {"path": SERVICES, "body": named("a.b", spec={"ports": [{"port": 1}]})},
        "service_long": {"path": SERVICES, "body": named("a" * 64, spec={"ports": [{"port": 1}]})},
        "namespace_dot": {"path": NAMESPACES, "body": named("a.b")},
        "namespace_upper": {"path": NAMESPACES, "body": named("A")},
        "pod_upper": {"path": PODS, "body": pod("Pod")},
        "pod_long": {"path": PODS, "body": pod("a" * 254)},
        "lease_dots": {"path": LEASES, "body": named("a.b.c")},
        "node_underscore": {"path": NODES, "body": named("a_b")},
        "role_colon": {
            "path": "/apis/rbac.authorization.k8s.io/v1/namespaces/{ns}/roles",
            "body": named("system:Role_x"),
        },
        "role_slash": {
            "path": "/apis/rbac.authorization.k8s.io/v1/namespaces/{ns}/roles",
            "body": named("a/b"),
        },
        "deployment_upper": {"path": DEPLOYMENTS, "body": deployment("Web")},
    },
)
async def kind_name(s: Session, *, path: str, body: Body) -> None:
    await s.post(path, body)


@each(
    "objects",
    "labels and annotations are checked",
    {
        "label_value_space": {"metadata": {"labels": {"k": "a b"}}},
        "label_value_long": {"metadata": {"labels": {"k": "a" * 64}}},
        "label_value_dash": {"metadata": {"labels": {"k": "-"}}},
        "label_key_empty": {"metadata": {"labels": {"": "v"}}},
        "label_key_space": {"metadata": {"labels": {"a b": "v"}}},
        "label_key_two_slashes": {"metadata": {"labels": {"a/b/c": "v"}}},
        "label_key_upper_prefix": {"metadata": {"labels": {"Example.com/a": "v"}}},
        "label_key_empty_prefix": {"metadata": {"labels": {"/a": "v"}}},
        "label_key_empty_name": {"metadata": {"labels": {"example.com/": "v"}}},
        "label_key_long": {"metadata": {"labels": {"a" * 64: "v"}}},
        "label_number": {"metadata": {"labels": {"k": 5}}},
        "label_null": {"metadata": {"labels": {"k": None}}},
        "annotation_key": {"metadata": {"annotations": {"a b": "v"}}},
        "annotation_key_upper": {"metadata": {"annotations": {"Example.COM/Key": "any thing"}}},
        "annotation_boolean": {"metadata": {"annotations": {"k": True}}},
        "two_mistakes": {"metadata": {"labels": {"a b": "c d"}, "annotations": {"e f": ""}}},
        "finalizer_unqualified": {"metadata": {"finalizers": ["mine"]}},
        "finalizer_bad": {"metadata": {"finalizers": ["a b/c"]}},
        "owner_empty": {"metadata": {"ownerReferences": [{}]}},
        "two_controllers": {
            "metadata": {
                "ownerReferences": [
                    {
                        "apiVersion": "v1",
                        "kind": "Pod",
                        "name": each,
                        "uid": f"11111111-1111-1111-1111-11111111111{each}",
                        "controller": True,
                    }
                    for each in "12"
                ]
            }
        },
        "owner_is_event": {
            "metadata": {
                "ownerReferences": [
                    {"apiVersion": "v1", "kind": "Event", "name": "e", "uid": "some-uid"}
                ]
            }
        },
    },
)
async def metadata(s: Session, *, metadata: Body) -> None:
    await s.post(CONFIGMAPS, named("a", metadata=metadata))


@case("objects", "annotations of more than 256 KiB are refused")
async def annotations_size(s: Session) -> None:
    await s.post(
        CONFIGMAPS,
        named("a", metadata={"annotations": {"k": "x" * (256 * 1024)}}),
        view=seen(lambda body: body["message"]),
    )
    s.exchanges[-1].body = "<large>"


@case("objects", "system fields of a creation are ignored")
async def system_fields(s: Session) -> None:
    metadata = {
        "uid": "11111111-1111-1111-1111-111111111111",
        "creationTimestamp": "2001-01-01T00:00:00Z",
        "deletionTimestamp": "2001-01-01T00:00:00Z",
        "deletionGracePeriodSeconds": 5,
        "generation": 7,
        "selfLink": "/some/where",
    }
    await s.post(CONFIGMAPS, named("a", metadata=metadata))
    await s.post(DEPLOYMENTS, deployment() | {"metadata": {"name": "a", **metadata}}, view=META)


@case("objects", "a resourceVersion in a creation is refused")
async def version_on_create(s: Session) -> None:
    await s.post(CONFIGMAPS, named("a", metadata={"resourceVersion": "1"}))
    await s.post(CONFIGMAPS, named("a", metadata={"resourceVersion": "0"}))
    await s.post(CONFIGMAPS, named("b", metadata={"resourceVersion": "x"}))


@case("objects", "a second creation is a conflict that names what is there")
async def already_exists(s: Session) -> None:
    await s.configmap("a")
    await s.post(CONFIGMAPS, named("a"))
    await s.make(DEPLOYMENTS, deployment())
    await s.post(DEPLOYMENTS, deployment())
    await s.post(NAMESPACES, named(s.ns))


@case("objects", "an update needs no version, and changes what it says")
async def update(s: Session) -> None:
    await s.configmap("a", x="y")
    await s.put(f"{CONFIGMAPS}/a", named("a", data={"k": "v"}))
    await s.get(f"{CONFIGMAPS}/a")


@case("objects", "an update under a stale version is a conflict")
async def stale_version(s: Session) -> None:
    made = await s.configmap("a")
    await s.change(f"{CONFIGMAPS}/a", {"data": {"k": "v"}})
    await s.put(f"{CONFIGMAPS}/a", named("a", metadata={"resourceVersion": rv(made)}))
    await s.put(f"{CONFIGMAPS}/a", named("a", metadata={"resourceVersion": "x"}))
    await s.put(f"{CONFIGMAPS}/a", named("a", metadata={"resourceVersion": "0"}))


@case("objects", "an update under the current version works")
async def current_version(s: Session) -> None:
    made = await s.configmap("a")
    body = named("a", metadata={"resourceVersion": rv(made)}, data={"k": "v"})
    await s.put(f"{CONFIGMAPS}/a", body)


@case("objects", "an update with another uid is a conflict")
async def other_uid(s: Session) -> None:
    await s.configmap("a")
    uid = "11111111-1111-1111-1111-111111111111"
    await s.put(f"{CONFIGMAPS}/a", named("a", metadata={"uid": uid}))
    await s.put(f"{CONFIGMAPS}/missing", named("missing", metadata={"uid": uid}))


@case("objects", "an update of nothing is not found, for some kinds a creation")
async def update_missing(s: Session) -> None:
    await s.put(f"{CONFIGMAPS}/a", named("a"))
    await s.put(f"{LEASES}/a", named("a", spec={"holderIdentity": "me"}))
    await s.put(f"{DEPLOYMENTS}/a", deployment())
    await s.put(f"{CONFIGMAPS}/b", named("b", metadata={"resourceVersion": "5"}))


@case("objects", "the name of the body must be that of the path")
async def other_name(s: Session) -> None:
    await s.configmap("a")
    await s.put(f"{CONFIGMAPS}/a", named("b"))
    await s.put(f"{CONFIGMAPS}/a", {"data": {"k": "v"}})
    await s.put(f"{CONFIGMAPS}/a", named("a", metadata={"namespace": "default"}))


@case("objects", "an update that changes nothing keeps the version")
async def no_op_update(s: Session) -> None:
    await s.make(CONFIGMAPS, named("a", data={"k": "v"}))
    await s.put(f"{CONFIGMAPS}/a", named("a", data={"k": "v"}))
    made = await s.make(DEPLOYMENTS, deployment())
    await s.put(f"{DEPLOYMENTS}/a", made, view=META)
    await s.patch(f"{DEPLOYMENTS}/a", {"spec": {"replicas": 1}}, view=META)


@case("objects", "an update cannot change what the system keeps")
async def system_fields_of_update(s: Session) -> None:
    await s.configmap("a")
    metadata = {
        "creationTimestamp": "2001-01-01T00:00:00Z",
        "generation": 7,
        "deletionTimestamp": "2001-01-01T00:00:00Z",
        "generateName": "b-",
        "selfLink": "/some/where",
    }
    await s.put(f"{CONFIGMAPS}/a", named("a", metadata=metadata))


@case("objects", "the generation counts changes of the spec, not of metadata or status")
async def generation(s: Session) -> None:
    view = seen(lambda body: body["metadata"].get("generation"))
    await s.post(DEPLOYMENTS, deployment(), view=view)
    await s.patch(f"{DEPLOYMENTS}/a", {"metadata": {"labels": {"a": "b"}}}, view=view)
    await s.patch(f"{DEPLOYMENTS}/a", {"spec": {"replicas": 3}}, view=view)
    await s.patch(f"{DEPLOYMENTS}/a", {"spec": {"replicas": 3}}, view=view)
    await s.patch(f"{DEPLOYMENTS}/a/status", {"status": {"replicas": 3}}, view=view)
    await s.patch(f"{DEPLOYMENTS}/a/scale", {"spec": {"replicas": 4}}, view=only("spec"))
    await s.get(f"{DEPLOYMENTS}/a", view=view)


@case("objects", "the generation of kinds without a spec of their own")
async def generation_of_others(s: Session) -> None:
    await s.post(CONFIGMAPS, named("a"), view=META)
    await s.post(PODS, pod(), view=META)
    await s.post(LEASES, named("a", spec={"holderIdentity": "me"}), view=META)
    await s.post(SERVICES, named("a", spec={"ports": [{"port": 1}]}), view=META)
