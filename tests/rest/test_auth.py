"""Credentials: headers, token files, plugins that run again, and the reaction to a 401."""

from __future__ import annotations

import asyncio
import base64
import logging
import os
import random
import string
import traceback
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from urllib.parse import unquote

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from kinform.errors import ConfigError
from kinform.rest.auth.credentials import AuthHeaders, Credentials
from kinform.rest.config import Config, ExecPlugin, Impersonation, TlsConfig
from kinform.rest.transport.tls import TlsSource
from kinform.testing import in_virtual_time, virtual_clock, virtual_time
from tests.rest.support_clock import ManualClock
from tests.rest.support_plugin import ORIGIN, Plugin
from tests.support.certs import Authority

SERVER = Config(server="https://api.example:6443", origin=ORIGIN)
SECRET = "s3cr3t-token-that-must-not-show"


async def fields(config: Config) -> list[tuple[str, str]]:
    return list((await Credentials(config).headers()).items())


async def token_of(credentials: Credentials) -> str:
    return (await credentials.headers())["Authorization"].removeprefix("Bearer ")


# --- fixed credentials ------------------------------------------------------------------------


@in_virtual_time
async def test_without_credentials_there_are_no_headers() -> None:
    assert await fields(SERVER) == []


@in_virtual_time
async def test_a_token_is_a_bearer_token() -> None:
    assert await fields(replace(SERVER, token=" abc\n")) == [("Authorization", "Bearer abc")]


@in_virtual_time
async def test_user_and_password_are_basic_authentication() -> None:
    ((name, value),) = await fields(replace(SERVER, username="jürgen", password="a:b"))
    assert name == "Authorization"
    assert base64.b64decode(value.removeprefix("Basic ")).decode() == "jürgen:a:b"


@in_virtual_time
async def test_a_plugin_is_not_run_where_there_is_something_else() -> None:
    """As client-go: a token, a password or a certificate comes first."""
    plugin = replace(SERVER, exec_plugin=ExecPlugin(command="/no/such/plugin"))
    assert await fields(replace(plugin, token="abc")) == [("Authorization", "Bearer abc")]
    assert await fields(replace(plugin, tls=TlsConfig(cert_file="c", key_file="k"))) == []


@in_virtual_time
async def test_a_fixed_credential_cannot_be_refreshed() -> None:
    credentials = Credentials(replace(SERVER, token="abc"))
    assert not await credentials.refresh(await credentials.headers())


def test_what_contradicts_itself_is_refused_at_once() -> None:
    with pytest.raises(ConfigError, match=r"users\[dev\]\.user\.username: cannot be combined"):
        Credentials(replace(SERVER, token=SECRET, username="me"))


# --- impersonation ----------------------------------------------------------------------------


@in_virtual_time
async def test_impersonation_is_one_header_per_value() -> None:
    jane = Impersonation(
        user="jane",
        uid="42",
        groups=("dev", "ops"),
        extra={"scopes": ["a", "b"], "example.com/Rôle %": ["x"]},
    )
    assert await fields(replace(SERVER, token="abc", impersonate=jane)) == [
        ("Authorization", "Bearer abc"),
        ("Impersonate-User", "jane"),
        ("Impersonate-Uid", "42"),
        ("Impersonate-Group", "dev"),
        ("Impersonate-Group", "ops"),
        ("Impersonate-Extra-scopes", "a"),
        ("Impersonate-Extra-scopes", "b"),
        ("Impersonate-Extra-example.com%2FR%C3%B4le%20%25", "x"),
    ]


@pytest.mark.parametrize("value", ["a\r\nX-Evil: 1", "a\0", "\x7f", "\ud800"])
def test_impersonation_cannot_smuggle_headers(value: str) -> None:
    with pytest.raises(ConfigError, match=r"user\.as: the value for Impersonate-User holds"):
        Credentials(replace(SERVER, impersonate=Impersonation(user=value)))


