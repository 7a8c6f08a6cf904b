"""The official client (``kubernetes``): typed, custom and dynamic calls, watches."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import kubernetes
import pytest
from kubernetes import config, dynamic, utils
from kubernetes.dynamic import exceptions as dynamic_exceptions

from tests.peers.support_server import GROUP, Served

pytestmark = pytest.mark.slow

# Untyped here: in its models every field is optional, and a test knows what is there.
client: Any = kubernetes.client
watch: Any = kubernetes.watch
ApiException: Any = kubernetes.client.ApiException


@pytest.fixture
def api(peers_server: Served) -> Iterator[Any]:
    made = config.new_client_from_config(str(peers_server.kubeconfig))
    with made:
        yield made


@pytest.fixture
def core(api: Any) -> Any:
    return client.CoreV1Api(api)


def config_map(name: str, labels: dict[str, str] | None = None, **data: str) -> Any:
    return client.V1ConfigMap(
        metadata=client.V1ObjectMeta(name=name, labels=labels or None), data=data
    )


def test_objects_are_created_read_replaced_and_deleted(core: Any, namespace: str) -> None:
    made = core.create_namespaced_config_map(namespace, config_map("red", a="1"))
    assert made.metadata.uid
    found = core.read_namespaced_config_map("red", namespace)
    assert (found.data, found.metadata.creation_timestamp.tzinfo is None) == ({"a": "1"}, False)
    found.data = {"b": "2"}
    replaced = core.replace_namespaced_config_map("red", namespace, found)
    assert replaced.data == {"b": "2"}
    assert replaced.metadata.resource_version != made.metadata.resource_version
    assert core.delete_namespaced_config_map("red", namespace)["status"] == "Success"
    assert core.list_namespaced_config_map(namespace).items == []


def test_a_deployment_is_made_of_models_scaled_and_given_a_status(api: Any, namespace: str) -> None:
    apps = client.AppsV1Api(api)
    labels = {"app": "web"}
    spec = client.V1DeploymentSpec(
        replicas=2,
        selector=client.V1LabelSelector(match_labels=labels),
        template=client.V1PodTemplateSpec(
            metadata=client.V1ObjectMeta(labels=labels),
            spec=client.V1PodSpec(containers=[client.V1Container(name="main", image="nginx")]),
        ),
    )
    deployment = client.V1Deployment(metadata=client.V1ObjectMeta(name="web"), spec=spec)
    made = apps.create_namespaced_deployment(namespace, deployment)
    assert made.spec.strategy.rolling_update.max_surge == "25%"
    assert made.spec.template.spec.restart_policy == "Always"
    scale = apps.read_namespaced_deployment_scale("web", namespace)
    scale.spec.replicas = 5
    apps.replace_namespaced_deployment_scale("web", namespace, scale)
    status = {"status": {"replicas": 5, "readyReplicas": 4}}
    found = apps.patch_namespaced_deployment_status("web", namespace, status)
    assert (found.spec.replicas, found.status.ready_replicas) == (5, 4)


def test_lists_are_selected_and_paged(core: Any, namespace: str) -> None:
    for number in range(5):
        labels = {"parity": "even" if number % 2 == 0 else "odd"}
        core.create_namespaced_config_map(namespace, config_map(f"map-{number}", labels))
    even = core.list_namespaced_config_map(namespace, label_selector="parity in (even)")
    assert [item.metadata.name for item in even.items] == ["map-0", "map-2", "map-4"]
    one = core.list_namespaced_config_map(namespace, field_selector="metadata.name=map-3")
    assert [item.metadata.name for item in one.items] == ["map-3"]
    names: list[str] = []
    token, left = None, [3, 1, None]
    while token != "":
        page = core.list_namespaced_config_map(namespace, limit=2, _continue=token)
        names += [item.metadata.name for item in page.items]
        token = page.metadata._continue or ""
        assert page.metadata.remaining_item_count == left.pop(0)
    assert names == [f"map-{number}" for number in range(5)]


def test_every_kind_of_patch_is_taken(core: Any, namespace: str) -> None:
    core.create_namespaced_config_map(namespace, config_map("red", a="1"))

    def patch(body: object, kind: str, **options: object) -> Any:
        return core.patch_namespaced_config_map(
            "red", namespace, body, _content_type=f"application/{kind}", **options
        ).data

    assert patch({"data": {"b": "2"}}, "merge-patch+json") == {"a": "1", "b": "2"}
    assert patch({"data": {"a": None}}, "strategic-merge-patch+json") == {"b": "2"}
    steps = [{"op": "add", "path": "/data/c", "value": "3"}]
    assert patch(steps, "json-patch+json") == {"b": "2", "c": "3"}
    applied = {"apiVersion": "v1", "kind": "ConfigMap", "data": {"d": "4"}}
    found = patch(applied, "apply-patch+yaml", field_manager="ann")
    assert found == {"b": "2", "c": "3", "d": "4"}
    with pytest.raises(ApiException) as refused:
        patch(applied | {"data": {"d": "5"}}, "apply-patch+yaml", field_manager="bob")
    assert refused.value.status == 409
    assert 'conflict with \\"ann\\"' in refused.value.body


def test_refusals_are_api_exceptions_with_status_and_reason(core: Any, namespace: str) -> None:
    with pytest.raises(ApiException) as missing:
        core.read_namespaced_config_map("nobody", namespace)
    assert (missing.value.status, missing.value.reason) == (404, "Not Found")
    core.create_namespaced_config_map(namespace, config_map("red"))
    with pytest.raises(ApiException) as twice:
        core.create_namespaced_config_map(namespace, config_map("red"))
    assert (twice.value.status, twice.value.reason) == (409, "Conflict")
    assert '"reason":"AlreadyExists"' in twice.value.body
    stale = config_map("red", a="1")
    stale.metadata.resource_version = "1"
    with pytest.raises(ApiException) as conflict:
        core.replace_namespaced_config_map("red", namespace, stale)
    assert conflict.value.status == 409
    with pytest.raises(ApiException) as invalid:
        core.create_namespaced_config_map(namespace, config_map("Not A Name"))
    assert invalid.value.status == 422


def test_a_watch_sees_what_comes_changes_and_goes_and_resumes(core: Any, namespace: str) -> None:
    listed = core.list_namespaced_config_map(namespace)
    core.create_namespaced_config_map(namespace, config_map("red"))
    core.patch_namespaced_config_map("red", namespace, {"data": {"a": "1"}})
    core.delete_namespaced_config_map("red", namespace)
    watcher = watch.Watch()
    begin = listed.metadata.resource_version
    stream = watcher.stream(
        core.list_namespaced_config_map, namespace, resource_version=begin, timeout_seconds=20
    )
    seen: list[tuple[str, object]] = []
    for event in stream:
        seen.append((event["type"], event["object"].data))
        if len(seen) == 2:
            watcher.stop()
    assert seen == [("ADDED", None), ("MODIFIED", {"a": "1"})]
    again = watch.Watch()
    for event in again.stream(
        core.list_namespaced_config_map,
        namespace,
        resource_version=watcher.resource_version,
        timeout_seconds=20,
    ):
        assert (event["type"], event["object"].metadata.name) == ("DELETED", "red")
        again.stop()


def test_a_watch_ends_at_its_timeout(core: Any, namespace: str) -> None:
    watcher = watch.Watch()
    core.create_namespaced_config_map(namespace, config_map("map-0"))
    stream = watcher.stream(core.list_namespaced_config_map, namespace, timeout_seconds=1)
    assert [event["object"].metadata.name for event in stream] == ["map-0"]


def test_a_watch_from_a_forgotten_past_is_gone(
    peers_server: Served, core: Any, namespace: str
) -> None:
    begin = core.list_namespaced_config_map(namespace).metadata.resource_version
    core.create_namespaced_config_map(namespace, config_map("red"))
    peers_server.compact()
    with pytest.raises(ApiException) as gone:
        for _ in watch.Watch().stream(
            core.list_namespaced_config_map, namespace, resource_version=begin, timeout_seconds=20
        ):
            pass
    assert gone.value.status == 410


def test_custom_objects_are_plain_dicts(api: Any, namespace: str) -> None:
    custom: Any = client.CustomObjectsApi(api)
    where: dict[str, Any] = {
        "group": GROUP,
        "version": "v1",
        "namespace": namespace,
        "plural": "widgets",
    }
    body = {"apiVersion": f"{GROUP}/v1", "kind": "Widget", "metadata": {"name": "one"}}
    made = custom.create_namespaced_custom_object(**where, body=body | {"spec": {"size": 3}})
    assert made["spec"] == {"size": 3, "colour": "red"}
    found = custom.patch_namespaced_custom_object(**where, name="one", body={"spec": {"size": 4}})
    assert found["spec"]["size"] == 4
    status = {"status": {"phase": "Ready"}}
    custom.patch_namespaced_custom_object_status(**where, name="one", body=status)
    (only,) = custom.list_namespaced_custom_object(**where)["items"]
    assert only["status"] == {"phase": "Ready"}
    watcher = watch.Watch()
    for event in watcher.stream(custom.list_namespaced_custom_object, **where, timeout_seconds=20):
        assert (event["type"], event["object"]["metadata"]["name"]) == ("ADDED", "one")
        watcher.stop()
    with pytest.raises(ApiException) as invalid:
        custom.create_namespaced_custom_object(**where, body=body | {"spec": {"size": 0}})
    assert invalid.value.status == 422
    custom.delete_namespaced_custom_object(**where, name="one")
    with pytest.raises(ApiException) as missing:
        custom.get_namespaced_custom_object(**where, name="one")
    assert missing.value.status == 404


def test_the_dynamic_client_discovers_applies_and_watches(
    api: Any, namespace: str, tmp_path: Path
) -> None:
    found = dynamic.DynamicClient(api, cache_file=str(tmp_path / "cache.json"))
    maps = found.resources.get(api_version="v1", kind="ConfigMap")
    widgets = found.resources.get(api_version=f"{GROUP}/v1", kind="Widget")
    body = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "red"}}
    applied = maps.server_side_apply(
        body=body | {"data": {"a": "1"}}, namespace=namespace, field_manager="ann"
    )
    assert applied.metadata.managedFields[0].operation == "Apply"
    with pytest.raises(dynamic_exceptions.ConflictError):
        maps.create(body=body, namespace=namespace)
    with pytest.raises(dynamic_exceptions.NotFoundError):
        maps.get(name="nobody", namespace=namespace)
    kind = {"apiVersion": f"{GROUP}/v1", "kind": "Widget", "metadata": {"name": "one"}}
    widgets.create(body=kind | {"spec": {"size": 1}}, namespace=namespace)
    for event in widgets.watch(namespace=namespace, timeout=20):
        assert (event["type"], event["object"].spec.colour) == ("ADDED", "red")
        break


def test_manifests_are_created_whatever_their_kind(api: Any, namespace: str) -> None:
    service = {
        "apiVersion": "v1",
        "kind": "Service",
        "metadata": {"name": "web"},
        "spec": {"selector": {"app": "web"}, "ports": [{"port": 80}]},
    }
    (made,) = utils.create_from_dict(api, service, namespace=namespace)
    assert made.spec.cluster_ip.startswith("10.")
    with pytest.raises(utils.FailToCreateError, match="AlreadyExists"):
        utils.create_from_dict(api, service, namespace=namespace)


def test_the_server_tells_its_version_and_its_kinds(api: Any) -> None:
    assert client.VersionApi(api).get_code().minor == "36"
    groups = client.ApisApi(api).get_api_versions().groups
    assert {"apps", "batch", GROUP} <= {group.name for group in groups}
    review = client.V1SelfSubjectAccessReview(
        spec=client.V1SelfSubjectAccessReviewSpec(
            resource_attributes=client.V1ResourceAttributes(verb="list", resource="pods")
        )
    )
    answer: Any = client.AuthorizationV1Api(api).create_self_subject_access_review(review)
    assert answer.status.allowed
