"""What a handler is: its callbacks, its name, its filter."""

from __future__ import annotations

import functools
from collections.abc import AsyncIterator, Callable, Iterator

import pytest

from kinform.cache.processor._listener import Filtering
from kinform.cache.processor.events import Added, Deleted, Event, Updated
from kinform.cache.processor.handlers import EventHandler, handler, name_for
from kinform.errors import UsageError
from kinform.meta import ObjectName
from kinform.sansio.queue.deltas import Transition
from tests.cache.support_entries import entry_of


def hear(event: Event[str]) -> None: ...
def see(event: Event[str]) -> None: ...


class Controller:
    def on_add(self, event: Event[str]) -> None: ...
    def on_update(self, event: Event[str]) -> None: ...
    def on_delete(self, event: Event[str]) -> None: ...
    async def on_change(self, event: Event[str]) -> None: ...


class Caller:
    def __call__(self, event: Event[str]) -> None: ...


def locals_of_a_function() -> tuple[Callable[[Event[str]], None], object]:
    class Inner:
        def on_add(self, event: Event[str]) -> None: ...

    def inner(event: Event[str]) -> None: ...

    return inner, Inner().on_add


def two_arguments(old: str, new: str) -> None: ...


def decorated(function: Callable[[str, str], None]) -> Callable[[Event[str]], None]:
    @functools.wraps(function)
    def with_one(event: Event[str]) -> None:
        function("", "")

    return with_one


class Signatureless:
    """Stands in for what is built in and does not say what it takes."""

    @property
    def __signature__(self) -> object:
        raise ValueError

    def __call__(self, event: Event[str]) -> None: ...


CONTROLLER = Controller()


@pytest.mark.parametrize(
    "callbacks, name",
    [
        pytest.param([CONTROLLER.on_add], "Controller", id="CG-I32 add"),
        pytest.param([None, CONTROLLER.on_update, None], "Controller", id="CG-I32 update"),
        pytest.param([None, None, CONTROLLER.on_delete], "Controller", id="CG-I32 delete"),
        pytest.param(
            [CONTROLLER.on_add, CONTROLLER.on_update, CONTROLLER.on_delete],
            "Controller",
            id="CG-I32 all of one class",
        ),
        pytest.param([CONTROLLER.on_change], "Controller", id="CG-I32 async"),
        pytest.param(
            [None, CONTROLLER.on_update, hear], "Controller.on_update+hear", id="CG-I32 mixture"
        ),
        pytest.param([hear], "hear", id="CG-I32 a function of a module"),
        pytest.param([hear, see], "hear+see", id="CG-I32 functions of a module"),
        pytest.param([hear, hear], "hear", id="CG-I32 the same function twice"),
        pytest.param(
            [locals_of_a_function()[0], hear], "inner+hear", id="CG-I32 function of a function"
        ),
        pytest.param([locals_of_a_function()[1]], "Inner", id="CG-I32 class of a function"),
        pytest.param(
            [CONTROLLER.on_add, locals_of_a_function()[1]],
            "Controller.on_add+Inner.on_add",
            id="CG-I32 methods of two classes",
        ),
        pytest.param([functools.partial(hear)], "hear", id="CG-I32 partial"),
        pytest.param([Caller()], "Caller", id="CG-I32 callable object"),
        pytest.param([[].append], "list", id="CG-I32 method of a builtin"),
    ],
)
def test_a_handler_is_named_after_its_callbacks(callbacks: list[object], name: str) -> None:
    """CG-I32, where Go has pointers to structs Python has objects. A nil handler is refused."""
    assert name_for(*callbacks) == name


def test_a_lambda_is_named_after_the_place_it_stands_at() -> None:
    """CG-I32: where client-go has `func1` and the like."""
    one: Callable[[object], None] = lambda _: None  # noqa: E731 - that is what it is about
    place = f"<lambda> at test_handlers.py:{one.__code__.co_firstlineno}"
    assert name_for(one) == place
    assert name_for(one, functools.partial(one)) == place
    assert name_for(one, hear) == f"{place}+hear"


def test_a_name_that_is_given_counts() -> None:
    assert handler(on_add=hear, name="cache warmer").name == "cache warmer"
    assert handler(on_add=hear, on_delete=see).name == "hear+see"


