"""No secret is shown on any failing path: every fault, on every request, in memory.

The witness reads what is logged at DEBUG by anybody, every error with its causes, arguments and
traceback, and every repr, statistic and metric. The same on sockets: `test_canaries_on_sockets`.
"""

from __future__ import annotations

import asyncio
import logging
import pickle  # noqa: TID251 - as process pools do with errors

import pytest

import kinform
from kinform.apiserver import APIServer
from kinform.apiserver.faults.kinds import EFFECTS as ALL_EFFECTS
from kinform.rest.auth.credentials import Credential, Credentials
from kinform.rest.config import Config, ExecPlugin, TlsConfig
from kinform.rest.transport.tls import ClientCertificate
from kinform.testing import in_virtual_time
from tests.security.support_canaries import PASSWORD, SECRET, TOKEN, Witness, secret, witness
from tests.security.support_matrix import CLIENTS, EFFECTS, OPERATIONS, Make

CASES = [
    pytest.param(make, id=f"{name}-{number}")
    for name, makes in EFFECTS.items()
    for number, make in enumerate(makes)
]
FEWER = [
    pytest.param(make, id=f"{name}-{number}")
    for name, makes in EFFECTS.items()
    for number, make in enumerate([*makes[:2], *makes[-1:]] if len(makes) > 2 else makes)
]
LONG = 300.0
LIFE = 90.0
HOUR = 3600.0


def test_every_effect_of_the_fault_plan_is_in_the_matrix() -> None:
    assert ALL_EFFECTS.keys() == EFFECTS.keys()


@pytest.mark.parametrize("make", CASES)
@in_virtual_time
async def test_no_request_that_fails_shows_a_secret(make: Make) -> None:
    with witness() as seeing:
        async with APIServer(port=None, token=TOKEN, seed=1) as server, server.connect() as client:
            await client.resource("v1/secrets").create(secret())
            server.faults.add(make())
            for operation in OPERATIONS.values():
                await seeing.attempt(operation(client), within=LONG)
            seeing.show(server, client, client.config)
    assert seeing.failures


@pytest.mark.slow
@pytest.mark.parametrize("life", CLIENTS)
@pytest.mark.parametrize("make", FEWER)
@in_virtual_time
async def test_nothing_that_lives_on_a_client_shows_a_secret(life: str, make: Make) -> None:
    with witness() as seeing:
        async with APIServer(port=None, token=TOKEN, seed=1) as server, server.connect() as client:
            await client.resource("v1/secrets").create(secret())
            async with asyncio.TaskGroup() as group:
                group.create_task(seeing.attempt(CLIENTS[life](client, seeing, LIFE), within=HOUR))
                await asyncio.sleep(LIFE / 3)
                fault = server.faults.add(make())
                await asyncio.sleep(LIFE / 3)
                server.faults.remove(fault)
    assert len(seeing.texts) > 3


@in_virtual_time
async def test_a_witness_would_have_seen_it() -> None:
    """The basis of the tests above: a canary shown in any of these ways is found."""
    seeing = Witness()
    log = logging.getLogger("elsewhere")
    log.propagate = False  # another witness reads along with every test
    log.addHandler(seeing)
    try:
        log.warning("a token: %s", TOKEN)
        log.warning("in a field", extra={"header": f"Bearer {TOKEN}"})
        try:
            raise ValueError(SECRET)
        except ValueError:
            log.exception("in a traceback")
    finally:
        log.removeHandler(seeing)
    for shown in (secret(), PASSWORD, kinform.ConfigError("x", source=SECRET)):
        seeing.show(shown)
    await seeing.attempt(_fail(), within=LONG)
    found = [text for text in seeing.texts if "canary" in text or "Y2FuYXJ5" in text]
    assert len(found) >= 8
    assert seeing.leaks() == found


async def _fail() -> None:
    try:
        raise KeyError(TOKEN)
    except KeyError:
        raise ValueError("something else") from None


CONFIG = Config(
    server="https://api.example:6443",
    token=TOKEN,
    password=PASSWORD,
    proxy_url=f"http://user:{PASSWORD}@proxy.example:3128",
    tls=TlsConfig(key_data=SECRET.encode(), cert_data=SECRET.encode()),
    exec_plugin=ExecPlugin(command="login", args=["--password", PASSWORD], env={"TOKEN": TOKEN}),
)


@pytest.mark.parametrize(
    "value",
    [
        CONFIG,
        Credential(f"Bearer {TOKEN}"),
        ClientCertificate(SECRET.encode(), SECRET.encode()),
        Credentials(Config(server="https://api.example:6443", token=TOKEN)),
        kinform.Object.from_dict(secret()),
        [kinform.Object.from_dict(secret())],
        kinform.connect(Config(server="https://api.example:6443", token=TOKEN)),
    ],
    ids=lambda value: type(value).__name__,
)
def test_no_form_of_what_holds_a_secret_shows_it(value: object) -> None:
    with witness() as seeing:
        seeing.show(value)
        seeing.texts += [f"{value!s}", "%r" % (value,), format(value)]  # noqa: UP031 - a form too


@in_virtual_time
async def test_errors_that_travel_to_another_process_carry_no_secret() -> None:
    with witness() as seeing:
        async with APIServer(port=None, token=TOKEN, seed=1) as server, server.connect() as client:
            for operation in OPERATIONS.values():
                try:
                    async with asyncio.timeout(LONG):
                        await operation(client)
                except (TimeoutError, ValueError):
                    continue  # our own
                except kinform.KinformError as exc:
                    seeing.texts.append(pickle.dumps(exc).decode("latin-1"))
    assert len(seeing.texts) > 3
