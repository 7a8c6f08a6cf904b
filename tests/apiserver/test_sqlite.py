"""The data file: what was acknowledged is in it, and what is not ours stays as it is."""

from __future__ import annotations

import asyncio
import contextlib
import os
import random
import sqlite3
import stat
import subprocess
import sys
import tempfile
from collections.abc import Callable, Mapping
from pathlib import Path

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from kinform.apiserver import APIServer
from kinform.apiserver.endpoints.messages import Chunks, ServerRequest, ServerResponse, apart
from kinform.apiserver.serializer.json_values import Json
from kinform.apiserver.storage.journal import Journal
from kinform.apiserver.storage.sqlite import FORMAT, Database, WriteBatch
from kinform.apiserver.storage.versioned_store import (
    Change,
    ObjectDraft,
    RevisionExpired,
    Storage,
    Stored,
)
from kinform.clock import offload
from kinform.errors import UsageError
from kinform.testing import in_virtual_time
from kinform.testing.virtual_time import run

CONFIG_MAPS = "/api/v1/namespaces/default/configmaps"
DEFINITIONS = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"
SHOPS = "/apis/example.com/v1/shops"
DEFINITION: Json = {
    "metadata": {"name": "shops.example.com"},
    "spec": {
        "group": "example.com",
        "scope": "Cluster",
        "names": {"plural": "shops", "kind": "Shop"},
        "versions": [
            {
                "name": "v1",
                "served": True,
                "storage": True,
                "schema": {"openAPIV3Schema": {"type": "object"}},
            }
        ],
    },
}


def server(path: Path, *, seed: int | None = None) -> APIServer:
    return APIServer(port=None, token="x", data=path, seed=seed)


async def answer(
    api: APIServer, method: str, target: str, body: Json | None = None
) -> ServerResponse:
    headers = {"authorization": "Bearer x", "content-type": "application/json"}
    content = b"" if body is None else msgspec.json.encode(body)
    request = ServerRequest.of(method, target, headers=headers, body=content)
    return await api.application.handle(request)


async def send(api: APIServer, method: str, target: str, body: Json | None = None) -> Json:
    response = await answer(api, method, target, body)
    assert isinstance(response.body, bytes)
    found: Json = msgspec.json.decode(response.body)
    assert response.status < 300, found
    return found


def named(name: str, **data: str) -> Json:
    return {"metadata": {"name": name}, "data": data}


Picture = tuple[int, Mapping[str, list[Stored]]]


def picture(storage: Storage) -> Picture:
    """Return all that a storage holds now."""
    tables = {name: list(storage.table(name).now()) for name in sorted(storage.resources())}
    return storage.revision, {name: rows for name, rows in tables.items() if rows}


# --- a server that is started again


@in_virtual_time
async def test_a_later_server_has_the_same_objects_and_goes_on_counting(tmp_path: Path) -> None:
    path = tmp_path / "a.db"
    async with server(path) as api:
        first = await send(api, "POST", CONFIG_MAPS, named("a"))
        await send(api, "POST", CONFIG_MAPS, named("b"))
        await send(api, "DELETE", f"{CONFIG_MAPS}/b")
        before = picture(api.cluster.storage)
    async with server(path) as api:
        assert picture(api.cluster.storage) == before
        assert await send(api, "GET", f"{CONFIG_MAPS}/a") == first
        second = await send(api, "POST", CONFIG_MAPS, named("c"))
    assert int(second["metadata"]["resourceVersion"]) == before[0] + 1