@pytest.mark.parametrize(
    "make, complaint",
    [
        pytest.param(handler, "without callbacks receives nothing", id="no callback"),
        pytest.param(
            lambda: handler(on_add="print"),  # type: ignore[arg-type]
            "on_add is of type str; expected a function",
            id="callback not callable",
        ),
        pytest.param(
            lambda: handler(on_delete=hear, filter=3),  # type: ignore[arg-type]
            "filter is of type int; expected a function",
            id="filter not callable",
        ),
        pytest.param(
            lambda: handler(on_add=hear, filter=CONTROLLER.on_change),  # type: ignore[arg-type]
            "filter is an async function; expected a plain one",
            id="filter async",
        ),
        pytest.param(
            lambda: handler(on_update=hear, resync_period=0.5),
            "resync_period is 0.5; expected seconds, at least 1, or None",
            id="period too short",
        ),
        pytest.param(
            lambda: handler(on_update=hear, resync_period=0),
            "resync_period is 0;",
            id="zero does not mean never",
        ),
        pytest.param(
            lambda: handler(on_update=hear, resync_period=float("nan")),
            "resync_period is nan;",
            id="period not a number",
        ),
        pytest.param(
            lambda: handler(on_update=hear, resync_period=float("inf")),
            "resync_period is inf;",
            id="period without end",
        ),
        pytest.param(
            lambda: handler(on_update=hear, resync_period="10m"),  # type: ignore[arg-type]
            "resync_period is '10m'; expected seconds",
            id="period as text",
        ),
        pytest.param(
            lambda: EventHandler(name="made by hand"), "without callbacks", id="made by hand"
        ),
    ],
)
def test_what_cannot_work_is_refused_at_once(make: Callable[[], object], complaint: str) -> None:
    with pytest.raises(UsageError, match=complaint):
        make()


@pytest.mark.parametrize(
    "make, complaint",
    [
        pytest.param(
            lambda: handler(on_update=two_arguments),  # type: ignore[arg-type]
            "on_update takes 2 arguments; it is called with one, an Updated, which has .old and "
            ".new",
            id="two",
        ),
        pytest.param(
            lambda: handler(on_add=lambda: None),  # type: ignore[arg-type, misc]
            "on_add takes no positional argument; it is called with one, an Added, which has .obj",
            id="none",
        ),
        pytest.param(
            lambda: handler(on_delete=lambda *, event: None),  # type: ignore[arg-type, misc]
            "on_delete takes no positional argument; it is called with one, a Deleted, which has "
            ".obj",
            id="by name alone",
        ),
        pytest.param(
            lambda: handler(on_add=Controller.on_add),  # type: ignore[arg-type]
            "on_add takes 2 arguments; it is called with one, an Added, which has .obj",
            id="method of nobody",
        ),
        pytest.param(
            lambda: handler(on_add=hear, filter=two_arguments),  # type: ignore[arg-type]
            "filter takes 2 arguments; it is called with one, the object",
            id="filter",
        ),
    ],
)
def test_a_callback_that_does_not_take_one_argument_is_refused_at_once(
    make: Callable[[], object], complaint: str
) -> None:
    with pytest.raises(UsageError) as caught:
        make()
    assert str(caught.value) == complaint


@pytest.mark.parametrize(
    "callback",
    [
        pytest.param(print, id="built in"),
        pytest.param(functools.partial(two_arguments, "old"), id="partial"),
        pytest.param(lambda event, more=None: None, id="default"),
        pytest.param(lambda *events: None, id="any number"),
        pytest.param(decorated(two_arguments), id="decorated, with other arguments inside"),
        pytest.param(Caller(), id="callable object"),
        pytest.param(Signatureless(), id="no signature to be had"),
        pytest.param(str, id="class"),
    ],
)
def test_whatever_can_be_called_with_one_argument_will_do(
    callback: Callable[[Event[str]], object],
) -> None:
    assert handler(on_add=callback, on_update=callback, on_delete=callback).on_add is callback


def test_a_handler_is_a_value() -> None:
    assert handler(on_add=hear, resync_period=1) == handler(on_add=hear, resync_period=1.0)
    with pytest.raises(AttributeError):
        handler(on_add=hear).name = "other"  # type: ignore[misc]


# --- filters ----------------------------------------------------------------------------------

WEB = ObjectName("", "web")
IN, IN_TOO = entry_of("web", "in"), entry_of("web", "in too")
OUT, OUT_TOO = entry_of("web", "out"), entry_of("web", "out too")


def passes(obj: str) -> bool:
    return obj.startswith("in")


@pytest.mark.parametrize(
    "happens, told",
    [
        pytest.param((None, IN), (None, IN), id="CG-I33 add that passes"),
        pytest.param((None, OUT), None, id="CG-I33 add that does not"),
        pytest.param((IN, IN_TOO), (IN, IN_TOO), id="CG-I33 update to update"),
        pytest.param((OUT, IN), (None, IN), id="CG-I33 update to add"),
        pytest.param((IN, OUT), (IN, None), id="CG-I33 update to delete"),
        pytest.param((OUT, OUT_TOO), None, id="CG-I33 update to nothing"),
        pytest.param((IN, None), (IN, None), id="CG-I33 delete that passes"),
        pytest.param((OUT, None), None, id="CG-I33 delete that does not"),
    ],
)
def test_a_filter_translates_what_happened(happens, told) -> None:
    filtering = Filtering(passes)
    old, new = happens
    if old is not None:
        filtering.translate(Transition(WEB, None, old))
    translated = filtering.translate(Transition(WEB, old, new))
    assert translated == (told and Transition(WEB, *told))


