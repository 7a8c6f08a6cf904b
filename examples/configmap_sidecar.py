"""A sidecar that keeps labelled ConfigMaps as files in a folder, as Grafana's k8s-sidecar does.

Every key of every ConfigMap that has the label becomes a file; with ``--secrets`` those of Secrets
as well, readable only by this user. A deleted key or object is removed from the folder, also if it
was deleted while this program did not run. Files of other programs are never touched: the list of
its own files is in ``.kinform-sidecar.json``. An object may name a folder below the target in the
annotation ``k8s-sidecar-target-directory``. If two objects define one file, the older one wins.

``python examples/configmap_sidecar.py --label app=dashboards --folder /tmp/dashboards``
``python examples/configmap_sidecar.py --label app=web --folder conf --on-change "nginx -s reload"``
``python examples/configmap_sidecar.py --demo``

Against the cluster kubectl would use; where there is none, an API server of its own is started.
"""

# ci: --demo -n default

from __future__ import annotations

import argparse
import asyncio
import base64
import contextlib
import hashlib
import os
import secrets
import shlex
import stat
import sys
import tempfile
from collections.abc import (
    AsyncGenerator,
    Awaitable,
    Callable,
    Generator,
    Iterable,
    Iterator,
    Mapping,
    Sequence,
)
from dataclasses import dataclass, field
from pathlib import Path, PurePosixPath

import msgspec

import kinform
from kinform.apiserver import APIServer
from kinform.clock import offload
from kinform.tasks import background

ANNOTATION = "k8s-sidecar-target-directory"
OURS = ".kinform-"
"""No object may have a file that begins like this: our manifest does, and what is half written."""
MANIFEST = ".kinform-sidecar.json"
DEBOUNCE = 0.25
RETRY = 10.0
PATIENCE = 30.0


# --- what should be there: decided from the cache alone


@dataclass(frozen=True, slots=True)
class File:
    """The content of a file; never printed, because it may come from a Secret."""

    content: bytes = field(repr=False)
    mode: int
    owner: str


def plan(objects: Iterable[tuple[str, kinform.Object]]) -> tuple[dict[str, File], list[str]]:
    """Return the files by their paths below the target, and the refused ones.

    The oldest object goes first, so that a new object takes no file from another one. Names decide
    between objects of one age: the same objects give the same files, in any order of arrival.
    """
    files: dict[str, File] = {}
    folders: set[str] = set()
    problems: list[str] = []
    for kind, obj in sorted(objects, key=seniority):
        owner, folder = f"{kind} {obj.key}", obj.annotations.get(ANNOTATION, "")
        try:
            found = [(placed(folder, key), content) for key, content in contents(kind, obj)]
        except (ValueError, kinform.DecodeError) as error:
            problems.append(f"{owner}: {error}")
            continue
        for (path, parents), content in found:
            rivals = [files[one].owner for one in (*parents, path) if one in files]
            if rivals or path in folders:
                problems.append(f"{owner}: {path} is taken by {(*rivals, 'a folder')[0]}")
                continue
            folders.update(parents)
            files[path] = File(content, 0o600 if kind == "secret" else 0o644, owner)
    return files, problems


def seniority(source: tuple[str, kinform.Object]) -> tuple[str, kinform.ObjectName, str]:
    kind, obj = source
    return obj.metadata.creation_timestamp or "", obj.key, kind


def contents(kind: str, obj: kinform.Object) -> Iterator[tuple[str, bytes]]:
    """Yield the keys of a ConfigMap or Secret, with what they hold."""
    texts: Mapping[str, str] = obj.at("data", default={})
    binaries: Mapping[str, str] = obj.at("binaryData", default={})
    for key, text in texts.items():
        yield key, base64.b64decode(text) if kind == "secret" else text.encode()
    for key, text in binaries.items():
        yield key, base64.b64decode(text)


def placed(folder: str, key: str) -> tuple[str, list[str]]:
    """Return the path of a key, and the folders above it, all below the target.

    Raises:
        ValueError: the path leads elsewhere, or has a name that is ours.
    """
    parts = [*PurePosixPath(folder).parts, key]
    for part in parts:
        is_name = part not in {"", ".", ".."} and "/" not in part and part.isprintable()
        if not is_name or part.startswith(OURS):
            path = str(PurePosixPath(folder, key))
            raise ValueError(f"{path!r} is not a path below the target folder")
    paths = ["/".join(parts[: length + 1]) for length in range(len(parts))]
    return paths[-1], paths[:-1]


