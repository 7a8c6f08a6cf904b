"""Storage forms: packed objects read as raw ones do, from any thread, and keep nothing open."""

from __future__ import annotations

import copy
import ctypes
import gc
import random
import subprocess
import sys
import threading
from collections.abc import Mapping
from concurrent.futures import ThreadPoolExecutor
from types import MappingProxyType
from typing import Any, cast

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from kinform.errors import DecodeError
from kinform.meta import ObjectMeta, OwnerReference
from kinform.objects import storage
from kinform.objects.object import Object
from kinform.objects.packed import Packed
from kinform.objects.storage import Codec, Packer, Sharing, inherit, train
from kinform.sansio.wire.heads import Head

CANARY = "hunter2"


def content(number: int = 0, **metadata: Any) -> dict[str, Any]:
    return {
        "kind": "Pod",
        "apiVersion": "v1",
        "metadata": {
            "name": f"web-{number}",
            "namespace": "default",
            "uid": f"uid-{number}",
            "resourceVersion": str(100 + number),
            "generateName": "web-",
            "labels": {"app": "web", "tier": "frontend"},
            "annotations": {"note": CANARY, "number": str(number)},
            "ownerReferences": [{"apiVersion": "apps/v1", "kind": "ReplicaSet", "uid": "u"}],
            **metadata,
        },
        "spec": {"nodeName": f"node-{number % 7}", "containers": [{"image": f"web:{number}"}] * 3},
    }


def objects(count: int = 150) -> list[Object]:
    return [Object.from_dict(content(number)) for number in range(count)]


@pytest.fixture(scope="module")
def dictionary() -> bytes:
    trained = train([obj.raw for obj in objects()])
    assert trained
    return trained


@pytest.fixture(params=["dictionary", "none"])
def packer(request: pytest.FixtureRequest, dictionary: bytes) -> Packer:
    return Codec(dictionary if request.param == "dictionary" else b"").packer()


# --- packed objects ---------------------------------------------------------------------------


def test_a_packed_object_reads_as_before(packer: Packer) -> None:
    class View(msgspec.Struct):
        kind: str

    before, packed = Object.from_dict(content()), Object.from_dict(content())
    packed.pack(packer)
    assert (before.is_packed, packed.is_packed) == (False, True)
    assert packed.raw == before.raw
    assert packed.at("spec", "containers", -1, "image") == "web:0"
    assert packed.at("spec", "containers", "no", default=1) == 1
    assert packed["spec"] == before["spec"]
    assert (list(packed), len(packed)) == (list(before), 4)
    assert packed.to_dict() == before.to_dict() == content()
    assert packed.decode(View) == View("Pod")
    assert packed.metadata == before.metadata
    assert packed.annotations == before.annotations == {"note": CANARY, "number": "0"}
    assert (packed, hash(packed), repr(packed)) == (before, hash(before), repr(before))
    assert copy.deepcopy(packed) is packed


def test_objects_without_identity_are_equal_by_their_bytes_in_any_form(packer: Packer) -> None:
    one, same, other = (Object.from_dict(content(uid="", name=name)) for name in "aab")
    one.pack(packer)
    assert (one, hash(one)) == (same, hash(same))
    assert one != other


def test_to_another_process_goes_the_object_whatever_its_form(packer: Packer) -> None:
    obj = Object.from_dict(content())
    raw = obj.raw
    obj.pack(packer)
    rebuild, arguments = obj.__reduce__()
    assert arguments == (raw,)
    assert rebuild(*arguments) == obj


def test_packing_twice_is_packing_once(packer: Packer) -> None:
    obj = Object.from_dict(content())
    obj.pack(packer)
    obj.pack(packer)
    assert packer.objects == 1
    assert packer.raw_bytes == len(obj.raw)


def test_reading_keeps_nothing_decompressed(packer: Packer) -> None:
    obj = Object.from_dict(content())
    obj.pack(packer)
    assert obj.raw is not obj.raw
    assert isinstance(obj._raw, Packed)