NAME_CHARACTERS = set("!#$%&'*+-.^_`|~" + string.ascii_letters + string.digits)


@settings(max_examples=20)
@given(st.lists(st.text(), max_size=20, unique=True))
def test_an_escaped_key_is_a_header_name_and_can_be_read_back(keys: list[str]) -> None:
    """The server undoes it with Go's ``url.PathUnescape``."""
    jane = Impersonation(user="jane", extra={key: ["x"] for key in keys})
    headers = virtual_time.run(fields(replace(SERVER, impersonate=jane)))
    escaped = [name.removeprefix("Impersonate-Extra-") for name, _ in headers[1:]]
    assert [unquote(name) for name in escaped] == keys
    assert not set("".join(escaped)) - NAME_CHARACTERS


def test_headers_are_a_mapping_whose_items_may_repeat() -> None:
    headers = AuthHeaders([("A", "1"), ("B", SECRET), ("A", "2")])
    assert list(headers) == ["A", "B"]
    assert (len(headers), len(headers.items())) == (2, 3)
    assert headers["A"] == "1, 2"
    assert list(headers.items()) == [("A", "1"), ("B", SECRET), ("A", "2")]
    assert "C" not in headers
    assert repr(headers) == "<AuthHeaders A B>"


# --- token files ------------------------------------------------------------------------------


@pytest.fixture
def token_file(tmp_path: Path) -> Path:
    path = tmp_path / "token"
    path.write_text(" one\n", encoding="utf-8")
    return path


def with_file(path: Path, token: str | None = None) -> Config:
    return replace(SERVER, token_file=str(path), token=token)


@in_virtual_time
async def test_a_token_file_is_read_again_about_every_fifty_seconds(token_file: Path) -> None:
    """CG-H11 (client-go: TestCachingTokenSource)."""
    credentials = Credentials(with_file(token_file))
    assert await token_of(credentials) == "one"
    token_file.write_text("two", encoding="utf-8")
    await asyncio.sleep(49)
    assert await token_of(credentials) == "one"
    await asyncio.sleep(1)
    assert await token_of(credentials) == "two"


@in_virtual_time
async def test_the_headers_are_the_same_object_while_the_token_is(token_file: Path) -> None:
    credentials = Credentials(with_file(token_file))
    before = await credentials.headers()
    await asyncio.sleep(1000)
    assert await credentials.headers() is before


@in_virtual_time
async def test_time_asleep_counts_and_the_wall_clock_does_not(token_file: Path) -> None:
    """F-R33."""
    credentials = Credentials(with_file(token_file))
    assert await token_of(credentials) == "one"
    token_file.write_text("two", encoding="utf-8")
    virtual_clock().jump_wall(86_400 * 365)
    assert await token_of(credentials) == "one"
    virtual_clock().jump_wall(-86_400 * 365 * 20)
    virtual_clock().suspend(60)
    assert await token_of(credentials) == "two"


def emptied(path: Path) -> None:
    path.write_bytes(b" \n")


def filled_with_nonsense(path: Path) -> None:
    path.write_bytes(b"\x00\xff binary")


def turned_into_a_folder(path: Path) -> None:
    path.unlink()
    path.mkdir()


HARM = [emptied, filled_with_nonsense, Path.unlink, turned_into_a_folder]


@pytest.mark.parametrize("harm", HARM)
@in_virtual_time
async def test_a_token_file_that_cannot_be_read_again_keeps_the_old_token(
    token_file: Path, caplog: pytest.LogCaptureFixture, harm: Callable[[Path], None]
) -> None:
    """CG-H11: old token on error; warned of once, and cured within seconds."""
    credentials = Credentials(with_file(token_file))
    before = await credentials.headers()
    harm(token_file)
    with caplog.at_level(logging.WARNING):
        for _ in range(5):
            await asyncio.sleep(50)
            assert await credentials.headers() is before
    assert [record.message for record in caplog.records] == [
        "token file cannot be read, the last token stays in use"
    ]
    if token_file.is_dir():
        token_file.rmdir()
    token_file.write_text("two", encoding="utf-8")
    await asyncio.sleep(10)
    assert await token_of(credentials) == "two"


