"""The reflector's table of decisions, line by line, and the budget nobody can break."""

from __future__ import annotations

import itertools
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kinform.errors import (
    DecodeError,
    KinformError,
    SourceError,
    TransportError,
    TransportFailure,
    UnknownResourceError,
    api_error,
    status_of_code,
)
from kinform.meta import Status
from kinform.sansio.backoff import Backoff
from kinform.sansio.reflector.opening_budget import OpeningBudget
from kinform.sansio.reflector.step import (
    Clear,
    Cleared,
    Clearing,
    Decision,
    Ended,
    Expired,
    Failed,
    Gone,
    Listed,
    Listing,
    ListMode,
    Phase,
    Policy,
    Probe,
    Probed,
    Probing,
    Regressed,
    Relist,
    Rewatch,
    ServerHealth,
    Signal,
    Started,
    State,
    Streamed,
    Streaming,
    StreamList,
    Unstreamed,
    Wait,
    Waited,
    Waiting,
    Watching,
    counted,
    probe_wait,
    step,
)
from kinform.sansio.versions import is_older


def said(code: int, *, retry_after: float | None = None) -> KinformError:
    return api_error(status_of_code(code, method="GET", message="no"), retry_after=retry_after)


GONE = said(410)
TOO_LARGE = api_error(Status(code=504, reason="Timeout", message="Too large resource version: 9"))
REFUSED = TransportError("nobody there", failure=TransportFailure.REFUSED)
RESET = TransportError("reset", failure=TransportFailure.RESET)
SILENT = TransportError("silence", failure=TransportFailure.TIMEOUT)
CUT = TransportError("cut", failure=TransportFailure.TRUNCATED)
UNKNOWN = UnknownResourceError("widgets")
ABSENT = UnknownResourceError("widgets", is_gone=True)
MOVED = UnknownResourceError("example.com/v1/widgets", served_in=["example.com/v2/widgets"])
PLAIN = Policy(stream_lists=False)
WATCHING = State(phase=Watching(), version="7")


def run(state: State, signal: Signal, policy: Policy | None = None, now: float = 0.0) -> Decision:
    return step(state, signal, now=now, rand=0.0, policy=policy)


def ended(**changes: object) -> Ended:
    return Ended(**{"resource_version": "", "lived": 10.0, "events": 1, **changes})  # type: ignore[arg-type]


def waits_for(decision: Decision) -> str:
    assert isinstance(decision.action, Wait)
    assert isinstance(decision.state.phase, Waiting)
    return decision.state.phase.then


def waited(state: State) -> Decision:
    """Return what follows a wait for a watch, and the look at a version that did not go back."""
    probing = run(state, Waited())
    assert probing.action == Probe()
    return run(probing.state, Probed("9", applied="7"))


# --- Lists ---


def test_it_begins_with_a_streamed_list_of_the_newest_state() -> None:
    assert run(State(), Started()).action == StreamList("")


@pytest.mark.parametrize("first", ["", "0"])
def test_a_plain_first_list_asks_for_the_newest_state_or_any_on_request(first: str) -> None:
    policy = Policy(stream_lists=False, first_version=first)  # type: ignore[arg-type]
    assert run(State(), Started(), policy).action == Relist(first, 500)


def test_it_may_be_started_again_from_wherever_it_was_cancelled() -> None:
    phases: list[Phase] = [
        *(Listing(), Streaming(), Clearing(), Watching(), Probing()),
        *(Waiting("list"), Waiting("watch")),
    ]
    for phase in phases:
        state = State(phase=phase, version="7")
        assert run(state, Started("9"), PLAIN).action == Relist("9", None)
        doubtful = replace(state, is_suspect=True, version="")
        again = run(doubtful, Started("9"), PLAIN)
        assert again.action == Relist("", 500)
        assert run(again.state, Listed("3")).notices == (), "it was told before it was stopped"


def test_a_later_list_asks_for_nothing_older_and_in_one_piece() -> None:
    state = State(phase=Waiting(), version="7")
    assert run(state, Waited(), PLAIN).action == Relist("7", None)
    assert run(state, Waited()).action == StreamList("7")


def test_a_server_without_watch_cache_is_listed_in_pages_ever_after() -> None:
    decision = run(State(phase=Listing()), Listed("7", paginated=True))
    state = replace(decision.state, phase=Waiting("list"))
    assert run(state, Waited(), PLAIN).action == Relist("7", 500)


def test_the_callers_page_size_wins() -> None:
    state = State(phase=Waiting(), version="7")
    policy = Policy(stream_lists=False, page_size=10)
    assert run(state, Waited(), policy).action == Relist("7", 10)


def test_a_list_leads_to_a_watch_from_its_version() -> None:
    decision = run(State(phase=Listing(), is_suspect=True), Listed("7"))
    assert decision.action == Rewatch("7")
    assert (decision.state.version, decision.state.is_suspect) == ("7", False)


def test_a_streamed_list_goes_on_as_a_watch() -> None:
    decision = run(State(phase=Streaming()), Streamed("7"))
    assert decision.action is None
    assert (decision.state.phase, decision.state.version) == (Watching(), "7")


@pytest.mark.parametrize("phase", [Listing(), Streaming()])
@pytest.mark.parametrize("error", [GONE, TOO_LARGE])
def test_an_unusable_version_is_dropped_for_the_next_list(
    phase: Phase, error: KinformError
) -> None:
    decision = run(State(phase=phase, version="7"), Failed(error))
    assert waits_for(decision) == "list"
    assert decision.notices == (Expired("7"),)
    assert run(decision.state, Waited()).action == StreamList("")
    assert run(decision.state, Waited(), PLAIN).action == Relist("", 500)