def test_similar_objects_become_much_smaller(dictionary: bytes) -> None:
    packer = Codec(dictionary).packer()
    for obj in objects():
        obj.pack(packer)
    assert packer.objects == 150
    assert packer.packed_bytes < 0.25 * packer.raw_bytes


@pytest.mark.skipif(sys.platform != "linux", reason="asks the C library how much it gave")
def test_packed_bytes_keep_no_larger_buffer(packer: Packer) -> None:
    """The result of a compressor may be the start of a buffer as large as its input."""
    raw = bytes(100_000) + random.Random(1).randbytes(1_000)
    packed = packer.pack(raw)
    assert packed.unpack() == raw
    assert 512 < len(packed.data) < 2_000  # less would come from another allocator
    usable_size = ctypes.CDLL(None).malloc_usable_size
    usable_size.argtypes, usable_size.restype = [ctypes.c_void_p], ctypes.c_size_t
    assert usable_size(id(packed.data)) < 1.2 * len(packed.data)


def test_what_cannot_be_compressed_is_packed_all_the_same(packer: Packer) -> None:
    noise = bytes(range(256)) * 2
    assert packer.pack(noise).unpack() == noise
    assert packer.pack(b"{").unpack() == b"{"


@given(st.binary(min_size=1, max_size=2_000) | st.text(min_size=1).map(str.encode))
def test_any_bytes_come_back(raw: bytes) -> None:
    assert Codec().packer().pack(raw).unpack() == raw


def test_a_dictionary_is_not_had_from_too_little() -> None:
    assert train([]) == b""
    assert train([b"{}"] * 3) == b""


def test_the_codec_lives_as_long_as_an_object_needs_it(dictionary: bytes) -> None:
    packer: Packer | None = Codec(dictionary).packer()
    assert packer
    obj = Object.from_dict(content())
    raw = obj.raw
    obj.pack(packer)
    del packer
    gc.collect()
    assert obj.raw == raw


def test_a_repr_shows_no_payload(packer: Packer) -> None:
    obj = Object.from_dict(content())
    obj.pack(packer)
    assert CANARY not in f"{obj!r} {obj._raw!r} {obj.annotations!r}"
    assert repr(packer.pack(b"{}")).endswith("bytes>")


# --- damage -----------------------------------------------------------------------------------


def damaged(obj: Object, data: bytes) -> Object:
    packed = obj._raw
    assert isinstance(packed, Packed)
    bad = Object(b"", obj.head)
    bad._raw = Packed(packed.codec, data)
    return bad


def test_damaged_bytes_are_a_decode_error_that_names_the_object(packer: Packer) -> None:
    obj = Object.from_dict(content())
    obj.pack(packer)
    packed = obj._raw
    assert isinstance(packed, Packed)
    errors: list[DecodeError] = []
    for place in range(len(packed.data)):
        flipped = bytearray(packed.data)
        flipped[place] ^= 0x55
        try:
            assert damaged(obj, bytes(flipped)).raw == obj.raw  # some bits mean nothing
        except DecodeError as error:
            errors.append(error)
    assert len(errors) >= len(packed.data) - 5
    assert {error.key for error in errors} == {"default/web-0"}
    assert CANARY not in " ".join(map(str, errors))
    for read in (Object.to_dict, list, len, lambda bad: bad.at("spec"), dict):
        with pytest.raises(DecodeError, match=r"default/web-0: .* cannot be decompressed"):
            read(damaged(obj, packed.data[:-1]))


def test_bytes_of_another_dictionary_are_damaged_bytes(dictionary: bytes) -> None:
    packed = Codec(dictionary).packer().pack(Object.from_dict(content()).raw)
    with pytest.raises(DecodeError):
        Codec().decompress(packed.data)


# --- threads ----------------------------------------------------------------------------------