@pytest.mark.parametrize(
    "harm, says",
    list(
        zip(
            HARM,
            ["is empty", "does not hold a token", "no such file", "is a directory"],
            strict=True,
        )
    ),
)
@in_virtual_time
async def test_a_token_file_that_cannot_be_read_at_first_is_an_error(
    token_file: Path, harm: Callable[[Path], None], says: str
) -> None:
    harm(token_file)
    credentials = Credentials(with_file(token_file))
    with pytest.raises(ConfigError) as caught:
        await credentials.headers()
    assert (caught.value.source, caught.value.key) == (
        "/kube/config",
        "users[dev].user.tokenFile",
    )
    assert says in caught.value.message
    assert str(token_file) in caught.value.message
    if token_file.is_dir():
        token_file.rmdir()
    token_file.write_text("two", encoding="utf-8")
    assert await token_of(credentials) == "two"


@in_virtual_time
async def test_a_fixed_token_serves_until_the_file_can_be_read(token_file: Path) -> None:
    token_file.unlink()
    credentials = Credentials(with_file(token_file, token="fixed"))
    assert await token_of(credentials) == "fixed"
    token_file.write_text("one", encoding="utf-8")
    await asyncio.sleep(10)
    assert await token_of(credentials) == "one"


@in_virtual_time
async def test_the_file_wins_over_a_fixed_token(token_file: Path) -> None:
    assert await token_of(Credentials(with_file(token_file, token="fixed"))) == "one"


@in_virtual_time
async def test_a_401_has_the_file_read_at_once(token_file: Path) -> None:
    credentials = Credentials(with_file(token_file))
    used = await credentials.headers()
    token_file.write_text("two", encoding="utf-8")
    assert await credentials.refresh(used)
    assert await token_of(credentials) == "two"


@in_virtual_time
async def test_after_a_401_with_the_same_token_a_second_try_is_no_use(token_file: Path) -> None:
    credentials = Credentials(with_file(token_file))
    used = await credentials.headers()
    assert not await credentials.refresh(used)
    assert await credentials.headers() is used


@in_virtual_time
async def test_a_token_newer_than_the_refused_one_is_kept(token_file: Path) -> None:
    """client-go: ResetTokenOlderThan; the file is not even read."""
    credentials = Credentials(with_file(token_file))
    used = await credentials.headers()
    token_file.write_text("two", encoding="utf-8")
    await asyncio.sleep(50)
    newer = await credentials.headers()
    token_file.write_text("three", encoding="utf-8")
    assert await credentials.refresh(used)
    assert await credentials.headers() is newer


@in_virtual_time
async def test_a_copy_of_the_headers_tells_as_much(token_file: Path) -> None:
    credentials = Credentials(with_file(token_file))
    used = dict(await credentials.headers())
    assert not await credentials.refresh({**used, "User-Agent": "x"})
    token_file.write_text("two", encoding="utf-8")
    assert await credentials.refresh({**used, "User-Agent": "x"})
    assert await credentials.refresh(used)
    assert await token_of(credentials) == "two"


