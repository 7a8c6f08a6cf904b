"""Behaviour of a whole process: exit, forks and signals. Each test in a process of its own."""

from __future__ import annotations

import re
import subprocess
import sys
import textwrap
import time
from dataclasses import dataclass

import pytest

from kinform.apiserver import faults
from kinform.testing import APIServerThread

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(sys.platform == "win32", reason="forks and POSIX signals"),
]

PRELUDE = """
import asyncio, multiprocessing, os, signal, sys, threading, time
import kinform
from kinform.sync import SharedInformerFactory, connect, run

config = kinform.Config(server=sys.argv[1], token=sys.argv[2], namespace="default")

def body(name):
    return {"metadata": {"name": name}}

async def tasks():
    return len(asyncio.all_tasks() - {asyncio.current_task()})

def interrupt_soon():
    threading.Timer(0.3, os.kill, (os.getpid(), signal.SIGINT)).start()

class Interrupting:
    '''A rate limiter: sends Ctrl-C in the midst of a request, which then never ends.'''
    def __init__(self):
        self.is_on = False
    async def wait(self):
        if self.is_on:
            os.kill(os.getpid(), signal.SIGINT)
            await asyncio.Event().wait()
"""


@dataclass
class Ended:
    code: int
    out: list[str]
    err: str
    at: float
    """The time of its end, on the clock that processes share."""


_SLOW = re.compile(r"Executing <.*> took \d+\.\d+ seconds$")


def program(server: APIServerThread, code: str, *options: str) -> Ended:
    text = PRELUDE + textwrap.dedent(code)
    command = [sys.executable, *options, "-c", text, server.url, server.token]
    ended = subprocess.run(command, check=False, capture_output=True, text=True, timeout=60)
    # With ``-X dev`` asyncio remarks on steps of over 0.1 s, which any has on a busy machine.
    said = [line for line in ended.stderr.splitlines(keepends=True) if not _SLOW.match(line)]
    return Ended(ended.returncode, ended.stdout.splitlines(), "".join(said), time.monotonic())


# --- exit


def test_a_program_ends_though_everything_still_runs(server: APIServerThread) -> None:
    """Nothing is closed: informers, a watch, a handler that is busy, daemons that wait."""
    ended = program(
        server,
        """
        client = connect(config).open()
        maps = client.resource("v1/configmaps")
        maps.create(body("a"))
        informer = client.informer("v1/configmaps")
        busy = threading.Event()
        informer.add_event_handler(on_add=lambda event: (busy.set(), time.sleep(60)))
        informer.start()
        factory = SharedInformerFactory(client)
        factory.informer("v1/pods")
        factory.start()
        factory.wait_for_cache_sync(10)
        def watch():
            with maps.watch() as events:
                for event in events: watching.set()
        watching = threading.Event()
        for target in (watch, lambda: list(informer.events()), informer.wait_stopped):
            threading.Thread(target=target, daemon=True).start()
        assert watching.wait(10) and busy.wait(10)
        print(time.monotonic())
        """,
    )
    assert ended.code == 0, ended.err
    assert ended.at - float(ended.out[0]) < 15  # and not the minute that the handler takes
    # One line, and it is true: the handler was left behind in the midst of its work.
    assert "Traceback" not in ended.err
    assert "Unclosed" not in ended.err


def test_idle_informers_end_without_a_word(server: APIServerThread) -> None:
    ended = program(
        server,
        """
        client = connect(config).open()
        maps = client.resource("v1/configmaps")
        maps.create(body("a"))
        informer = client.informer("v1/configmaps")
        registration = informer.add_event_handler(on_add=lambda event: None)
        informer.start()
        registration.wait_synced(10)
        began = time.monotonic()
        from kinform.sync import _loop_thread as loop_thread
        loop_thread._HOME.close()  # what the interpreter does last
        print(time.monotonic() - began < 1.5, informer.is_stopped, client.is_open)
        """,
        "-X",
        "dev",
    )
    assert (ended.code, ended.out, ended.err) == (0, ["True True False"], "")


