"""``kinform gen``."""

from __future__ import annotations

import sys
from collections.abc import Mapping, Sequence
from pathlib import Path

import click
import yaml

from kinform.cli import problems
from kinform.cli.options import Access, access_options
from kinform.cli.running import asynchronously, emit, warn
from kinform.client import Client
from kinform.clientset.codegen.crd import definitions_in, module_text
from kinform.errors import NotFoundError

__all__ = ["command"]

_DEFINITIONS = "apiextensions.k8s.io/v1/customresourcedefinitions"


@click.command("gen", short_help="Write typed models and clients for kinds of your own.")
@access_options
@click.option("--crd", "files", metavar="FILE", multiple=True, help="YAML or JSON; - is stdin.")
@click.option(
    "--from-cluster", "names", metavar="NAME", multiple=True, help="A kind that the server has."
)
@click.option("--version", metavar="VERSION", help="Of the kinds; by default the stored one.")
@click.option("-o", "--output", metavar="FILE", help="Where to write, instead of stdout.")
def command(
    *,
    access: Access,
    files: Sequence[str],
    names: Sequence[str],
    version: str | None,
    output: str | None,
) -> int:
    """Write a Python module with the models and clients of custom kinds.

    What is written depends on the definitions alone: the same ones give the same text.

    \b
    Examples:
      kinform gen --crd widgets.yaml -o widgets_v1.py
      kinform gen --from-cluster widgets.example.com -o widgets_v1.py
      kinform gen --from-cluster certificates --version v1

    Exit codes: 0 done, 1 failed, 2 wrong command line.
    """  # noqa: D301 - click wants the character itself
    if bool(files) == bool(names):
        raise click.UsageError("say where the kinds are defined: --crd FILE or --from-cluster NAME")
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
    text = sys.stdin.read() if file == "-" else Path(file).read_text("utf-8")
    try:
        documents = list(yaml.safe_load_all(text))
    except (yaml.YAMLError, RecursionError) as exc:
        raise problems.Problem(f"{file} is not YAML: {exc}") from None
    found = list(definitions_in(documents))
    if not found:
        raise problems.Problem(f"{file} holds no CustomResourceDefinition")
    return found


async def _fetch(access: Access, names: Sequence[str]) -> Sequence[Mapping[str, object]]:
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
        raise problems.Problem(
            f"{gvr} is no custom kind: there is no definition of it; built-in kinds have models "
            "in kinform.clientset"
        ) from None
