"""The sidecar: its folder is equal to the cluster, and nothing else is touched."""

from __future__ import annotations

import asyncio
import base64
import contextlib
import itertools
import json
import stat
import sys
import tempfile
from collections.abc import AsyncGenerator, Mapping
from pathlib import Path
from random import Random

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from examples import configmap_sidecar as program
from examples.configmap_sidecar import ANNOTATION, MANIFEST, File, Folder, ManifestError, Report
from kinform import Client, Object
from kinform.apiserver import APIServer
from kinform.clock import offload
from kinform.testing import APIServerThread, ControlPlane, in_virtual_time
from tests.examples.support_programs import (
    RECOVERED,
    SETTLED,
    check_that_errors_are_one_line,
    outage,
    run_program,
)

LABELS = {"app": "boards"}


def files_in(folder: Path) -> dict[str, str]:
    """Return what all files hold, by path, without the manifest."""
    found = {
        str(path.relative_to(folder)): path.read_text(encoding="utf-8")
        for path in sorted(folder.rglob("*"))
        if path.is_file() and not path.is_symlink()
    }
    found.pop(MANIFEST, None)
    return found


def config_map(name: str, data: Mapping[str, str], *, folder: str = "") -> dict[str, object]:
    annotations = {ANNOTATION: folder} if folder else {}
    metadata = {"name": name, "labels": LABELS, "annotations": annotations}
    return {"metadata": metadata, "data": data}


class Scene:
    """A server, a client, and a sidecar that runs from time to time."""

    def __init__(self, server: APIServer, client: Client, folder: Path) -> None:
        self.server = server
        self.folder = folder
        self.client = client
        self.maps = client.resource("v1/configmaps", namespace="default")
        self.reports: list[Report] = []

    @contextlib.asynccontextmanager
    async def running(self, *, secrets: bool = False) -> AsyncGenerator[None]:
        kinds = {"configmap": "v1/configmaps"} | ({"secret": "v1/secrets"} if secrets else {})
        informers = {
            kind: self.client.informer(name, namespace="default", label_selector=LABELS)
            for kind, name in kinds.items()
        }

        async def changed(report: Report) -> None:
            self.reports.append(report)

        sidecar = program.Sidecar(informers, Folder(self.folder), on_change=changed)
        async with asyncio.TaskGroup() as group:
            task = group.create_task(sidecar.run())
            await asyncio.sleep(SETTLED)
            yield
            await asyncio.sleep(SETTLED)
            task.cancel()


@contextlib.asynccontextmanager
async def scene(folder: Path) -> AsyncGenerator[Scene]:
    async with APIServer(port=None) as server, server.connect() as client:
        yield Scene(server, client, folder)


# --- following


@in_virtual_time
async def test_files_come_change_and_go_with_their_keys(tmp_path: Path) -> None:
    async with scene(tmp_path) as here, here.running():
        await here.maps.create(config_map("a", {"one": "1", "two": "2"}))
        await here.maps.create({"metadata": {"name": "other"}, "data": {"three": "3"}})
        await asyncio.sleep(SETTLED)
        assert files_in(tmp_path) == {"one": "1", "two": "2"}
        await here.maps.patch("a", {"data": {"one": "eins", "two": None}})
        await asyncio.sleep(SETTLED)
        assert files_in(tmp_path) == {"one": "eins"}
        await here.maps.delete("a")
        await asyncio.sleep(SETTLED)
        assert files_in(tmp_path) == {}


@in_virtual_time
async def test_an_object_that_loses_its_label_loses_its_files(tmp_path: Path) -> None:
    async with scene(tmp_path) as here, here.running():
        await here.maps.create(config_map("a", {"one": "1"}))
        await asyncio.sleep(SETTLED)
        assert files_in(tmp_path) == {"one": "1"}
        await here.maps.patch("a", {"metadata": {"labels": {"app": "another"}}})
        await asyncio.sleep(SETTLED)
        assert files_in(tmp_path) == {}


@in_virtual_time
async def test_binary_data_is_written_as_it_is(tmp_path: Path) -> None:
    content = bytes(range(256))
    async with scene(tmp_path) as here, here.running():
        body = config_map("a", {}) | {"binaryData": {"logo": base64.b64encode(content).decode()}}
        await here.maps.create(body)
    assert (tmp_path / "logo").read_bytes() == content