@pytest.mark.parametrize("phase", [Listing(), Streaming()])
@pytest.mark.parametrize("error", [said(500), said(403), said(401), said(404), said(429), REFUSED])
def test_a_first_failure_of_another_kind_waits_and_ask_for_the_same(
    phase: Phase, error: KinformError
) -> None:
    decision = run(State(phase=phase, version="7"), Failed(error))
    assert waits_for(decision) == "list"
    assert run(decision.state, Waited()).action == StreamList("7")


@pytest.mark.parametrize("code", [400, 405, 406, 415, 422, 501])
def test_a_server_that_cannot_stream_lists_is_asked_plainly_for_an_hour(code: int) -> None:
    """Deviation (8.3, finding 13): client-go asks for a stream first with every relist."""
    decision = run(State(phase=Streaming(), version="7"), Failed(said(code)), now=100.0)
    assert decision.action == Relist("7", None)
    assert decision.notices == (Unstreamed(for_an_hour=True),)
    later = replace(decision.state, phase=Waiting("list"))
    assert run(later, Waited(), now=3699.0).action == Relist("7", None)
    assert run(later, Waited(), now=3700.0).action == StreamList("7")


@pytest.mark.parametrize("error", [None, CUT, DecodeError("rubbish"), SourceError("x"), said(503)])
def test_two_streams_without_an_end_lead_to_one_plain_list(error: KinformError | None) -> None:
    """client-go tries for ever, without a pause (kubernetes#140890)."""
    first = run(State(phase=Streaming()), ended(error=error))
    assert waits_for(first) == "list"
    again = run(first.state, Waited())
    assert again.action == StreamList("")
    second = run(again.state, ended(error=error))
    assert (waits_for(second), second.notices) == ("list", (Unstreamed(for_an_hour=False),))
    assert run(second.state, Waited()).action == Relist("", 500)


STREAMS_ALONE = [
    *(said(code) for code in (401, 403, 404, 500, 502, 503, 504)),
    RESET,
    SILENT,
    CUT,
    SourceError("x"),
]


@pytest.mark.parametrize("error", STREAMS_ALONE)
def test_two_streams_that_cannot_be_opened_lead_to_one_plain_list(error: KinformError) -> None:
    """A gateway may break watches alone, and so may a role that allows lists only."""
    first = run(State(phase=Streaming()), Failed(error))
    second = run(run(first.state, Waited()).state, Failed(error))
    assert (waits_for(second), second.notices) == ("list", (Unstreamed(for_an_hour=False),))
    assert run(second.state, Waited()).action == Relist("", 500)


def test_streams_that_expire_though_they_asked_for_no_version_lead_to_one_plain_list() -> None:
    state = run(State(phase=Streaming()), Failed(GONE)).state
    assert state.is_suspect
    for _ in range(2):
        state = run(run(state, Waited()).state, Failed(GONE)).state
    assert run(state, Waited()).action == Relist("", 500)


@pytest.mark.parametrize("outcome", [Listed("7"), Failed(said(503))], ids=["listed", "failed"])
def test_the_list_after_that_plain_one_is_streamed_again(outcome: Signal) -> None:
    """An outage says nothing about what the server can do."""
    state = State(phase=Streaming(), health=ServerHealth(failed_streams=1))
    plain = run(run(state, Failed(said(503))).state, Waited())
    assert plain.action == Relist("", 500)
    after = replace(run(plain.state, outcome).state, phase=Waiting("list"))
    assert isinstance(run(after, Waited()).action, StreamList)


@pytest.mark.parametrize(("asked", "waits"), [(None, 30.0), (5.0, 30.0), (90.0, 90.0)])
def test_a_plain_list_in_place_of_streams_is_late_where_there_were_too_many_requests(
    asked: float | None, waits: float
) -> None:
    busy = Failed(said(429, retry_after=asked))
    second = run(State(phase=Streaming(), health=ServerHealth(failed_streams=1)), busy)
    assert second.action == Wait(waits)
    assert run(second.state, Waited()).action == Relist("", 500)


NOT_CONNECTED = [
    TransportError("x", failure=failure)
    for failure in (
        TransportFailure.REFUSED,
        TransportFailure.DNS,
        TransportFailure.CONNECT,
        TransportFailure.CONNECT_TIMEOUT,
        TransportFailure.TLS,
    )
]


@pytest.mark.parametrize("error", NOT_CONNECTED, ids=str)
def test_streams_that_were_never_connected_lead_to_no_plain_list(error: KinformError) -> None:
    """A list would fail in the same way."""
    state = State(phase=Streaming())
    for second in range(0, 1200, 60):
        waiting = run(state, Failed(error), now=second)
        state = run(waiting.state, Waited(), now=second + 59.0).state
        assert state.phase == Streaming()


def test_a_streamed_list_in_between_makes_it_two_again() -> None:
    first = run(State(phase=Streaming()), ended())
    synced = run(run(first.state, Waited()).state, Streamed("7"))
    assert synced.state.health.failed_streams == 0


def listing_again(state: State, error: KinformError, *, now: float) -> Decision:
    """Return what follows if the list after a wait fails with ``error``."""
    return run(run(state, Waited(), PLAIN, now=now).state, Failed(error), PLAIN, now=now)


def test_a_resource_is_gone_when_discovery_proves_it_twice_30_seconds_apart() -> None:
    """F-R17: and it is cleared only once."""
    state = State(phase=Waiting(), version="7", has_listed=True)
    first = listing_again(state, ABSENT, now=100.0)
    second = listing_again(first.state, ABSENT, now=129.0)
    assert (waits_for(first), waits_for(second)) == ("list", "list")
    gone = listing_again(second.state, ABSENT, now=130.0)
    assert (gone.action, gone.notices) == (Clear(), (Gone(),))
    cleared = run(gone.state, Cleared(), PLAIN, now=130.0)
    again = run(cleared.state, Waited(), PLAIN, now=200.0)
    assert again.action == Relist("", 500)
    assert waits_for(run(again.state, Failed(ABSENT), PLAIN, now=200.0)) == "list"


