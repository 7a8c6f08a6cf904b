"""kubectl as a process: bounded in time, alone with its server, its answers as text."""

from __future__ import annotations

import contextlib
import json
import os
import subprocess
import threading
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple, final

TIMEOUT = 30.0
"""Seconds that one command may take; only a broken one ever needs them."""


def environment(home: Path, **more: str) -> dict[str, str]:
    """Return an environment without the user's configuration, and without proxies."""
    kept = {name: os.environ[name] for name in ("PATH", "LANG", "LC_ALL") if name in os.environ}
    return {**kept, "HOME": str(home), "PYTHONUTF8": "1", **more}


class Answer(NamedTuple):
    code: int
    out: str
    err: str


@final
class Kubectl:
    """kubectl in one namespace of one server; a failure fails the test, unless asked for."""

    def __init__(self, binary: Path, *, kubeconfig: Path, home: Path, namespace: str) -> None:
        self._binary = binary
        self._env = environment(home, KUBECONFIG=str(kubeconfig), KUBECTL_KUBERC="false")
        self._cache = home / "cache"
        self.namespace = namespace

    def run(self, *args: str, given: object = None, env: Mapping[str, str] | None = None) -> Answer:
        """Run it to its end; what is ``given`` goes to stdin: text, an object or several."""
        ran = subprocess.run(
            self._command(args),
            env={**self._env, **(env or {})},
            input=given if isinstance(given, str) else _manifest(given),
            capture_output=True,
            encoding="utf-8",
            timeout=TIMEOUT,
            check=False,
        )
        return Answer(ran.returncode, ran.stdout, ran.stderr)

    def __call__(
        self, *args: str, given: object = None, env: Mapping[str, str] | None = None
    ) -> str:
        """Run it, expect it to succeed, and return what it prints."""
        answer = self.run(*args, given=given, env=env)
        assert answer.code == 0, f"kubectl {' '.join(args)}: {answer}"
        return answer.out

    def refused(self, *args: str, given: object = None) -> str:
        """Run it, expect it to fail, and return its complaint."""
        answer = self.run(*args, given=given)
        assert answer.code == 1, f"kubectl {' '.join(args)}: {answer}"
        return answer.err

    def rows(self, *args: str) -> list[list[str]]:
        """Return the cells of the table it prints, without the header."""
        return [line.split() for line in self(*args).splitlines()[1:]]

    def object(self, *args: str) -> dict[str, Any]:
        """Return what ``kubectl get ARGS -o json`` prints."""
        found: dict[str, Any] = json.loads(self("get", *args, "-o", "json"))
        return found

    def value(self, kind: str, name: str, path: str) -> str:
        """Return the value at a JSONPath of one object."""
        return self("get", kind, name, "-o", f"jsonpath={{{path}}}")

    @contextlib.contextmanager
    def started(self, *args: str) -> Iterator[Running]:
        """Run it within the block."""
        with subprocess.Popen(
            self._command(args),
            env=self._env,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            encoding="utf-8",
        ) as process:
            watchdog = threading.Timer(TIMEOUT, process.kill)
            watchdog.start()
            try:
                yield Running(process)
            finally:
                watchdog.cancel()
                process.kill()

    def _command(self, args: Sequence[str]) -> list[str]:
        options = [f"--cache-dir={self._cache}", f"--namespace={self.namespace}"]
        return [str(self._binary), *options, *args]


@final
class Running:
    """A kubectl that runs; it is killed if it takes too long, so that reading ends."""

    def __init__(self, process: subprocess.Popen[str]) -> None:
        self._process = process
        self._seen: list[str] = []

    def line(self, *words: str) -> str:
        """Return the next line that holds all ``words``."""
        assert self._process.stdout is not None
        while line := self._process.stdout.readline():
            self._seen.append(line)
            if all(word in line for word in words):
                return line
        raise AssertionError(f"no line with {words} in {self._seen}")

    def end(self) -> tuple[int, str]:
        """Wait for its end; return the exit code and the rest of what it printed."""
        out, _ = self._process.communicate(timeout=TIMEOUT)
        return self._process.returncode, out


def _manifest(given: object) -> str:
    if isinstance(given, list):
        return "\n---\n".join(map(json.dumps, given))  # JSON is YAML
    return "" if given is None else json.dumps(given)


def config_map(name: str, labels: Mapping[str, str] | None = None, **data: str) -> dict[str, Any]:
    metadata: dict[str, object] = {"name": name}
    if labels:
        metadata["labels"] = dict(labels)
    return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata, "data": data}


def pod(name: str, **labels: str) -> dict[str, Any]:
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": name, "labels": labels},
        "spec": {"containers": [{"name": "main", "image": "nginx"}]},
    }


def deployment(name: str, *, replicas: int = 2) -> dict[str, Any]:
    labels = {"app": name}
    container = {"name": "main", "image": "nginx:1", "ports": [{"containerPort": 80}]}
    return {
        "apiVersion": "apps/v1",
        "kind": "Deployment",
        "metadata": {"name": name, "labels": labels},
        "spec": {
            "replicas": replicas,
            "selector": {"matchLabels": labels},
            "template": {"metadata": {"labels": labels}, "spec": {"containers": [container]}},
        },
    }
