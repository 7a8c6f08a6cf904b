"""``-o``: the output formats of objects. Pure."""

from __future__ import annotations

import json
import unicodedata
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Final, cast, final

import click
import yaml

from kinform.cli.output.json_path import JsonPath, JsonPathError
from kinform.cli.problems import one_line

__all__ = [
    "FORMS",
    "Output",
    "complete_output",
    "parse_output",
    "read_output",
    "to_json",
    "to_yaml",
    "without_managed_fields",
]

FORMS: Final = ("table", "wide", "name", "json", "yaml", "wire")
_PATH: Final = "jsonpath="


@final
@dataclass(frozen=True, slots=True)
class Output:
    """A form, and for ``jsonpath`` the template."""

    form: str
    path: JsonPath | None = None

    @property
    def is_table(self) -> bool:
        """The server's columns are shown."""
        return self.form in {"table", "wide"}

    @property
    def is_wide(self) -> bool:
        """The columns of lower priority are shown, too."""
        return self.form == "wide"


def parse_output(text: str) -> Output:
    """Return what ``-o text`` asks for.

    Raises:
        ValueError: the form is unknown, or its template cannot be read.
    """
    if text == _PATH:  # most likely a variable of the shell that is empty
        raise ValueError("jsonpath= needs a template, for example jsonpath={.metadata.name}")
    if text.startswith(_PATH):
        return Output("jsonpath", JsonPath(text.removeprefix(_PATH)))
    if text in FORMS:
        return Output(text)
    raise ValueError(f"{text!r} is none of {', '.join(FORMS)} and jsonpath=TEMPLATE")


def read_output(_ctx: click.Context, _param: click.Parameter, text: str) -> Output:
    """Return the value of the option ``-o``: a callback for click.

    Raises:
        BadParameter: of click, if it has none.
    """
    try:
        return parse_output(text)
    except (ValueError, JsonPathError) as exc:
        raise click.BadParameter(one_line(str(exc))) from None


def complete_output(_ctx: click.Context, _param: click.Parameter, incomplete: str) -> list[str]:
    """Return what a shell may offer for ``-o``."""
    return [form for form in (*FORMS, _PATH) if form.startswith(incomplete)]


def to_json(value: object, *, compact: bool = False) -> str:
    """Return ``value`` as JSON: in one line, or laid out for people as kubectl does.

    Characters that control a terminal are escaped, as in `to_yaml`; a parser restores them.
    """
    if compact:
        text = json.dumps(value, separators=(",", ":"), ensure_ascii=False)
    else:
        text = json.dumps(value, indent=4, ensure_ascii=False, sort_keys=True)
    return _escaped(text, _json_escape)


def to_yaml(value: object) -> str:
    """Return ``value`` as a YAML document, several lines of text as a block."""
    text = yaml.dump(value, Dumper=_Dumper, allow_unicode=True, width=10_000)
    return _escaped(text, _yaml_escape)


def _escaped(document: str, escape: Callable[[str], str]) -> str:
    """Return a document with escapes for what a terminal obeys, all of which is within quotes."""
    if document.isascii() and "\x7f" not in document:
        return document
    return "".join(
        char if _is_harmless(char) or char == "\n" else escape(char) for char in document
    )


def _is_harmless(char: str) -> bool:
    return char.isprintable() or unicodedata.category(char) == "Zs"


def _json_escape(char: str) -> str:
    return json.dumps(char)[1:-1] if char != "\x7f" else "\\u007f"


def _yaml_escape(char: str) -> str:
    return f"\\U{ord(char):08X}"


class _Dumper(yaml.SafeDumper):
    """Writes texts of several lines so that people can read them."""


def _text(dumper: yaml.SafeDumper, text: str) -> yaml.ScalarNode:
    style = "|" if "\n" in text else None
    if not text.isprintable() and not all(_is_harmless(char) or char == "\n" for char in text):
        style = '"'  # where `_escaped` may escape
    return dumper.represent_scalar(  # pyright: ignore[reportUnknownMemberType] - stub without types
        "tag:yaml.org,2002:str", text, style=style
    )


_Dumper.add_representer(str, _text)


def without_managed_fields(content: Mapping[str, object]) -> dict[str, object]:
    """Return ``content`` less its ``managedFields``, which kubectl does not show either."""
    shown = dict(content)
    metadata = shown.get("metadata")
    if isinstance(metadata, dict) and "managedFields" in metadata:
        members = cast("dict[str, object]", metadata)
        shown["metadata"] = {
            name: value for name, value in members.items() if name != "managedFields"
        }
    return shown