@pytest.mark.parametrize("error", [said(404), UNKNOWN, MOVED])
def test_nothing_less_than_proof_empties_a_cache(error: KinformError) -> None:
    """F-R17: a 404 may be a proxy's, stale discovery proves nothing, a version may have moved."""
    state = State(phase=Waiting(), version="7", has_listed=True)
    for now in range(0, 6000, 60):
        decision = listing_again(state, error, now=float(now))
        assert waits_for(decision) == "list"
        state = decision.state
    assert (state.version, state.has_listed) == ("7", True)


@pytest.mark.parametrize("error", [said(404), said(503), UNKNOWN, MOVED, REFUSED])
def test_what_is_no_proof_in_between_makes_it_twice_again(error: KinformError) -> None:
    state = State(phase=Waiting(), version="7", has_listed=True)
    for now, each in ((0.0, ABSENT), (60.0, error), (120.0, ABSENT), (149.0, ABSENT)):
        decision = listing_again(state, each, now=now)
        assert waits_for(decision) == "list"
        state = decision.state
    assert listing_again(state, ABSENT, now=150.0).action == Clear()


def test_streamed_lists_prove_absence_too() -> None:
    state = State(phase=Streaming(), version="7", has_listed=True)
    first = run(state, Failed(ABSENT), now=0.0)
    again = run(first.state, Waited(), now=40.0)
    assert isinstance(again.action, StreamList)
    assert run(again.state, Failed(ABSENT), now=40.0).action == Clear()


def test_a_store_that_cannot_be_cleared_is_no_reason_to_stop() -> None:
    assert waits_for(run(State(phase=Clearing()), Failed(SourceError("x")))) == "list"


@pytest.mark.parametrize("version", ["", "0"])
def test_a_server_without_versions_is_listed_before_each_watch(version: str) -> None:
    """F-R16: "0" means any version, so nothing can be told from it."""
    listed = run(State(phase=Listing()), Listed(version), PLAIN)
    assert listed.action == Rewatch("")
    over = run(listed.state, ended(reached_timeout=True, resource_version=version), PLAIN)
    assert over.action == Relist("", 500)


@pytest.mark.parametrize("version", ["", "0"])
def test_a_server_without_versions_has_not_gone_back_in_time(version: str) -> None:
    assert run(State(phase=Listing(), version="7"), Listed(version)).notices == ()
    assert run(WATCHING, Probed(version, applied="7")).action is None


def test_an_error_within_the_stream_is_like_one_before_it() -> None:
    decision = run(State(phase=Streaming(), version="7"), ended(error=GONE))
    assert decision.notices == (Expired("7"),)


# --- Watches ---


@pytest.mark.parametrize("error", [*map(said, (500, 403, 401, 429, 502, 503, 504)), REFUSED])
def test_a_refused_watch_is_tried_again_from_the_same_version(error: KinformError) -> None:
    """F-R11: client-go lists again after a 5xx, and so does every informer of a cluster."""
    decision = run(WATCHING, Failed(error))
    assert waits_for(decision) == "watch"
    assert waited(decision.state).action == Rewatch("7")


@pytest.mark.parametrize(
    "signal",
    [
        Failed(said(503)),
        Failed(said(429)),
        Failed(said(403)),
        ended(error=CUT),
        ended(error=said(429)),
        ended(error=DecodeError("rubbish")),
        ended(lived=5.0),
        ended(lived=0.1, events=0),
        ended(lived=0.1, events=5),
    ],
)
def test_no_watch_follows_a_wait_without_a_look_at_the_servers_version(signal: Signal) -> None:
    """F-R07, seed 6854: whoever answers next may have an older state, whatever came before."""
    decision = run(WATCHING, signal)
    assert waits_for(decision) == "watch"
    probing = run(decision.state, Waited())
    assert probing.action == Probe()
    assert run(probing.state, Probed("3", applied="7")).notices == (Regressed("7", "3"),)
    versionless = run(replace(WATCHING, version=""), signal)
    assert run(versionless.state, Waited(), PLAIN).action == Relist("", 500)


@pytest.mark.parametrize("error", [said(404), said(422), said(405), said(501), UNKNOWN])
def test_a_watch_that_makes_no_sense_leads_to_a_list(error: KinformError) -> None:
    """F-R16: a kind that cannot be watched is followed by lists."""
    assert waits_for(run(WATCHING, Failed(error))) == "list"


def opened_in_vain(
    state: State, error: KinformError, times: int, *, probed: str, now: float = 0.0
) -> Decision:
    """Return the decision after watches that could not be opened, with a probe before each."""
    decision = Decision(replace(state, phase=Watching()), Rewatch(state.version))
    for _ in range(times):
        assert isinstance(decision.action, Rewatch), decision.action
        failed = run(decision.state, Failed(error), now=now)
        assert waits_for(failed) == "watch"
        now += 60.0
        probing = run(failed.state, Waited(), now=now)
        assert probing.action == Probe()
        decision = run(probing.state, Probed(probed, applied=state.version), now=now)
    return decision


UNOPENED = [*map(said, (401, 403, 429, 500, 502, 503, 504)), RESET, SILENT, DecodeError("rubbish")]


