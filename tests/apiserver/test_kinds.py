"""The registry of kinds: what is built in, and custom kinds that come and go."""

from __future__ import annotations

import subprocess
import sys

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kinform.apiserver.scheme import kind_registry, schemas
from kinform.apiserver.scheme.kind_registry import (
    Kind,
    Kinds,
    definition_of,
    schema_of,
    version_priority,
)
from kinform.meta import GroupVersionKind
from tests.apiserver import recorded

GADGETS = "gadgets.shop.example.com"


def gadgets() -> list[Kind]:
    """Return two versions of a custom kind."""
    return recorded.kinds_of(recorded.custom()["definitions"][0])


def builtin(group: str, version: str, plural: str) -> Kind:
    kind = kind_registry.builtin().find(group, version, plural)
    assert kind is not None
    return kind


def test_a_built_in_kind_has_all_that_discovery_tells_of_it() -> None:
    kind = builtin("apps", "v1", "deployments")
    assert kind.gvk == GroupVersionKind("apps", "v1", "Deployment")
    assert (kind.singular, kind.namespaced, kind.list_kind) == (
        "deployment",
        True,
        "DeploymentList",
    )
    assert (kind.short_names, kind.categories) == (("deploy",), ("all",))
    assert set(kind.verbs) == set(kind_registry.CUSTOM_VERBS)
    assert kind.storage == "deployments.apps"
    assert kind.definition == "io.k8s.api.apps.v1.Deployment"
    assert kind.custom is None


def test_a_kind_is_found_by_its_path_and_by_its_name() -> None:
    registry = kind_registry.builtin()
    for kind in registry.all():
        assert registry.find(kind.group, kind.version, kind.plural) is kind
        assert registry.by_gvk(kind.gvk) is kind


def test_every_built_in_kind_has_a_schema_of_its_own_kind() -> None:
    for kind in kind_registry.builtin().all():
        names = schema_of(kind).raw["x-kubernetes-group-version-kind"]
        assert {"group": kind.group, "version": kind.version, "kind": kind.kind} in names


def test_a_subresource_says_what_its_bodies_are() -> None:
    pods = builtin("", "v1", "pods").subresources
    assert (pods["eviction"].group, pods["eviction"].version) == ("policy", "v1")
    assert pods["status"].kind == "Pod"
    assert (pods["status"].group, pods["status"].version) == ("", "v1")
    scale = builtin("apps", "v1", "replicasets").subresources["scale"]
    gvk = GroupVersionKind(scale.group, scale.version, scale.kind)
    assert definition_of(gvk) == "io.k8s.api.autoscaling.v1.Scale"


def test_a_kind_that_is_not_built_in_has_no_definition() -> None:
    assert not definition_of(GroupVersionKind("", "v1", "Gadget"))


@pytest.mark.parametrize(
    ("storage", "versions"),
    [
        ("horizontalpodautoscalers.autoscaling", ["autoscaling/v2", "autoscaling/v1"]),
        ("events", ["v1", "events.k8s.io/v1"]),
        ("pods", ["v1"]),
        ("nothing", []),
    ],
)
def test_versions_share_a_table(storage: str, versions: list[str]) -> None:
    found = kind_registry.builtin().versions(storage)
    assert [kind.api_version for kind in found] == versions


def test_no_other_kinds_share_a_table() -> None:
    registry = kind_registry.builtin()
    shared = {kind.storage for kind in registry.all() if len(registry.versions(kind.storage)) > 1}
    assert shared == {"horizontalpodautoscalers.autoscaling", "events"}


# Custom kinds.


def test_custom_kinds_come_and_go() -> None:
    registry = kind_registry.builtin()
    before = registry.all()
    registry.put(gadgets())
    found = registry.find("shop.example.com", "v1", "gadgets")
    assert found is not None
    assert registry.by_gvk(found.gvk) is found
    assert [kind.version for kind in registry.versions(GADGETS)] == ["v1", "v1beta1"]
    registry.remove(GADGETS)
    assert registry.find("shop.example.com", "v1", "gadgets") is None
    assert registry.by_gvk(found.gvk) is None
    assert registry.versions(GADGETS) == ()
    assert registry.all() == before