@pytest.mark.slow
@in_virtual_time
async def test_rotation_for_a_day_never_leaves_a_request_without_a_good_token(
    tmp_path: Path,
) -> None:
    """F-R30: a new token every 90 s, good for 150 s, and every way a writer can be halfway."""
    rand, link = random.Random(1), tmp_path / "token"
    (tmp_path / "0").write_text("token-0", encoding="utf-8")
    link.symlink_to("0")
    credentials = Credentials(with_file(link))
    assert await token_of(credentials) == "token-0"
    for number in range(1, 960):
        harm = rand.choice([None, emptied, Path.unlink])
        if harm is not None:
            harm(link)
            assert await token_of(credentials) == f"token-{number - 1}"
            await asyncio.sleep(rand.uniform(0, 20))
        (tmp_path / str(number)).write_text(f"token-{number}\n", encoding="utf-8")
        (tmp_path / "next").symlink_to(str(number))
        (tmp_path / "next").replace(link)
        elapsed = 0.0
        while elapsed < 90:
            token = await token_of(credentials)
            assert token in {f"token-{number}", f"token-{number - 1}"}
            assert elapsed < 60 or token == f"token-{number}"
            elapsed += (step := rand.uniform(20, 40))
            await asyncio.sleep(step)


async def test_on_an_ordinary_loop_many_refreshes_read_the_file_once(token_file: Path) -> None:
    credentials = Credentials(with_file(token_file))
    used = await credentials.headers()
    token_file.write_text("two", encoding="utf-8")
    async with asyncio.TaskGroup() as group:
        tasks = [group.create_task(credentials.refresh(used)) for _ in range(20)]
    assert all(task.result() for task in tasks)
    assert await token_of(credentials) == "two"


# --- client certificates ----------------------------------------------------------------------


@in_virtual_time
async def test_after_a_401_certificate_files_are_looked_at_again(tmp_path: Path) -> None:
    authority = Authority()
    cert, key = authority.issue(common_name="alice").write(tmp_path)
    files = TlsConfig(cert_file=str(cert), key_file=str(key), ca_data=authority.certificate)
    config = replace(SERVER, tls=files)
    tls = TlsSource(config)
    credentials = Credentials(config, tls=tls)
    used = await credentials.headers()
    before = await tls.context()
    assert not await credentials.refresh(used)
    assert await tls.context() is before
    authority.issue(common_name="bob").write(tmp_path)
    assert await credentials.refresh(used)
    assert await tls.context() is not before


# --- plugins ----------------------------------------------------------------------------------


@pytest.fixture
def plugin(tmp_path: Path) -> Plugin:
    return Plugin(tmp_path)


async def test_a_plugins_token_is_kept_until_shortly_before_its_end(plugin: Plugin) -> None:
    clock, credentials = ManualClock.install(), Credentials(plugin.config())
    plugin.gives(token="one", expirationTimestamp="2026-01-01T01:00:00Z")
    assert await token_of(credentials) == "one"
    plugin.gives(token="two", expirationTimestamp="2026-01-01T02:00:00Z")
    clock.advance(3539)
    assert await token_of(credentials) == "one"
    clock.advance(1)
    assert await token_of(credentials) == "two"
    assert plugin.runs == 2


async def test_all_who_need_the_first_token_wait_for_one_run(plugin: Plugin) -> None:
    credentials = Credentials(plugin.config())
    plugin.gives(token="one")
    async with asyncio.TaskGroup() as group:
        tasks = [group.create_task(credentials.headers()) for _ in range(10)]
    assert len({id(task.result()) for task in tasks}) == 1
    assert plugin.runs == 1


async def test_a_short_life_is_used_for_nine_tenths(plugin: Plugin) -> None:
    clock, credentials = ManualClock.install(), Credentials(plugin.config())
    plugin.gives(token="one", expirationTimestamp="2026-01-01T00:01:40Z")
    await credentials.headers()
    clock.advance(89)
    await credentials.headers()
    assert plugin.runs == 1
    clock.advance(1)
    await credentials.headers()
    assert plugin.runs == 2


async def test_a_token_without_an_end_is_kept(plugin: Plugin) -> None:
    clock, credentials = ManualClock.install(), Credentials(plugin.config())
    plugin.gives(token="one")
    await credentials.headers()
    clock.advance(1e9)
    assert await token_of(credentials) == "one"
    assert plugin.runs == 1


