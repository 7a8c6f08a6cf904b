"""Options that several commands share, and the values they are read into."""

from __future__ import annotations

import functools
import logging
import os
import re
from collections.abc import Callable
from dataclasses import dataclass
from typing import Final, ParamSpec, TypeVar, final

import click

from kinform.cli.execution import CommandState, warn
from kinform.cli.output.formats import complete_output, read_output
from kinform.cli.problems import TOKEN
from kinform.client import Client, connect
from kinform.resource_client import ALL_NAMESPACES
from kinform.rest.config import Config, TlsConfig
from kinform.rest.warnings import ApiWarning
from kinform.selectors import field_selector, label_selector

__all__ = [
    "TOKEN",
    "ClusterOptions",
    "Filters",
    "access_options",
    "debug_option",
    "read_duration",
    "selection_options",
]

P = ParamSpec("P")
R = TypeVar("R")

_DURATION: Final = re.compile(r"(?:\d+(?:\.\d+)?(?:ms|s|m|h))+")
_PART: Final = re.compile(r"(\d+(?:\.\d+)?)(ms|s|m|h)")
_UNITS: Final = {"ms": 0.001, "s": 1.0, "m": 60.0, "h": 3600.0}


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class ClusterOptions:
    """The cluster and the credentials to use."""

    kubeconfig: str | None = None
    context: str | None = None
    server: str | None = None
    certificate_authority: str | None = None
    namespace: str | None = None

    @property
    def is_given(self) -> bool:
        """The command line or the environment names a cluster."""
        named = (self.kubeconfig, self.context, self.server)
        return any(one is not None for one in named) or bool(os.environ.get("KUBECONFIG"))

    def client(self) -> Client:
        """Return a client that is not open yet.

        Raises:
            UsageError: of click, if the options exclude each other.
        """
        if self.server is not None:
            if self.kubeconfig is not None or self.context is not None:
                raise click.UsageError("--server stands alone: leave out --kubeconfig, --context")
            config = Config(
                server=self.server,
                token=os.environ.get(TOKEN) or None,
                tls=TlsConfig(ca_file=self.certificate_authority),
                source="--server",
            )
            return connect(config, namespace=self.namespace, warning_handler=_Warnings())
        if self.certificate_authority is not None:
            raise click.UsageError("--certificate-authority goes with --server")
        return connect(
            kubeconfig=self.kubeconfig,
            context=self.context,
            namespace=self.namespace,
            warning_handler=_Warnings(),
        )


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class Filters:
    """The selection of objects of a kind."""

    namespace: str | None = None
    all_namespaces: bool = False
    labels: str = ""
    fields: str = ""

    def place(self, default: str) -> str:
        """Return the namespace to ask for; `ALL_NAMESPACES` for all."""
        return ALL_NAMESPACES if self.all_namespaces else self.namespace or default


@final
class _Warnings:
    """Says each of the server's warnings once."""

    def __init__(self) -> None:
        self._said: set[str] = set()

    def __call__(self, warning: ApiWarning) -> None:
        if warning.text and warning.text not in self._said and len(self._said) < 100:
            self._said.add(warning.text)
            warn(f"the server warns: {warning.text}")


def read_duration(
    _ctx: click.Context | None, _param: click.Parameter | None, text: str | None
) -> float | None:
    """Return the seconds that ``text`` means: ``30``, ``30s``, ``1m30s``, ``2h``.

    >>> read_duration(None, None, "1m30s"), read_duration(None, None, "0.5")
    (90.0, 0.5)

    Raises:
        BadParameter: of click, if it means none.
    """
    if text is None:
        return None
    if re.fullmatch(r"\d+(?:\.\d+)?", text):
        return float(text)
    if not _DURATION.fullmatch(text):
        raise click.BadParameter(f"{text!r} is not a duration like 30s, 1m30s or 2h")
    return sum(float(number) * _UNITS[unit] for number, unit in _PART.findall(text))


def debug_option(command: Callable[P, R]) -> Callable[P, R]:
    """Add ``--debug``."""

    def note(ctx: click.Context, _param: click.Parameter, value: object) -> None:
        state = ctx.ensure_object(CommandState)
        state.debug = state.debug or bool(value)
        if state.debug:
            logging.basicConfig(level=logging.DEBUG)

    return click.option(
        "--debug",
        is_flag=True,
        expose_value=False,
        callback=note,
        help="Log debug messages, and show tracebacks of errors.",
    )(command)


def access_options(command: Callable[..., R]) -> Callable[..., R]:
    """Add the options of `ClusterOptions` but the namespace; the command gets ``access``."""

    @click.option("--kubeconfig", metavar="FILE", help="The kubeconfig to use.")
    @click.option("--context", metavar="NAME", help="The kubeconfig context to use.")
    @click.option(
        "--server", metavar="URL", help=f"The URL of the server; the token is read from ${TOKEN}."
    )
    @click.option("--certificate-authority", metavar="FILE", help="The CA certificate of --server.")
    @debug_option
    @functools.wraps(command)
    def with_access(
        *,
        kubeconfig: str | None,
        context: str | None,
        server: str | None,
        certificate_authority: str | None,
        **others: object,
    ) -> R:
        access = ClusterOptions(
            kubeconfig=kubeconfig,
            context=context,
            server=server,
            certificate_authority=certificate_authority,
        )
        if server is not None and not os.environ.get(TOKEN):
            click.get_current_context().ensure_object(CommandState).lacks_token = True
        return command(access=access, **others)

    return with_access


def _read_selector(_ctx: click.Context, param: click.Parameter, text: str | None) -> str:
    # A SelectorError says at which position it stumbled; it is a usage error by itself.
    read = label_selector if param.name == "selector" else field_selector
    return read(text)


def selection_options(command: Callable[..., R]) -> Callable[..., R]:
    """Add the options of `Filters` and ``-o``; the command gets ``selection`` and ``output``."""

    @click.option(
        "-n", "--namespace", metavar="NAME", help="The namespace, instead of the context's."
    )
    @click.option("-A", "--all-namespaces", is_flag=True, help="Select objects of all namespaces.")
    @click.option(
        "-l",
        "--selector",
        metavar="LABELS",
        callback=_read_selector,
        help="Label selector: app=web,tier!=db",
    )
    @click.option(
        "--field-selector",
        metavar="FIELDS",
        callback=_read_selector,
        help="Field selector: status.phase=Running",
    )
    @click.option(
        "-o",
        "--output",
        metavar="FORM",
        default="table",
        callback=read_output,
        shell_complete=complete_output,
        help="Output: table, wide, name, json, yaml, jsonpath=TEMPLATE or wire.",
    )
    @functools.wraps(command)
    def with_selection(
        *,
        namespace: str | None,
        all_namespaces: bool,
        selector: str,
        field_selector: str,
        **others: object,
    ) -> R:
        if namespace is not None and all_namespaces:
            raise click.UsageError("give --namespace or --all-namespaces, not both")
        selection = Filters(
            namespace=namespace,
            all_namespaces=all_namespaces,
            labels=selector,
            fields=field_selector,
        )
        return command(selection=selection, **others)

    return with_selection