@pytest.mark.parametrize("error", UNOPENED, ids=str)
@pytest.mark.parametrize("policy", [PLAIN, Policy()], ids=["plain", "streamed"])
def test_five_watches_in_vain_and_a_newer_version_lead_to_a_plain_list(
    error: KinformError, policy: Policy
) -> None:
    """While lists work, the cache advances. A streamed list would be a watch again."""
    assert opened_in_vain(WATCHING, error, 4, probed="9").action == Rewatch("7")
    listing = opened_in_vain(WATCHING, error, 5, probed="9")
    assert listing.action == Relist("7", None)
    watching = run(listing.state, Listed("9"), policy, now=300.0)
    assert watching.action == Rewatch("9")
    # As long as no watch opens, each probe decides anew.
    same = opened_in_vain(watching.state, error, 1, probed="9", now=300.0)
    assert same.action == Rewatch("9")
    newer = opened_in_vain(watching.state, error, 1, probed="11", now=300.0)
    assert newer.action == Relist("9", None)


def test_five_watches_in_vain_and_our_own_version_lead_to_no_list() -> None:
    assert opened_in_vain(WATCHING, said(503), 20, probed="7").action == Rewatch("7")


def test_versions_that_cannot_be_compared_are_listed_if_they_differ() -> None:
    state = replace(WATCHING, version="k-7")
    assert opened_in_vain(state, RESET, 5, probed="k-6").action == Relist("k-7", None)
    assert opened_in_vain(state, RESET, 5, probed="k-7").action == Rewatch("k-7")


def test_a_watch_that_opens_ends_the_count_of_those_that_did_not() -> None:
    state = opened_in_vain(WATCHING, said(503), 4, probed="9").state
    assert run(state, ended()).state.health.failed_openings == 0


@pytest.mark.parametrize(
    ("end", "before", "after"),
    [
        pytest.param(ended(error=RESET, lived=0.1, events=0), 4, 5, id="at its first byte"),
        pytest.param(ended(error=RESET, lived=0.1, events=1), 5, 0, id="after an event"),
        pytest.param(ended(error=RESET, lived=90.0, events=0), 5, 5, id="quiet, then broken"),
        pytest.param(ended(error=RESET, lived=90.0, events=0), 0, 0, id="quiet, the first time"),
        pytest.param(ended(lived=0.1, events=0), 5, 0, id="ended cleanly"),
    ],
)
def test_a_watch_that_breaks_before_it_brings_anything_counts_as_unopened(
    end: Ended, before: int, after: int
) -> None:
    state = run(replace(WATCHING, health=ServerHealth(failed_openings=before)), end).state
    assert state.health.failed_openings == after
    probing = replace(state, phase=Probing())
    expected = Relist("7", None) if after >= 5 else Rewatch("7")
    assert run(probing, Probed("9", applied="7"), now=120.0).action == expected


@pytest.mark.parametrize(("took", "pause"), [(10.0, 30.0), (10.1, 60.0)])
def test_a_slow_list_doubles_the_pause_before_the_next(took: float, pause: float) -> None:
    state = replace(
        WATCHING,
        health=ServerHealth(failed_openings=8),
        backoff=Backoff(failures=8),
        phase=Probing(),
    )
    listing = run(state, Probed("9", applied="7"), now=100.0)
    watching = run(listing.state, Listed("9", took=took), now=100.0 + took)
    assert run(watching.state, Failed(RESET), now=100.0 + took).action == Wait(pause)


def test_a_server_with_too_many_requests_is_left_alone_for_30_seconds_before_a_list() -> None:
    """F-R29."""
    state = replace(WATCHING, health=ServerHealth(failed_openings=4))
    assert run(state, Failed(said(429))).action == Wait(30.0)
    assert run(state, Failed(said(429, retry_after=99.0))).action == Wait(99.0)


@pytest.mark.parametrize("error", [said(503), said(429), REFUSED])
def test_no_outage_is_so_long_that_it_leads_to_a_list(error: KinformError) -> None:
    """F-R11."""
    state = WATCHING
    for _ in range(20):
        decision = run(state, Failed(error))
        assert waits_for(decision) == "watch"
        state = replace(decision.state, phase=Watching())


@pytest.mark.parametrize("signal", [Failed(GONE), ended(error=GONE)])
def test_an_expired_watch_lists_what_is_not_older(signal: Signal) -> None:
    """F-R04: as an answer and as an event alike."""
    decision = run(WATCHING, signal)
    assert decision.notices == (Expired("7"),)
    relist = run(decision.state, Waited(), PLAIN)
    assert relist.action == Relist("7", None)
    # A list that shows the same again, from a cache, would go on like that for ever.
    again = run(run(relist.state, Listed("7")).state, signal)
    assert run(again.state, Waited(), PLAIN).action == Relist("", 500)


@pytest.mark.parametrize("signal", [Failed(TOO_LARGE), ended(error=TOO_LARGE)])
def test_a_version_from_the_future_is_not_used_again(signal: Signal) -> None:
    """F-R06."""
    assert run(run(WATCHING, signal).state, Waited(), PLAIN).action == Relist("", 500)


def test_a_watch_that_reaches_its_timeout_is_followed_by_the_next_at_once() -> None:
    decision = run(WATCHING, ended(lived=300.0, reached_timeout=True, resource_version="9"))
    assert decision.action == Rewatch("9")


HEALTHY_ENDS = [
    ended(lived=0.1, resource_version="9"),
    ended(lived=0.1, events=0, resource_version="9"),  # by a bookmark
    ended(lived=8.0, events=0),
]