def test_daemons_that_wait_are_told_nothing_at_the_end(server: APIServerThread) -> None:
    """An error raised in them would be shown to the users of a program that has ended."""
    ended = program(
        server,
        """
        from kinform.sync import _loop_thread as loop_thread
        waiting = threading.Event()
        async def wait():
            waiting.set()
            await asyncio.Event().wait()
        def daemon():
            try:
                run(wait)
            finally:
                print("told")
        thread = threading.Thread(target=daemon, daemon=True)
        thread.start()
        waiting.wait(10)
        loop_thread._HOME.close()
        thread.join(0.5)
        print(thread.is_alive())
        """,
    )
    assert (ended.code, ended.out, ended.err) == (0, ["True"], "")


def test_exit_functions_of_the_user_may_still_call(server: APIServerThread) -> None:
    ended = program(
        server,
        """
        import atexit
        atexit.register(lambda: print(client.version().major))
        client = connect(config).open()
        """,
    )
    assert (ended.code, ended.out, ended.err) == (0, ["1"], "")


def test_after_the_very_end_calls_are_refused_in_words(server: APIServerThread) -> None:
    ended = program(
        server,
        """
        from kinform.sync import _loop_thread as loop_thread
        client = connect(config).open()
        loop_thread._HOME.close()  # what the interpreter does last
        try:
            client.version()
        except kinform.UsageError as exc:
            print(exc)
        """,
    )
    assert ended.out == ["the interpreter is exiting: nothing can be asked of a cluster any more"]
    assert (ended.code, ended.err) == (0, "")


def test_nothing_is_started_by_an_import_or_a_client_that_is_not_open(
    server: APIServerThread,
) -> None:
    ended = program(server, "connect(config); print(threading.active_count())")
    assert (ended.code, ended.out, ended.err) == (0, ["1"], "")


# --- Ctrl-C


def test_ctrl_c_cancels_a_request(server: APIServerThread) -> None:
    ended = program(
        server,
        """
        limiter = Interrupting()
        with connect(config, rate_limiter=limiter) as client:
            maps = client.resource("v1/configmaps")
            maps.list()
            limiter.is_on = True
            began = time.monotonic()
            try:
                maps.get("a")
            except KeyboardInterrupt:
                print("interrupted", time.monotonic() - began < 5)
            limiter.is_on = False
            while run(tasks):
                pass
            print(len(maps.list()))
        """,
    )
    assert (ended.code, ended.out, ended.err) == (0, ["interrupted True", "0"], "")


def test_ctrl_c_between_two_pages_is_ctrl_c(server: APIServerThread) -> None:
    ended = program(
        server,
        """
        limiter = Interrupting()
        with connect(config, rate_limiter=limiter) as client:
            maps = client.resource("v1/configmaps")
            for name in "abcdefghij":
                maps.create(body(name))
            try:
                for one in maps.iterate(page_size=2):
                    print(one.name)
                    limiter.is_on = True
            except KeyboardInterrupt as error:
                print("interrupted", error.__context__)
            limiter.is_on = False
            while run(tasks):
                pass
            left = maps.iterate(page_size=2)  # never finished: no word of it at the end
            print(next(left).name)
        """,
    )
    assert ended.out[-2:] == ["interrupted None", "a"]
    assert (ended.code, ended.err) == (0, "")


def test_ctrl_c_ends_a_watch_loop_and_loses_nothing(server: APIServerThread) -> None:
    ended = program(
        server,
        """
        with connect(config) as client:
            maps = client.resource("v1/configmaps")
            with maps.watch() as events:
                interrupt_soon()
                try:
                    for event in events: pass
                except KeyboardInterrupt:
                    print("interrupted")
                maps.create(body("later"))
                print(next(events).object.name)
            while run(tasks):
                pass
        """,
    )
    assert (ended.code, ended.out, ended.err) == (0, ["interrupted", "later"], "")