@pytest.mark.parametrize("compacts", [False, True])
@in_virtual_time
async def test_a_delete_that_was_missed_removes_the_file_after_the_outage(
    tmp_path: Path, compacts: bool
) -> None:
    async with scene(tmp_path) as here, here.running():
        await here.maps.create(config_map("a", {"one": "1"}))
        await here.maps.create(config_map("b", {"two": "2"}))
        await asyncio.sleep(SETTLED)
        async with outage(here.server, "configmaps", compacts=compacts):
            await here.maps.delete("a")
            await here.maps.patch("b", {"data": {"two": "zwei"}})
            await asyncio.sleep(SETTLED)
            assert files_in(tmp_path) == {"one": "1", "two": "2"}  # an outage removes nothing
        assert files_in(tmp_path) == {"two": "zwei"}


@in_virtual_time
async def test_what_was_deleted_while_it_did_not_run_is_removed_at_its_start(
    tmp_path: Path,
) -> None:
    (tmp_path / "mine").write_text("mine", encoding="utf-8")
    async with scene(tmp_path) as here:
        async with here.running():
            await here.maps.create(config_map("a", {"one": "1"}, folder="deep/down"))
            await here.maps.create(config_map("b", {"two": "2"}))
        await here.maps.delete("a")
        assert files_in(tmp_path) == {"deep/down/one": "1", "mine": "mine", "two": "2"}
        async with here.running():
            assert files_in(tmp_path) == {"mine": "mine", "two": "2"}


@in_virtual_time
async def test_nothing_is_removed_before_every_kind_is_listed(tmp_path: Path) -> None:
    async with scene(tmp_path) as here:
        secrets = here.client.resource("v1/secrets", namespace="default")
        metadata = {"name": "s", "labels": LABELS}
        async with here.running(secrets=True):
            await secrets.create({"metadata": metadata, "stringData": {"key": "x"}})
        async with outage(here.server, "secrets"), here.running(secrets=True):
            await asyncio.sleep(RECOVERED)
            assert files_in(tmp_path) == {"key": "x"}


@in_virtual_time
async def test_many_changes_are_told_once(tmp_path: Path) -> None:
    async with scene(tmp_path) as here, here.running():
        for number in range(50):
            await here.maps.create(config_map(f"m-{number}", {f"k-{number}": "x"}))
        await asyncio.sleep(SETTLED)
        assert [len(report.written) for report in here.reports] == [50]
        await here.maps.patch("m-0", {"metadata": {"annotations": {"unrelated": "yes"}}})
        await asyncio.sleep(SETTLED)
        assert len(here.reports) == 1


@in_virtual_time
async def test_it_looks_at_the_folder_when_something_changes_and_not_all_the_time(
    tmp_path: Path,
) -> None:
    async with scene(tmp_path) as here, here.running():
        await here.maps.create(config_map("a", {"one": "1"}))
        await asyncio.sleep(SETTLED)
        (tmp_path / "one").write_text("by hand", encoding="utf-8")
        await asyncio.sleep(3600)
        assert files_in(tmp_path) == {"one": "by hand"}
        await here.maps.create(config_map("b", {"two": "2"}))
        await asyncio.sleep(SETTLED)
        assert files_in(tmp_path) == {"one": "1", "two": "2"}


