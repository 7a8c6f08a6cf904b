"""Checks and their report, as kube-apiserver writes it."""

from __future__ import annotations

import asyncio
import logging
from functools import partial

import pytest

from kinform import DecodeError, ForbiddenError, SharedInformer, UsageError
from kinform.cache.reflector_options import ReflectorOptions
from kinform.meta import Status
from kinform.runtime.healthz.checks import Checks, HealthReport, informers_check, loop_check
from kinform.testing import in_virtual_time
from tests.cache.support_informer import CUT, REFUSED, source_of

ALONE = ReflectorOptions(probe_period=None, idle_timeout=None)


def checks(**texts: str | None) -> Checks:
    made = Checks()
    for name, text in texts.items():
        made.add(name, partial(str, text) if text is not None else lambda: None)
    return made


def test_all_is_well_where_there_is_nothing_to_check() -> None:
    report = Checks().report()
    assert report == HealthReport(ok=True, lines=())
    assert report.text("livez") == "ok"
    assert report.text("livez", verbose=True) == "livez check passed\n"


def test_a_report_says_what_is_wrong_and_what_is_not() -> None:
    report = checks(informers=None, leaderElection="the lease\n  is lost").report()
    expected = "[+]informers ok\n[-]leaderElection failed: the lease is lost\nreadyz check failed\n"
    assert not report.ok
    assert report.text("readyz") == report.text("readyz", verbose=True) == expected


def test_a_check_that_is_excluded_is_not_asked() -> None:
    report = checks(good=None, bad="broken").report(exclude=["bad", "<script>"])
    assert report.ok
    assert report.lines == (
        "[+]good ok",
        "[+]bad excluded: ok",
        "warn: a check to exclude cannot be found",
    )


def test_a_check_that_raises_has_failed_and_tells_the_log_alone(
    caplog: pytest.LogCaptureFixture,
) -> None:
    def check() -> str | None:
        raise ValueError("password=hunter2")

    made = checks(good=None)
    made.add("odd", check)
    report = made.report()
    assert report.lines == ("[+]good ok", "[-]odd failed: the check raised ValueError; see the log")
    assert not report.ok
    assert "health check odd raised" in caplog.text
    assert "hunter2" in caplog.text


@pytest.mark.parametrize("name", ["", "a/b", "a b", "a\nb", "größe", "-?"])
def test_a_name_must_fit_into_a_path(name: str) -> None:
    with pytest.raises(UsageError, match="letters, digits"):
        Checks().add(name, lambda: None)


def test_a_name_is_taken_once() -> None:
    with pytest.raises(UsageError, match="a check 'ping' already"):
        checks(ping=None).add("ping", lambda: None)


def test_a_check_cannot_wait() -> None:
    async def check() -> None: ...

    with pytest.raises(UsageError, match="async function"):
        Checks().add("slow", check)  # type: ignore[arg-type]


# --- informers


@in_virtual_time
async def test_informers_are_well_from_sync_to_stop() -> None:
    source = source_of("a")
    source.latency = 1
    informer = SharedInformer(source, name="pods")
    check = informers_check([informer])
    assert check() == "pods was not started"
    async with informer:
        assert check() == "pods has not synced"
        await informer.wait_synced(5)
        assert check() is None
    assert check() == "pods has stopped"


@in_virtual_time
async def test_an_informer_that_cannot_sync_says_why(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.CRITICAL)
    source = source_of("a")
    source.fail_lists(REFUSED, forever=True)
    source.fail_watches(REFUSED, forever=True)
    async with SharedInformer(source, name="pods") as informer:
        await asyncio.sleep(5)
        expected = "pods has not synced (TransportError: refused; see the log)"
        assert informers_check([informer])() == expected


