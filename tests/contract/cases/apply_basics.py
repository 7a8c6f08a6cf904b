"""Server-side apply: who owns what, conflicts, and fields that are given up."""

from __future__ import annotations

from tests.contract.case import case, each
from tests.contract.cases import CONFIGMAPS, PODS, SERVICES
from tests.contract.cases.kinds_bodies import (
    DEPLOYMENTS,
    Body,
    deployment,
    named,
    only,
    pod,
    seen,
    service,
    template,
    whole,
)
from tests.contract.exchange import Answer
from tests.contract.session import Session

SHOWN = only("metadata", "data")


def config(data: dict[str, str] | None = None, **metadata: object) -> Body:
    """Return a ConfigMap, as apply wants it."""
    body = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "a", **metadata}}
    return {**body, "data": data} if data is not None else body


async def apply(s: Session, body: object, *, manager: str = "one", **options: object) -> Answer:
    """Apply a ConfigMap."""
    options = {"view": SHOWN, **options}
    return await s.patch(
        f"{CONFIGMAPS}/a", body, kind="apply", fieldManager=manager or None, **options
    )


@case("apply", "apply creates what is not there, and says so")
async def creates(s: Session) -> None:
    await apply(s, config({"k": "v"}), view=whole)
    await apply(s, config({"k": "v"}), view=whole)


@case("apply", "applying the same again changes nothing")
async def same(s: Session) -> None:
    await apply(s, config({"k": "v"}))
    await apply(s, config({"k": "v"}))
    await s.get(f"{CONFIGMAPS}/a", view=SHOWN)


@case("apply", "fields that are left out are removed if nobody else owns them")
async def removes(s: Session) -> None:
    await apply(s, config({"k": "v", "l": "v"}, labels={"x": "y"}))
    await apply(s, config({"k": "v"}))
    await apply(s, config())


@case("apply", "a field with another owner and another value is a conflict")
async def conflict(s: Session) -> None:
    await apply(s, config({"k": "v", "l": "v"}))
    await apply(s, config({"k": "w", "l": "w"}), manager="two")
    await apply(s, config({"k": "w", "m": "w"}), manager="two")


@case("apply", "force takes fields over")
async def force(s: Session) -> None:
    await apply(s, config({"k": "v", "l": "v"}))
    await apply(s, config({"k": "w"}), manager="two", force="true")
    await apply(s, config({"l": "v"}))
    await apply(s, config({"k": "v", "l": "v"}), force="maybe")


@case("apply", "managers share a field that they agree on")
async def shared(s: Session) -> None:
    await apply(s, config({"k": "v"}))
    await apply(s, config({"k": "v"}), manager="two")
    await apply(s, config({}))
    await apply(s, config({}), manager="two")


@case("apply", "apply conflicts with who updated")
async def conflict_with_update(s: Session) -> None:
    await s.make(CONFIGMAPS, named("a", data={"k": "v"}))
    await apply(s, config({"k": "w"}))
    await apply(s, config({"k": "w"}), force="true")
    await s.patch(f"{CONFIGMAPS}/a", {"data": {"k": "x"}}, view=SHOWN)
    await apply(s, config({"k": "w"}))


@case("apply", "several owners of one field are named in the conflict")
async def conflict_with_many(s: Session) -> None:
    for manager in ("two", "three", "four"):
        await apply(s, config({"k": "v"}), manager=manager, quiet=True)
    view = seen(lambda body: sorted(each["message"] for each in body["details"]["causes"]))
    await apply(s, config({"k": "w"}), view=view)


@case("apply", "an update takes a field from who applied it")
async def updated(s: Session) -> None:
    await apply(s, config({"k": "v", "l": "v"}))
    await s.patch(f"{CONFIGMAPS}/a", {"data": {"k": "w"}}, view=SHOWN)
    await s.patch(f"{CONFIGMAPS}/a", {"data": {"l": None}}, view=SHOWN)


@each(
    "apply",
    "an apply that is refused",
    {
        "no_manager": {"body": config(), "manager": ""},
        "no_kind": {"body": named("a")},
        "other_kind": {"body": {**config(), "kind": "Secret"}},
        "other_version": {"body": {**config(), "apiVersion": "v2"}},
        "other_name": {"body": config(name="b")},
        "no_name": {"body": {"apiVersion": "v1", "kind": "ConfigMap", "data": {}}},
        "other_namespace": {"body": config(namespace="default")},
        "managed_fields": {"body": config(managedFields=[{"manager": "x"}])},
        "broken_yaml": {"body": "a: [b"},
        "list": {"body": []},
        "empty": {"body": ""},
        "wrong_type": {"body": {**config(), "data": "x"}},
        "wrong_value": {"body": {**config(), "data": {"k": 5}}},
        "null_value": {"body": {**config(), "data": {"k": None}}},
        "bad_label": {"body": config(labels={"k": "a b"})},
        "long_manager": {"body": config(), "manager": "x" * 129},
        "unknown_uid": {"body": config(uid="11111111-1111-1111-1111-111111111111")},
        "unknown_version": {"body": config(resourceVersion="5")},
    },
)
async def refused(s: Session, *, body: object, manager: str = "one") -> None:
    await apply(s, body, manager=manager)


