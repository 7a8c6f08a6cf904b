"""Credential plugins (``exec`` in a kubeconfig): run the program once and parse its output.

`kinform.rest.auth.credentials` decides when to run it again. The plugin's output is a credential:
no part of it appears in a log or an error. Its stderr may hold a password in any form, so errors
only name the topics that stderr mentions, in fixed words of this module.
"""

from __future__ import annotations

import asyncio
import base64
import contextlib
import datetime
import logging
import os
import re
import shutil
import signal
import subprocess
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final, cast, final

import msgspec

from kinform import clock
from kinform.rest.auth import _plugin_policy
from kinform.rest.clientcmd import _files
from kinform.rest.config import Config, ExecPlugin
from kinform.rest.transport.tls import ClientCertificate

__all__ = ["ExecCredential", "is_token", "run"]

log: Final = logging.getLogger(__name__)

MAX_OUTPUT: Final = 1024 * 1024
"""Size limit of the plugin's stdout."""

_COMMAND: Final = "exec_plugin.command"
_STDERR_TAIL: Final = 4096
_HINT_LENGTH: Final = 500
_LINGER: Final = 0.5

# The error names the first topic that the end of stderr mentions.
_TOPICS: Final = (
    (re.compile(rb"expired|sign[ -]?in|log[ -]?in|sso|credentials", re.IGNORECASE), "a login"),
    (re.compile(rb"denied|forbidden|not authorized|unauthorized", re.IGNORECASE), "permissions"),
    (re.compile(rb"timed? ?out|connect|network|unreachable|resolve", re.IGNORECASE), "the network"),
    (re.compile(rb"not found|no such|usage:|unknown", re.IGNORECASE), "something that is missing"),
)
_ADVICE: Final = "run it by hand to see why"
_KNOWN_KIND: Final = re.compile(r"client\.authentication\.k8s\.io/v[0-9a-z]{1,10} ExecCredential")


@final
@dataclass(frozen=True, slots=True)
class ExecCredential:
    """The output of a plugin: a token, a client certificate, or both. ``repr()`` shows neither."""

    token: str | None = field(default=None, repr=False)
    certificate: ClientCertificate | None = None
    expires_at: float | None = None
    """The expiry in wall time; ``None``: not given."""


class _Status(msgspec.Struct):
    token: str | None = None
    certificate: str | None = msgspec.field(name="clientCertificateData", default=None)
    key: str | None = msgspec.field(name="clientKeyData", default=None)
    expires: datetime.datetime | None = msgspec.field(name="expirationTimestamp", default=None)


class _Output(msgspec.Struct):
    api_version: str = msgspec.field(name="apiVersion", default="")
    kind: str = ""
    status: _Status | None = None


async def run(config: Config) -> ExecCredential:
    """Run the plugin of ``config`` and return its credential.

    It is started without a shell, in a session of its own unless it may use the terminal.
    Cancelling kills it with its children, and waits until it has exited.

    Raises:
        ConfigError: if it may not run, is missing, fails, hangs, or prints something other than a
            credential; names the kubeconfig and the key.
        UsageError: if the configured policy is not valid.
    """
    plugin = config.exec_plugin
    if plugin is None:
        raise config.error("exec_plugin", "is not set; name a plugin to run")
    _plugin_policy.check(config)
    interactive = _is_interactive(config, plugin)
    command = await clock.offload(_find, config, plugin)
    info = await clock.offload(_exec_info, config, plugin, interactive=interactive)
    running = await _start(config, plugin, command=command, info=info, interactive=interactive)
    try:
        async with asyncio.timeout(plugin.timeout):
            await running.finish()
    except TimeoutError as exc:
        message = (
            f"{plugin.command!r} did not finish within {plugin.timeout:g} s;"
            " run it by hand to see what it waits for"
        )
        raise config.error(_COMMAND, message) from exc
    finally:
        await running.end()
    return _understand(running, config=config, plugin=plugin)


