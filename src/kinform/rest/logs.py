"""`LogStream`: the log of a container, line by line."""

from __future__ import annotations

import contextlib
from collections.abc import AsyncGenerator, Callable
from contextlib import AbstractAsyncContextManager
from types import TracebackType
from typing import Final, final

from kinform.errors import UsageError
from kinform.rest.transport import HttpResponse

__all__ = ["LogStream"]

_LONGEST_LINE: Final = 1 << 20


@final
class LogStream:
    """Lines of a log; opened by ``async with``, read by ``async for``, once.

    Lines are text without their line end; bytes that are not UTF-8 are replaced. A line of
    over 1 MiB is yielded in pieces. `iter_bytes` yields the raw log.
    """

    def __init__(self, connect: Callable[[], AbstractAsyncContextManager[HttpResponse]]) -> None:
        self._connect = connect
        self._exit = contextlib.AsyncExitStack()
        self._response: HttpResponse | None = None

    async def __aenter__(self) -> LogStream:
        self._response = await self._exit.enter_async_context(self._connect())
        return self

    async def __aexit__(
        self,
        exc_type: type[BaseException] | None,
        exc: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        await self._exit.aclose()

    def iter_bytes(self) -> AsyncGenerator[bytes]:
        """Yield the log's bytes in pieces of any size."""
        if self._response is None:
            raise UsageError("open the log first: async with pods.logs(name) as lines")
        return self._response.iter_bytes()

    async def __aiter__(self) -> AsyncGenerator[str]:
        """Yield the lines."""
        async with contextlib.aclosing(self.batches()) as batches:
            async for lines in batches:
                for line in lines:
                    yield line

    async def batches(self) -> AsyncGenerator[list[str]]:
        """Yield the lines that each network read completes, if any."""
        rest = b""
        async with contextlib.aclosing(self.iter_bytes()) as pieces:
            async for piece in pieces:
                *lines, rest = (rest + piece).split(b"\n")
                if len(rest) > _LONGEST_LINE:
                    lines.append(rest)
                    rest = b""
                if lines:
                    yield [line.decode(errors="replace") for line in lines]
        if rest:
            yield [rest.decode(errors="replace")]