# --- the folder: file operations, which block


@dataclass(slots=True)
class Report:
    """The changes made to the folder."""

    written: list[str] = field(default_factory=list[str])
    removed: list[str] = field(default_factory=list[str])
    problems: list[str] = field(default_factory=list[str])


class Folder:
    """The target folder. One program at a time may have it.

    No symbolic link below the target is followed: each folder is opened from the one above it.
    """

    def __init__(self, root: Path) -> None:
        self.root = root

    def make_equal(self, files: Mapping[str, File]) -> Report:
        """Remove own files that are obsolete, write files that are missing or differ."""
        self.root.mkdir(parents=True, exist_ok=True)
        report = Report()
        ours = self._read_manifest()
        for path in sorted(ours - files.keys()):  # first: a folder may take a file's place
            with recorded(path, report):
                self._remove(path)
                report.removed.append(path)
        wanted: list[str] = []
        for path, file in files.items():
            with recorded(path, report):
                if self._differs(path, file, is_ours=path in ours):
                    wanted.append(path)
        # Claimed before it is written: whenever this is killed, what is ours is known to be.
        claimed = self._write_manifest(ours.difference(report.removed).union(wanted), before=ours)
        for path in wanted:
            with recorded(path, report):
                self._write(path, files[path])
                report.written.append(path)
        missing = set(wanted).difference(report.written, ours)
        self._write_manifest(claimed - missing, before=claimed)
        return report

    def _differs(self, path: str, file: File, *, is_ours: bool) -> bool:
        try:
            with self._parent(path) as (folder, name):
                there = os.stat(name, dir_fd=folder, follow_symlinks=False)
                if not is_ours:
                    raise FileExistsError("a file of another program has that name")
                if not stat.S_ISREG(there.st_mode) or stat.S_IMODE(there.st_mode) != file.mode:
                    return True
                opened = os.open(name, os.O_RDONLY | os.O_NOFOLLOW, dir_fd=folder)
                with os.fdopen(opened, "rb") as reader:
                    return reader.read() != file.content
        except FileNotFoundError:
            return True

    def _write(self, path: str, file: File) -> None:
        """Write a temporary file and rename it: a reader sees the old file or the new one."""
        with self._parent(path, make=True) as (folder, name):
            temporary = temporary_for(name)
            with contextlib.suppress(FileNotFoundError):
                os.unlink(temporary, dir_fd=folder)
            flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW
            with os.fdopen(os.open(temporary, flags, 0o600, dir_fd=folder), "wb") as writer:
                writer.write(file.content)
                os.fchmod(writer.fileno(), file.mode)
            os.replace(temporary, name, src_dir_fd=folder, dst_dir_fd=folder)

    def _remove(self, path: str) -> None:
        """Remove a file, and the folders above it that are empty then."""
        with contextlib.suppress(FileNotFoundError), self._parent(path) as (folder, name):
            for one in (temporary_for(name), name):
                with contextlib.suppress(FileNotFoundError):
                    os.unlink(one, dir_fd=folder)
        with contextlib.suppress(OSError):
            while "/" in path:
                path = path.rpartition("/")[0]
                with self._parent(path) as (folder, name):
                    os.rmdir(name, dir_fd=folder)

    @contextlib.contextmanager
    def _parent(self, path: str, *, make: bool = False) -> Generator[tuple[int, str]]:
        """Open the folder that a path's last name is in."""
        *folders, name = path.split("/")
        with contextlib.ExitStack() as stack:
            folder = os.open(self.root, os.O_RDONLY | os.O_DIRECTORY)  # itself it may be a link
            stack.callback(os.close, folder)
            for one in folders:
                if make:
                    with contextlib.suppress(FileExistsError):
                        os.mkdir(one, dir_fd=folder)
                folder = os.open(one, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW, dir_fd=folder)
                stack.callback(os.close, folder)
            yield folder, name

    def _read_manifest(self) -> set[str]:
        try:
            paths = msgspec.json.decode((self.root / MANIFEST).read_bytes(), type=list[str])
            for path in paths:
                folder, _, name = path.rpartition("/")
                if placed(folder, name)[0] != path:
                    raise ValueError(f"{path!r} is not a path below the target folder")
            return set(paths)
        except FileNotFoundError:
            return set()
        except (msgspec.DecodeError, ValueError) as error:
            where = self.root / MANIFEST
            raise ManifestError(
                f"{where}: {error}; remove it and the files that it names"
            ) from error

    def _write_manifest(self, paths: set[str], *, before: set[str]) -> set[str]:
        if paths != before:
            text = msgspec.json.format(msgspec.json.encode(sorted(paths)))
            self._write(MANIFEST, File(text, 0o600, "us"))
        return paths


