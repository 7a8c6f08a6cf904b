"""Static checks of the source files: banned calls, and the declared dependencies."""

from __future__ import annotations

import ast
import re
import tomllib
from collections.abc import Iterator
from importlib import metadata
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
SOURCES = sorted((ROOT / "src").rglob("*.py"))
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))

FORBIDDEN_MODULES = {"pickle", "cPickle", "dill", "marshal", "shelve", "jsonpickle", "telnetlib"}
FORBIDDEN_CALLS = {
    *("eval", "exec", "__import__", "compile", "os.system", "os.popen"),
    *("pickle.loads", "pickle.load", "marshal.loads", "marshal.load"),
    *("yaml.load", "yaml.load_all", "yaml.full_load", "yaml.unsafe_load", "yaml.full_load_all"),
    *("tempfile.mktemp", "ssl._create_unverified_context", "ssl.wrap_socket"),
}
ALLOWED_CALLS: set[tuple[str, str]] = set()

ADVISORIES: dict[str, dict[str, str]] = {
    "aiohttp": {
        "CVE-2023-49082": "3.9.0",  # CRLF in a method
        "CVE-2025-69230": "3.13.3",  # a storm of log lines
        "CVE-2026-22815": "3.13.4",  # headers and trailers without end
        "CVE-2026-34993": "3.14.0",
        "CVE-2026-54273": "3.14.1",  # pipelined requests without end
        "CVE-2026-69244": "3.14.3",  # the parser reads beyond its buffer
    },
    "pyyaml": {"CVE-2020-14343": "5.4"},
    "cryptography": {"CVE-2026-39892": "46.0.7", "CVE-2026-69247": "50.0.0"},
    "pytest": {"CVE-2025-71176": "9.0.3"},
}
"""The first version that is not affected, of all that users may come to have by installing us."""


def calls(tree: ast.AST) -> Iterator[tuple[str, ast.Call]]:
    """Yield every call with the name of what is called."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Call):
            yield ast.unparse(node.func), node


def imports(tree: ast.AST) -> Iterator[str]:
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            yield node.module or ""


def parsed() -> Iterator[tuple[str, ast.AST]]:
    assert len(SOURCES) > 300
    for path in SOURCES:
        yield str(path.relative_to(ROOT)), ast.parse(path.read_text(encoding="utf-8"))


@pytest.mark.slow
def test_nothing_is_unpickled_evaluated_or_loaded_with_tags() -> None:
    found = [
        (path, name)
        for path, tree in parsed()
        for name, _ in calls(tree)
        if name in FORBIDDEN_CALLS and (path, name) not in ALLOWED_CALLS
    ]
    found += [
        (p, name) for p, tree in parsed() for name in imports(tree) if name in FORBIDDEN_MODULES
    ]
    assert found == []


@pytest.mark.slow
def test_no_program_is_started_through_a_shell() -> None:
    found = [
        (path, name)
        for path, tree in parsed()
        for name, call in calls(tree)
        for keyword in call.keywords
        if (keyword.arg == "shell" and ast.unparse(keyword.value) != "False")
        or name.endswith("create_subprocess_shell")
    ]
    assert found == []


def test_verification_is_switched_off_in_one_place_only() -> None:
    """And there because the configuration says so, which is logged."""
    words = re.compile(r"CERT_NONE|check_hostname = False|verify_mode =")
    places = [str(p.relative_to(ROOT)) for p in SOURCES if words.search(p.read_text("utf-8"))]
    assert places == ["src/kinform/rest/transport/tls.py"]


# --- what we stand on -------------------------------------------------------------------------


def requirements() -> dict[str, str]:
    """Return the lower bound of everything that we, or one of our extras, install."""
    project = PROJECT["project"]
    lines = [*project["dependencies"]]
    for extra in project["optional-dependencies"].values():
        lines += [line for line in extra if not line.startswith("kinform[")]
    bounds: dict[str, str] = {}
    for line in lines:
        match = re.fullmatch(r"([\w.-]+)>=([\d.]+)(;.*)?", line)
        assert match, f"{line!r} has no lower bound"
        bounds[match[1].lower()] = match[2]
    return bounds


def version(text: str) -> tuple[int, ...]:
    numbers = [int(part) for part in re.findall(r"\d+", text)]
    return tuple([*numbers, 0, 0, 0][:3])


@pytest.mark.parametrize(
    "package, advisory, fixed",
    [(name, advisory, fixed) for name, by in ADVISORIES.items() for advisory, fixed in by.items()],
)
def test_no_version_with_a_known_hole_can_be_installed(
    package: str, advisory: str, fixed: str
) -> None:
    assert version(requirements()[package]) >= version(fixed), advisory


@pytest.mark.slow  # not slow, but it needs all extras, which the quick round does not have
def test_what_we_develop_with_is_within_the_bounds() -> None:
    for package, bound in requirements().items():
        assert version(metadata.version(package)) >= version(bound), package


def test_users_get_few_dependencies() -> None:
    names = {
        re.split(r"[<>=!~;\[ ]", line)[0].lower() for line in PROJECT["project"]["dependencies"]
    }
    assert names == {"aiohttp", "msgspec", "pyyaml"}