@pytest.mark.parametrize("end", HEALTHY_ENDS, ids=["events", "bookmark", "quiet for 8 s"])
def test_a_healthy_watch_is_followed_by_a_probe_and_the_next_at_once(end: Ended) -> None:
    """However short it was: proxies limit how long an answer may take."""
    decision = run(replace(WATCHING, backoff=Backoff(failures=9)), end)
    assert decision.action == Probe()
    assert decision.state.backoff.failures == 0
    version = end.resource_version or "7"
    assert run(decision.state, Probed("9", applied=version)).action == Rewatch(version)


UNHEALTHY_ENDS = [
    ended(lived=7.9, events=0),
    ended(lived=7.9, events=3),  # all of them known already
    ended(lived=30.0, resource_version="9", error=CUT),
    ended(lived=30.0, resource_version="9", error=said(429)),
]


@pytest.mark.parametrize("end", UNHEALTHY_ENDS)
def test_a_watch_that_brings_no_progress_or_breaks_is_not_healthy(end: Ended) -> None:
    decision = run(replace(WATCHING, backoff=Backoff(failures=9)), end)
    assert waits_for(decision) == "watch"
    assert decision.state.backoff.failures == 10


def opened_in_a_row(gap: float, *, until: float) -> list[float]:
    """Return when watches open that bring an event and end cleanly after ``gap`` seconds."""
    decision, opened = Decision(WATCHING, Rewatch("7")), list[float]()
    now, version = 0.0, 7
    while now < until:
        version += 1
        end = ended(lived=gap, resource_version=str(version))
        decision = run(decision.state, end, now=now)
        if isinstance(decision.action, Wait):
            assert waits_for(decision) == "watch"
            assert decision.state.backoff.failures == 0, "it is no failure"
            now += decision.action.seconds
            decision = run(decision.state, Waited(), now=now)
        if isinstance(decision.action, Probe):
            decision = run(decision.state, Probed(str(version), str(version)), now=now)
        assert decision.action == Rewatch(str(version))
        opened.append(now)
        now += gap
    return opened


def test_a_burst_of_openings_is_followed_by_openings_every_15_seconds() -> None:
    """However healthy the watches were; never a long wait for the ninth of them."""
    opened = opened_in_a_row(0.0, until=600.0)
    assert opened[:9] == pytest.approx([0, 0, 0, 0, 0, 15, 30, 45, 60], abs=0.3)
    assert most_in_a_minute(opened) == 8
    assert max(later - at for at, later in itertools.pairwise(opened)) <= 15.3


@pytest.mark.parametrize("gap", [7.5, 8.0, 20.0])
def test_openings_at_least_7_5_seconds_apart_are_never_delayed(gap: float) -> None:
    opened = opened_in_a_row(gap, until=600.0)
    assert opened == pytest.approx([gap * number for number in range(len(opened))])


def probed_often(state: State, times: int) -> State:
    for second in range(times):
        state, wait = probe_wait(state, now=float(second))
        assert wait == 0.0
    return state


def test_a_list_never_waits_for_probes() -> None:
    state = probed_often(WATCHING, 6)
    expired = run(state, ended(error=GONE), PLAIN, now=6.0)
    listing = run(expired.state, Waited(), PLAIN, now=7.0)
    assert listing.action == Relist("7", None)
    again = run(listing.state, Failed(said(503)), PLAIN, now=8.0)
    assert run(again.state, Waited(), PLAIN, now=9.0).action == Relist("7", None)


def test_a_watch_is_opened_without_a_probe_where_probes_have_no_slot_left() -> None:
    """The probe is made up for beside the watch, as soon as there is a slot."""
    state = probed_often(WATCHING, 6)
    watching = run(state, ended(lived=8.0), now=8.0)
    assert (watching.action, watching.state.health.needs_probe) == (Rewatch("7"), True)
    beside = run(watching.state, Probed("9", applied="7"), now=60.5)
    assert not beside.state.health.needs_probe
    later = run(watching.state, ended(lived=60.0), now=68.0)
    assert later.action == Probe()


def test_a_list_that_waits_for_its_budget_is_still_a_plain_one() -> None:
    budget = OpeningBudget()
    for second in range(8):
        budget = budget.used(float(second))
    state = State(
        phase=Waiting(), version="7", list_mode=ListMode(is_plain_next=True), lists=budget
    )
    waiting = run(state, Waited(), now=8.0)
    assert waits_for(waiting) == "list"
    assert run(waiting.state, Waited(), now=61.0).action == Relist("7", None)


def test_requests_count_from_their_answer_not_from_their_decision() -> None:
    """The limiter that all reconnects share, or discovery, may delay them (seed 156)."""
    decision = run(State(), Started(), now=0.0)
    state = counted(decision.state, decision.action, now=17.0)
    assert (state.lists.times, state.watches.times) == ((17.0,), (17.0,))
    assert counted(state, Relist("", 500), now=18.0).watches.times == (17.0,)
    assert counted(State(), Probe(), now=18.0) == State()


def test_two_lists_in_a_minute_never_wait_for_probes() -> None:
    """A third one may: lists and probes together are at most 8."""
    budget = OpeningBudget()
    for second in range(6):
        budget = budget.probed(float(second))
    assert budget.probe_wait(now=6.0) > 0
    for at in (6.0, 7.0):
        assert budget.wait(now=at) == 0.0
        budget = budget.used(at)
    assert budget.wait(now=8.0) == pytest.approx(52.05)


def test_probes_beside_a_watch_are_at_most_6_in_a_minute() -> None:
    state = probed_often(WATCHING, 6)
    assert probe_wait(state, now=8.0) == (state, pytest.approx(52.05))


