from __future__ import annotations

import hashlib
import json
from collections import Counter
from pathlib import Path

import pytest
import zstandard

from bench import corpus, pods

COUNT = 400


@pytest.fixture(scope="module")
def made() -> list[bytes]:
    return list(corpus.pods(COUNT))


@pytest.fixture(scope="module")
def parsed(made: list[bytes]) -> list[dict]:
    return [json.loads(pod) for pod in made]


def test_pods_are_compact_json_without_kind(made: list[bytes], parsed: list[dict]) -> None:
    assert made == [json.dumps(pod, separators=(",", ":")).encode() for pod in parsed]
    assert {frozenset(pod) for pod in parsed} == {frozenset({"metadata", "spec", "status"})}


def test_fields_that_are_overwritten_have_a_fixed_width(parsed: list[dict]) -> None:
    for number, pod in enumerate(parsed):
        metadata = pod["metadata"]
        assert metadata["resourceVersion"] == str(1_000_000_000 + number)
        assert metadata["annotations"][corpus.SENT] == "0" * 19
        assert len(metadata["uid"]) == 36
        assert metadata["name"].endswith("-" + corpus.name_suffix(number).decode())


def test_names_and_uids_are_distinct(parsed: list[dict]) -> None:
    assert len({(pod["metadata"]["namespace"], pod["metadata"]["name"]) for pod in parsed}) == COUNT
    assert len({pod["metadata"]["uid"] for pod in parsed}) == COUNT


def test_name_suffixes_are_distinct_for_millions_of_pods() -> None:
    numbers = range(0, 14_000_000, 137)
    assert len({corpus.name_suffix(number) for number in numbers}) == len(numbers)
    assert len({corpus.uid_tail(number) for number in numbers}) == len(numbers)


def test_there_are_twenty_pods_on_each_node(parsed: list[dict]) -> None:
    nodes = Counter(pod["spec"]["nodeName"] for pod in parsed)
    assert set(nodes.values()) == {corpus.PODS_PER_NODE}


def test_pods_of_a_replica_set_have_the_same_owner_and_labels(parsed: list[dict]) -> None:
    sets: dict[str, set[str]] = {}
    for pod in parsed:
        metadata = pod["metadata"]
        owner = metadata["ownerReferences"][0]
        assert metadata["name"].startswith(owner["name"] + "-")
        assert metadata["generateName"] == owner["name"] + "-"
        assert owner["uid"] in json.dumps(metadata["managedFields"])
        sets.setdefault(owner["uid"], set()).add(json.dumps(metadata["labels"]))
    assert all(len(labels) == 1 for labels in sets.values())
    assert 2 < COUNT / len(sets) < 6


def test_there_are_at_least_fifty_applications(parsed: list[dict]) -> None:
    apps = {
        (pod["metadata"]["namespace"], pod["metadata"]["labels"]["app.kubernetes.io/name"])
        for pod in parsed
    }
    assert len(apps) >= 50


def test_pods_compress_like_those_they_are_made_of(made: list[bytes]) -> None:
    compressor = zstandard.ZstdCompressor()
    original = b"".join(pods.pods(COUNT, typed=False))
    ratio = len(compressor.compress(b"".join(made))) / len(compressor.compress(original))
    assert 0.8 < ratio < 1.1  # labels and owners are shared here


@pytest.mark.slow
def test_same_seed_gives_the_same_pods(made: list[bytes]) -> None:
    assert made == list(corpus.pods(COUNT))
    assert made[0] != next(corpus.pods(COUNT, seed=2))


def test_pods_of_the_other_benchmarks_are_as_they_were() -> None:
    digest = hashlib.sha256(b"".join(pods.pods(20))).hexdigest()
    assert digest == "3d47624e52ea32b5aaa0801fa5cdd18c50dfa4e28a23ea86d667312bfabc68cb"


@pytest.mark.slow
def test_file_has_the_pods_and_is_written_once(made: list[bytes], tmp_path: Path) -> None:
    file = corpus.json_file(COUNT, folder=tmp_path / "new")
    written = file.stat().st_mtime_ns
    assert file.name == f"pods-1-{COUNT}.json.bin"
    assert made == list(corpus.records(file))
    assert file == corpus.json_file(COUNT, folder=tmp_path / "new")
    assert written == file.stat().st_mtime_ns
    assert [file] == list(file.parent.iterdir())


def test_nothing_is_left_of_a_file_that_could_not_be_finished(tmp_path: Path) -> None:
    with pytest.raises(ZeroDivisionError):
        corpus._write(tmp_path / "file", (b"%d" % (1 // n) for n in (1, 0)))
    assert list(tmp_path.iterdir()) == []


def test_file_that_ends_within_a_record_is_refused(tmp_path: Path) -> None:
    (tmp_path / "file").write_bytes(b"\0\0\0\5abc")
    with pytest.raises(ValueError, match="ends within a record"):
        list(corpus.records(tmp_path / "file"))


@pytest.mark.slow
def test_zstd_size_is_that_of_the_pods_alone_and_is_kept(made: list[bytes], tmp_path: Path) -> None:
    file = corpus.json_file(20, folder=tmp_path)
    size = corpus.zstd_size(file)
    plain = zstandard.ZstdCompressor(level=19).compress(b"".join(corpus.records(file)))
    assert abs(size - len(plain)) < 100  # whether the size is known beforehand makes a difference
    file.unlink()
    assert size == corpus.zstd_size(file)
