"""Build what a release consists of: a wheel that anybody can build again, and what is in it.

    python -m tools.release                build/release

The wheel is built twice, from two fresh copies of the last commit in folders of different names,
and both must be equal to the byte. Beside it are its SHA-256 and a CycloneDX bill of materials:
all that is installed with it, directly or not, in the versions that it was tested with: those of
``constraints.txt``, which this environment must have. Nothing is uploaded, signed or attested.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import os
import subprocess
import sys
import tarfile
import tempfile
import uuid
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from email.message import Message
from email.parser import HeaderParser
from importlib.metadata import PackageNotFoundError, distribution
from io import BytesIO
from pathlib import Path
from typing import Final
from zipfile import ZipFile

from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

__all__ = ["Resolved", "bill_of_materials", "main", "metadata_of", "resolve"]

ROOT: Final = Path(__file__).resolve().parent.parent
FOLDER: Final = ROOT / "build" / "release"


def main() -> int:
    """Build, compare and write; return 1 if two builds of one commit differ."""
    parser = argparse.ArgumentParser(prog="python -m tools.release", description=__doc__)
    parser.add_argument("--out", type=Path, default=FOLDER, help="where it goes")
    folder: Path = parser.parse_args().out
    wheels = [_build(name) for name in ("first", "another-place")]
    digests = [hashlib.sha256(data).hexdigest() for _, data in wheels]
    if len(set(digests)) != 1:
        print(f"two builds of one commit differ: {' '.join(digests)}", file=sys.stderr)
        return 1
    (name, data), digest = wheels[0], digests[0]
    folder.mkdir(parents=True, exist_ok=True)
    (folder / name).write_bytes(data)
    (folder / "SHA256SUMS").write_text(f"{digest}  {name}\n", encoding="ascii")
    metadata = metadata_of(data)
    bill = bill_of_materials(metadata, wheel=name, digest=digest, resolved=resolve(metadata))
    text = json.dumps(bill, indent=2, sort_keys=True)
    (folder / "kinform.cdx.json").write_text(f"{text}\n", encoding="utf-8")
    print(f"{folder / name}\nsha256 {digest}, twice")
    return 0


def _build(place: str) -> tuple[str, bytes]:
    """Build the last commit in a folder of that name; return the wheel's name and bytes."""
    archive = _git("archive", "--format=tar", "HEAD")
    when = _git("log", "-1", "--format=%ct").decode().strip()
    with tempfile.TemporaryDirectory() as scratch:
        source, out = Path(scratch, place), Path(scratch, "out")
        with tarfile.open(fileobj=BytesIO(archive)) as packed:
            packed.extractall(source, filter="data")
        subprocess.run(
            [sys.executable, "-m", "pip", "wheel", "-q", "--no-deps", "-w", str(out), str(source)],
            env={
                **os.environ,
                "SOURCE_DATE_EPOCH": when,
                "PIP_CONSTRAINT": str(source / "constraints.txt"),
            },
            check=True,
        )
        (wheel,) = out.glob("*.whl")
        return wheel.name, wheel.read_bytes()


def _git(*arguments: str) -> bytes:
    return subprocess.run(
        ["git", *arguments],
        cwd=ROOT,
        check=True,
        capture_output=True,
    ).stdout


def metadata_of(wheel: bytes) -> Message:
    """Return what a wheel says of itself."""
    with ZipFile(BytesIO(wheel)) as archive:
        (name,) = (name for name in archive.namelist() if name.endswith(".dist-info/METADATA"))
        return HeaderParser().parsestr(archive.read(name).decode())


@dataclass(frozen=True, slots=True)
class Resolved:
    """One distribution that is installed along with ours."""

    name: str
    version: str
    is_required: bool
    """True if the package is installed without any extra."""
    depends_on: tuple[str, ...] = ()
    license: str = ""
    """Its SPDX expression, if it has one."""

    @property
    def purl(self) -> str:
        """Its package URL, with the version."""
        return f"pkg:pypi/{self.name}@{self.version}"


