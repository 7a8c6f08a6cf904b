from __future__ import annotations

import copy
import gc
import json
import subprocess
import sys
import traceback
from collections.abc import Callable, Mapping, Sequence
from typing import Any, cast

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from kinform.errors import DecodeError, KinformError, UsageError
from kinform.meta import Entry, GroupVersionKind, ObjectMeta, ObjectName
from kinform.objects import object as objects
from kinform.objects.object import Object
from kinform.sansio.wire.heads import Head

CANARY = "hunter2"
POD: dict[str, Any] = {
    "apiVersion": "v1",
    "kind": "Pod",
    "metadata": {
        "name": "web-0",
        "namespace": "default",
        "uid": "0b5f",
        "resourceVersion": "123",
        "labels": {"app": "web"},
        "annotations": {"note": CANARY},
    },
    "spec": {
        "nodeName": "node-1",
        "priority": None,
        "containers": [{"name": "a", "image": "nginx"}, {"name": "b", "image": "redis"}, None],
    },
    "status": None,
}


def pod(**metadata: str) -> Object:
    return Object.from_dict({**POD, "metadata": {**POD["metadata"], **metadata}})


def unread(text: str, *, name: str = "bad") -> Object:
    """Return an object of bytes that the first pass let through, or never saw."""
    return Object(text.encode(), Head(metadata=ObjectMeta(namespace="default", name=name)))


# --- metadata ---------------------------------------------------------------------------------


def test_a_key_can_be_taken_apart_sorted_and_looked_up() -> None:
    web, node = ObjectName("default", "web-0"), ObjectName("", "node-1")
    namespace, name = web
    assert (namespace, name, str(node)) == ("default", "web-0", "node-1")
    assert sorted([web, node]) == [node, web]
    assert {web: 1}[ObjectName.parse("default/web-0")] == 1


def test_the_garbage_collector_is_spared_keys_and_metadata() -> None:
    """A cache has one of each for every object, for as long as the program runs."""
    obj = pod()
    kept = (Entry(obj.metadata, obj), obj.metadata, obj.metadata.raw_labels, obj.key, obj.head)
    assert not any(map(gc.is_tracked, kept))


def test_metadata_is_typed_and_at_hand() -> None:
    obj = pod()
    assert (obj.api_version, obj.kind) == ("v1", "Pod")
    assert obj.gvk == GroupVersionKind("", "v1", "Pod")
    assert (obj.namespace, obj.name, obj.uid) == ("default", "web-0", "0b5f")
    assert obj.key == ObjectName("default", "web-0")
    assert obj.resource_version == obj.metadata.resource_version == "123"
    assert obj.labels == {"app": "web"}
    assert obj.annotations == {"note": CANARY}


def test_items_of_lists_have_no_kind_and_that_is_no_error() -> None:
    obj = Object.from_bytes(b'{"metadata":{"name":"a"}}')
    assert obj.gvk == GroupVersionKind("", "", "")
    assert repr(obj) == "<Object a>"


def test_raw_is_the_very_bytes_that_came() -> None:
    raw = b'{"metadata":{}, "spec" :1}'
    assert Object.from_bytes(raw).raw is raw


def test_from_dict_takes_a_copy() -> None:
    content = copy.deepcopy(POD)
    obj = Object.from_dict(content)
    content["spec"]["nodeName"] = "other"
    assert obj.at("spec", "nodeName") == "node-1"
    assert obj.to_dict() == POD


def test_from_bytes_refuses_what_is_no_object() -> None:
    for raw in (b"", b"[]", b"{", b'{"metadata":{"name":1}}', b'{"a":"\xff"}'):
        with pytest.raises(DecodeError):
            Object.from_bytes(raw)


def test_from_dict_refuses_what_has_no_json_form() -> None:
    with pytest.raises(UsageError, match="complex"):
        Object.from_dict({"spec": 1j})


@pytest.mark.parametrize(
    "metadata, shown",
    [
        ({}, "<Object v1/Pod default/web-0 rv=123>"),
        ({"namespace": ""}, "<Object v1/Pod web-0 rv=123>"),
        ({"resourceVersion": ""}, "<Object v1/Pod default/web-0>"),
    ],
)
def test_repr_names_the_object_and_shows_no_payload(metadata: dict[str, str], shown: str) -> None:
    obj = pod(**metadata)
    assert repr(obj) == shown
    assert CANARY not in f"{obj} {obj.keys()!r} {obj.items()!r}"


# --- one value by path ------------------------------------------------------------------------


@pytest.mark.parametrize(
    "path, value",
    [
        (("spec", "nodeName"), "node-1"),
        (("spec", "containers", 0, "image"), "nginx"),
        (("spec", "containers", -2, "image"), "redis"),
        (("spec", "containers", 1), {"name": "b", "image": "redis"}),
        (("spec", "containers"), POD["spec"]["containers"]),
        ((), POD),
    ],
)
def test_at_returns_the_value_at_the_path(path: tuple[str | int, ...], value: object) -> None:
    assert pod().at(*path) == value