@pytest.mark.slow
def test_four_threads_may_read_and_pack_at_once(dictionary: bytes) -> None:
    """A decompressor that two threads share crashes the process: here it would."""
    packer = Codec(dictionary).packer()
    pods = objects(200)
    raws = [pod.raw for pod in pods]
    start = threading.Barrier(4)

    def hammer(offset: int) -> None:
        start.wait()
        for _ in range(20):
            for number in range(len(pods)):
                chosen = (number + offset) % len(pods)
                assert pods[chosen].raw == raws[chosen]
                if number % 3 == 0:
                    pods[chosen].pack(packer)
                assert pods[chosen].at("spec", "containers", 0, "image") == f"web:{chosen}"

    interval = sys.getswitchinterval()
    sys.setswitchinterval(1e-6)
    try:
        with ThreadPoolExecutor(4) as pool:
            list(pool.map(hammer, (0, 50, 100, 150)))
    finally:
        sys.setswitchinterval(interval)
    assert all(pod.is_packed for pod in pods)


def test_each_thread_has_a_decompressor_of_its_own(dictionary: bytes) -> None:
    codec = Codec(dictionary)
    mine = codec._local.decompressor
    with ThreadPoolExecutor(1) as pool:
        pool.submit(codec.decompress, Codec(dictionary).packer().pack(b"x").data).result()
        theirs = pool.submit(lambda: codec._local.decompressor).result()
    assert mine is not theirs


# --- annotations ------------------------------------------------------------------------------


@pytest.mark.parametrize("form", ["as it came", "packed"])
def test_packed_bytes_are_a_mapping_of_the_annotations(form: str) -> None:
    raw = Object.from_dict(content()).raw
    cold: Any = Packed(None, raw) if form == "as it came" else Codec().packer().pack(raw)
    warm = {"note": CANARY, "number": "0"}
    assert isinstance(cold, Mapping)
    assert cold == warm == cold
    assert cold != {"note": CANARY}
    assert cold != 1
    assert (len(cold), bool(cold), list(cold)) == (2, True, ["note", "number"])
    assert (cold["note"], cold.get("nope"), "number" in cold) == (CANARY, None, True)
    assert (list(cold.keys()), list(cold.values())) == (list(warm), list(warm.values()))
    assert dict(cold.items()) == dict(MappingProxyType(cold)) == warm
    with pytest.raises(KeyError, match="nope"):
        cold["nope"]


def test_packing_lets_go_of_the_bytes_that_annotations_were_read_from(packer: Packer) -> None:
    obj, bare = Object.from_dict(content()), Object.from_dict(content(annotations=None))
    for each in (obj, bare):
        each.pack(packer)
    assert cast("object", obj.metadata.raw_annotations) is obj._raw
    assert bare.metadata.annotations == {}
    assert obj.metadata.annotations["note"] == CANARY


def test_no_way_leads_from_packed_bytes_to_their_object(packer: Packer) -> None:
    """Metadata is invisible to the garbage collector: such a cycle would never be freed."""
    obj = Object.from_dict(content())
    obj.pack(packer)
    found = reachable(obj.metadata.raw_annotations)
    assert any(isinstance(one, Codec) for one in found)
    assert not any(isinstance(one, Object | ObjectMeta | Head) for one in found)


def reachable(root: object) -> list[object]:
    found: list[object] = []
    todo = [root]
    while todo:
        one = todo.pop()
        if any(one is known for known in found) or isinstance(one, type):
            continue
        found.append(one)
        todo.extend(gc.get_referents(one))
        if isinstance(one, msgspec.Struct):  # of which the collector may know nothing
            todo.extend(getattr(one, name) for name in one.__struct_fields__)
    return found


# --- sharing ----------------------------------------------------------------------------------


def test_equal_parts_of_metadata_become_one() -> None:
    sharing = Sharing()
    one, other = (Object.from_dict(content(number)) for number in (1, 2))
    for obj in (one, other):
        sharing.head(obj.head)
    mine, its = one.metadata, other.metadata
    assert mine.raw_labels is its.raw_labels
    assert mine.raw_owner_references is its.raw_owner_references
    assert mine.generate_name is its.generate_name
    assert mine.namespace is its.namespace
    assert one.kind is other.kind
    assert one.api_version is other.api_version
    assert (mine.name, its.name) == ("web-1", "web-2")


