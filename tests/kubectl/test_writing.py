"""kubectl's writes: create, both kinds of apply, diff, edit, patch, replace, delete."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.kubectl.support_kubectl import Kubectl, config_map, deployment, pod

pytestmark = [pytest.mark.e2e, pytest.mark.slow]


def test_files_of_several_objects_are_created(kubectl: Kubectl, tmp_path: Path) -> None:
    (tmp_path / "one.json").write_text(json.dumps(config_map("one", a="1")), encoding="utf-8")
    (tmp_path / "two.yaml").write_text(
        "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: two}\n---\n"
        "apiVersion: v1\nkind: Secret\nmetadata: {name: three}\nstringData: {key: value}\n",
        encoding="utf-8",
    )
    out = kubectl("create", "-f", str(tmp_path))
    assert out == "configmap/one created\nconfigmap/two created\nsecret/three created\n"
    assert kubectl.value("secret", "three", ".data.key") == "dmFsdWU="
    said = kubectl.refused("create", "-f", str(tmp_path / "one.json"))
    assert 'Error from server (AlreadyExists): error when creating "' in said
    assert 'configmaps "one" already exists' in said


def test_a_list_of_objects_is_created(kubectl: Kubectl) -> None:
    given = {"apiVersion": "v1", "kind": "List", "items": [config_map("one"), config_map("two")]}
    out = kubectl("create", "-f", "-", given=given)
    assert out == "configmap/one created\nconfigmap/two created\n"


def test_typed_creates_make_what_they_say(kubectl: Kubectl) -> None:
    kubectl("create", "deployment", "web", "--image=nginx:1", "--replicas=3", "--port=80")
    kubectl("create", "configmap", "settings", "--from-literal=a=1", "--from-literal=b=2")
    kubectl("create", "secret", "generic", "keys", "--from-literal=user=ann")
    kubectl("create", "job", "once", "--image=busybox", "--", "true")
    kubectl("create", "cronjob", "daily", "--image=busybox", "--schedule=0 0 * * *")
    kubectl("create", "job", "now", "--from=cronjob/daily")
    kubectl("create", "service", "clusterip", "web", "--tcp=80:8080")
    kubectl("create", "quota", "small", "--hard=pods=10")
    kubectl("create", "poddisruptionbudget", "most", "--selector=app=web", "--min-available=1")
    kubectl("create", "ingress", "front", "--rule=example.test/*=web:80")
    assert kubectl.rows("get", "deploy", "web")[0][:2] == ["web", "0/3"]
    assert kubectl.object("cm", "settings")["data"] == {"a": "1", "b": "2"}
    assert kubectl.value("secret", "keys", ".data.user") == "YW5u"
    spec = kubectl.object("job", "once")["spec"]
    assert spec["template"]["spec"]["containers"][0]["command"] == ["true"]
    owner = kubectl.object("job", "now")["metadata"]["ownerReferences"][0]
    assert (owner["kind"], owner["name"], owner["controller"]) == ("CronJob", "daily", True)
    assert kubectl.value("service", "web", ".spec.ports[0].targetPort") == "8080"
    assert kubectl.value("quota", "small", ".spec.hard.pods") == "10"
    assert kubectl.value("pdb", "most", ".spec.minAvailable") == "1"
    assert kubectl.rows("get", "ingress", "front")[0][:3] == ["front", "<none>", "example.test"]


def test_what_is_wrong_is_refused_with_the_fields_name(kubectl: Kubectl) -> None:
    wrong = deployment("web")
    wrong["spec"]["template"]["metadata"]["labels"] = {"app": "other"}
    said = kubectl.refused("create", "-f", "-", given=wrong)
    assert 'The Deployment "web" is invalid: spec.template.metadata.labels' in said
    unknown = config_map("red") | {"colour": "red"}
    said = kubectl.refused("create", "-f", "-", given=unknown)
    assert 'unknown field "colour"' in said
    warned = kubectl.run("create", "-f", "-", "--validate=warn", given=unknown)
    assert (warned.code, warned.err) == (0, 'Warning: unknown field "colour"\n')
    assert 'namespaces "nowhere" not found' in kubectl.refused(
        "create", "configmap", "lost", "--namespace=nowhere"
    )


def test_a_dry_run_changes_nothing(kubectl: Kubectl) -> None:
    out = kubectl("create", "configmap", "red", "--dry-run=server", "-o", "json")
    assert json.loads(out)["metadata"]["uid"]
    assert kubectl("get", "cm", "red", "--ignore-not-found") == ""
    kubectl("create", "configmap", "red")
    assert "(server dry run)" in kubectl("delete", "cm", "red", "--dry-run=server")
    assert kubectl("get", "cm", "red", "-o", "name") == "configmap/red\n"


def test_apply_creates_then_changes_what_differs_and_removes_what_is_gone(
    kubectl: Kubectl,
) -> None:
    given = deployment("web")
    given["metadata"]["annotations"] = {"team": "blue"}
    assert kubectl("apply", "-f", "-", given=given) == "deployment.apps/web created\n"
    assert kubectl("apply", "-f", "-", given=given) == "deployment.apps/web unchanged\n"
    del given["metadata"]["annotations"]
    del given["spec"]["template"]["spec"]["containers"][0]["ports"]
    given["spec"]["template"]["spec"]["containers"].append({"name": "side", "image": "envoy"})
    given["spec"]["replicas"] = 5
    kubectl("label", "deploy", "web", "other=kept")
    assert kubectl("apply", "-f", "-", given=given) == "deployment.apps/web configured\n"
    found = kubectl.object("deploy", "web")
    assert "team" not in found["metadata"]["annotations"]
    assert found["metadata"]["labels"] == {"app": "web", "other": "kept"}
    assert found["spec"]["replicas"] == 5
    main, side = found["spec"]["template"]["spec"]["containers"]
    assert (main["name"], side["name"]) == ("main", "side")
    assert "ports" not in main
    assert kubectl("apply", "-f", "-", given=given) == "deployment.apps/web unchanged\n"
    last = kubectl("apply", "view-last-applied", "deploy/web", "-o", "json")
    assert json.loads(last)["spec"]["replicas"] == 5


def test_server_side_apply_knows_who_owns_what(kubectl: Kubectl) -> None:
    apply = ("apply", "--server-side", "-f", "-")
    out = kubectl(*apply, "--field-manager=ann", given=config_map("red", a="1", b="2"))
    assert out == "configmap/red serverside-applied\n"
    said = kubectl.refused(*apply, "--field-manager=bob", given=config_map("red", a="9"))
    assert 'Apply failed with 1 conflict: conflict with "ann": .data.a' in said
    assert "--force-conflicts" in said
    forced = ("--field-manager=bob", "--force-conflicts")
    kubectl(*apply, *forced, given=config_map("red", a="9"))
    assert kubectl.object("cm", "red")["data"] == {"a": "9", "b": "2"}
    kubectl(*apply, "--field-manager=ann", given=config_map("red"))
    assert kubectl.object("cm", "red")["data"] == {"a": "9"}
    text = kubectl("get", "cm", "red", "-o", "json", "--show-managed-fields")
    managed = json.loads(text)["metadata"]["managedFields"]
    assert {(one["manager"], one["operation"]) for one in managed} == {
        ("ann", "Apply"),
        ("bob", "Apply"),
    }


def test_a_client_side_applied_object_moves_to_the_servers_side(kubectl: Kubectl) -> None:
    kubectl("apply", "-f", "-", given=config_map("red", a="1", b="2"))
    kubectl("apply", "--server-side", "-f", "-", given=config_map("red", a="1"))
    assert kubectl.object("cm", "red")["data"] == {"a": "1"}


def test_apply_prunes_what_is_no_longer_given(kubectl: Kubectl) -> None:
    ours = {"set": "ours"}
    kubectl("apply", "-f", "-", given=[config_map("one", ours), config_map("two", ours)])
    prune = ("--prune", "-l", "set=ours", "--prune-allowlist=core/v1/ConfigMap")
    out = kubectl("apply", "-f", "-", *prune, given=config_map("one", ours))
    assert "configmap/two pruned" in out
    assert kubectl("get", "cm", "-l", "set", "-o", "name") == "configmap/one\n"


def test_diff_tells_what_apply_would_change(kubectl: Kubectl) -> None:
    kubectl("apply", "-f", "-", given=config_map("red", a="1"))
    same = kubectl.run("diff", "-f", "-", given=config_map("red", a="1"))
    assert (same.code, same.out) == (0, "")
    for side in ("--server-side=false", "--server-side=true"):
        answer = kubectl.run("diff", side, "-f", "-", given=config_map("red", a="2"))
        assert answer.code == 1, answer
        assert '-  a: "1"' in answer.out
        assert '+  a: "2"' in answer.out
    assert kubectl.value("cm", "red", ".data.a") == "1"


def test_an_edited_object_is_written_back(kubectl: Kubectl, tmp_path: Path) -> None:
    kubectl("create", "configmap", "red", "--from-literal=a=before")
    editor = tmp_path / "editor"
    script = '#!/bin/sh\nsed s/before/after/ "$1" > "$1.new" && mv "$1.new" "$1"\n'
    editor.write_text(script, encoding="utf-8")
    editor.chmod(0o755)
    env = {"KUBE_EDITOR": str(editor)}
    assert kubectl("edit", "configmap", "red", env=env) == "configmap/red edited\n"
    assert kubectl.value("cm", "red", ".data.a") == "after"
    again = kubectl.run("edit", "configmap", "red", env=env)
    assert again.code == 0
    assert "Edit cancelled, no changes made." in again.out + again.err


def test_labels_and_annotations_are_set_and_removed(kubectl: Kubectl) -> None:
    kubectl("create", "configmap", "red")
    assert kubectl("label", "cm", "red", "a=1", "b=2") == "configmap/red labeled\n"
    said = kubectl.refused("label", "cm", "red", "a=3")
    assert "'a' already has a value (1), and --overwrite is false" in said
    kubectl("label", "cm", "red", "a=3", "b-", "--overwrite")
    kubectl("annotate", "cm", "red", "why=because of it")
    found = kubectl.object("cm", "red")["metadata"]
    assert (found["labels"], found["annotations"]) == ({"a": "3"}, {"why": "because of it"})
    kubectl("annotate", "cm", "--all", "why-")
    assert "annotations" not in kubectl.object("cm", "red")["metadata"]
    assert "a valid label must be" in kubectl.refused("label", "cm", "red", "a=not this!")


def test_patches_of_all_three_types_are_taken(kubectl: Kubectl) -> None:
    kubectl("create", "-f", "-", given=deployment("web"))
    containers = {"containers": [{"name": "main", "env": [{"name": "A", "value": "1"}]}]}
    strategic = {"spec": {"template": {"spec": containers}}}
    patch = ("patch", "deployment", "web")
    assert kubectl(*patch, "-p", json.dumps(strategic)) == "deployment.apps/web patched\n"
    (main,) = kubectl.object("deploy", "web")["spec"]["template"]["spec"]["containers"]
    assert (main["image"], main["env"]) == ("nginx:1", [{"name": "A", "value": "1"}])
    merge = {"spec": {"paused": True}, "metadata": {"labels": {"app": None}}}
    kubectl(*patch, "--type=merge", "-p", json.dumps(merge))
    assert "labels" not in kubectl.object("deploy", "web")["metadata"]
    steps = [
        {"op": "test", "path": "/spec/paused", "value": True},
        {"op": "replace", "path": "/spec/replicas", "value": 7},
    ]
    kubectl(*patch, "--type=json", "-p", json.dumps(steps))
    assert kubectl.value("deploy", "web", ".spec.replicas") == "7"
    steps[0]["value"] = False
    said = kubectl.refused(*patch, "--type=json", "-p", json.dumps(steps))
    assert "the server rejected our request due to an error in our request" in said
    scale = ("--subresource=scale", "--type=merge", "-p", '{"spec": {"replicas": 1}}')
    kubectl(*patch, *scale)
    assert kubectl.value("deploy", "web", ".spec.replicas") == "1"


def test_replace_puts_the_whole_object(kubectl: Kubectl) -> None:
    kubectl("create", "-f", "-", given=config_map("red", a="1", b="2"))
    found = kubectl.object("cm", "red")
    found["data"] = {"c": "3"}
    assert kubectl("replace", "-f", "-", given=found) == "configmap/red replaced\n"
    assert kubectl.object("cm", "red")["data"] == {"c": "3"}
    said = kubectl.refused("replace", "-f", "-", given=found)
    assert "the object has been modified" in said
    uid = found["metadata"]["uid"]
    kubectl("replace", "--force", "-f", "-", given=config_map("red", d="4"))
    assert kubectl.object("cm", "red")["metadata"]["uid"] != uid


def test_deletes_choose_by_name_by_label_or_take_all(kubectl: Kubectl) -> None:
    names = ("one", "two", "three", "four")
    kubectl("create", "-f", "-", given=[config_map(name, {"n": name}) for name in names])
    said = kubectl("delete", "configmap", "one")
    assert said.startswith('configmap "one" deleted')
    assert 'configmaps "one" not found' in kubectl.refused("delete", "configmap", "one")
    kubectl("delete", "configmap", "one", "--ignore-not-found")
    kubectl("delete", "configmap", "-l", "n in (two, three)")
    assert kubectl("get", "cm", "-l", "n", "-o", "name") == "configmap/four\n"
    kubectl("delete", "configmap", "--all")
    assert kubectl("get", "cm", "-l", "n", "-o", "name") == ""


def test_a_pod_goes_at_once_or_after_its_grace(kubectl: Kubectl) -> None:
    kubectl("create", "-f", "-", given=[pod("one"), pod("two")])
    assert 'pod "one" force deleted' in kubectl(
        "delete", "pod", "one", "--grace-period=0", "--force"
    )
    assert 'pod "two" deleted' in kubectl("delete", "pod", "two", "--now", "--timeout=20s")
    assert kubectl("get", "pods", "-o", "name") == ""


def test_a_delete_waits_for_finalizers(kubectl: Kubectl) -> None:
    held = config_map("held")
    held["metadata"]["finalizers"] = ["example.test/hold"]
    kubectl("create", "-f", "-", given=held)
    with kubectl.started("delete", "cm", "held", "--timeout=20s") as deleting:
        deleting.line('configmap "held" deleted')
        assert kubectl.value("cm", "held", ".metadata.deletionTimestamp")
        kubectl("patch", "cm", "held", "--type=merge", "-p", '{"metadata": {"finalizers": null}}')
        assert deleting.end()[0] == 0
    assert kubectl("get", "cm", "held", "--ignore-not-found") == ""


@pytest.mark.parametrize("cascade", ["background", "foreground", "orphan"])
def test_dependents_go_with_their_owner_or_stay(kubectl: Kubectl, cascade: str) -> None:
    kubectl("create", "configmap", "owner")
    owner = {
        "apiVersion": "v1",
        "kind": "ConfigMap",
        "name": "owner",
        "uid": kubectl.value("cm", "owner", ".metadata.uid"),
        "blockOwnerDeletion": True,
    }
    child = config_map("child")
    child["metadata"]["ownerReferences"] = [owner]
    kubectl("create", "-f", "-", given=child)
    kubectl("delete", "cm", "owner", f"--cascade={cascade}", "--timeout=20s")
    assert kubectl("get", "cm", "owner", "--ignore-not-found") == ""
    if cascade == "orphan":
        assert "ownerReferences" not in kubectl.object("cm", "child")["metadata"]
    else:
        kubectl("wait", "cm/child", "--for=delete", "--timeout=20s")


def test_a_namespace_goes_with_all_that_is_in_it(kubectl: Kubectl) -> None:
    inner = f"{kubectl.namespace}-inner"
    kubectl("create", "namespace", inner)
    kubectl("create", "configmap", "red", f"--namespace={inner}")
    kubectl("delete", "namespace", inner, "--timeout=25s")
    assert kubectl("get", "namespace", inner, "--ignore-not-found") == ""
    assert kubectl("get", "cm", "-o", "name", f"--namespace={inner}") == ""