@pytest.mark.parametrize(
    "path",
    [
        ("nope",),
        ("spec", "nope", "deeper"),
        ("spec", "priority"),
        ("status", "phase"),
        ("spec", "containers", 2, "image"),
        ("spec", "containers", 3),
        ("spec", "containers", -4),
        ("spec", "containers", "image"),
        ("spec", "nodeName", "x"),
        ("spec", "nodeName", 0),
        ("spec", 0),
        (0,),
    ],
)
def test_a_path_that_leads_nowhere_gives_the_default(path: tuple[str | int, ...]) -> None:
    assert pod().at(*path) is None
    assert pod().at(*path, default="Unknown") == "Unknown"


names = st.sampled_from(["a", "b", "é", 'q"', "\\", "\n", "", " ", "v"])
scalars = st.none() | st.booleans() | st.integers() | st.text(max_size=3)
documents = st.dictionaries(
    names,
    st.recursive(
        scalars,
        lambda inner: st.lists(inner, max_size=3) | st.dictionaries(names, inner, max_size=3),
        max_leaves=8,
    ),
)
paths = st.lists(names | st.integers(-3, 3), max_size=4).map(tuple)


def walk(value: Any, path: tuple[str | int, ...]) -> Any:
    for step in path:
        if isinstance(value, dict) and isinstance(step, str):
            value = value.get(step)
        elif isinstance(value, list) and isinstance(step, int) and -len(value) <= step < len(value):
            value = value[step]
        else:
            return None
    return value


@given(documents, paths, st.booleans())
def test_at_finds_what_a_walk_through_the_decoded_json_finds(
    document: dict[str, Any], path: tuple[str | int, ...], ascii_only: bool
) -> None:
    raw = json.dumps(document, ensure_ascii=ascii_only).encode()
    assert Object(raw, Head()).at(*path) == walk(document, path)


@pytest.mark.slow
@given(documents)
def test_an_object_is_the_mapping_of_its_json(document: dict[str, Any]) -> None:
    obj = Object(json.dumps(document).encode(), Head())
    assert dict(obj) == document
    assert len(obj) == len(document)
    assert list(obj) == list(document)
    assert obj.to_dict() == document


def test_the_last_of_doubled_members_counts_everywhere() -> None:
    obj = Object.from_bytes(b'{"spec":{"a":1},"spec":{"b":2},"x":[],"x":{"y":3}}')
    assert obj.at("spec", "a") is None
    assert obj.at("spec", "b") == obj["spec"]["b"] == 2
    assert obj.at("x", "y") == 3
    assert list(obj) == ["spec", "x"]


def test_readers_are_compiled_once_per_path_and_bounded() -> None:
    obj = pod()
    before = objects._reader.cache_info()
    for _ in range(3):
        obj.at("spec", "a-path-of-this-test-alone")
    after = objects._reader.cache_info()
    assert (after.misses - before.misses, after.hits - before.hits) == (1, 2)
    assert after.maxsize == 1024


# --- as a read-only mapping -------------------------------------------------------------------


def test_indexing_reads_like_plain_json() -> None:
    obj = pod()
    assert obj["spec"]["containers"][0]["image"] == "nginx"
    assert obj["spec"]["containers"][-1] is None
    assert obj["status"] is None
    assert obj.get("nope") is None
    assert "spec" in obj
    assert "nope" not in obj
    assert cast("object", 0) not in obj
    with pytest.raises(KeyError, match="nope"):
        obj["nope"]
    with pytest.raises(KeyError, match="nope"):
        obj["spec"]["nope"]


def test_an_object_and_its_views_are_mappings_and_sequences() -> None:
    obj = pod()
    assert isinstance(obj, Mapping)
    assert isinstance(obj["spec"], Mapping)
    assert isinstance(obj["spec"]["containers"], Sequence)
    match obj:
        case {"kind": "Pod", "spec": {"containers": [{"image": image}, *_]}}:
            assert image == "nginx"
        case _:
            pytest.fail("a mapping pattern should match")


def test_views_equal_the_plain_values_they_show() -> None:
    spec, containers = pod()["spec"], pod()["spec"]["containers"]
    assert spec == POD["spec"]
    assert POD["spec"] == spec
    assert spec == pod()["spec"]
    assert spec != {}
    assert spec != 1
    assert containers == POD["spec"]["containers"]
    assert containers == pod()["spec"]["containers"]
    assert containers != ()
    assert {"spec": spec} == {"spec": POD["spec"]}
    assert containers[:2] == POD["spec"]["containers"][:2]
    assert {"name": "b", "image": "redis"} in containers
    assert containers.index({"name": "b", "image": "redis"}) == 1
    assert [c and c["name"] for c in reversed(containers)] == [None, "b", "a"]
    assert list(spec) == ["nodeName", "priority", "containers"]
    assert (len(spec), "nodeName" in spec, "x" in spec) == (3, True, False)


