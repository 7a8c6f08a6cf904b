"""The fuzzing engine: mutate inputs, run the target, keep inputs that reach new code.

Rule 1: one seed, one run. All randomness comes from it; time only decides when to stop.
Rule 2: any exception of a target is a finding; so is CPU time out of proportion to the input.
Rule 3: findings that fail at the same place are one, and are minimized before they are reported.
"""

from __future__ import annotations

import contextlib
import signal
import sys
import threading
import time
import traceback
from collections.abc import Callable, Generator, Iterable
from dataclasses import dataclass, field
from pathlib import Path
from random import Random
from types import CodeType, FrameType
from typing import Any, Final, final

from tools.fuzz.mutation import mutated, smaller

__all__ = ["Coverage", "Finding", "Fuzzer", "Hang", "Slow", "Target", "finding"]

_HANG: Final = 30.0
_LARGE: Final = 16 * 1024
_ATTEMPTS: Final = 3000


class Hang(BaseException):
    """An input takes for ever. No ``Exception``: code under test must not catch it."""


class Slow(AssertionError):
    """An input takes CPU time out of proportion to its size."""


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class Target:
    """A fuzz target: a function of bytes that raises if, and only if, something is wrong."""

    name: str
    run: Callable[[bytes], None]
    files: tuple[str, ...]
    """Whose lines guide: ends of file names below ``src``."""
    tokens: tuple[bytes, ...] = ()
    """Words of the input's language."""
    longest: int = 2048
    limit: float = 2.0
    """The most CPU time that one input may take, in seconds: a hundred times what is usual."""


@final
@dataclass(frozen=True, slots=True)
class Finding:
    """An input that a target fails on."""

    data: bytes
    place: tuple[str, ...]
    """The error's class and where it was raised: what tells one finding from another."""
    text: str = field(repr=False)
    """The traceback."""