async def _start(
    config: Config, plugin: ExecPlugin, *, command: str, info: str, interactive: bool
) -> _Running:
    log.debug("running exec plugin", extra={"command": command})
    loop, running = asyncio.get_running_loop(), _Running()
    starting = loop.create_task(
        loop.subprocess_exec(
            lambda: running,
            command,
            *plugin.args,
            stdin=None if interactive else subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=None if interactive else subprocess.PIPE,
            env={**os.environ, **plugin.env, "KUBERNETES_EXEC_INFO": info},
            start_new_session=not interactive,  # so that its children can be killed, too
        )
    )
    try:
        # Shielded: cancelled half-way, asyncio kills the plugin without its children, and then
        # waits for pipes that they hold.
        await asyncio.shield(starting)
    except asyncio.CancelledError:
        while not starting.done():  # takes milliseconds, and ignores further cancellations
            with contextlib.suppress(asyncio.CancelledError):
                await asyncio.wait([starting])
        if starting.exception() is None:
            await running.end()
        raise
    except (OSError, ValueError) as exc:
        why = _files.reason(exc) if isinstance(exc, OSError) else str(exc)
        raise config.error(_COMMAND, f"cannot start {command!r}: {why}") from exc
    return running


def _is_interactive(config: Config, plugin: ExecPlugin) -> bool:
    """Decide whether the plugin may use our terminal."""
    terminal = os.isatty(0)
    if plugin.interactive_mode == "Always" and not terminal:
        message = "is Always, but stdin is not a terminal; sign in first, or choose IfAvailable"
        raise config.error("exec_plugin.interactive_mode", message)
    return terminal and plugin.interactive_mode != "Never"


def _find(config: Config, plugin: ExecPlugin) -> str:
    """Return the path of the program, which may be run. Blocks."""
    found = shutil.which(plugin.command)
    if found is not None and (Path(found).is_absolute() or found == plugin.command):
        _plugin_policy.check_found(config, plugin, found)
        return found
    if found is not None:
        message = f"{plugin.command!r} was found through a relative entry of PATH; give its path"
        raise config.error(_COMMAND, message)
    if Path(plugin.command).name != plugin.command and Path(plugin.command).is_file():
        raise config.error(_COMMAND, f"{plugin.command!r} is not executable; set its x bit")
    hint = "install it, or correct the command"
    if plugin.install_hint:
        text = " ".join(plugin.install_hint.split())[:_HINT_LENGTH]
        hint = "".join(char if char.isprintable() else "?" for char in text)
    raise config.error(_COMMAND, f"program {plugin.command!r} not found; {hint}")


def _exec_info(config: Config, plugin: ExecPlugin, *, interactive: bool) -> str:
    """Return the value of ``KUBERNETES_EXEC_INFO`` for the plugin. Blocks."""
    spec: dict[str, object] = {"interactive": interactive}
    if plugin.provide_cluster_info:
        spec["cluster"] = _cluster_info(config, plugin)
    info = {"apiVersion": plugin.api_version, "kind": "ExecCredential", "spec": spec}
    try:
        return msgspec.json.encode(info).decode()
    except (TypeError, msgspec.MsgspecError) as exc:
        message = "has a cluster extension that is not JSON; check it, or remove it"
        raise config.error("exec_plugin", message) from exc


def _cluster_info(config: Config, plugin: ExecPlugin) -> dict[str, object]:
    tls = config.tls
    ca = tls.ca_data
    if ca is None and tls.ca_file:
        try:
            ca = _files.read_small(tls.ca_file)
        except OSError as exc:
            message = f"cannot read {tls.ca_file!r}: {_files.reason(exc)}"
            raise config.error("tls.ca_file", message) from exc
    info: dict[str, object | None] = {
        "server": config.server,
        "tls-server-name": tls.server_name,
        "insecure-skip-tls-verify": tls.insecure_skip_verify or None,
        "certificate-authority-data": base64.b64encode(ca).decode("ascii") if ca else None,
        "proxy-url": config.proxy_url,
        "disable-compression": None if config.compression else True,
        "config": plugin.cluster_extension,
    }
    return {name: value for name, value in info.items() if value is not None}