def test_a_definition_replaces_what_it_served_before() -> None:
    registry = kind_registry.builtin()
    registry.put(gadgets())
    registry.put(gadgets()[:1])
    assert registry.find("shop.example.com", "v1beta1", "gadgets") is None


def test_the_generation_grows_with_each_change_and_only_then() -> None:
    registry = kind_registry.builtin()
    seen = [registry.generation]
    registry.put(gadgets())
    seen.append(registry.generation)
    registry.remove(GADGETS)
    seen.append(registry.generation)
    registry.remove(GADGETS)
    assert seen == sorted(set(seen))
    assert registry.generation == seen[-1]


def test_registries_do_not_see_each_others_custom_kinds() -> None:
    one, other = kind_registry.builtin(), kind_registry.builtin()
    one.put(gadgets())
    assert other.versions(GADGETS) == ()


def test_the_stored_version_is_the_one_that_was_said_or_the_preferred_one() -> None:
    registry = kind_registry.builtin()
    registry.put(list(reversed(gadgets())))
    assert registry.stored_version(gadgets()[0]) == "v1"
    registry.put(gadgets(), stored="v1alpha1")
    assert registry.stored_version(gadgets()[0]) == "v1alpha1"


def test_kinds_of_several_definitions_or_none_are_refused() -> None:
    registry = kind_registry.builtin()
    others = recorded.kinds_of(recorded.custom()["definitions"][1])
    for wrong in ([], [*gadgets(), *others], [builtin("", "v1", "pods")]):
        with pytest.raises(ValueError, match="kinds of one definition"):
            registry.put(wrong)


def test_the_schema_of_a_custom_kind_is_made_once() -> None:
    kind = gadgets()[0]
    assert schema_of(kind) is schema_of(kind)
    assert schema_of(kind).properties["spec"].properties["color"].type == "string"
    assert schema_of(gadgets()[1]) is not schema_of(kind)


# Versions.


def test_versions_are_sorted_as_the_real_server_does() -> None:
    registry = recorded.registry()
    for group in recorded.custom()["aggregated"]:
        listed = [version["version"] for version in group["versions"]]
        served = {it.version for it in registry.all() if it.group == group["metadata"]["name"]}
        assert sorted(served, key=version_priority) == listed


@given(st.integers(1, 99), st.integers(1, 99), st.sampled_from(["", "alpha", "beta"]))
def test_a_higher_number_wins_within_a_stage(one: int, other: int, stage: str) -> None:
    suffix = f"{stage}1" if stage else ""
    low, high = sorted((one, other))
    assert version_priority(f"v{high}{suffix}") <= version_priority(f"v{low}{suffix}")


@given(st.integers(1, 99), st.integers(1, 99), st.integers(1, 99))
def test_a_stable_version_wins_over_beta_over_alpha_over_the_rest(a: int, b: int, c: int) -> None:
    ranked = [f"v{a}", f"v{b}beta{c}", f"v{c}alpha{a}", f"version{b}", f"vv{b}"]
    assert sorted(ranked, key=version_priority) == ranked


def test_names_that_only_look_like_versions_come_last() -> None:
    names = ["v01", "v1beta", "v1-beta", "V1", "v0", "v1alpha1"]
    assert min(names, key=version_priority) == "v1alpha1"


# Cost.


def test_importing_reads_no_data() -> None:
    program = (
        "from kinform.apiserver import _recorded as data\n"
        "from kinform.apiserver.endpoints import discovery\n"
        "from kinform.apiserver.scheme import kind_registry as kinds\n"
        "from kinform.apiserver.openapi import v3 as openapi\n"
        "from kinform.apiserver.scheme import schemas\n"
        "assert not data.api.cache_info().currsize\n"
        "kinds.builtin()\n"
        "assert not data.schemas.cache_info().currsize\n"
    )
    subprocess.run([sys.executable, "-c", program], check=True, timeout=20)


def test_an_empty_registry_is_possible() -> None:
    assert Kinds().all() == ()
    assert schemas.builtin("io.k8s.api.core.v1.Pod") is schemas.builtin("io.k8s.api.core.v1.Pod")