def test_equal_texts_are_shared_between_labels_and_owners_that_differ() -> None:
    sharing = Sharing()
    owner = {"apiVersion": "apps/v1", "kind": "ReplicaSet", "uid": "other"}
    one = Object.from_dict(content())
    other = Object.from_dict(
        content(labels={"app": "db", "tier": "frontend"}, ownerReferences=[owner])
    )
    for obj in (one, other):
        sharing.head(obj.head)
    mine, its = one.metadata, other.metadata
    assert (dict(its.labels), its.owner_references[0].uid) == (
        {"app": "db", "tier": "frontend"},
        "other",
    )
    assert mine.labels["tier"] is its.labels["tier"]
    assert mine.owner_references[0].kind is its.owner_references[0].kind


values = st.text(alphabet="ab", max_size=2)
maps = st.none() | st.dictionaries(values, values, max_size=3)
metadatas = st.fixed_dictionaries(
    {
        "name": values,
        "namespace": values,
        "labels": maps,
        "annotations": maps,
        "ownerReferences": st.none() | st.lists(st.fixed_dictionaries({"uid": values}), max_size=2),
    }
)


@given(st.lists(metadatas, max_size=8))
def test_sharing_and_packing_change_no_metadata(several: list[dict[str, Any]]) -> None:
    sharing, packer = Sharing(), Codec().packer()
    for each in several:
        before = Object.from_dict({"metadata": each})
        after = Object.from_dict({"metadata": each})
        sharing.head(after.head)
        after.pack(packer)
        assert after.head == before.head
        assert dict(after.labels) == dict(before.labels)
        assert list(after.labels) == list(before.labels)


def test_sharing_remembers_a_limited_number_of_things() -> None:
    sharing = Sharing()
    for number in range(40_000):
        text = str(number)
        owners = (OwnerReference(uid=text),)
        sharing.metadata(
            ObjectMeta(namespace=text, raw_labels={text: text}, raw_owner_references=owners)
        )
    for kept in (sharing._texts, sharing._labels, sharing._owners):
        assert len(kept) < 20_000


# --- the library ------------------------------------------------------------------------------


def test_without_the_library_the_error_says_what_to_install() -> None:
    program = """
import sys
sys.modules["zstandard"] = None  # as if it were not there
from kinform.objects import object as objects
from kinform.objects import storage
from kinform.errors import UsageError
try:
    storage.load_library()
except UsageError as error:
    print(error)
"""
    done = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, check=True, text=True
    )
    assert done.stdout.strip().endswith("pip install kinform[zstd]")


def test_with_the_library_there_is_no_error() -> None:
    storage.load_library()


def test_objects_do_not_load_the_library() -> None:
    program = "import sys, kinform.objects.object; print('zstandard' in sys.modules)"
    done = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, check=True, text=True
    )
    assert done.stdout.strip() == "False"


# --- from one version to the next -------------------------------------------------------------


def test_what_is_equal_is_inherited_and_what_is_not_stays() -> None:
    old, same = (Object.from_dict(content(1)).metadata for _ in range(2))
    inherit(old, same)
    assert same == old
    for field in ("name", "namespace", "uid", "generate_name", "raw_labels"):
        assert getattr(same, field) is getattr(old, field)
    assert same.raw_owner_references is old.raw_owner_references
    changes: dict[str, Any] = {
        "uid": "other",
        "resourceVersion": "7",
        "generateName": "net-",
        "creationTimestamp": "2026-01-01T00:00:00Z",
        "labels": {"app": "net"},
        "ownerReferences": None,
    }
    changed = Object.from_dict(content(1, **changes)).metadata
    inherit(old, changed)
    assert changed == Object.from_dict(content(1, **changes)).metadata