def test_views_show_their_content_and_have_no_hash() -> None:
    view = Object.from_dict({"a": {"b": [1]}})["a"]
    assert (repr(view), repr(view["b"])) == ("DictView({'b': [1]})", "ListView([1])")
    for value in (view, view["b"]):
        with pytest.raises(TypeError, match="unhashable"):
            hash(value)


CHANGES: dict[str, Callable[[Any], object]] = {
    "obj[]=": lambda o: o.__setitem__("spec", {}),
    "del obj[]": lambda o: o.__delitem__("spec"),
    "obj.update": lambda o: o.update(spec={}),
    "obj.pop": lambda o: o.pop("spec", None),
    "obj.popitem": lambda o: o.popitem(),
    "obj.clear": lambda o: o.clear(),
    "obj.setdefault": lambda o: o.setdefault("spec", {}),
    "obj|=": lambda o: o.__ior__({}),
    "dict[]=": lambda o: o["spec"].__setitem__("nodeName", "x"),
    "del dict[]": lambda o: o["spec"].__delitem__("nodeName"),
    "dict.update": lambda o: o["spec"].update({"nodeName": "x"}),
    "list[]=": lambda o: o["spec"]["containers"].__setitem__(0, {}),
    "del list[]": lambda o: o["spec"]["containers"].__delitem__(0),
    "list+=": lambda o: o["spec"]["containers"].__iadd__([{}]),
    "list*=": lambda o: o["spec"]["containers"].__imul__(2),
    "list.append": lambda o: o["spec"]["containers"].append({}),
    "list.sort": lambda o: o["spec"]["containers"].sort(key=str),
    "at(dict)[]=": lambda o: o.at("spec").__setitem__("nodeName", "x"),
    "inside a slice": lambda o: o["spec"]["containers"][:1][0].__setitem__("image", "x"),
    "inside values": lambda o: next(iter(o["spec"]["containers"])).__setitem__("image", "x"),
}


@pytest.mark.parametrize("change", CHANGES.values(), ids=CHANGES.keys())
def test_every_change_is_refused_and_pointed_to_to_dict(change: Callable[[Any], object]) -> None:
    obj = pod()
    with pytest.raises(TypeError, match=r"read-only; change a copy of your own: obj\.to_dict\(\)"):
        change(obj)
    assert obj.to_dict() == POD


def test_attributes_cannot_be_set() -> None:
    obj: Any = pod()
    for name in ("spec", "raw", "name"):
        with pytest.raises(AttributeError):
            setattr(obj, name, "x")


def test_copies_of_what_cannot_change_are_the_thing_itself() -> None:
    obj = pod()
    spec = obj["spec"]
    for value in (obj, spec, spec["containers"]):
        assert copy.copy(value) is value
        assert copy.deepcopy(value) is value
    assert copy.deepcopy({"obj": obj})["obj"] is obj


def test_to_dict_is_a_fresh_copy_each_time() -> None:
    obj = pod()
    mine: Any = obj.to_dict()
    mine["spec"]["containers"][0]["image"] = "changed"
    assert obj.to_dict() == POD
    spec = obj.to_dict("spec")
    assert spec == POD["spec"]
    assert obj.to_dict("spec", "containers", 0) == POD["spec"]["containers"][0]


def test_a_view_gives_a_fresh_deep_copy_too() -> None:
    spec = pod()["spec"]
    mine = spec.to_dict()
    mine["containers"][0]["image"] = "changed"
    containers = spec["containers"].to_list()
    containers[1]["image"] = "changed"
    assert spec == POD["spec"]
    assert (type(mine), type(mine["containers"]), type(containers)) == (dict, list, list)


def test_a_copy_may_be_as_deep_as_msgspec_reads() -> None:
    obj = Object.from_bytes(b'{"a":' * 600 + b"1" + b"}" * 600)
    copied: Any = obj["a"].to_dict()
    depth = 1
    while isinstance(copied, dict):
        copied, depth = copied["a"], depth + 1
    assert depth == 600


@pytest.mark.parametrize("path", [("nope",), ("status",), ("spec", "containers"), ("spec", 0)])
def test_to_dict_of_what_is_no_object_is_a_key_error(path: tuple[str | int, ...]) -> None:
    with pytest.raises(KeyError, match=r"no object at \$"):
        pod().to_dict(*path)


def test_nothing_decoded_stays_with_the_object() -> None:
    obj = pod()
    assert obj["spec"] is not obj["spec"]
    assert Object.__slots__ == ("_head", "_raw")
    assert not hasattr(obj, "__dict__")


