"""A kubeconfig from elsewhere reads nothing and decides nothing; any may be hostile."""

from __future__ import annotations

import asyncio
import json
import os
import time
import tracemalloc
from pathlib import Path

import pytest
import yaml

from kinform.clock import offload
from kinform.errors import ConfigError
from kinform.rest.auth.credentials import Credentials
from kinform.rest.clientcmd.loading import load
from kinform.rest.config import Config
from kinform.rest.transport.tls import TlsSource
from tests.rest.support_kubeconfig import Entry, document, write

FILES: list[tuple[str, str, Entry]] = [
    ("cluster", "certificate-authority", {}),
    ("user", "client-certificate", {"client-key-data": "eA=="}),
    ("user", "client-key", {"client-certificate-data": "eA=="}),
    ("user", "tokenFile", {}),
]


@pytest.mark.parametrize("part, key, more", FILES, ids=[key for _, key, _ in FILES])
@pytest.mark.parametrize("path", ["../../etc/passwd", "/etc/passwd", "token", "/dev/zero", "~/x"])
def test_a_kubeconfig_from_elsewhere_names_no_files(
    part: str, key: str, more: Entry, path: str
) -> None:
    """Neither to read them nor to send what is in them to the server it names as well."""
    wanted = document(**{part: {key: path, **more}})  # type: ignore[arg-type] # by name
    with pytest.raises(ConfigError, match="names a file, which only a kubeconfig that is a file"):
        Config.from_kubeconfig(wanted)


def test_a_kubeconfig_from_elsewhere_does_not_switch_off_verification() -> None:
    with pytest.raises(ConfigError, match="switches off verification") as caught:
        Config.from_kubeconfig(document(cluster={"insecure-skip-tls-verify": True}))
    assert caught.value.key == "clusters[dev].cluster.insecure-skip-tls-verify"


def test_a_kubeconfig_from_elsewhere_impersonates_nobody() -> None:
    with pytest.raises(ConfigError, match="impersonates another user"):
        Config.from_kubeconfig(document(user={"token": "x", "as": "system:admin"}))


def test_a_kubeconfig_from_elsewhere_that_asks_for_nothing_is_read() -> None:
    entry = document(user={"token": "x"}, context={"namespace": "team"})
    for form in (entry, json.dumps(entry), yaml.safe_dump(entry).encode()):
        config = Config.from_kubeconfig(form, context="dev")
        assert (config.token, config.namespace) == ("x", "team")


def test_a_kubeconfig_from_elsewhere_is_one_or_an_error() -> None:
    texts = ["", "[]", "text", "\0", "- a", json.dumps({"kind": "Pod"})]
    nothings: list[str | bytes | dict[str, object]] = [*texts, b"", b"\xff\xfe", {}]
    for nothing in nothings:
        with pytest.raises(ConfigError):
            Config.from_kubeconfig(nothing)


# --- files that are no files ------------------------------------------------------------------


@pytest.mark.parametrize("what", ["pipe", "device", "loop", "folder", "huge", "gone"])
@pytest.mark.parametrize("part, key, more", FILES, ids=[key for _, key, _ in FILES])
async def test_what_is_no_small_regular_file_is_an_error_at_once(
    tmp_path: Path, what: str, part: str, key: str, more: Entry
) -> None:
    path = odd_file(tmp_path, what)
    wanted = document(**{part: {key: path, **more}})  # type: ignore[arg-type] # by name
    config = await offload(load, write(tmp_path / "config", wanted))
    async with asyncio.timeout(5):
        with pytest.raises(ConfigError, match=f"{key}: .*(cannot|not)"):
            await Credentials(config).headers()
            await TlsSource(config).context()


def odd_file(folder: Path, what: str) -> str:
    path = folder / "odd"
    match what:
        case "pipe":
            os.mkfifo(path)
        case "device":
            return "/dev/zero"
        case "loop":
            path.symlink_to(path)
        case "folder":
            path.mkdir()
        case "huge":
            with path.open("wb") as file:
                file.truncate(64 * 1024 * 1024)
        case _:
            pass
    return str(path)


@pytest.mark.parametrize("device", ["/dev/zero", "/dev/urandom", "/dev/stdin"])
def test_a_device_is_no_kubeconfig(device: str) -> None:
    with pytest.raises(ConfigError, match="not a regular file"):
        load(device)


# --- YAML -------------------------------------------------------------------------------------

LAUGHS = "a0: &a0 [x, x, x, x, x, x, x, x, x]\n" + "".join(
    f"a{n}: &a{n} [{', '.join([f'*a{n - 1}'] * 9)}]\n" for n in range(1, 10)
)
MERGED = f"a: &a {{{{{','.join(f'k{n}: 1' for n in range(10_000))}}}}}\nb: {{{{{{}}}}}}\n"
SLOW = pytest.mark.slow
REFUSED = r"nested|values|larger|merge key"
TAGS = [
    "!!python/object/apply:os.system ['touch {trace}']",
    "!!python/object/new:subprocess.Popen [['touch', '{trace}']]",
    "!!python/name:os.system",
    "!!python/module:os",
    "!!python/tuple [1, 2]",
    "!custom {{a: b}}",
    "!!binary 'not base64'",
]