def test_a_long_watch_that_ends_before_its_time_is_followed_by_a_probe() -> None:
    """F-R07: a server that goes away ends its watches in good order; who answers next?"""
    decision = run(WATCHING, ended(lived=90.0))
    assert decision.action == Probe()
    assert run(decision.state, Probed("7", "7")).action == Rewatch("7")
    back = run(decision.state, Probed("3", "7"))
    assert back.notices == (Regressed("7", "3"),)
    assert waits_for(back) == "list"


def test_two_watches_that_end_at_once_make_the_version_suspect() -> None:
    """F-R03: some servers close a watch from a forgotten version without a word."""
    short = ended(lived=0.1, events=0)
    first = run(WATCHING, short)
    assert waits_for(first) == "watch"
    second = run(waited(first.state).state, short)
    assert waits_for(second) == "list"
    assert second.notices == (Expired("7"),)
    assert run(second.state, Waited()).action == StreamList("")


@pytest.mark.parametrize("between", [ended(lived=2.0, events=0), ended(lived=0.1, events=3)])
def test_a_real_watch_in_between_clears_the_suspicion(between: Ended) -> None:
    short = ended(lived=0.1, events=0)
    state = waited(run(WATCHING, short).state).state
    state = replace(run(state, between).state, phase=Watching())
    assert waits_for(run(state, short)) == "watch"


def test_a_lost_connection_is_followed_by_a_look_at_the_servers_version() -> None:
    decision = run(WATCHING, ended(error=CUT))
    assert waited(decision.state).action == Rewatch("7")
    failed = run(run(decision.state, Waited()).state, Failed(REFUSED))
    assert waits_for(failed) == "watch"
    assert waited(failed.state).action == Rewatch("7")


def test_a_server_that_went_back_in_time_is_told_and_listed_anew() -> None:
    """F-R07: a watch from a future version would be silent for ever."""
    probing = State(phase=Probing(), version="700")
    decision = run(probing, Probed("9", applied="700"))
    assert decision.notices == (Regressed("700", "9"),)
    assert waits_for(decision) == "list"
    assert run(decision.state, Waited(), PLAIN).action == Relist("", 500)


@pytest.mark.parametrize("error", [said(403), said(404), UNKNOWN, DecodeError("x")])
def test_a_look_that_is_refused_is_not_waited_for(error: KinformError) -> None:
    """The kind may be gone, or lists forbidden; the watch will tell."""
    probing = State(phase=Probing(), version="7")
    assert run(probing, Failed(error)).action == Rewatch("7")


def test_a_look_that_meets_an_overloaded_server_waits_as_long_as_it_asks_for() -> None:
    probing = State(phase=Probing(), version="7")
    decision = run(probing, Failed(said(429, retry_after=17.0)))
    assert (decision.action, decision.state.phase) == (Wait(17.0), Waiting("watch"))
    assert run(decision.state, Waited()).action == Probe()


def test_the_same_is_looked_for_while_a_watch_is_open() -> None:
    assert run(WATCHING, Probed("8", applied="7")).action is None
    assert waits_for(run(WATCHING, Probed("3", applied="7"))) == "list"


@pytest.mark.parametrize("error", [DecodeError("rubbish"), SourceError("x")])
def test_an_unreadable_stream_is_resumed_once_and_then_listed(error: KinformError) -> None:
    """F-R23."""
    rubbish = ended(error=error)
    first = run(WATCHING, rubbish)
    assert waits_for(first) == "watch"
    second = run(waited(first.state).state, rubbish)
    assert waits_for(second) == "list"


@pytest.mark.parametrize(
    ("window", "follows"),
    [
        (0.0, ["list"] * 6),
        (60.0, ["watch", "watch", "list", "list", "watch", "watch"]),
    ],
)
def test_internal_errors_are_borne_with_for_as_long_as_asked(
    window: float, follows: list[str]
) -> None:
    """CG-R36: from the first of a series on; a quiet minute begins another, nothing else does."""
    policy = Policy(internal_error_window=window)
    state, seen = WATCHING, list[str]()
    for now in (0.0, 30.0, 60.0, 119.0, 180.0, 190.0):
        decision = run(state, ended(error=said(500)), policy, now=now)
        seen.append(waits_for(decision))
        state = run(
            replace(decision.state, phase=Watching()), ended(error=CUT), policy, now=now
        ).state
        state = replace(state, phase=Watching())
    assert seen == follows


def test_an_object_that_the_server_cannot_read_does_not_pass() -> None:
    """CG-R33: it is a 500 too, but only a list tells what became of it."""
    corrupt = api_error(Status(code=500, reason="StoreReadError", message="no"))
    policy = Policy(internal_error_window=60.0)
    assert waits_for(run(WATCHING, ended(error=corrupt), policy)) == "list"


@pytest.mark.parametrize("code", [400, 403, 503, 504])
def test_any_other_error_event_leads_to_a_list(code: int) -> None:
    assert waits_for(run(WATCHING, ended(error=said(code)))) == "list"


def test_too_many_requests_keeps_the_version_and_the_patience_asked_for() -> None:
    """F-R29."""
    decision = run(WATCHING, ended(error=said(429, retry_after=17.0)))
    assert waits_for(decision) == "watch"
    assert decision.action == Wait(17.0)
    assert run(WATCHING, Failed(said(429, retry_after=9999.0))).action == Wait(120.0)


def test_a_signal_that_cannot_be_is_a_bug() -> None:
    with pytest.raises(AssertionError, match="cannot happen"):
        run(WATCHING, Listed("7"))


# --- Damage ---

REPAIRS = ended(resource_version="9", error=DecodeError("damaged"), repairs=True)


def test_a_watch_that_was_ended_to_mend_damage_is_followed_by_a_list_not_older() -> None:
    decision = run(WATCHING, REPAIRS)
    assert decision.action == Wait(0.8)
    assert run(decision.state, Waited(), PLAIN).action == Relist("9", None)


