"""The promise of leader election, in a small world with one true time and clocks that disagree.

Candidates are the pure `Election`, each with a boot clock of its own rate and a wall clock that
jumps or stands still. Requests and answers take their time, get lost, or arrive long after somebody
gave up on them; hosts are stopped, killed and started again. The world looks at every instant at
which belief can begin.
"""

from __future__ import annotations

import functools
import heapq
import itertools
import random
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import cast

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kinform.errors import TransportError, TransportFailure, api_error
from kinform.meta import Status
from kinform.sansio.election.config import LeaderElection
from kinform.sansio.election.leases import read_lease
from kinform.sansio.election.signals import (
    Action,
    Create,
    Delay,
    DelayEnded,
    End,
    Get,
    Got,
    Moment,
    RequestFailed,
    Signal,
    Update,
    Wrote,
)
from kinform.sansio.election.step import Election, Phase

NO_ANSWER = RequestFailed(TransportError("no answer", failure=TransportFailure.TIMEOUT))


def refusal(code: int, reason: str) -> RequestFailed:
    return RequestFailed(api_error(Status(code=code, reason=reason)))


class Server:
    """One register, as an API server keeps it: versions, and no write without the right one."""

    def __init__(self) -> None:
        self.version = 100
        self.content: dict[str, object] | None = None

    def answer(self, action: Get | Create | Update) -> Signal:
        match action:
            case Get():
                return Got(None if self.content is None else read_lease(self.content))
            case Create(body):
                if self.content is not None:
                    return refusal(409, "AlreadyExists")
            case Update(body):
                if self.content is None:
                    return refusal(404, "NotFound")
                if metadata(body)["resourceVersion"] != str(self.version):
                    return refusal(409, "Conflict")
                if body == self.content:
                    return Wrote(read_lease(self.content))  # nothing new: no new version
        self.version += 1
        stored = dict(body) | {"metadata": metadata(body) | {"resourceVersion": str(self.version)}}
        self.content = stored
        return Wrote(read_lease(stored))


def metadata(content: Mapping[str, object]) -> dict[str, object]:
    return dict(cast("Mapping[str, object]", content["metadata"]))


@dataclass
class Host:
    """Where one candidate runs, and what its clocks show."""

    name: str
    rate: float
    election: Election
    offset: float
    wall: float
    wall_rate: float = 1.0
    incarnation: int = 0
    stopped_until: float = 0.0
    request: int = 0
    is_partitioned: bool = False

    def boot(self, now: float) -> float:
        return self.offset + self.rate * now


@dataclass(frozen=True)
class Weather:
    """How bad things are: probabilities, each per request or per second."""

    lost: float = 0.1
    late: float = 0.1
    refused: float = 0.1
    stop: float = 0.05
    trouble: float = 0.02


CALM = Weather(0, 0, 0, 0, 0)