@case("apply", "the body may be YAML or JSON, whatever the content type says")
async def yaml_or_json(s: Session) -> None:
    text = "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: a}\ndata:\n  k: v\n"
    await apply(s, text)
    media = {"Content-Type": "application/apply-patch+json"}
    await apply(s, config({"k": "v"}), headers=media)


@case("apply", "a version or a uid in the body is a condition")
async def condition(s: Session) -> None:
    first = (await apply(s, config({"k": "v"}))).meta
    await apply(s, config({"k": "w"}), quiet=True)
    await apply(s, config({"k": "x"}, resourceVersion=first["resourceVersion"]))
    await apply(s, config({"k": "x"}, uid=first["uid"]))
    await apply(s, config({"k": "x"}, uid="11111111-1111-1111-1111-111111111111"))


@case("apply", "containers are merged by name, ports by number and protocol")
async def lists(s: Session) -> None:
    whole = {"apiVersion": "apps/v1", "kind": "Deployment"}
    path = f"{DEPLOYMENTS}/a"
    await s.patch(path, {**whole, **deployment()}, kind="apply", fieldManager="one", view=whole)
    sidecar = {"name": "d", "image": "example.com/d:1", "ports": [{"containerPort": 80}]}
    more = named("a", spec={"template": {"spec": {"containers": [sidecar]}}})
    await s.patch(path, {**whole, **more}, kind="apply", fieldManager="two", view=whole)
    image = {"name": "c", "image": "example.com/c:2"}
    changed = deployment(template=template(containers=[image]))
    await s.patch(path, {**whole, **changed}, kind="apply", fieldManager="one", view=only("spec"))
    none = named("a", spec={"template": {"spec": {"containers": []}}})
    await s.patch(path, {**whole, **none}, kind="apply", fieldManager="two", view=whole)


@case("apply", "an item of a keyed list needs its keys, and no item twice")
async def list_keys(s: Session) -> None:
    whole = {"apiVersion": "v1", "kind": "Service"}
    for ports in ([{"name": "x"}], [{"port": 80}, {"port": 80}], [{"port": 80}]):
        body = {**whole, **service(ports=ports)}
        await s.patch(f"{SERVICES}/a", body, kind="apply", fieldManager="one", view=whole)


@case("apply", "a status is applied through its subresource")
async def status(s: Session) -> None:
    await s.make(DEPLOYMENTS, deployment())
    whole = {"apiVersion": "apps/v1", "kind": "Deployment"}
    body = {**whole, **named("a", status={"replicas": 3}, spec={"paused": True})}
    view = only("metadata", "status")
    await s.patch(f"{DEPLOYMENTS}/a/status", body, kind="apply", fieldManager="s", view=view)
    await s.patch(f"{DEPLOYMENTS}/a", body, kind="apply", fieldManager="one", view=view)
    await s.patch(f"{DEPLOYMENTS}/b/status", body, kind="apply", fieldManager="s")


@case("apply", "finalizers are a set that managers share")
async def finalizers(s: Session) -> None:
    await apply(s, config(finalizers=["example.com/a"]))
    await apply(s, config(finalizers=["example.com/b"]), manager="two")
    await apply(s, config())
    await apply(s, config(), manager="two")


@case("apply", "a defaulted field can be taken over without conflict")
async def defaulted(s: Session) -> None:
    await s.make(PODS, pod())
    body = {"apiVersion": "v1", "kind": "Pod", **named("a", spec={"restartPolicy": "Always"})}
    await s.patch(f"{PODS}/a", body, kind="apply", fieldManager="one", view=only("metadata"))


@case("apply", "apply to what was deleted creates it anew")
async def anew(s: Session) -> None:
    await apply(s, config({"k": "v"}))
    await s.remove(f"{CONFIGMAPS}/a")
    await apply(s, config({"k": "v"}))


@case("apply", "an apply of a collection or with another verb's content type")
async def elsewhere(s: Session) -> None:
    await s.patch(CONFIGMAPS, config(), kind="apply", fieldManager="one", view=whole)
    media = {"Content-Type": "application/apply-patch+yaml"}
    await s.post(CONFIGMAPS, config(), headers=media)
    await s.put(f"{CONFIGMAPS}/a", config(), headers=media)
    await s.configmap("a")
    await s.patch(f"{CONFIGMAPS}/a", {"data": {}}, force="true")