@pytest.mark.parametrize(
    "wait",
    ["informer.wait_synced()", "informer.wait_for(lambda it: None)", "informer.wait_stopped()"],
)
def test_ctrl_c_ends_a_wait(server: APIServerThread, wait: str) -> None:
    server.faults.add(faults.stall(resource="configmaps"))
    ended = program(
        server,
        f"""
        with connect(config) as client:
            with client.informer("v1/configmaps") as informer:
                interrupt_soon()
                try:
                    {wait}
                except KeyboardInterrupt:
                    print("interrupted")
            while run(tasks):
                pass
        """,
    )
    assert (ended.code, ended.out, ended.err) == (0, ["interrupted"], "")


def test_ctrl_c_that_nobody_catches_ends_the_program(server: APIServerThread) -> None:
    ended = program(
        server,
        """
        with connect(config) as client:
            informer = client.informer("v1/configmaps")
            informer.add_event_handler(on_add=lambda event: os.kill(os.getpid(), signal.SIGINT))
            client.resource("v1/configmaps").create(body("a"))
            informer.run()
        """,
    )
    assert ended.code == -2  # by SIGINT, as a shell wants it
    assert ended.err.rstrip().endswith("KeyboardInterrupt")
    assert "Unclosed" not in ended.err


def test_a_signal_handler_may_stop_an_informer(server: APIServerThread) -> None:
    ended = program(
        server,
        """
        with connect(config) as client:
            informer = client.informer("v1/configmaps")
            signal.signal(signal.SIGTERM, lambda *_: informer.stop())
            informer.add_event_handler(on_add=lambda event: os.kill(os.getpid(), signal.SIGTERM))
            client.resource("v1/configmaps").create(body("a"))
            informer.run()
            print("stopped", informer.is_stopped)
        """,
    )
    assert (ended.code, ended.out, ended.err) == (0, ["stopped True"], "")


# --- fork

FORK = """
def in_child(function):
    '''Fork, call the function in the child, and print what comes of it there.'''
    sys.stdout.flush()
    pid = os.fork()
    if pid == 0:
        signal.alarm(20)  # a hang is death
        try:
            print("child:", function())
        except kinform.UsageError as exc:
            print("child refused:", str(exc).replace(str(os.getppid()), "PARENT")
                  .replace(str(os.getpid()), "CHILD"))
        sys.stdout.flush()
        os._exit(0)
    _, status = os.waitpid(pid, 0)
    print("child ended with", status)
"""

REFUSAL = (
    "child refused: made in process PARENT, and this is process CHILD, forked from it: a "
    "connection cannot be shared. Open a new one after the fork: connect()"
)
FROZEN = (
    "child refused: this cache belongs to process PARENT and is not kept up to date after a fork: "
    "open a client and an informer of its own in the child"
)


def test_a_forked_child_is_told_to_open_its_own_client(server: APIServerThread) -> None:
    ended = program(
        server,
        FORK
        + textwrap.dedent("""
        def anew():
            with connect(config) as client, client.informer("v1/configmaps") as informer:
                informer.wait_synced(10)
                return len(informer.lister.list())
        with connect(config) as client, client.informer("v1/configmaps") as informer:
            maps = client.resource("v1/configmaps")
            maps.create(body("a"))
            informer.wait_for(lambda it: it.get("default/a"), 10)
            for use in (lambda: maps.get("a"), lambda: informer.lister, informer.stop,
                        client.close, lambda: client.resource("v1/pods"), client.open):
                in_child(use)
            in_child(anew)
            print(maps.get("a").name, informer.lister.get("default/a").name, informer.healthy())
            maps.create(body("b"))
            print(informer.wait_for(lambda it: it.get("default/b"), 10).name)
        """),
    )
    assert ended.err == ""
    assert ended.out == [
        *[REFUSAL, "child ended with 0"] * 6,
        "child: 1",
        "child ended with 0",
        "a a True",
        "b",
    ]