class ManifestError(Exception):
    """The list of own files is unreadable."""


def temporary_for(name: str) -> str:
    """Return a name that is always the same, so that what a kill has left is found again."""
    return OURS + hashlib.sha256(name.encode()).hexdigest()[:16]


@contextlib.contextmanager
def recorded(path: str, report: Report) -> Generator[None]:
    """Record the error of one file and continue with the others."""
    try:
        yield
    except OSError as error:
        report.problems.append(f"{path}: {error.strerror or error}")


# --- the program


class Sidecar:
    """Keeps a folder equal to the contents of informers, and reports after each change of it.

    It compares everything, not single events, so a missed event does not
    matter. While the server is down nothing changes, and so nothing is removed.
    """

    def __init__(
        self,
        informers: Mapping[str, kinform.SharedInformer[kinform.Object]],
        folder: Folder,
        *,
        on_change: Callable[[Report], Awaitable[object]],
    ) -> None:
        self._informers = informers
        self._folder = folder
        self._on_change = on_change
        self._dirty = asyncio.Event()
        self._told: set[str] = set()

    async def run(self, *, once: bool = False) -> None:
        """Go on until cancelled; or make the folder equal ``once``.

        Raises:
            ManifestError: the manifest cannot be read.
            OSError: the target cannot be used as a folder.
        """
        async with contextlib.AsyncExitStack() as stack:
            for informer in self._informers.values():
                informer.add_event_handler(
                    on_add=self._mark, on_update=self._mark, on_delete=self._mark
                )
                await stack.enter_async_context(informer)
            for informer in self._informers.values():
                await synced(informer)  # all: what is not listed yet would be removed
            has_problems = await self._step()
            while not once:
                with contextlib.suppress(TimeoutError):
                    async with asyncio.timeout(RETRY if has_problems else None):
                        await self._dirty.wait()
                await asyncio.sleep(DEBOUNCE)  # a deployment changes many at once
                has_problems = await self._step()

    def _mark(self, _: object) -> None:
        self._dirty.set()

    async def _step(self) -> bool:
        """Make the folder equal; return whether something went wrong with a file."""
        self._dirty.clear()
        objects = [
            (kind, obj) for kind, one in self._informers.items() for obj in one.lister.list()
        ]
        files, problems = plan(objects)
        report = await offload(self._folder.make_equal, files)
        self._say(report, files, [*problems, *report.problems])
        if report.written or report.removed:
            await self._on_change(report)
        return bool(report.problems)

    def _say(self, report: Report, files: Mapping[str, File], problems: Sequence[str]) -> None:
        """Print names, never contents; each problem once for as long as it lasts."""
        for path in report.written:
            print(f"wrote {path} of {files[path].owner}", flush=True)
        for path in report.removed:
            print(f"removed {path}", flush=True)
        for problem in problems:
            if problem not in self._told:
                print(f"problem: {problem}", file=sys.stderr)
        self._told = set(problems)


async def synced(informer: kinform.SharedInformer[kinform.Object]) -> None:
    """Wait for the first list, however long that takes, and say so."""
    while True:
        try:
            return await informer.wait_synced(PATIENCE)
        except TimeoutError as error:
            print(f"still waiting: {error}", file=sys.stderr)