class World:
    def __init__(
        self, seed: int, rates: list[float], *, weather: Weather, config: LeaderElection
    ) -> None:
        self.random = random.Random(seed)
        self.weather = weather
        self.config = config
        self.server = Server()
        self.now = 0.0
        self.led = 0  # how often belief has begun
        self._events: list[tuple[float, int, Callable[[], None]]] = []
        self._numbers = itertools.count()
        self._names = itertools.count()
        self._believer: str | None = None
        self.hosts = [self._host(rate) for rate in rates]
        for host in self.hosts:
            self.later(self.random.random() * 5, functools.partial(self.begin, host))

    def _host(self, rate: float) -> Host:
        name = f"host-{next(self._names)}"
        election = Election(replace(self.config, identity=name))
        draw = self.random
        return Host(name, rate, election, draw.uniform(0, 1e6), draw.uniform(0, 2e9))

    # --- time

    def later(self, seconds: float, event: Callable[[], None]) -> None:
        heapq.heappush(self._events, (self.now + seconds, next(self._numbers), event))

    def run(self, seconds: float) -> None:
        end = self.now + seconds
        while self._events and self._events[0][0] <= end:
            self.now, _, event = heapq.heappop(self._events)
            event()
            self.look()
        self.now = end

    def believers(self) -> list[str]:
        return [host.name for host in self.hosts if self.believes(host)]

    def believes(self, host: Host) -> bool:
        """What `check()` would say there at this instant, also if the host is stopped."""
        deadline = host.election.deadline
        return deadline is not None and host.boot(self.now) < deadline

    def look(self) -> None:
        believers = self.believers()
        assert len(believers) <= 1, f"at {self.now}: {believers}"
        if believers and believers != [self._believer]:
            self.led += 1
        self._believer = believers[0] if believers else None

    def moment(self, host: Host) -> Moment:
        wall = host.wall + host.wall_rate * self.now
        return Moment(host.boot(self.now), wall, self.random.random())

    # --- what hosts do

    def begin(self, host: Host) -> None:
        self.do(host, host.election.begin(self.moment(host)))

    def release(self, host: Host) -> None:
        host.request += 1  # what is under way is given up; it may be done even so
        self.do(host, host.election.release(self.moment(host)))

    def do(self, host: Host, action: Action) -> None:
        host.request += 1
        request, incarnation = host.request, host.incarnation

        def deliver(signal: Signal) -> None:
            if (host.request, host.incarnation) != (request, incarnation):
                return  # too late
            if host.stopped_until > self.now:
                self.later(host.stopped_until - self.now, lambda: deliver(signal))
                return
            self.do(host, host.election.step(signal, self.moment(host)))

        match action:
            case Delay(seconds):
                assert seconds >= 0
                self.later(seconds / host.rate, lambda: deliver(DelayEnded()))
            case End():
                self.later(self.random.random() * 3, lambda: self.start_anew(host, incarnation))
            case Get() | Create() | Update():
                self.later(action.timeout / host.rate, lambda: deliver(NO_ANSWER))
                self.send(host, action, deliver)

    def start_anew(self, host: Host, incarnation: int) -> None:
        if host.incarnation == incarnation:
            self.begin(host)

    def send(
        self, host: Host, action: Get | Create | Update, deliver: Callable[[Signal], None]
    ) -> None:
        draw, weather = self.random, self.weather
        if draw.random() < weather.stop:  # after the clock was read, before the first byte
            self.stop(host)
        waits = max(0.0, host.stopped_until - self.now)
        there = waits + self.delay()
        if host.is_partitioned or draw.random() < weather.lost:
            return
        if draw.random() < weather.refused:
            failure = draw.choice([refusal(500, "InternalError"), refusal(403, "Forbidden")])
            self.later(there, lambda: deliver(failure))
            return

        def arrive() -> None:
            signal = self.server.answer(action)
            if draw.random() < weather.refused:
                signal = refusal(500, "InternalError")  # although it was done
            if not host.is_partitioned and draw.random() >= weather.lost:
                self.later(self.delay(), lambda: deliver(signal))

        self.later(there, arrive)

    def delay(self) -> float:
        if self.random.random() < self.weather.late:
            return self.random.choice([1.0, 4.0, 9.0, 30.0]) * self.random.random()
        return self.random.random() * 0.02

    # --- what happens to hosts

    def trouble(self) -> None:
        """Do something bad to somebody, and come again in a second."""
        if self.weather is CALM:
            return
        for host in self.hosts:
            if self.random.random() < self.weather.trouble:
                self.random.choice(
                    [self.partition, self.kill, self.set_wall, self.exit, self.stop]
                )(host)
        self.later(1.0, self.trouble)

    def stop(self, host: Host) -> None:
        if self.weather.stop:
            seconds = self.random.choice([0.5, 5.0, 12.0, 16.0, 100.0]) * self.random.random()
            host.stopped_until = max(host.stopped_until, self.now + seconds)

    def partition(self, host: Host) -> None:
        def heal() -> None:
            host.is_partitioned = False

        host.is_partitioned = True
        self.later(self.random.choice([3.0, 12.0, 40.0]) * self.random.random(), heal)

    def kill(self, host: Host) -> None:
        """End the process; another starts there, with the old name or that of somebody else."""
        host.incarnation += 1
        host.stopped_until = 0.0
        identity = self.random.choice([f"host-{next(self._names)}", host.name, "host-0"])
        host.election = Election(replace(self.config, identity=identity))
        incarnation = host.incarnation
        self.later(self.random.random() * 20, lambda: self.start_anew(host, incarnation))

    def set_wall(self, host: Host) -> None:
        host.wall += self.random.choice([-2.0, 3600.0, -3600.0, 3e8, -3e9])
        host.wall_rate = self.random.choice([0.0, 1.0, 1.0, 1000.0])

    def exit(self, host: Host) -> None:
        if host.stopped_until <= self.now:
            self.release(host)