def test_a_client_that_was_not_open_yet_is_the_childs(server: APIServerThread) -> None:
    ended = program(
        server,
        FORK
        + textwrap.dedent("""
        client = connect(config)
        with connect(config) as other:
            other.version()
            in_child(lambda: client.open().version().major)
        """),
    )
    assert (ended.out, ended.err) == (["child: 1", "child ended with 0"], "")


def test_a_child_that_drops_a_client_does_the_parent_no_harm(server: APIServerThread) -> None:
    """Collected in the child, its connections are closed there: not on the server's side."""
    ended = program(
        server,
        FORK
        + textwrap.dedent("""
        import gc
        client = connect(config).open()
        informer = client.informer("v1/configmaps")
        informer.start()
        informer.wait_synced(10)
        def drop():
            global client, informer
            client = informer = None
            gc.collect()
            return "dropped"
        in_child(drop)
        client.resource("v1/configmaps").create(body("a"))
        print(informer.wait_for(lambda it: it.get("default/a"), 10).name)
        print(informer.statistics().reflector.watches)
        """),
    )
    assert ended.err == ""
    assert ended.out == ["child: dropped", "child ended with 0", "a", "1"]


def test_forks_under_load_never_hang(server: APIServerThread) -> None:
    """Threads write, the loop is busy, its locks are taken and given back all the time."""
    ended = program(
        server,
        FORK
        + textwrap.dedent("""
        stop = threading.Event()
        with connect(config) as client, client.informer("v1/configmaps") as informer:
            maps = client.resource("v1/configmaps")
            informer.wait_synced(10)
            lister = informer.lister
            def write(n):
                while not stop.is_set():
                    maps.patch(f"m{n}", {"data": {"t": str(time.monotonic())}})
            for n in range(3):
                maps.create(body(f"m{n}"))
            informer.wait_for(lambda it: len(it.list()) == 3, 10)
            writers = [threading.Thread(target=write, args=(n,)) for n in range(3)]
            for writer in writers:
                writer.start()
            def use():
                with connect(config) as fresh:
                    return len(fresh.resource("v1/configmaps").list())
            for _ in range(15):
                in_child(use)
                in_child(lister.list)
            stop.set()
            for writer in writers:
                writer.join()
            print(len(informer.lister.list()))
        """),
    )
    assert ended.err == ""
    each = ["child: 3", "child ended with 0", FROZEN, "child ended with 0"]
    assert ended.out == [*each * 15, "3"]


def test_multiprocessing_workers_open_their_own(server: APIServerThread) -> None:
    """As Celery's prefork does: the parent has a client, each worker makes its own."""
    ended = program(
        server,
        """
        def count(_):
            try:
                client.version()
            except kinform.UsageError:
                with connect(config) as mine:
                    return len(mine.resource("v1/configmaps").list())

        with connect(config) as client:
            client.resource("v1/configmaps").create(body("a"))
            with multiprocessing.get_context("fork").Pool(2) as pool:
                print(pool.map(count, range(4)))
        """,
    )
    assert (ended.code, ended.out, ended.err) == (0, ["[1, 1, 1, 1]"], "")


def test_a_child_that_exits_in_order_says_nothing(server: APIServerThread) -> None:
    ended = program(
        server,
        """
        client = connect(config).open()
        informer = client.informer("v1/configmaps")
        informer.start()
        informer.wait_synced(10)
        pid = os.fork()
        if pid:
            print(os.waitpid(pid, 0)[1])
            print(informer.healthy())
        """,
        "-X",
        "dev",
    )
    assert (ended.code, ended.out, ended.err) == (0, ["0", "True"], "")


@pytest.mark.parametrize("options", [(), ("-X", "dev")])
def test_a_program_that_closes_what_it_opens_says_nothing(
    server: APIServerThread, options: tuple[str, ...]
) -> None:
    ended = program(
        server,
        """
        with connect(config) as client, client.informer("v1/configmaps") as informer:
            informer.wait_synced(10)
            print(len(informer.lister.list()))
        """,
        *options,
    )
    assert (ended.code, ended.out, ended.err) == (0, ["0"], "")