@pytest.mark.parametrize("boot, wall", [(3600, -86_400), (0, 3600)], ids=["set-back", "forward"])
async def test_clock_jumps_do_not_keep_an_expired_token(
    plugin: Plugin, boot: float, wall: float
) -> None:
    """F-R33: whichever clock says that it is over is believed."""
    clock, credentials = ManualClock.install(), Credentials(plugin.config())
    plugin.gives(token="one", expirationTimestamp="2026-01-01T01:00:00Z")
    await credentials.headers()
    clock.boot_time += boot + 10
    clock.wall_time += wall
    plugin.gives(token="two")
    assert await token_of(credentials) == "two"


async def test_a_token_that_comes_expired_is_used_and_does_not_cause_a_hot_loop(
    plugin: Plugin, caplog: pytest.LogCaptureFixture
) -> None:
    """F-R31: the server will tell; the plugin is asked again after ten seconds."""
    clock, credentials = ManualClock.install(), Credentials(plugin.config())
    plugin.gives(token="one", expirationTimestamp="2025-01-01T00:00:00Z")
    for _ in range(5):
        assert await token_of(credentials) == "one"
    assert plugin.runs == 1
    assert "is the clock right?" in caplog.text
    clock.advance(10)
    await credentials.headers()
    assert plugin.runs == 2


async def test_a_failed_renewal_keeps_the_token_to_its_end(
    plugin: Plugin, caplog: pytest.LogCaptureFixture
) -> None:
    clock, credentials = ManualClock.install(), Credentials(plugin.config())
    plugin.gives(token="one", expirationTimestamp="2026-01-01T01:00:00Z")
    await credentials.headers()
    plugin.does("exit 1")
    clock.advance(3550)
    for _ in range(3):
        assert await token_of(credentials) == "one"
    assert plugin.runs == 2, "a failing plugin is not run for every request"
    assert "its last credential is still valid" in caplog.text
    clock.advance(50)
    with pytest.raises(ConfigError, match="failed with exit code 1"):
        await credentials.headers()


async def test_while_one_renews_ahead_of_time_the_others_go_on(
    plugin: Plugin, tmp_path: Path
) -> None:
    clock, credentials = ManualClock.install(), Credentials(plugin.config())
    plugin.gives(token="one", expirationTimestamp="2026-01-01T01:00:00Z")
    await credentials.headers()
    os.mkfifo(tmp_path / "gate")
    plugin.does(f"read x < {tmp_path}/gate; cat {tmp_path}/answer")
    plugin.gives(token="two")
    clock.advance(3550)
    async with asyncio.TaskGroup() as group:
        renewing = group.create_task(credentials.headers())
        await asyncio.sleep(0)
        assert await token_of(credentials) == "one"
        await clock.offload(lambda: (tmp_path / "gate").write_text("go\n", encoding="utf-8"))
    assert renewing.result()["Authorization"] == "Bearer two"


async def test_a_401_runs_the_plugin_once_for_all(plugin: Plugin) -> None:
    credentials = Credentials(plugin.config())
    plugin.gives(token="one")
    used = await credentials.headers()
    plugin.gives(token="two")
    async with asyncio.TaskGroup() as group:
        tasks = [group.create_task(credentials.refresh(used)) for _ in range(10)]
    assert all(task.result() for task in tasks)
    assert await token_of(credentials) == "two"
    assert plugin.runs == 2


async def test_a_plugin_that_fails_after_a_401_leaves_the_401_to_the_callers(
    plugin: Plugin, caplog: pytest.LogCaptureFixture
) -> None:
    credentials = Credentials(plugin.config())
    plugin.gives(token="one")
    used = await credentials.headers()
    plugin.does("exit 1")
    async with asyncio.TaskGroup() as group:
        tasks = [group.create_task(credentials.refresh(used)) for _ in range(10)]
    assert not any(task.result() for task in tasks)
    assert [record.message for record in caplog.records] == ["exec plugin failed after a 401"]
    assert await credentials.headers() is used
    assert plugin.runs == 2