async def call(command: Sequence[str]) -> None:
    """Run a command; one that fails or hangs is reported, and the next change runs it again."""
    try:
        process = await asyncio.create_subprocess_exec(*command)
    except OSError as error:
        print(f"problem: {command[0]}: {error.strerror}", file=sys.stderr)
        return
    try:
        async with asyncio.timeout(PATIENCE):
            if code := await process.wait():
                print(f"problem: {command[0]} ended with {code}", file=sys.stderr)
    except TimeoutError:
        print(f"problem: {command[0]} was killed after {PATIENCE:.0f} s", file=sys.stderr)
    finally:
        if process.returncode is None:
            process.kill()
            await process.wait()


def sidecar(
    client: kinform.Client,
    args: argparse.Namespace,
    on_change: Callable[[Report], Awaitable[object]],
) -> Sidecar:
    kinds = {"configmap": "v1/configmaps"} | ({"secret": "v1/secrets"} if args.secrets else {})
    informers = {
        kind: client.informer(resource, namespace=args.namespace, label_selector=args.label)
        for kind, resource in kinds.items()
    }
    return Sidecar(informers, Folder(args.folder), on_change=on_change)


async def follow(args: argparse.Namespace) -> None:
    async def changed(_: Report) -> None:
        if args.on_change:
            await call(args.on_change)

    async with cluster() as client:
        await sidecar(client, args, changed).run(once=args.once)


async def demo(args: argparse.Namespace) -> None:
    """A ConfigMap comes, changes and goes; the folder follows."""
    mark = secrets.token_hex(4)
    with tempfile.TemporaryDirectory(prefix="kinform-") as folder:
        args.folder, args.label = Path(folder), f"kinform-demo={mark}"
        reports: asyncio.Queue[Report] = asyncio.Queue()
        async with (
            cluster() as client,
            asyncio.timeout(PATIENCE),
            background(sidecar(client, args, reports.put).run()),
        ):
            maps = client.resource("v1/configmaps", namespace=args.namespace or "default")
            metadata = {
                "name": f"board-{mark}",
                "labels": {"kinform-demo": mark},
                "annotations": {ANNOTATION: "boards"},
            }
            data = {"cpu.json": "{}", "old.json": "{}"}
            await maps.create({"metadata": metadata, "data": data})
            assert (await reports.get()).written == ["boards/cpu.json", "boards/old.json"]
            await maps.patch(f"board-{mark}", {"data": {"cpu.json": "[]", "old.json": None}})
            assert (await reports.get()).removed == ["boards/old.json"]
            await maps.delete(f"board-{mark}")
            assert (await reports.get()).removed == ["boards/cpu.json"]


@contextlib.asynccontextmanager
async def cluster() -> AsyncGenerator[kinform.Client]:
    """Connect to the configured cluster, or to a server of our own."""
    async with contextlib.AsyncExitStack() as stack:
        try:
            client = await stack.enter_async_context(kinform.connect())
        except kinform.ConfigError as error:
            if error.source:
                raise  # there is one, and it is wrong: never look elsewhere then
            print(f"{error}\nstarting an API server instead", file=sys.stderr)
            server = await stack.enter_async_context(APIServer())
            client = await stack.enter_async_context(server.connect())
        yield client


def main(argv: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--label", help="which objects: a label selector, such as app=dashboards")
    parser.add_argument("--folder", type=Path, help="where their files go")
    where = parser.add_mutually_exclusive_group()
    where.add_argument("-n", "--namespace", default="default", help="default: default")
    where.add_argument("-A", "--all-namespaces", action="store_const", dest="namespace", const="")
    parser.add_argument("--secrets", action="store_true", help="Secrets as well, with mode 0600")
    parser.add_argument(
        "--on-change", metavar="COMMAND", type=shlex.split, help="run it after changes (no shell)"
    )
    parser.add_argument("--once", action="store_true", help="make the folder equal, and end")
    parser.add_argument("--demo", action="store_true", help="play a little story, and end")
    args = parser.parse_args(argv)
    if not args.demo and not (args.label and args.folder):
        parser.error("--label and --folder are needed, or --demo")
    try:
        asyncio.run(demo(args) if args.demo else follow(args))
    except (kinform.KinformError, ManifestError, OSError) as problem:
        print(f"error: {str(problem) or 'the demo took too long'}", file=sys.stderr)
        return 1
    except KeyboardInterrupt:
        return 130
    return 0


if __name__ == "__main__":
    sys.exit(main())