def resolve(metadata: Message) -> list[Resolved]:
    """Return all that a wheel with this metadata brings along, as this environment has it.

    Raises:
        SystemExit: something is not installed, or in another version than ``constraints.txt`` says.
    """
    pins, own = _pins(), canonicalize_name(metadata["Name"])
    lines = metadata.get_all("Requires-Dist", [])
    required = _closure(_requirements(lines, extras={""}), own)
    extras = {"", *metadata.get_all("Provides-Extra", [])}
    everything = _closure(_requirements(lines, extras=extras), own)
    found: list[Resolved] = []
    for name in sorted(everything):
        installed = distribution(name)
        if installed.version != pins.get(name):
            wanted = pins.get(name, "no version at all")
            raise SystemExit(f"{name} {installed.version} is installed; constraints.txt: {wanted}")
        found.append(
            Resolved(
                name,
                installed.version,
                is_required=name in required,
                depends_on=tuple(sorted(everything[name])),
                license=(installed.metadata.get_all("License-Expression") or [""])[0],
            )
        )
    return found


def _pins() -> dict[str, str]:
    lines = (ROOT / "constraints.txt").read_text("utf-8").splitlines()
    pairs = (line.split("==") for line in lines if "==" in line and not line.startswith("#"))
    return {canonicalize_name(name): version.strip() for name, version in pairs}


def _requirements(lines: Iterable[str], *, extras: Iterable[str]) -> Iterator[Requirement]:
    """Yield those requirements that apply here, with any of these extras."""
    for line in lines:
        wanted = Requirement(line)
        if wanted.marker is None or any(wanted.marker.evaluate({"extra": e}) for e in extras):
            yield wanted


def _closure(requirements: Iterable[Requirement], own: str) -> dict[str, set[str]]:
    """Return the names of all that is needed, each with the names it needs itself."""
    found: dict[str, set[str]] = {}
    left = [one for one in requirements if canonicalize_name(one.name) != own]
    done: set[tuple[str, frozenset[str]]] = set()
    while left:
        wanted = left.pop()
        name = canonicalize_name(wanted.name)
        needs = found.setdefault(name, set())
        if (name, frozenset(wanted.extras)) in done:
            continue
        done.add((name, frozenset(wanted.extras)))
        try:
            lines = distribution(name).requires or []
        except PackageNotFoundError:
            raise SystemExit(f"{name} is not installed; make venv") from None
        below = list(_requirements(lines, extras={"", *wanted.extras}))
        needs.update(canonicalize_name(one.name) for one in below)
        left += below
    return found


def bill_of_materials(
    metadata: Message, *, wheel: str, digest: str, resolved: Sequence[Resolved]
) -> dict[str, object]:
    """Return the CycloneDX document: the same for the same wheel and versions."""
    name, version = metadata["Name"], metadata["Version"]
    itself = f"pkg:pypi/{name}@{version}"
    bounds = _bounds(metadata)
    purls = {each.name: each.purl for each in resolved}
    direct = [each.purl for each in resolved if each.name in bounds]
    return {
        "bomFormat": "CycloneDX",
        "specVersion": "1.6",
        "version": 1,
        "serialNumber": uuid.uuid5(uuid.NAMESPACE_URL, f"{digest} {sorted(purls.values())}").urn,
        "metadata": {
            "component": {
                "type": "library",
                "bom-ref": itself,
                "name": name,
                "version": version,
                "purl": itself,
                "licenses": [{"expression": metadata["License-Expression"]}],
                "hashes": [{"alg": "SHA-256", "content": digest}],
                "properties": [{"name": "wheel", "value": wheel}],
            }
        },
        "components": [_component(each, bounds.get(each.name)) for each in resolved],
        "dependencies": [
            {"ref": itself, "dependsOn": direct},
            *(
                {"ref": each.purl, "dependsOn": [purls[one] for one in each.depends_on]}
                for each in resolved
            ),
        ],
    }


def _component(each: Resolved, bound: str | None) -> dict[str, object]:
    component: dict[str, object] = {
        "type": "library",
        "bom-ref": each.purl,
        "name": each.name,
        "version": each.version,
        "purl": each.purl,
        "scope": "required" if each.is_required else "optional",
    }
    if each.license:
        component["licenses"] = [{"expression": each.license}]
    if bound is not None:
        component["properties"] = [{"name": "at least", "value": bound}]
    return component


def _bounds(metadata: Message) -> dict[str, str]:
    """Return what the wheel itself requires, with the lower bound of each."""
    bounds: dict[str, str] = {}
    for line in metadata.get_all("Requires-Dist", []):
        wanted = Requirement(line)
        name = canonicalize_name(wanted.name)
        if name != canonicalize_name(metadata["Name"]):  # that is an extra that stands for others
            lowest = [one.version for one in wanted.specifier if one.operator == ">="]
            bounds[name] = lowest[0] if lowest else ""
    return bounds


if __name__ == "__main__":
    sys.exit(main())
