"""kubeconfig files of doubtful origin: a `Config`, or a `ConfigError` that gives nothing away."""

# ruff: noqa: PT017 - a refusal is one of two valid results, and is checked where it is caught

from __future__ import annotations

import tempfile
from dataclasses import replace
from pathlib import Path

import yaml

from kinform.errors import ConfigError
from kinform.rest.clientcmd import _documents, loading
from kinform.rest.config import Config

_LONGEST_MESSAGE = 10_000
_LONGEST_COMPARED = 4096


def fuzz_documents(data: bytes) -> None:
    """A document is what PyYAML's safe loader says, with all keys as text; or a ConfigError."""
    try:
        found = _documents.parse(data, source="file")
    except ConfigError as exc:
        assert exc.source == "file"
        assert len(str(exc)) < 500
        assert exc.__cause__ is None
        assert exc.__context__ is None
        return
    native = _documents.native(found)
    if not data.lstrip().startswith(b"{") and len(data) < _LONGEST_COMPARED:
        _compare(native, _reference(data))


def _reference(data: bytes) -> object:
    """Return what the library's own constructors make of a document; () if they cannot."""
    loader = getattr(yaml, "CSafeLoader", yaml.SafeLoader)(data)
    try:
        return loader.get_single_data()
    except (yaml.YAMLError, ValueError, LookupError, AttributeError, RecursionError):
        return ()
    finally:
        loader.dispose()


def _compare(found: object, expected: object) -> None:
    """Compare as far as both have one meaning: times stay text, and so does the base 60."""
    if isinstance(found, dict) and isinstance(expected, dict):
        if all(isinstance(key, str) for key in expected):
            assert found.keys() == expected.keys()
            for key, value in expected.items():
                _compare(found[key], value)
    elif isinstance(found, list) and isinstance(expected, list):
        assert len(found) == len(expected)
        for one, other in zip(found, expected, strict=True):
            _compare(one, other)
    elif isinstance(expected, str | bool | None):
        assert found is expected or found == expected


def fuzz_kubeconfig(data: bytes) -> None:
    """Any file gives the same `Config` each time, which shows no secret, or a ConfigError."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, "config")
        path.touch(mode=0o600)
        path.write_bytes(data)
        outcomes = [_loaded(path), _loaded(path)]
    assert outcomes[0] == outcomes[1]
    config = outcomes[0]
    if not isinstance(config, Config):
        assert config.startswith(str(path))
        assert len(config) < _LONGEST_MESSAGE
        return
    assert config.server.startswith(("http://", "https://"))
    assert config.server.isprintable()
    assert " " not in config.server
    _check_secrets(config)
    # What was checked is in its final form.
    assert loading.load(config) == config


def _check_secrets(config: Config) -> None:
    shown = repr(config)
    hidden = replace(config, token=None, password=None, proxy_url=None)
    for secret in (config.token, config.password, config.proxy_url):
        # A value that also appears in a public field is not a secret.
        if secret and len(secret) > 8 and secret not in repr(hidden):
            assert secret not in shown
    for data in (config.tls.key_data, config.tls.cert_data, config.tls.ca_data):
        assert not data or len(data) < 8 or repr(data)[2:-1] not in shown


def _loaded(path: Path) -> Config | str:
    try:
        return loading.load(str(path))
    except ConfigError as exc:
        return str(exc)