def test_a_delete_nobody_saw_passes_as_it_is() -> None:
    """CG-I33: a tombstone stays one."""
    filtering = Filtering(passes)
    filtering.translate(Transition(WEB, None, IN, initial=True))
    tombstone = Transition(WEB, IN, None, final_state_unknown=True)
    assert filtering.translate(tombstone) is tombstone


def test_initial_stays_with_what_was_there_and_is_not_given_to_what_came_to_pass() -> None:
    filtering = Filtering(passes)
    there = Transition(WEB, None, IN, initial=True)
    assert filtering.translate(there) is there
    filtering.translate(Transition(WEB, IN, OUT))
    assert filtering.translate(Transition(WEB, OUT, IN)) == Transition(WEB, None, IN)


def test_a_delete_is_told_whatever_the_final_state_looks_like() -> None:
    """client-go asks the filter about the final state, and never tells of such a delete."""
    filtering = Filtering(passes)
    filtering.translate(Transition(WEB, None, IN))
    delete = Transition(WEB, OUT, None)
    assert filtering.translate(delete) is delete
    assert filtering.translate(Transition(WEB, IN, None)) is None


def test_a_filter_may_change_its_mind() -> None:
    wanted: set[str] = set()
    filtering: Filtering[str] = Filtering(lambda obj: obj in wanted)
    resync = Transition(WEB, IN, IN)
    assert filtering.translate(Transition(WEB, None, IN)) is None
    wanted.add("in")
    assert filtering.translate(resync) == Transition(WEB, None, IN)
    assert filtering.translate(resync) is resync
    wanted.clear()
    assert filtering.translate(resync) == Transition(WEB, IN, None)
    assert filtering.translate(resync) is None


def test_a_filter_that_raised_is_asked_about_the_next_state() -> None:
    answers = iter(["raise", "yes", "raise", "no"])

    def moody(obj: str) -> bool:
        if (answer := next(answers)) == "raise":
            raise ValueError
        return answer == "yes"

    filtering = Filtering(moody)
    with pytest.raises(ValueError):
        filtering.translate(Transition(WEB, None, IN))
    assert filtering.translate(Transition(WEB, IN, IN_TOO)) == Transition(WEB, None, IN_TOO)
    with pytest.raises(ValueError):
        filtering.translate(Transition(WEB, IN_TOO, OUT))
    assert filtering.translate(Transition(WEB, OUT, OUT_TOO)) == Transition(WEB, OUT, None)


def test_each_state_is_asked_about_once() -> None:
    asked: list[str] = []

    def ask(obj: str) -> bool:
        asked.append(obj)
        return True

    filtering = Filtering(ask)
    filtering.translate(Transition(WEB, None, IN))
    filtering.translate(Transition(WEB, IN, IN_TOO))
    filtering.translate(Transition(WEB, IN_TOO, None))
    assert asked == ["in", "in too"]


def test_the_types_of_the_events_are_those_of_the_callbacks() -> None:
    """Checked by the type checkers: on_add hears Added[str], and so on."""

    def on_add(event: Added[str]) -> None: ...
    def on_update(event: Updated[str]) -> None: ...
    async def on_delete(event: Deleted[str]) -> None: ...

    made: EventHandler[str] = handler(on_add=on_add, on_update=on_update, on_delete=on_delete)
    assert made.on_update is on_update


def generator(_: object) -> Iterator[None]:
    yield


async def async_generator(_: object) -> AsyncIterator[None]:
    yield


class Callback:
    async def __call__(self, event: object) -> AsyncIterator[object]:
        yield event


@pytest.mark.parametrize(
    "function, named",
    [
        (generator, "a generator function"),
        (async_generator, "an async generator function"),
        (functools.partial(async_generator), "an async generator function"),
        (Callback(), "an async generator function"),
    ],
    ids=["generator", "async", "partial", "object"],
)
def test_a_callback_with_a_yield_is_refused_because_it_would_never_run(
    function: Callable[[object], object], named: str
) -> None:
    for role in ("on_add", "on_update", "on_delete"):
        with pytest.raises(UsageError, match=f"{role} is {named}, which would never run"):
            handler(**{role: function})  # type: ignore[arg-type]
