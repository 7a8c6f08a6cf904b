"""Build what a release consists of: a wheel that anybody can build again, and what is in it.

    python -m tools.release                build/release

The wheel is built twice, from two fresh copies of the last commit in folders of different names,
and both must be equal to the byte. Beside it are its SHA-256 and a CycloneDX bill of materials:
what users install with it, by name and lower bound. Nothing is uploaded, signed or attested here.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import os
import re
import subprocess
import sys
import tarfile
import tempfile
import uuid
from collections.abc import Iterator
from email.message import Message
from email.parser import HeaderParser
from io import BytesIO
from pathlib import Path
from typing import Final
from zipfile import ZipFile

__all__ = ["bill_of_materials", "main", "metadata_of"]

ROOT: Final = Path(__file__).resolve().parent.parent
FOLDER: Final = ROOT / "build" / "release"
_REQUIREMENT: Final = re.compile(r"(?P<name>[\w.-]+)\s*(?:\(?>=(?P<bound>[\w.]+)\)?)?")


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
    bill = bill_of_materials(metadata_of(data), wheel=name, digest=digest)
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


def bill_of_materials(metadata: Message, *, wheel: str, digest: str) -> dict[str, object]:
    """Return the CycloneDX document: the same for the same wheel."""
    name, version = metadata["Name"], metadata["Version"]
    itself = f"pkg:pypi/{name}@{version}"
    components = [*_components(metadata)]
    return {
        "bomFormat": "CycloneDX",
        "specVersion": "1.6",
        "version": 1,
        "serialNumber": uuid.uuid5(uuid.NAMESPACE_URL, digest).urn,
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
        "components": components,
        "dependencies": [
            {"ref": itself, "dependsOn": [each["bom-ref"] for each in components]},
            *({"ref": each["bom-ref"], "dependsOn": []} for each in components),
        ],
    }


def _components(metadata: Message) -> Iterator[dict[str, object]]:
    """Yield what the wheel requires; what only an extra installs is optional."""
    for line in metadata.get_all("Requires-Dist", []):
        requirement, _, condition = line.partition(";")
        match = _REQUIREMENT.match(requirement)
        assert match, line
        name = match["name"].lower()
        if name == metadata["Name"]:
            continue  # an extra that stands for others
        yield {
            "type": "library",
            "bom-ref": f"{name}{f' [{condition.strip()}]' if condition else ''}",
            "name": name,
            "purl": f"pkg:pypi/{name}",
            "scope": "optional" if "extra ==" in condition else "required",
            "properties": [{"name": "at least", "value": match["bound"] or ""}],
        }


if __name__ == "__main__":
    sys.exit(main())