@final
class _Running(asyncio.SubprocessProtocol):
    """A plugin that has been started: its output and its exit."""

    def __init__(self) -> None:
        self.stdout = bytearray()
        self.stderr = bytearray()  # the end of it
        self.code: int | None = None
        self._transport: asyncio.SubprocessTransport | None = None
        self._exited = asyncio.Event()
        self._closed = asyncio.Event()  # exited, and all its pipes are closed

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Keep the transport of the process; called by the loop."""
        self._transport = cast(
            "asyncio.SubprocessTransport", transport
        )  # uvloop's is not a subclass

    def pipe_data_received(self, fd: int, data: bytes) -> None:
        """Keep stdout up to its limit, and the end of stderr; called by the loop."""
        if fd == 2:
            self.stderr += data
            del self.stderr[:-_STDERR_TAIL]
        elif len(self.stdout) <= MAX_OUTPUT:
            self.stdout += data
            if len(self.stdout) > MAX_OUTPUT:
                self._kill()

    def process_exited(self) -> None:
        """Keep the exit code; called by the loop."""
        assert self._transport is not None
        self.code = self._transport.get_returncode()
        self._exited.set()

    def connection_lost(self, exc: Exception | None) -> None:  # noqa: ARG002 (asyncio's signature)
        """Set the event for closed pipes; called by the loop."""
        self._closed.set()

    async def finish(self) -> None:
        """Wait until it has exited and all its output has been read.

        A child it leaves behind may keep the pipes open for ever; the wait for that is short.
        """
        await self._exited.wait()
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(_LINGER):
                await self._closed.wait()

    async def end(self) -> None:
        """Kill the plugin and its children if they still run, and close the pipes."""
        assert self._transport is not None
        if not self._exited.is_set():
            self._kill()
        self._transport.close()
        await self._exited.wait()

    def _kill(self) -> None:
        assert self._transport is not None
        pid = self._transport.get_pid()
        with contextlib.suppress(ProcessLookupError, PermissionError):
            if os.name == "posix" and os.getpgid(pid) == pid:
                os.killpg(pid, signal.SIGKILL)
            else:  # it shares our terminal and our group
                self._transport.kill()


def _understand(running: _Running, *, config: Config, plugin: ExecPlugin) -> ExecCredential:
    """Return the credential the plugin printed."""
    name = plugin.command
    if len(running.stdout) > MAX_OUTPUT:
        message = f"{name!r} printed more than {MAX_OUTPUT} bytes; that is not a credential"
        raise config.error(_COMMAND, message)
    if running.code != 0:
        advice = _advice(bytes(running.stderr))
        raise config.error(_COMMAND, f"{name!r} failed with exit code {running.code}; {advice}")
    try:
        output = msgspec.json.decode(running.stdout, type=_Output)
    except msgspec.MsgspecError as exc:  # its text names a place and types, never a value
        message = f"{name!r} printed no ExecCredential as JSON: {exc}"
        raise config.error(_COMMAND, message) from None
    if output.kind != "ExecCredential" or output.api_version != plugin.api_version:
        said = f"{output.api_version} {output.kind}"
        shown = repr(said) if _KNOWN_KIND.fullmatch(said) else "something else"
        wanted = f"{plugin.api_version} ExecCredential"
        message = f"{name!r} printed {shown} where {wanted!r} is configured; make them agree"
        raise config.error("exec_plugin.api_version", message)
    try:
        return _credential(output.status or _Status())
    except ValueError as exc:
        raise config.error(_COMMAND, f"{name!r} printed {exc}") from None


def _credential(status: _Status) -> ExecCredential:
    """Check and convert; a `ValueError` says what is wrong, after "printed"."""
    if bool(status.certificate) != bool(status.key):
        raise ValueError("a certificate without its key, or a key without its certificate")
    if not status.token and not status.certificate:
        raise ValueError("neither a token nor a certificate; sign in again")
    if status.token and not is_token(status.token):
        raise ValueError("a token with characters that no token has")
    certificate = None
    if status.certificate and status.key:
        certificate = ClientCertificate(status.certificate.encode(), status.key.encode())
    expires = status.expires
    if expires is not None and expires.tzinfo is None:
        expires = expires.replace(tzinfo=datetime.UTC)
    return ExecCredential(
        status.token or None, certificate, None if expires is None else expires.timestamp()
    )


def is_token(text: str) -> bool:
    """Return whether ``text`` can be a bearer token: visible ASCII and no space."""
    return text.isascii() and text.isprintable() and bool(text) and " " not in text


def _advice(stderr: bytes) -> str:
    """Return advice after a failure: one of a few fixed sentences, no part of ``stderr``."""
    for words, topic in _TOPICS:
        if words.search(stderr):
            return f"its output mentions {topic}; {_ADVICE}"
    return _ADVICE