async def test_a_plugin_that_says_the_same_again_is_no_reason_for_a_second_try(
    plugin: Plugin,
) -> None:
    clock, credentials = ManualClock.install(), Credentials(plugin.config())
    plugin.gives(token="one", expirationTimestamp="2026-01-01T01:00:00Z")
    used = await credentials.headers()
    plugin.gives(token="one", expirationTimestamp="2026-01-01T03:00:00Z")
    async with asyncio.TaskGroup() as group:
        tasks = [group.create_task(credentials.refresh(used)) for _ in range(10)]
    assert not any(task.result() for task in tasks)
    clock.advance(7000)
    assert await credentials.headers() is used, "it has a new end"
    assert plugin.runs == 2


async def test_all_who_wait_for_a_failing_plugin_share_its_failure(plugin: Plugin) -> None:
    credentials = Credentials(plugin.config())
    plugin.does("exit 1")
    async with asyncio.TaskGroup() as group:
        tasks = [group.create_task(_failure(credentials)) for _ in range(10)]
    errors = [task.result() for task in tasks]
    assert len({id(error) for error in errors}) == 10
    assert len({str(error) for error in errors}) == 1
    assert plugin.runs == 1
    plugin.does(f"cat {plugin.path.parent}/answer")
    plugin.gives(token="one")
    assert await token_of(credentials) == "one"


async def _failure(credentials: Credentials) -> ConfigError:
    with pytest.raises(ConfigError) as caught:
        await credentials.headers()
    return caught.value


async def test_cancelling_the_first_in_line_lets_the_next_run_the_plugin(
    plugin: Plugin, tmp_path: Path
) -> None:
    credentials = Credentials(plugin.config())
    os.mkfifo(tmp_path / "started")
    plugin.does(f"echo > {tmp_path}/started; exec sleep 1000")
    async with asyncio.TaskGroup() as group:
        first = group.create_task(credentials.headers())
        second = group.create_task(token_of(credentials))
        await ManualClock().offload((tmp_path / "started").read_text)
        plugin.does(f"cat {tmp_path}/answer")
        plugin.gives(token="one")
        first.cancel()
    assert second.result() == "one"


async def test_a_plugins_certificate_reaches_the_tls_source(plugin: Plugin) -> None:
    authority = Authority()
    config = plugin.config(tls=TlsConfig(ca_data=authority.certificate))
    tls = TlsSource(config)
    credentials = Credentials(config, tls=tls)

    def gives_certificate_of(name: str) -> None:
        pair = authority.issue(common_name=name)
        plugin.gives(
            clientCertificateData=pair.certificate.decode(), clientKeyData=pair.key.decode()
        )

    gives_certificate_of("alice")
    used = await credentials.headers()
    before = await tls.context()
    gives_certificate_of("bob")
    assert await credentials.refresh(used)
    assert dict(await credentials.headers()) == dict(used) == {}
    assert await tls.context() is not before
    assert await credentials.refresh(used), "the plugin has been run since"
    assert plugin.runs == 2


async def test_no_error_log_or_repr_shows_a_token(
    plugin: Plugin, caplog: pytest.LogCaptureFixture
) -> None:
    clock, credentials = ManualClock.install(), Credentials(plugin.config())
    plugin.gives(token=SECRET, expirationTimestamp="2026-01-01T01:00:00Z")
    with caplog.at_level(logging.DEBUG):
        used = await credentials.headers()
        plugin.does(f"echo {SECRET}; echo {SECRET} >&2; exit 1")
        assert not await credentials.refresh(used)
        clock.advance(3600)
        error = await _failure(credentials)
    shown = repr(used) + repr(credentials) + "".join(traceback.format_exception(error))
    assert SECRET not in shown + caplog.text + repr([vars(r) for r in caplog.records])