@pytest.mark.parametrize("error", [said(403), said(503), said(429), said(404), REFUSED])
@pytest.mark.parametrize("policy", [PLAIN, Policy()], ids=["plain", "streamed"])
def test_a_list_for_damaged_objects_that_fails_costs_no_others(
    error: KinformError, policy: Policy
) -> None:
    """One object must not take its kind down: there is nothing wrong with the watch."""
    listing = run(run(WATCHING, REPAIRS).state, Waited(), policy)
    failed = run(listing.state, Failed(error), policy)
    assert waits_for(failed) == "watch"
    assert waited(failed.state).action == Rewatch("9")
    again = run(replace(WATCHING, corrupted=failed.state.corrupted), REPAIRS, now=9.0)
    assert again.state.corrupted.backoff.failures == 2


def repair_delay(state: State, *, now: float) -> float:
    due = state.corrupted.seen(now=now, rand=0.0).due
    assert due is not None
    return due - now


def test_damage_is_mended_later_and_later_for_as_long_as_it_lasts() -> None:
    state, now, delays = WATCHING, 0.0, list[float]()
    for _ in range(10):
        delays.append(repair_delay(state, now=now))
        now += delays[-1]
        mended = run(state, ended(lived=delays[-1], repairs=True), now=now).state
        state = run(run(mended, Waited(), PLAIN, now=now).state, Listed("9"), now=now).state
    assert delays == [10.0, 20.0, 40.0, 80.0, 160.0, 320.0, 640.0, 1280.0, 2560.0, 3600.0]
    assert repair_delay(state, now=now + 3600.0) == 3600.0
    assert repair_delay(state, now=now + 4 * 3600.0) == 10.0


# --- Looks at the version ---


def test_a_version_that_nobody_can_tell_keeps_nobody_from_watching() -> None:
    """Lists may be refused, for want of a quorum or for others' sake, where watches are not."""
    state = run(WATCHING, Failed(said(429))).state
    for _ in range(2):
        probing = run(state, Waited())
        assert probing.action == Probe()
        state = run(probing.state, Failed(said(503))).state
    blind = run(state, Waited())
    assert (blind.action, blind.state.health.failed_probes) == (Rewatch("7"), 2)
    assert run(blind.state, Probed("9", applied="7")).state.health.failed_probes == 0


def test_a_watch_that_fails_without_a_probe_is_followed_by_a_probe() -> None:
    """Seed 52: else a cache whose probes failed twice would try watches for ever, and no list."""
    blind = run(
        replace(WATCHING, phase=Waiting("watch"), health=ServerHealth(failed_probes=2)), Waited()
    )
    assert blind.action == Rewatch("7")
    again = run(run(blind.state, Failed(said(502))).state, Waited())
    assert again.action == Probe()
    failed = run(run(again.state, Failed(said(503))).state, Waited())
    assert failed.action == Rewatch("7")


def test_a_look_that_is_refused_is_an_answer_and_not_taken_again_beside_the_watch() -> None:
    probing = replace(WATCHING, phase=Probing(), health=ServerHealth(failed_probes=1))
    watching = run(probing, Failed(said(403)))
    assert (watching.action, watching.state.health.failed_probes) == (Rewatch("7"), 0)


def test_who_starts_anew_has_no_watch_to_go_back_to_without_a_list() -> None:
    mending = run(WATCHING, ended(lived=61.0, repairs=True)).state
    assert mending.phase == Waiting("list", repairs=True)
    started = run(mending, Started("7"), PLAIN)
    assert waits_for(run(started.state, Failed(said(503)))) == "list"


# --- Back-off ---


def test_waits_double_up_to_half_a_minute_and_health_resets_them() -> None:
    state, waits = WATCHING, list[float]()
    for _ in range(8):
        decision = run(state, Failed(said(503)))
        assert isinstance(decision.action, Wait)
        waits.append(decision.action.seconds)
        state = replace(decision.state, phase=Watching())
    assert waits == [0.8, 1.6, 3.2, 6.4, 12.8, 25.6, 30.0, 30.0]
    healthy = run(state, ended(lived=61.0, error=said(503)))
    assert healthy.action == Wait(0.8)


def test_the_time_that_a_watch_lived_counts_as_waited() -> None:
    """Proxies that cut every watch after 50 s must not cost half a minute of silence each time."""
    backoff = Backoff(failures=20)
    state = replace(WATCHING, backoff=backoff)
    assert run(state, ended(lived=50.0, error=CUT)).action == Wait(0.8)
    assert run(state, ended(lived=20.0, error=CUT)).action == Wait(10.0)
    assert run(state, ended(lived=0.0, error=CUT)).action == Wait(30.0)
    assert run(state, ended(lived=50.0, error=said(429, retry_after=9.0))).action == Wait(9.0)


@given(failures=st.integers(0, 10_000), rand=st.floats(0, 1, exclude_max=True))
def test_a_wait_lies_between_the_step_and_twice_the_step(failures: int, rand: float) -> None:
    delay = Backoff(failures=failures).delay(rand=rand)
    step_size = min(30.0, 0.8 * 2 ** min(failures, 60))
    assert step_size <= delay <= 2 * step_size