@in_virtual_time
async def test_no_name_and_no_text_of_an_error_is_shown(
    caplog: pytest.LogCaptureFixture,
) -> None:
    caplog.set_level(logging.CRITICAL)
    status = Status(code=403, reason="Forbidden", message='secrets "stripe-key" is forbidden')
    url = "https://x/api/v1/namespaces/payments/secrets?fieldSelector=metadata.name%3Dstripe-key"
    refused = ForbiddenError(status, method="GET", url=url)
    unreadable = DecodeError("Invalid value", key="payments/stripe-key")
    rule = '{apiGroups: [""], resources: ["secrets"], verbs: ["list", "watch"]}'
    for error, said in (
        (refused, f"ForbiddenError 403; a Role needs the rule {rule}"),
        (unreadable, "DecodeError; see the log"),
    ):
        source = source_of("a")
        source.fail_lists(error, forever=True)
        source.fail_watches(error, forever=True)
        name = "v1/secrets in payments with metadata.name=stripe-key"
        async with SharedInformer(source, name=name, label="v1/secrets") as informer:
            await asyncio.sleep(5)
            assert informers_check([informer])() == f"v1/secrets has not synced ({said})"


@in_virtual_time
async def test_a_cache_that_has_synced_and_fell_silent_is_not_well() -> None:
    """F-R44: lag, not only sync."""
    source = source_of("a")
    async with SharedInformer(source, name="pods", options=ALONE) as informer:
        await informer.wait_synced(5)
        source.freeze_watches()
        source.hang_watches()
        source.hang_lists()
        await asyncio.sleep(100)
        assert informers_check([informer], 101)() is None
        assert informers_check([informer], 99)() == "pods has heard nothing for 100 s"
        assert informers_check([informer])() is None  # as patient as a quiet watch
        await asyncio.sleep(600)
        wrong = informers_check([informer])()
        assert wrong is not None  # with the last error: of the watch, or of a version probe
        assert wrong.startswith("pods has heard nothing for 700 s (TransportError: ")
        source.heal()
        recovered: list[bool] = []
        for _ in range(190):  # a watch that hangs ends after 120 s, the backoff takes up to 60 s
            await asyncio.sleep(1)
            recovered.append(informers_check([informer], 60)() is None)
        assert any(recovered)


@in_virtual_time
async def test_a_server_that_only_fails_is_named_with_its_last_error(
    caplog: pytest.LogCaptureFixture,
) -> None:
    caplog.set_level(logging.CRITICAL)
    source = source_of("a")
    async with SharedInformer(source, name="pods", options=ALONE) as informer:
        await informer.wait_synced(5)
        source.fail_lists(REFUSED, forever=True)
        source.fail_watches(REFUSED, forever=True)
        source.close_watches(CUT)
        await asyncio.sleep(200)
        expected = "pods has heard nothing for 200 s (TransportError: refused; see the log)"
        assert informers_check([informer], 180)() == expected


@in_virtual_time
async def test_an_error_that_is_over_is_not_to_blame_for_silence(
    caplog: pytest.LogCaptureFixture,
) -> None:
    caplog.set_level(logging.CRITICAL)
    source = source_of("a")
    async with SharedInformer(source, name="pods", options=ALONE) as informer:
        await informer.wait_synced(5)
        source.close_watches(CUT)
        await asyncio.sleep(30)
        assert informer.statistics().reflector.last_error is CUT
        source.freeze_watches()
        await asyncio.sleep(100)
        wrong = informers_check([informer], 60)()
        assert wrong is not None
        assert wrong.endswith(" s")


@in_virtual_time
async def test_informers_that_come_later_are_seen_and_only_some_are_named() -> None:
    informers: dict[int, SharedInformer] = {}
    check = informers_check(informers.values())
    assert check() is None
    informers.update({n: SharedInformer(source_of(), name=f"i{n}") for n in range(13)})
    wrong = check()
    assert wrong is not None
    assert wrong.startswith("i0 was not started; i1 was not started; ")
    assert wrong.endswith("i9 was not started; and 3 more")


# --- the loop


class Blocks:
    def __init__(self, took: float) -> None:
        self.took = took

    def longest_block(self, within: float) -> float:
        return self.took if within >= 15 else 0.0


def test_a_loop_that_was_blocked_for_long_is_not_well_for_a_while() -> None:
    assert loop_check(Blocks(9.9))() is None
    expected = "the event loop was blocked for 10.1 s; the log says where"
    assert loop_check(Blocks(10.1))() == expected
    assert loop_check(Blocks(10.1), window=14)() is None
    assert loop_check(Blocks(2), max_blocked=1)() is not None