# --- identity ---------------------------------------------------------------------------------


def test_equal_means_the_same_version_of_the_same_object() -> None:
    without_kind = Object.from_dict({key: POD[key] for key in POD if key != "kind"})
    assert pod() == without_kind
    assert hash(pod()) == hash(without_kind)
    assert pod() != pod(resourceVersion="124")
    assert pod() != pod(uid="0b60")
    assert len({pod(), pod(), pod(uid="0b60")}) == 2


def test_without_uid_or_version_equal_means_the_same_bytes() -> None:
    for absent in ({"uid": ""}, {"resourceVersion": ""}):
        one, same, other = pod(**absent), pod(**absent), pod(**absent, generateName="x")
        assert one == same
        assert hash(one) == hash(same)
        assert one != other
        assert one != pod()


def test_an_object_never_equals_a_dict_and_is_always_true() -> None:
    assert pod() != POD
    assert pod() != pod().at()
    assert bool(Object.from_bytes(b"{}"))


# --- what surfaces late -----------------------------------------------------------------------


@pytest.mark.parametrize(
    "value, complaint",
    [
        ("1e999", "Number out of range"),
        ("1" * 5000, "Integer value out of range"),
        (r'"hunter2\ud800"', "malformed|truncated"),
        ("[" * 200_000 + "]" * 200_000, "nests deeper than this Python can read"),
    ],
    ids=["huge float", "huge integer", "half a surrogate", "deep"],
)
def test_what_cannot_be_read_is_a_decode_error_with_key_and_path(
    value: str, complaint: str
) -> None:
    obj = unread('{"spec":{"items":[0,' + value + "]}}")
    for read in (
        lambda: obj.at("spec", "items", 1),
        lambda: obj.to_dict("spec"),
        lambda: obj["spec"],
        lambda: obj.decode(dict),
    ):
        with pytest.raises(DecodeError, match=complaint) as caught:
            read()
        assert caught.value.key == "default/bad"
        assert str(caught.value).startswith("default/bad: ")
        assert CANARY not in "".join(traceback.format_exception(caught.value))


def test_a_decode_error_names_the_path_down_to_the_value() -> None:
    obj = unread('{"spec":{"items":[0,{"x":1e999}]}}')
    with pytest.raises(DecodeError) as caught:
        obj.at("spec", "items", 1)
    assert caught.value.path == "$.spec.items[1][...]"
    with pytest.raises(DecodeError) as caught:
        obj.at("spec", "items", 1, "x")
    assert caught.value.path == "$.spec.items[1].x"


def test_a_value_that_cannot_be_read_hides_no_other() -> None:
    obj = unread('{"spec":{"bad":1e999,"good":[{"a":1},2]}}')
    assert obj.at("spec", "good", 0, "a") == 1
    assert obj.at("spec", "good", 1, "a") is None
    assert list(obj) == ["spec"]


def test_bytes_that_are_not_utf_8_are_a_decode_error() -> None:
    obj = Object(b'{"a":"hunter2\xff"}', Head(metadata=ObjectMeta(name="bad")))
    with pytest.raises(DecodeError, match=r"bad: invalid UTF-8 at \$\.a"):
        obj["a"]


def test_bytes_that_are_not_json_are_a_decode_error_for_every_reader() -> None:
    obj = unread("{")
    for read in (lambda: obj.at("a"), lambda: len(obj), lambda: list(obj), obj.to_dict):
        with pytest.raises(DecodeError, match="default/bad: Input data was truncated"):
            read()


# --- as a model -------------------------------------------------------------------------------


class PodSpec(msgspec.Struct):
    node_name: str = msgspec.field(name="nodeName", default="")


class PodView(msgspec.Struct):
    spec: PodSpec


def test_decode_returns_the_model() -> None:
    assert pod().decode(PodView) == PodView(PodSpec("node-1"))
    assert pod().decode(dict[str, Any]) == POD


def test_an_object_decodes_to_itself() -> None:
    obj = pod()
    assert obj.decode(Object) is obj


def test_an_object_that_does_not_fit_the_model_is_a_decode_error() -> None:
    with pytest.raises(DecodeError) as caught:
        Object.from_dict({**POD, "spec": {"nodeName": 5}}).decode(PodView)
    assert caught.value.path == "$.spec.nodeName"
    assert str(caught.value) == "default/web-0: Expected `str`, got `int` at $.spec.nodeName"
    assert isinstance(caught.value, KinformError)


def test_importing_objects_loads_no_heavy_library() -> None:
    code = (
        "import sys, kinform.objects.object, kinform.resource, kinform.selectors\n"
        "print([m for m in ('aiohttp', 'yaml', 'pydantic', 'attr', 'asyncio') if m in sys.modules])"
    )
    run = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert run.stdout.strip() == "[]"