DEFAULT = LeaderElection(lease="widgets", namespace="ops", identity="x")
QUICK = replace(DEFAULT, lease_duration=3, renew_deadline=1.5, retry_period=0.3)
CLOSE = replace(DEFAULT, lease_duration=12, renew_deadline=11, retry_period=2)

unit = st.floats(0, 1)
weathers = st.builds(
    Weather,
    lost=st.sampled_from([0.0, 0.1, 0.4]),
    late=st.sampled_from([0.0, 0.1, 0.5]),
    refused=st.sampled_from([0.0, 0.1, 0.3]),
    stop=st.just(0.0),
    trouble=st.sampled_from([0.0, 0.01, 0.05]),
)


def world(
    seed: int, rates: list[float], *, weather: Weather, config: LeaderElection, speed: float = 1.0
) -> World:
    """Clock rates are between ``speed`` and just under ``speed`` times what is tolerated."""
    reach = 0.999 * config.rate_tolerance - 1
    made = World(
        seed, [speed * (1 + reach * rate) for rate in rates], weather=weather, config=config
    )
    made.later(1.0, made.trouble)
    return made


@pytest.mark.slow
@given(
    seed=st.integers(0, 2**32),
    rates=st.lists(unit, min_size=2, max_size=5),
    weather=weathers,
    config=st.sampled_from([DEFAULT, QUICK, CLOSE]),
    speed=st.sampled_from([0.5, 1.0, 2.0]),
)
def test_no_two_believe_at_one_true_instant_that_they_lead(
    seed: int, rates: list[float], weather: Weather, config: LeaderElection, speed: float
) -> None:
    """And when the weather is calm again, somebody leads soon, and keeps leading."""
    there = world(seed, rates, weather=weather, config=config, speed=speed)
    there.run(10 * config.lease_duration)
    there.weather = CALM
    for host in there.hosts:
        host.is_partitioned = False
    there.run(31)  # what is still on its way arrives; processes start
    slowest = min(host.rate for host in there.hosts)
    poll = 2.2 * config.retry_period + config.renew_deadline / 2
    before = there.led
    there.run((config.lease_duration + 3 * poll) / slowest + 5)
    assert there.believers() or there.led > before
    there.run(5)
    [leader] = there.believers()
    there.run(5 * config.lease_duration)
    assert there.believers() == [leader]


@pytest.mark.slow
@given(
    seed=st.integers(0, 2**32),
    rates=st.lists(unit, min_size=2, max_size=4),
    weather=weathers,
    config=st.sampled_from([DEFAULT, QUICK]),
    stops=st.sampled_from([0.02, 0.2]),
)
def test_a_host_that_was_stopped_is_refused_while_somebody_else_may_lead(
    seed: int, rates: list[float], weather: Weather, config: LeaderElection, stops: float
) -> None:
    """However long and wherever it stood still, its first look at the lease is right."""
    stormy = replace(weather, stop=stops, trouble=0.05)
    there = world(seed, rates, weather=stormy, config=config)
    there.run(
        15 * config.lease_duration
    )  # it looks after each event, also at those who are stopped


@pytest.mark.parametrize(("rate", "holds"), [(1.49, True), (1.6, False)])
def test_the_tolerance_is_what_it_says(rate: float, holds: bool) -> None:
    """A leader that is cut off right after a renewal, and a challenger whose clock is fast."""

    def two_believe(seed: int) -> bool:
        there = World(seed, [1.0], weather=CALM, config=DEFAULT)
        there.run(20)
        [leader] = there.hosts
        assert there.believes(leader)
        there.hosts.append(there._host(rate))
        there.begin(there.hosts[1])
        leader.is_partitioned = True
        try:
            there.run(60)
        except AssertionError:
            return True
        assert there.believers() == [there.hosts[1].name]
        return False

    assert any(two_believe(seed) for seed in range(100)) is not holds


def test_a_released_lease_is_taken_by_the_next_who_looks() -> None:
    there = World(1, [1.0, 1.0], weather=CALM, config=DEFAULT)
    there.run(20)
    [name] = there.believers()
    leader, other = sorted(there.hosts, key=lambda host: host.name != name)
    there.release(leader)
    assert not there.believes(leader)
    there.run(0.5)
    assert leader.election.phase is Phase.ENDED
    leader.incarnation += 1  # and it is gone
    there.run(2.2 * DEFAULT.retry_period)
    assert there.believers() == [other.name]