@in_virtual_time
async def test_custom_kinds_are_served_again_and_owners_are_known(tmp_path: Path) -> None:
    path = tmp_path / "a.db"
    async with server(path) as api:
        await send(api, "POST", DEFINITIONS, DEFINITION)
        shop: Json = {"apiVersion": "example.com/v1", "kind": "Shop", "metadata": {"name": "s"}}
        owner = await send(api, "POST", SHOPS, shop)
        reference = {"apiVersion": "example.com/v1", "kind": "Shop", "name": "s"}
        reference["uid"] = owner["metadata"]["uid"]
        owned = {"metadata": {"name": "owned", "ownerReferences": [reference]}}
        await send(api, "POST", CONFIG_MAPS, owned)
    async with server(path) as api:
        assert await send(api, "GET", f"{SHOPS}/s") == owner
        await send(api, "DELETE", f"{SHOPS}/s")
        assert (await answer(api, "GET", f"{CONFIG_MAPS}/owned")).status == 404


@in_virtual_time
async def test_a_watch_from_an_earlier_run_gets_a_410(tmp_path: Path) -> None:
    path = tmp_path / "a.db"
    async with server(path) as api:
        old = await send(api, "POST", CONFIG_MAPS, named("a"))
        last = await send(api, "POST", CONFIG_MAPS, named("b"))
    async with server(path) as api:
        versions = [obj["metadata"]["resourceVersion"] for obj in (old, last)]
        events = [await first_event(api, version) for version in versions]
    assert events[0]["type"] == "ERROR"
    assert events[0]["object"]["code"] == 410
    assert events[1]["type"] == "ADDED"


async def first_event(api: APIServer, version: str) -> Json:
    target = f"{CONFIG_MAPS}?watch=1&resourceVersion={version}"
    response = await answer(api, "GET", target)
    assert not isinstance(response.body, bytes)
    async with contextlib.aclosing(apart(response.body)) as chunks:
        await send(api, "POST", CONFIG_MAPS, {"metadata": {"generateName": "later-"}})
        event: Json = msgspec.json.decode(await anext(chunks))
    return event


@in_virtual_time
async def test_the_same_seed_gives_other_uids_after_a_restart(tmp_path: Path) -> None:
    path, uids = tmp_path / "a.db", list[str]()
    for turn in range(3):
        async with server(path, seed=7) as api:
            obj = await send(api, "POST", CONFIG_MAPS, named(f"a{turn}"))
            uids.append(obj["metadata"]["uid"])
    assert len(set(uids)) == 3


@in_virtual_time
async def test_a_restored_past_is_what_a_later_server_begins_with(tmp_path: Path) -> None:
    path = tmp_path / "a.db"
    async with server(path) as api:
        await send(api, "POST", CONFIG_MAPS, named("kept"))
        revision = api.cluster.storage.revision
        await send(api, "POST", CONFIG_MAPS, named("undone"))
        await send(api, "DELETE", f"{CONFIG_MAPS}/kept")
        api.restore(revision)
        api.compact()
        before = picture(api.cluster.storage)
    async with server(path) as api:
        assert picture(api.cluster.storage) == before
        assert (await answer(api, "GET", f"{CONFIG_MAPS}/kept")).status == 200
        assert (await answer(api, "GET", f"{CONFIG_MAPS}/undone")).status == 404
        with pytest.raises(UsageError):
            api.restore(revision - 1)


async def test_a_server_with_sockets_and_threads_keeps_its_objects(tmp_path: Path) -> None:
    path = tmp_path / "a.db"
    async with APIServer(data=str(path)) as api, api.connect() as client:
        await client.resource("v1/configmaps", namespace="default").create(named("a"))
    async with APIServer(data=str(path)) as api, api.connect() as client:
        found = await client.resource("v1/configmaps", namespace="default").get("a")
    assert found is not None


@in_virtual_time
async def test_a_new_file_is_for_its_owner_only(tmp_path: Path) -> None:
    path = tmp_path / "a.db"
    async with server(path):
        modes = {it.name: stat.S_IMODE(it.stat().st_mode) for it in tmp_path.iterdir()}
    assert set(modes.values()) == {0o600}
    assert [it.name for it in tmp_path.iterdir()] == ["a.db"]