@pytest.mark.parametrize("tag", TAGS)
def test_a_tag_makes_nothing_but_an_error(tag: str, tmp_path: Path) -> None:
    trace = tmp_path / "trace"
    text = f"current-context: {tag.format(trace=trace)}\n"
    with pytest.raises(ConfigError):
        Config.from_kubeconfig(text)
    with pytest.raises(ConfigError):
        load(write(tmp_path / "config", text))
    assert not trace.exists()


@pytest.mark.parametrize(
    "bomb",
    [
        pytest.param(LAUGHS, id="nested aliases"),
        pytest.param("a: &a x\nb: [" + "*a, " * 5000 + "*a]\n", id="many aliases"),
        pytest.param("a: " + "[" * 5000 + "]" * 5000, id="deep"),
        pytest.param('{"a":' + "[" * 5000 + "]" * 5000 + "}", id="deep JSON"),
        pytest.param("a: &a [*a]\n", id="within itself"),
        pytest.param("x" * (5 * 1024 * 1024), id="large"),
        pytest.param("? " * 5000 + "a", id="deep keys"),
        pytest.param("a: [" + "[]," * 1_000_000 + "]", id="collections", marks=SLOW),
        pytest.param("a: [" + "1," * 1_000_000 + "]", id="scalars", marks=SLOW),
        pytest.param("a:\n" + "-\n" * 1_000_000, id="empty items", marks=SLOW),
        pytest.param(
            "".join(f"k{n}: &a{n} 1\n" for n in range(100_000)),
            id="anchors",
            marks=pytest.mark.slow,
        ),
        pytest.param(
            '{"a":[' + "{}," * 1_000_000 + "{}]}", id="JSON collections", marks=pytest.mark.slow
        ),
        pytest.param(
            '{"a":[' + "1," * 1_000_000 + "1]}", id="JSON numbers", marks=pytest.mark.slow
        ),
        pytest.param(
            f"a: &a [{'x,' * 20_000}]\nb: [*a, *a, *a, *a, *a]\n",
            id="long alias",
            marks=pytest.mark.slow,
        ),
        pytest.param(MERGED.format("<<: *a"), id="merge", marks=SLOW),
        pytest.param(MERGED.format("<<: [*a, *a]"), id="merge of a list", marks=SLOW),
        pytest.param(MERGED.format("!!merge x: *a"), id="merge by its tag", marks=SLOW),
    ],
)
def test_a_bomb_is_refused_in_little_memory(bomb: str, tmp_path: Path) -> None:
    path = write(tmp_path / "config", bomb)
    tracemalloc.start()
    started = time.process_time()
    try:
        with pytest.raises(ConfigError, match=REFUSED):
            Config.from_kubeconfig(bomb)
        with pytest.raises(ConfigError, match=REFUSED):
            load(path)
        assert tracemalloc.get_traced_memory()[1] < 64 * 1024 * 1024
        assert time.process_time() - started < 10  # traced; without that it takes a tenth
    finally:
        tracemalloc.stop()


def test_a_bomb_that_somebody_else_has_read_is_refused_too() -> None:
    """PyYAML reads it in no time: it is the copies that cost."""
    laughs = yaml.safe_load(LAUGHS)
    itself: list[object] = []
    itself.append(itself)
    for bomb in (laughs, {"a": itself}, {"a": list(range(200_000))}, {"a": object()}, {"a": b"x"}):
        with pytest.raises(ConfigError, match=r"nested|values|no kubeconfig"):
            Config.from_kubeconfig(bomb)


@pytest.mark.parametrize("aliases", [3, 4])
def test_what_an_alias_repeats_counts_each_time(aliases: int) -> None:
    """20,000 values and three copies of them are within 100,000 events; four copies are not."""
    text = f"a: &a [{'x,' * 20_000}]\nb: [{', '.join(['*a'] * aliases)}]\n"
    says = "no clusters" if aliases == 3 else "more than 100000 values"
    with pytest.raises(ConfigError, match=says):
        Config.from_kubeconfig(text)


def test_two_angle_brackets_that_are_a_text_are_no_merge() -> None:
    config = Config.from_kubeconfig(json.dumps(document(user={"token": "<<"})))
    assert config.token == "<<"
    text = yaml.safe_dump(document(user={"token": "<<"}))
    assert "'<<'" in text
    assert Config.from_kubeconfig(text).token == "<<"


@pytest.mark.parametrize("number", ["9" * 100_000, "0x" + "f" * 100_000, "1." + "9" * 100_000])
def test_a_number_of_any_length_is_read_as_text(number: str) -> None:
    text = yaml.safe_dump(document(user={"token": "NUMBER"})).replace("NUMBER", number)
    assert Config.from_kubeconfig(text).token == number


@pytest.mark.slow
def test_the_largest_kubeconfig_is_read_in_time(tmp_path: Path) -> None:
    users = [{"name": f"u{n}", "user": {"token": "x"}} for n in range(9_000)]
    entry = {**document(), "users": [{"name": "dev", "user": {}}, *users]}
    started = time.process_time()
    assert load(write(tmp_path / "config", yaml.safe_dump(entry)), environ={}).server
    assert time.process_time() - started < 10


@pytest.mark.slow
def test_a_million_keys_are_read_or_refused_in_time(tmp_path: Path) -> None:
    text = "".join(f"{n}:\n" for n in range(450_000))
    started = time.process_time()
    with pytest.raises(ConfigError, match="more than 100000 values"):
        load(write(tmp_path / "config", text))
    assert time.process_time() - started < 5
