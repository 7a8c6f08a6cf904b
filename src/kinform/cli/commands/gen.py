"""``kinform gen``: generates typed models and clients from CRDs, in files or in a cluster.

The files may come from anywhere, so size, number of values and aliases are bounded.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Hashable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, Final

import click
import yaml

from kinform._yaml import Refused, refuse_bombs
from kinform.cli import problems
from kinform.cli.execution import asynchronously, emit, warn
from kinform.cli.options import ClusterOptions, access_options
from kinform.client import Client
from kinform.clientset.codegen.crd import definitions_in, module_text
from kinform.errors import NotFoundError

__all__ = ["command"]

MAX_SIZE: Final = 64 * 1024 * 1024
MAX_VALUES: Final = 1_000_000
"""A few times the largest bundles that projects publish; what an alias repeats counts again."""
MAX_ALIASES: Final = 1000

_TAG: Final = "tag:yaml.org,2002:"
_GUESSED: Final = frozenset({"float", "int", "merge", "null"})
"""The types that YAML gives an unquoted word besides text and booleans."""
_DEFINITIONS = "apiextensions.k8s.io/v1/customresourcedefinitions"


@click.command("gen", short_help="Generate typed models and clients for custom kinds.")
@access_options
@click.option(
    "--crd", "files", metavar="FILE", multiple=True, help="A CRD in YAML or JSON; - is stdin."
)
@click.option(
    "--from-cluster",
    "names",
    metavar="NAME",
    multiple=True,
    help="A custom kind that the server serves.",
)
@click.option(
    "--version", metavar="VERSION", help="The version of the kinds; by default the stored one."
)
@click.option("-o", "--output", metavar="FILE", help="Write to this file instead of stdout.")
def command(
    *,
    access: ClusterOptions,
    files: Sequence[str],
    names: Sequence[str],
    version: str | None,
    output: str | None,
) -> int:
    """Generate a Python module with the models and clients of custom kinds.

    The output depends on the definitions alone: the same definitions give the same text.

    \b
    Examples:
      kinform gen --crd widgets.yaml -o widgets_v1.py
      kinform gen --from-cluster widgets.example.com -o widgets_v1.py
      kinform gen --from-cluster certificates --version v1

    Exit codes: 0 done, 1 failed, 2 wrong command line.
    """  # noqa: D301 - click wants the character itself
    if bool(files) == bool(names):
        raise click.UsageError("give the definitions: --crd FILE or --from-cluster NAME")
    found: Sequence[Mapping[str, object]] = [one for file in files for one in _read(file)]
    if names:
        found = asynchronously(lambda: _fetch(access, names))
    text = module_text(found, version=version)
    if output is None:
        emit(text)
        return problems.OK
    Path(output).write_text(text, encoding="utf-8")
    warn(f"{output}: written")
    return problems.OK


def _read(file: str) -> Sequence[Mapping[str, object]]:
    if file == "-":
        content = sys.stdin.buffer.read(MAX_SIZE + 1)
    else:
        with Path(file).open("rb") as opened:
            content = opened.read(MAX_SIZE + 1)
    if len(content) > MAX_SIZE:
        raise problems.CommandProblem(f"{file} is larger than {MAX_SIZE} bytes")
    try:
        refuse_bombs(content.decode(), max_values=MAX_VALUES, max_aliases=MAX_ALIASES, merges=True)
        documents = list(_documents(content.decode()))
    except Refused as exc:
        raise problems.CommandProblem(f"{file} {exc}") from None
    except UnicodeDecodeError as exc:
        raise problems.CommandProblem(f"{file} is not UTF-8: {exc.reason} at {exc.start}") from None
    except (yaml.YAMLError, RecursionError, ValueError) as exc:  # ValueError: a number too long
        raise problems.CommandProblem(f"{file} is not YAML: {exc}") from None
    found = list(definitions_in(documents))
    if not found:
        raise problems.CommandProblem(f"{file} holds no CustomResourceDefinition")
    return found


def _documents(text: str) -> Iterator[object]:
    loader = _Loader(text)
    try:
        while loader.check_data():  # type: ignore[no-untyped-call] # types-PyYAML leaves it without
            yield loader.get_data()
    finally:
        loader.dispose()


class _Loader(yaml.SafeLoader):
    """The safe loader, with the words that Kubernetes reads: ``on``, ``=``, a date are text.

    Keys are always text.
    """

    def construct_mapping(
        self,
        node: yaml.MappingNode,
        deep: bool = False,  # noqa: FBT001, FBT002 (the signature is PyYAML's)
    ) -> dict[Hashable, Any]:
        """Construct a mapping; called by the loader."""
        self.flatten_mapping(node)  # merge keys are gone after it
        for key, _ in node.value:
            if isinstance(key, yaml.ScalarNode):
                key.tag = f"{_TAG}str"
        return super().construct_mapping(node, deep)


_Loader.yaml_implicit_resolvers = {
    first: [(tag, words) for tag, words in resolvers if tag.removeprefix(_TAG) in _GUESSED]
    for first, resolvers in yaml.SafeLoader.yaml_implicit_resolvers.items()
}
_Loader.add_implicit_resolver(  # pyright: ignore[reportUnknownMemberType] # as above
    f"{_TAG}bool", re.compile(r"(?:true|True|TRUE|false|False|FALSE)\Z"), list("tTfF")
)


async def _fetch(access: ClusterOptions, names: Sequence[str]) -> Sequence[Mapping[str, object]]:
    async with access.client() as client:
        return [await _definition(client, name) for name in names]


async def _definition(client: Client, name: str) -> Mapping[str, object]:
    definitions = client.resource(_DEFINITIONS)
    try:
        return (await definitions.get(name)).to_dict()
    except NotFoundError:
        gvr = (await client.find(name)).gvr  # by another of its names
    try:
        return (await definitions.get(f"{gvr.resource}.{gvr.group}")).to_dict()
    except NotFoundError:
        raise problems.CommandProblem(
            f"{gvr} is not a custom kind: it has no definition; built-in kinds have models "
            "in kinform.clientset"
        ) from None