ERRORS = [
    *(said(code) for code in (400, 401, 403, 404, 405, 410, 422, 429, 500, 501, 502, 503, 504)),
    TOO_LARGE,
    REFUSED,
    CUT,
    RESET,
    SILENT,
    UNKNOWN,
    ABSENT,
    MOVED,
    DecodeError("x"),
    SourceError("x"),
]
failures = st.sampled_from(ERRORS).map(Failed)
versions = st.sampled_from(["", "0", "1", "7", "9", "a"])
endings = st.builds(
    lambda error, lived, events, version, damage: ended(
        error=error, lived=lived, events=events, resource_version=version, **damage
    ),
    st.none() | st.sampled_from(ERRORS),
    st.sampled_from([0.0, 0.0, 0.5, 2.0, 29.0, 59.0, 61.0]) | st.floats(0, 5),
    st.integers(0, 3),
    versions,
    st.sampled_from([{}, {}, {"repairs": True}, {"reached_timeout": True}]),
)
ANSWERS: dict[type, st.SearchStrategy[Signal]] = {
    Relist: failures | st.builds(Listed, versions, st.booleans(), st.sampled_from([0.0, 11.0])),
    Probe: failures | st.builds(Probed, versions, versions),
    Clear: failures | st.just(Cleared()),
    StreamList: failures | endings | versions.map(Streamed),
    Rewatch: failures | endings,
    type(None): endings | st.builds(Probed, versions, versions),  # a watch goes on
}


def most_in_a_minute(times: list[float]) -> int:
    return max((sum(at <= one < at + 60.0 for one in times) for at in times), default=0)


@given(
    data=st.data(),
    rand=st.sampled_from([0.0, 0.0, 0.3, 0.999]),
    stream_lists=st.booleans(),
    window=st.sampled_from([0.0, 20.0]),
    delay=st.sampled_from([0.0, 0.0, 7.0]),
)
def test_no_server_can_provoke_more_than_eight_of_each_in_any_minute(
    data: st.DataObject, rand: float, stream_lists: bool, window: float, delay: float
) -> None:
    """F-I11: whatever it answers, however healthy it is, and wherever the reflector is restarted.

    ``delay`` is what the limiter that reconnects share may add between decision and request.
    """
    policy = Policy(stream_lists=stream_lists, internal_error_window=window)
    now, lists, watches = 0.0, list[float](), list[float]()
    decision = step(State(), Started(), now=now, rand=rand, policy=policy)
    for _ in range(60):
        if now > 200.0:
            break
        action = decision.action
        if not isinstance(action, Wait | None):
            now += delay
        state = counted(decision.state, action, now=now)
        if isinstance(action, Relist | Probe | StreamList):
            lists.append(now)
        if isinstance(action, StreamList | Rewatch):
            watches.append(now)
        if action is None:  # a watch that goes on; a probe may be due beside it
            state, wait = probe_wait(state, now=now)
            lists += [] if wait else [now]
        signal: Signal = Waited()
        if isinstance(action, Wait):
            now += action.seconds
        else:
            signal = data.draw(ANSWERS[type(action)] | st.just(Started("7")))
        if isinstance(signal, Ended):
            now += signal.lived
        decision = step(state, signal, now=now, rand=rand, policy=policy)
    assert most_in_a_minute(lists) <= 8
    assert most_in_a_minute(watches) <= 8


@given(st.lists(st.tuples(st.floats(0, 30), st.booleans()), max_size=60))
def test_a_budget_bounds_every_window_and_no_request_waits_long(
    requests: list[tuple[float, bool]],
) -> None:
    budget, now, begun, probes = OpeningBudget(), 0.0, list[float](), list[float]()
    for gap, is_probe in requests:
        now += gap
        if is_probe:
            if not budget.probe_wait(now=now):
                budget = budget.probed(now)
                begun.append(now)
                probes.append(now)
            continue
        wait = budget.wait(now=now)
        if sum(at > now - 60.0 for at in begun) < 5:
            assert wait == 0.0
        if not probes:
            assert wait <= 15.3
        now += wait
        assert budget.wait(now=now) == 0.0, "who has waited need not wait again"
        budget = budget.used(now)
        begun.append(now)
    assert most_in_a_minute(begun) <= 8
    assert most_in_a_minute(probes) <= 6


@given(data=st.data(), stream_lists=st.booleans())
def test_whatever_happened_a_server_that_is_well_again_is_watched(
    data: st.DataObject, stream_lists: bool
) -> None:
    """From any state it takes a few steps, of which one is a list if the version was in doubt."""
    policy = Policy(stream_lists=stream_lists)
    now, decision = 0.0, step(State(), Started(), now=0.0, rand=0.5, policy=policy)
    healthy: dict[type, Signal] = {
        Relist: Listed("9"),
        Probe: Probed("9", "9"),
        Clear: Cleared(),
        StreamList: Streamed("9"),
        Wait: Waited(),
    }
    for _ in range(data.draw(st.integers(0, 30))):
        action = decision.action
        now += action.seconds if isinstance(action, Wait) else 0.0
        signal = Waited() if isinstance(action, Wait) else data.draw(ANSWERS[type(action)])
        decision = step(decision.state, signal, now=now, rand=0.5, policy=policy)
    for _ in range(8):
        if isinstance(decision.action, Rewatch | None):
            break
        now += decision.action.seconds if isinstance(decision.action, Wait) else 0.0
        signal = healthy[type(decision.action)]
        decision = step(decision.state, signal, now=now, rand=0.5, policy=policy)
    assert isinstance(decision.action, Rewatch | None)
    assert decision.state.phase == Watching()
    assert not decision.state.is_suspect


@pytest.mark.parametrize(
    ("version", "than", "older"),
    [
        ("9", "10", True),
        ("10", "10", False),
        ("99999999999999999999999998", "99999999999999999999999999", True),
        ("", "1", False),
        ("1", "", False),
        ("a", "b", False),
        ("٣", "9", False),
        ("-1", "9", False),
    ],
)
def test_only_plain_numbers_are_compared(version: str, than: str, older: bool) -> None:
    assert is_older(version, than) is older