@in_virtual_time
async def test_secrets_are_for_their_owner_alone_and_never_printed(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    async with scene(tmp_path) as here, here.running(secrets=True):
        secrets = here.client.resource("v1/secrets", namespace="default")
        metadata = {"name": "s", "labels": LABELS}
        await secrets.create({"metadata": metadata, "stringData": {"password": "hunter2"}})
        await asyncio.sleep(2)
        await here.maps.create(config_map("a", {"password": "refused", "open": "x"}))
    assert files_in(tmp_path) == {"password": "hunter2", "open": "x"}
    assert stat.S_IMODE((tmp_path / "password").stat().st_mode) == 0o600
    assert stat.S_IMODE((tmp_path / "open").stat().st_mode) == 0o644
    said = capsys.readouterr()
    assert "wrote password of secret default/s" in said.out
    assert "hunter2" not in said.out + said.err
    assert "refused" not in said.out + said.err
    assert "hunter2" not in repr(File(b"hunter2", 0o600, "s"))


@in_virtual_time
async def test_a_file_that_is_in_the_way_is_told_once_and_tried_again(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "one").write_text("mine", encoding="utf-8")
    async with scene(tmp_path) as here, here.running():
        await here.maps.create(config_map("a", {"one": "1"}))
        await asyncio.sleep(60)
        assert files_in(tmp_path) == {"one": "mine"}
        assert capsys.readouterr().err == "problem: one: a file of another program has that name\n"
        (tmp_path / "one").unlink()
        await asyncio.sleep(15)
        assert files_in(tmp_path) == {"one": "1"}


@in_virtual_time
async def test_an_object_that_wants_to_be_elsewhere_is_left_out(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    root = tmp_path / "root"
    async with scene(root) as here, here.running():
        for number, folder in enumerate(("..", "/tmp", "a/../../b")):
            await here.maps.create(config_map(f"bad-{number}", {"one": "1"}, folder=folder))
        await here.maps.create(config_map("good", {"two": "2"}, folder="./a//b/"))
    assert files_in(tmp_path).keys() == {f"root/{MANIFEST}", "root/a/b/two"}
    assert capsys.readouterr().err.count("is not a path below the target folder\n") == 3


# --- two objects, one file


@in_virtual_time
async def test_the_older_object_has_the_file_and_the_younger_inherits_it(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    async with scene(tmp_path) as here:
        await here.maps.create(config_map("z-older", {"same": "older"}))
        await asyncio.sleep(2)
        async with here.running():
            await here.maps.create(config_map("a-younger", {"same": "younger"}))
            await asyncio.sleep(SETTLED)
            assert files_in(tmp_path) == {"same": "older"}
            await here.maps.delete("z-older")
            await asyncio.sleep(SETTLED)
            assert files_in(tmp_path) == {"same": "younger"}
    said = capsys.readouterr().err
    problem = "problem: configmap default/a-younger: same is taken by configmap default/z-older\n"
    assert said == problem  # once


def named(name: str, folder: str, key: str) -> tuple[str, Object]:
    metadata = {"namespace": "n", "name": name, "annotations": {ANNOTATION: folder}}
    return "configmap", Object.from_dict({"metadata": metadata, "data": {key: "x"}})


def test_a_file_and_a_folder_of_one_name_are_rivals_too() -> None:
    files, problems = program.plan([named("a", "x/y", "file"), named("b", "", "x")])
    assert list(files) == ["x/y/file"]
    assert problems == ["configmap n/b: x is taken by a folder"]
    files, problems = program.plan([named("b", "x/y", "file"), named("a", "", "x")])
    assert list(files) == ["x"]
    assert problems == ["configmap n/b: x/y/file is taken by configmap n/a"]


@pytest.mark.parametrize("folder", ["a\nb", "a\0", "\x1b[2J"])
def test_a_folder_that_cannot_be_printed_is_refused(folder: str) -> None:
    files, problems = program.plan([named("a", folder, "x")])
    assert not files
    assert len(problems) == 1
    assert problems[0].isprintable()


OUTSIDE = {"..", "/a", "c/../..", "a/.kinform-x", ".kinform-x"}
names = st.sampled_from(["a", "b", "c"])
objects = st.lists(
    st.tuples(
        st.sampled_from(["configmap", "secret"]),
        st.sampled_from(["n-1", "n-2"]),
        names,
        st.sampled_from(["", "a", "a/b", "b", "..", "/a", "c/../..", ".", "a/.kinform-x"]),
        st.dictionaries(st.sampled_from(["a", "b", "c", "..", ".kinform-x"]), st.just("eA==")),
        st.sampled_from([None, "2026-01-01T00:00:00Z", "2026-01-01T00:00:01Z"]),
    ),
    max_size=5,
    unique_by=lambda one: one[:3],
)


@given(objects, st.randoms(use_true_random=False))
def test_a_plan_does_not_depend_on_order_and_stays_inside(
    drawn: list[tuple[str, str, str, str, dict[str, str], str | None]], random: Random
) -> None:
    made = [
        (
            kind,
            Object.from_dict(
                {
                    "metadata": {
                        "namespace": namespace,
                        "name": name,
                        "annotations": {ANNOTATION: folder},
                        "creationTimestamp": created,
                    },
                    "data": data,
                }
            ),
        )
        for kind, namespace, name, folder, data, created in drawn
    ]
    files, problems = program.plan(made)
    random.shuffle(made)
    assert (files, problems) == program.plan(made)
    whole = [data for *_, folder, data, _ in drawn if folder not in OUTSIDE]
    refused = sum(bool(OUTSIDE.intersection(data)) for data in whole)
    refused += sum(bool(data) for *_, folder, data, _ in drawn if folder in OUTSIDE)
    kept = sum(len(data) for data in whole if not OUTSIDE.intersection(data))
    assert len(files) + len(problems) == kept + refused
    for path in files:
        parts = path.split("/")
        assert not {"", ".", ".."}.intersection(parts)
        assert not any(part.startswith(program.OURS) for part in parts)
    for one, other in itertools.permutations(files, 2):
        assert not other.startswith(f"{one}/"), "a file where a folder is needed"


# --- the folder


def file(text: str, mode: int = 0o644) -> File:
    return File(text.encode(), mode, "a test")


def without_files_as_folders(step: dict[str, str]) -> dict[str, str]:
    return {
        path: text for path, text in step.items() if not {f"{path}/a", f"{path}/y/a"} & step.keys()
    }


paths = st.sampled_from(["a", "a/a", "b", "x/a", "x/y", "x/y/a", "x/y/y/a", "mine", "x/mine"])
plans = st.lists(
    st.dictionaries(paths, st.sampled_from(["1", "2"])).map(without_files_as_folders), max_size=6
)


@pytest.mark.slow
@settings(max_examples=60)
@example([{"a": "1"}, {"a/a": "1"}, {"a": "1"}, {"x/y": "1"}, {"x/y/y/a": "1"}, {"x/y": "1"}])
@given(plans)
def test_the_folder_becomes_every_plan_beside_what_others_have_there(
    steps: list[dict[str, str]],
) -> None:
    with tempfile.TemporaryDirectory() as place:
        root = Path(place)
        (root / "x").mkdir()
        foreign = {"mine": "untouched", "x/mine": "untouched"}
        for path, text in foreign.items():
            (root / path).write_text(text, encoding="utf-8")
        before = foreign
        for step in steps:
            report = Folder(root).make_equal({path: file(text) for path, text in step.items()})
            assert files_in(root) == step | foreign
            assert len(report.problems) == len(foreign.keys() & step.keys())
            is_other = files_in(root) != before
            assert bool(report.written or report.removed) == is_other
            before = files_in(root)
        Folder(root).make_equal({})
        assert files_in(root) == foreign
        assert [path for path in root.rglob("*") if path.is_dir()] == [root / "x"]


def test_a_file_is_replaced_and_never_written_into(tmp_path: Path) -> None:
    folder = Folder(tmp_path)
    folder.make_equal({"a": file("old")})
    (tmp_path / "reader").hardlink_to(tmp_path / "a")  # like a reader that has it open
    folder.make_equal({"a": file("new")})
    assert files_in(tmp_path) == {"a": "new", "reader": "old"}


def test_a_file_that_somebody_changed_is_restored(tmp_path: Path) -> None:
    folder = Folder(tmp_path)
    folder.make_equal({"a": file("right", 0o600)})
    (tmp_path / "a").write_text("wrong", encoding="utf-8")
    assert folder.make_equal({"a": file("right", 0o600)}).written == ["a"]
    (tmp_path / "a").chmod(0o666)
    assert folder.make_equal({"a": file("right", 0o600)}).written == ["a"]
    assert stat.S_IMODE((tmp_path / "a").stat().st_mode) == 0o600


@pytest.mark.parametrize("wanted", ["link", "link/file", "deep/link/file"])
def test_no_link_leads_out_of_the_folder(tmp_path: Path, wanted: str) -> None:
    outside, root = tmp_path / "outside", tmp_path / "root"
    outside.mkdir()
    (outside / "file").write_text("safe", encoding="utf-8")
    (root / "deep").mkdir(parents=True)
    for place in (root, root / "deep"):
        (place / "link").symlink_to(outside)
    report = Folder(root).make_equal({wanted: file("stolen")})
    assert files_in(outside) == {"file": "safe"}
    assert len(report.problems) == 1
    assert not report.written


def test_a_folder_of_ours_that_became_a_link_is_not_followed_to_remove(tmp_path: Path) -> None:
    outside, root = tmp_path / "outside", tmp_path / "root"
    folder = Folder(root)
    folder.make_equal({"x/file": file("ours")})
    (root / "x").rename(tmp_path / "elsewhere")
    outside.mkdir()
    (outside / "file").write_text("safe", encoding="utf-8")
    (root / "x").symlink_to(outside)
    report = folder.make_equal({})
    assert files_in(outside) == {"file": "safe"}
    assert len(report.problems) == 1


def test_a_file_of_ours_that_became_a_link_is_replaced_not_written_through(tmp_path: Path) -> None:
    outside, root = tmp_path / "outside", tmp_path / "root"
    folder = Folder(root)
    folder.make_equal({"a": file("1")})
    outside.write_text("safe", encoding="utf-8")
    (root / "a").unlink()
    (root / "a").symlink_to(outside)
    assert folder.make_equal({"a": file("2")}).written == ["a"]
    assert files_in(root) == {"a": "2"}
    assert outside.read_text(encoding="utf-8") == "safe"


def test_what_a_kill_has_left_half_written_is_cleared_away(tmp_path: Path) -> None:
    """Claimed in the manifest, and partly written beside its place."""
    folder = Folder(tmp_path)
    folder.make_equal({"a": file("1")})
    (tmp_path / "a").rename(tmp_path / program.temporary_for("a"))
    assert folder.make_equal({"a": file("1")}).written == ["a"]
    assert files_in(tmp_path) == {"a": "1"}
    (tmp_path / program.temporary_for("a")).write_text("half", encoding="utf-8")
    assert folder.make_equal({}).removed == ["a"]
    assert files_in(tmp_path) == {}


def test_what_was_written_before_a_crash_is_known_to_be_ours(tmp_path: Path) -> None:
    broken = File("no bytes", 0o644, "a test")  # type: ignore[arg-type]
    with pytest.raises(TypeError):
        Folder(tmp_path).make_equal({"a": file("1"), "b": broken})
    assert (tmp_path / "a").exists()
    Folder(tmp_path).make_equal({})
    assert list(tmp_path.iterdir()) == [tmp_path / MANIFEST]


@pytest.mark.parametrize("content", ["[", "{}", '["../../outside"]', '["/outside"]', '["a/../b"]'])
def test_a_manifest_that_is_not_ours_removes_nothing(tmp_path: Path, content: str) -> None:
    root = tmp_path / "deep" / "root"
    root.mkdir(parents=True)
    (tmp_path / "outside").write_text("safe", encoding="utf-8")
    (root / MANIFEST).write_text(content, encoding="utf-8")
    with pytest.raises(ManifestError, match="remove it and the files that it names"):
        Folder(root).make_equal({})
    assert (tmp_path / "outside").exists()


def test_one_file_that_cannot_be_written_holds_up_no_other(tmp_path: Path) -> None:
    report = Folder(tmp_path).make_equal({"x" * 300: file("1"), "good": file("2")})
    assert report.written == ["good"]
    assert len(report.problems) == 1
    assert json.loads((tmp_path / MANIFEST).read_text(encoding="utf-8"))


# --- the command


async def test_a_command_is_run_and_its_failures_are_told(
    tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    await program.call([sys.executable, "-c", f"open({str(tmp_path / 'ran')!r}, 'w').close()"])
    assert (tmp_path / "ran").exists()
    await program.call([sys.executable, "-c", "raise SystemExit(3)"])
    await program.call([str(tmp_path / "absent")])
    first, second = capfd.readouterr().err.splitlines()
    assert first.endswith("ended with 3")
    assert second == f"problem: {tmp_path / 'absent'}: No such file or directory"


# --- the program


@pytest.mark.slow
def test_its_demo_ends_well_where_no_cluster_is(tmp_path: Path) -> None:
    done = run_program("configmap_sidecar.py", "--demo", home=tmp_path)
    assert done.returncode == 0, done.stderr
    assert done.stdout.splitlines()[-1] == "removed boards/cpu.json"
    check_that_errors_are_one_line("configmap_sidecar.py", "--demo", home=tmp_path)


@pytest.mark.slow
async def test_it_makes_the_folder_equal_once_and_runs_the_command(
    kinform_apiserver: APIServerThread, tmp_path: Path
) -> None:
    kubeconfig, folder, marker = tmp_path / "config", tmp_path / "boards", tmp_path / "changed"
    kubeconfig.write_text(kinform_apiserver.kubeconfig(), encoding="utf-8")
    async with kinform_apiserver.connect() as client:
        maps = client.resource("v1/configmaps", namespace="default")
        await maps.create(config_map("a", {"one": "1"}))
    arguments = ["--once", "--label", "app=boards", "--folder", str(folder)]
    arguments += ["--on-change", f"touch '{marker}'"]
    done = await offload(run_program, "configmap_sidecar.py", *arguments, kubeconfig=kubeconfig)
    assert done.returncode == 0, done.stderr
    assert done.stdout == "wrote one of configmap default/a\n"
    assert files_in(folder) == {"one": "1"}
    assert marker.exists()


@pytest.mark.e2e
@pytest.mark.slow
def test_its_demo_ends_well_on_a_control_plane(
    kinform_control_plane: ControlPlane, kinform_namespace: str, tmp_path: Path
) -> None:
    kubeconfig = kinform_control_plane.kubeconfig_path
    done = run_program(
        "configmap_sidecar.py", "--demo", "-n", kinform_namespace, kubeconfig=kubeconfig
    )
    assert done.returncode == 0, done.stderr
    assert done.stdout.splitlines()[-1] == "removed boards/cpu.json"