@final
class Fuzzer:
    """One run of one target."""

    def __init__(self, target: Target, seeds: Iterable[bytes], *, seed: int) -> None:
        self.target: Final = target
        self.executions = 0
        self.findings: dict[tuple[str, ...], Finding] = {}
        self.corpus: list[bytes] = []
        """Inputs that reached new code, in the order in which they were found."""
        self.coverage: Final = Coverage(target.files)
        self._random = Random(f"{seed}/{target.name}")
        self._seeds = [*seeds] or [b""]

    def start(self) -> None:
        """Run the seeds."""
        for data in self._seeds:
            self._try(data)
        self.corpus = self.corpus or [*self._seeds]

    def step(self) -> None:
        """Run one new input."""
        random, corpus = self._random, self.corpus
        parent = corpus[-1 - random.randrange(min(16, len(corpus)))]
        if random.random() < 0.6:
            parent = random.choice(corpus)
        data = mutated(
            parent, random, others=corpus, tokens=self.target.tokens, longest=self.target.longest
        )
        if self._try(data) and data and random.random() < 0.3:
            # Some of what is new is also tried large: a part of it again and again.
            start = random.randrange(len(data))
            part = data[start : start + random.choice((1, 2, 8, 64, 512))]
            self._try(data[:start] + part * (_LARGE // len(part)) + data[start:], is_guide=False)

    def _try(self, data: bytes, *, is_guide: bool = True) -> bool:
        """Run one input; tell whether it reached something new."""
        self.executions += 1
        found = finding(self.target, data, self.coverage if is_guide else None)
        if found is not None:
            if found.place not in self.findings:
                self.findings[found.place] = _minimised(self.target, found)
            return False
        if not is_guide or not self.coverage.grow():
            return False
        self.corpus.append(data)
        return True


def finding(target: Target, data: bytes, coverage: Coverage | None = None) -> Finding | None:
    """Run one input; return what is wrong, None if nothing is."""
    try:
        with _limited(), coverage.measuring() if coverage else contextlib.nullcontext():
            began = time.process_time()
            target.run(data)
            spent = time.process_time() - began
        if spent > target.limit:
            _check_time(target, data)
    except (Exception, Hang) as exc:  # noqa: BLE001 - any exception is a finding
        return Finding(data, _place(exc), "".join(traceback.format_exception(exc, limit=-12)))
    return None


def _check_time(target: Target, data: bytes) -> None:
    """Measure again, without the tracer and twice: the machine may be busy."""
    spent = target.limit
    for _ in range(2):
        began = time.process_time()
        target.run(data)
        spent = min(spent, time.process_time() - began)
    if spent >= target.limit:
        raise Slow(f"{len(data)} bytes take more than {target.limit} s")


def _place(exc: BaseException) -> tuple[str, ...]:
    frames = traceback.extract_tb(exc.__traceback__)
    ours = [it for it in frames if "/kinform/" in it.filename or "/fuzz/" in it.filename]
    last = (ours or [*frames])[-1]
    return type(exc).__name__, Path(last.filename).name, last.name, last.line or ""


def _minimised(target: Target, found: Finding) -> Finding:
    attempts = 0
    ends = time.monotonic() + 20
    while True:
        for data in smaller(found.data):
            attempts += 1
            if attempts > _ATTEMPTS or time.monotonic() > ends:
                return found
            again = finding(target, data)
            if again is not None and again.place == found.place:
                found = again
                break
        else:
            return found


@contextlib.contextmanager
def _limited() -> Generator[None]:
    """Raise `Hang` in what takes too much CPU time, where signals can do that."""
    if not hasattr(signal, "SIGPROF") or threading.current_thread() is not threading.main_thread():
        yield
        return

    def hang(_number: int, _frame: FrameType | None) -> None:
        raise Hang(f"more than {_HANG} s")

    before = signal.signal(signal.SIGPROF, hang)
    signal.setitimer(signal.ITIMER_PROF, _HANG)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_PROF, 0)
        signal.signal(signal.SIGPROF, before)


@final
class Coverage:
    """Line coverage: which lines of some files follow each other in a run, and how often.

    Under another tracer (``coverage run``, a debugger) there is no coverage to guide the fuzzer.
    """

    def __init__(self, files: tuple[str, ...]) -> None:
        self._files = files
        self._names: dict[str, int] = {}
        self._numbers: dict[CodeType, int] = {}
        self._counts: dict[int, int] = {}
        self.seen: set[int] = set()
        """Steps from line to line, each with a power of two: how often it was taken in one run."""

    @contextlib.contextmanager
    def measuring(self) -> Generator[None]:
        """Count the steps of the block."""
        self._counts.clear()
        if sys.gettrace() is not None:
            yield
            return
        sys.settrace(self._tracer())
        try:
            yield
        finally:
            sys.settrace(None)

    def grow(self) -> bool:
        """Take in what was measured; tell whether any of it is new."""
        steps = {step << 3 | min(7, n.bit_length()) for step, n in self._counts.items()}
        before = len(self.seen)
        self.seen |= steps
        return len(self.seen) > before

    def _number(self, code: CodeType) -> int:
        """Return the prefix for the line numbers of a file; -1 if the file is not traced."""
        name = code.co_filename.replace("\\", "/")
        number = -1
        if name.endswith(self._files):
            number = self._names.setdefault(name, len(self._names)) << 14
        self._numbers[code] = number
        return number

    def _tracer(self) -> Callable[[FrameType, str, Any], Any]:
        counts, numbers, last = self._counts, self._numbers, 0

        def on_call(frame: FrameType, _event: str, _arg: Any) -> Any:
            number = numbers.get(frame.f_code)
            if number is None:
                number = self._number(frame.f_code)
            return None if number < 0 else on_line

        def on_line(frame: FrameType, event: str, _arg: Any) -> Any:
            nonlocal last
            if event == "line":
                here = numbers[frame.f_code] | frame.f_lineno
                step = last << 24 | here
                counts[step] = counts.get(step, 0) + 1
                last = here
            return on_line

        return on_call