@pytest.mark.skipif(os.name != "posix", reason="permissions of files are not checked there")
@pytest.mark.parametrize("mode", [0o640, 0o604, 0o620, 0o602, 0o666])
@in_virtual_time
async def test_a_file_that_others_can_read_or_write_is_opened_with_a_warning(
    mode: int, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    path = tmp_path / "a.db"
    async with server(path) as api:
        first = await send(api, "POST", CONFIG_MAPS, named("a"))
    assert caplog.messages == []
    path.chmod(mode)

    async with server(path) as api:
        assert await send(api, "GET", f"{CONFIG_MAPS}/a") == first

    why = "can be read or written by other users; chmod it to 600"
    assert caplog.messages == [f"the data file {str(path)!r} {why}"]
    assert stat.S_IMODE(path.stat().st_mode) == mode


@in_virtual_time
async def test_an_empty_file_is_a_new_one(tmp_path: Path) -> None:
    path = tmp_path / "a.db"
    path.touch()
    async with server(path) as api:
        await send(api, "POST", CONFIG_MAPS, named("a"))
    assert path.stat().st_size


# --- durable before delivered


class Gate:
    """A journal that is as slow as the test wants."""

    def __init__(self) -> None:
        self.opened = asyncio.Event()
        self.noted = 0

    def note(self, resource: str, change: Change) -> None:
        del resource, change
        self.noted += 1

    def reset(self) -> None:
        self.noted += 1

    async def saved(self) -> None:
        if self.noted:
            await self.opened.wait()


async def next_of(chunks: Chunks) -> bytes:
    return await anext(chunks)


async def turns() -> None:
    """Run all tasks as far as they get without time passing."""
    await asyncio.sleep(1)


@in_virtual_time
async def test_a_write_is_not_reported_before_it_is_durable() -> None:
    async with APIServer(port=None, token="x") as api:
        version = api.cluster.storage.revision
        watch = await answer(api, "GET", f"{CONFIG_MAPS}?watch=1&resourceVersion={version}")
        assert not isinstance(watch.body, bytes)
        async with contextlib.aclosing(watch.body) as chunks, asyncio.TaskGroup() as group:
            await send(api, "POST", CONFIG_MAPS, named("before"))
            await anext(chunks)
            gate = api.cluster.storage.journal = Gate()
            writing = group.create_task(send(api, "POST", CONFIG_MAPS, named("a")))
            event = group.create_task(next_of(chunks))
            await turns()
            reading = group.create_task(send(api, "GET", f"{CONFIG_MAPS}/a"))
            await turns()
            assert [it.done() for it in (writing, event, reading)] == [False, False, False]
            gate.opened.set()
            delivered: Json = msgspec.json.decode(await event)
            assert delivered["object"] == await writing == await reading


@in_virtual_time
async def test_what_cannot_be_saved_is_not_acknowledged(tmp_path: Path) -> None:
    """Nor is what was written since; all of it is saved as soon as that is possible."""
    path = tmp_path / "a.db"
    await offload(spoil, path)
    async with server(path) as api:
        statuses = [
            (await answer(api, "POST", CONFIG_MAPS, named("bad"))).status,
            (await answer(api, "POST", CONFIG_MAPS, named("good"))).status,
            (await answer(api, "GET", CONFIG_MAPS)).status,
            (await answer(api, "DELETE", f"{CONFIG_MAPS}/bad")).status,
            (await answer(api, "GET", CONFIG_MAPS)).status,
        ]
        before = picture(api.cluster.storage)
    assert statuses == [500, 500, 500, 200, 200]
    async with server(path) as api:
        assert picture(api.cluster.storage) == before


def spoil(path: Path) -> None:
    """Make a file in which one object cannot be stored."""
    Database.open(path).close()
    with contextlib.closing(sqlite3.connect(path)) as connection:
        connection.execute(
            "CREATE TRIGGER spoilt BEFORE INSERT ON objects WHEN NEW.key = 'default/bad' "
            "BEGIN SELECT RAISE(ABORT, 'the disk is full'); END"
        )


@in_virtual_time
async def test_a_write_after_the_end_is_not_acknowledged(tmp_path: Path) -> None:
    async with server(tmp_path / "a.db") as api:
        pass
    assert (await answer(api, "POST", CONFIG_MAPS, named("a"))).status == 500


@in_virtual_time
async def test_a_watch_ends_when_its_events_cannot_be_saved(tmp_path: Path) -> None:
    path = tmp_path / "a.db"
    await offload(spoil, path)
    async with server(path) as api:
        version = api.cluster.storage.revision
        watch = await answer(api, "GET", f"{CONFIG_MAPS}?watch=1&resourceVersion={version}")
        assert not isinstance(watch.body, bytes)
        await answer(api, "POST", CONFIG_MAPS, named("good"))
        await anext(watch.body)
        await answer(api, "POST", CONFIG_MAPS, named("bad"))
        assert [chunk async for chunk in watch.body] == []


# --- a server that is killed


@pytest.mark.slow
def test_a_killed_server_has_lost_nothing_that_it_acknowledged(tmp_path: Path) -> None:
    path, chance = tmp_path / "a.db", random.Random(20)
    script = Path(__file__).with_name("endless_writer.py")
    acknowledged = list[list[str]]()
    for turn in range(4):
        command = [sys.executable, str(script), str(path), str(turn)]
        with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
            assert process.stdout is not None
            wanted = chance.randrange(1, 400)
            for line in process.stdout:
                acknowledged.append(line.split())
                wanted -= 1
                if not wanted:
                    process.kill()  # SIGKILL; what it said until then is still read
        if not acknowledged[-1][-1].isdigit():
            acknowledged.pop()  # half a line
        objects = {stored.key: stored for stored in stored_objects(path)}
        for line_ in acknowledged:
            check(objects, *line_)


def stored_objects(path: Path) -> list[Stored]:
    with contextlib.closing(Database.open(path)) as database:
        return [row.stored for row in database.load()[1] if row.resource == "configmaps"]


def check(objects: Mapping[str, Stored], verb: str, name: str, uid: str, *rest: str) -> None:
    version, value = rest
    stored = objects.get(f"default/{name}")
    if verb == "deleted":
        assert stored is None
        return
    assert stored is not None
    assert stored.uid == uid
    if verb == "created":
        assert stored.revision == int(version)
    else:  # later updates may have been stored and not acknowledged
        assert stored.revision >= int(version)
        assert int(msgspec.json.decode(stored.raw)["data"]["value"]) >= int(value)


# --- any history

Step = tuple[str, str, int]
STEPS = st.lists(
    st.tuples(
        st.sampled_from(["put", "put", "drop", "save", "restore", "compact", "reopen"]),
        st.sampled_from(["a", "b/x", "b/y", "ü", "b-c/x"]),
        st.integers(0, 5),
    ),
    max_size=25,
)


def draft(number: int) -> ObjectDraft:
    def encode(version: str) -> bytes:
        return msgspec.json.encode({"metadata": {"resourceVersion": version}, "n": number})

    return ObjectDraft(encode, {"n": str(number)}, {"f": "1"}, f"uid-{number}", ("x", "y")[:number])


def step(storage: Storage, verb: str, key: str, number: int) -> None:
    resource = ("pods", "nodes")[number % 2]
    held = storage.table(resource).get(key)
    if verb == "put" and held is None:
        storage.create(resource, key, draft(number))
    elif verb == "put":
        storage.update(resource, key, draft(number))
    elif verb == "drop" and held is not None:
        storage.delete(resource, key, draft(number))
    elif verb == "restore":
        with contextlib.suppress(RevisionExpired):
            storage.restore(max(1, storage.revision - number))
    elif verb == "compact":
        storage.compact()


@given(STEPS)
@settings(max_examples=60)
def test_a_reopened_storage_equals_the_one_in_memory(steps: list[Step]) -> None:
    async def history(path: Path) -> None:
        storage = Storage()
        journal = await Journal.open(path, storage)
        for verb, key, number in [*steps, ("reopen", "a", 0)]:
            step(storage, verb, key, number)
            if verb == "save":
                await storage.saved()
            elif verb == "reopen":
                await journal.close()
                again = Storage()
                journal = await Journal.open(path, again)
                assert picture(again) == picture(storage)
                storage = again
        await journal.close()

    with tempfile.TemporaryDirectory() as folder:
        run(history(Path(folder) / "a.db"))


# --- what is refused


def kinform_file(path: Path) -> None:
    with contextlib.closing(Database.open(path)) as database:
        raw = b'{"metadata":{"resourceVersion":"7"}}'
        database.commit(WriteBatch(7, {("pods", "a/b"): Stored("a/b", raw, 7)}))


def change(path: Path, statement: str) -> None:
    kinform_file(path)
    with contextlib.closing(sqlite3.connect(path)) as connection:
        connection.execute(statement)
        connection.commit()


def text_file(path: Path) -> None:
    path.write_bytes(b"apiVersion: v1\nkind: Pod\n" * 100)


def foreign(path: Path) -> None:
    with contextlib.closing(sqlite3.connect(path)) as connection:
        connection.execute("CREATE TABLE bookmarks (url TEXT)")


def other_format(path: Path) -> None:
    change(path, f"PRAGMA user_version = {FORMAT + 1}")


def truncated(path: Path) -> None:
    kinform_file(path)
    os.truncate(path, path.stat().st_size // 2)


def scribbled(path: Path) -> None:
    kinform_file(path)
    with path.open("r+b") as file:
        file.seek(path.stat().st_size - 4096)
        file.write(b"\xff" * 4096)


def no_json(path: Path) -> None:
    change(path, "UPDATE objects SET raw = CAST('{\"metadata\":' AS BLOB)")


def no_version(path: Path) -> None:
    change(path, "UPDATE objects SET revision = 6")


def from_the_future(path: Path) -> None:
    change(path, "UPDATE server SET revision = 5")


def no_counter(path: Path) -> None:
    change(path, "DELETE FROM server")


def no_table(path: Path) -> None:
    change(path, "DROP TABLE objects")


REFUSED: list[tuple[Callable[[Path], None], str]] = [
    (text_file, "is not a SQLite database; name another file"),
    (foreign, "is a SQLite database, but not one of kinform's"),
    (other_format, f"has format {FORMAT + 1}, written by kinform .*: use that version"),
    (truncated, "is broken .*backup"),
    (scribbled, "is broken .*backup"),
    (no_json, "is broken .*backup"),
    (no_version, "is broken .*backup"),
    (from_the_future, "is broken .*backup"),
    (no_counter, "is broken .*backup"),
    (no_table, "is broken .*no such table"),
    (Path.mkdir, "is a directory; name a file in it"),
    (os.mkfifo, "is not a regular file"),
]


@pytest.mark.parametrize(("prepare", "why"), REFUSED, ids=lambda it: getattr(it, "__name__", ""))
def test_a_file_that_cannot_be_used_is_refused_and_stays_as_it_is(
    tmp_path: Path, prepare: Callable[[Path], None], why: str
) -> None:
    path = tmp_path / "some file.db"
    prepare(path)
    before = path.read_bytes() if path.is_file() else b""
    with pytest.raises(UsageError, match=rf"the data file '.*some file\.db' {why}"):
        Database.open(path)
    assert (path.read_bytes() if path.is_file() else b"") == before


def copy_of(path: Path, name: str) -> Path:
    """Copy a file that is in use, with the log beside it: what a kill would leave."""
    copy = path.with_name(name)
    for suffix in ("", "-wal"):
        Path(f"{copy}{suffix}").write_bytes(Path(f"{path}{suffix}").read_bytes())
    return copy


@in_virtual_time
async def test_what_a_killed_server_left_in_the_log_is_not_lost(tmp_path: Path) -> None:
    async with server(tmp_path / "a.db") as api:
        await send(api, "POST", CONFIG_MAPS, named("a"))
        copy = copy_of(tmp_path / "a.db", "copy.db")
    async with server(copy) as api:
        assert (await answer(api, "GET", f"{CONFIG_MAPS}/a")).status == 200
    assert sorted(it.name for it in tmp_path.iterdir()) == ["a.db", "copy.db"]


def test_the_log_beside_a_broken_file_is_not_merged_into_it(tmp_path: Path) -> None:
    path = tmp_path / "a.db"
    kinform_file(path)
    with contextlib.closing(sqlite3.connect(path, isolation_level=None)) as connection:
        connection.execute("UPDATE objects SET revision = 999")
        copy = copy_of(path, "copy.db")
    before = copy.read_bytes(), Path(f"{copy}-wal").read_bytes()
    with pytest.raises(UsageError, match="revision 999"):
        Database.open(copy)
    assert (copy.read_bytes(), Path(f"{copy}-wal").read_bytes()) == before


@in_virtual_time
async def test_two_servers_cannot_share_a_file(tmp_path: Path) -> None:
    path = tmp_path / "a.db"
    async with server(path) as api:
        with pytest.raises(UsageError, match="is in use by another server; stop that one"):
            async with server(path):
                pass
        await send(api, "POST", CONFIG_MAPS, named("a"))


@pytest.mark.slow
def test_a_server_of_another_process_keeps_its_lock(tmp_path: Path) -> None:
    path = tmp_path / "a.db"
    script = (
        "import sys; from kinform.apiserver.storage.sqlite import Database; "
        "Database.open(sys.argv[1])"
    )
    command = [sys.executable, "-c", script, str(path)]
    with contextlib.closing(Database.open(path)):
        with pytest.raises(UsageError, match="in use"):
            Database.open(path)  # in this process; this must not loosen the lock
        locked = subprocess.run(command, capture_output=True, text=True, check=False)
    assert "is in use by another server" in locked.stderr
    assert subprocess.run(command, capture_output=True, check=False).returncode == 0


@in_virtual_time
async def test_a_folder_that_does_not_exist_is_named(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match=r"nowhere/a\.db' cannot be created: no such file"):
        async with server(tmp_path / "nowhere" / "a.db"):
            pass


@pytest.mark.slow
def test_a_file_without_permission_is_refused() -> None:
    # Root may do everything, so a child process switches to another user.
    script = """
import os, sys
from kinform.apiserver.storage.sqlite import Database
if os.geteuid() == 0:
    os.seteuid(65534)
Database.open(sys.argv[1])
"""
    with tempfile.TemporaryDirectory() as folder:
        Path(folder).chmod(0o755)  # unlike pytest's own, which are closed to others
        path = Path(folder, "a.db")
        kinform_file(path)
        path.chmod(0o400)
        command = [sys.executable, "-c", script, str(path)]
        refused = subprocess.run(command, capture_output=True, text=True, check=False)
    assert "may not be read and written by this user" in refused.stderr


async def test_a_server_that_cannot_listen_gives_its_file_back(tmp_path: Path) -> None:
    path = tmp_path / "a.db"
    async with APIServer() as first:
        port = int(first.url.rpartition(":")[2])
        with pytest.raises(UsageError, match=f"port {port} is in use"):
            async with APIServer(port=port, data=path):
                pass
    async with APIServer(port=None, data=path):
        pass


async def test_an_opening_that_is_cancelled_gives_the_file_back(tmp_path: Path) -> None:
    """It continues in its thread, which cannot be stopped, and must close the file."""
    path = tmp_path / "a.db"
    for turns in range(4):
        opening = asyncio.get_running_loop().create_task(Journal.open(path, Storage()))
        for _ in range(turns):
            await asyncio.sleep(0)
        opening.cancel()
        with pytest.raises(asyncio.CancelledError):
            await opening
        journal = await Journal.open(path, Storage())
        await journal.close()
