from __future__ import annotations

import asyncio
import functools
import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kinform.apiserver import APIServer
from kinform.apiserver.authn.identity import RequestUser
from kinform.apiserver.authz.rbac import AccessPolicy, Attributes, PolicyObjects, Rule
from kinform.apiserver.endpoints.messages import ServerRequest
from kinform.errors import ForbiddenError, UsageError
from tests.apiserver.recorded_rbac import CASES, HOME, SETUP, Case, essence, recorded

Json = dict[str, Any]
WORDS = st.sampled_from(["a", "b", "*", "a/x", "*/x"])
TUPLES = st.lists(WORDS, min_size=1, max_size=3).map(tuple)


async def ask(server: APIServer, token: str, case: Case, **headers: str) -> Json:
    fields = {"content-type": case.content_type} | {
        name.replace("_", "-"): value for name, value in headers.items()
    }
    if token:
        fields["authorization"] = f"Bearer {token}"
    body = b"" if case.body is None else json.dumps(case.body).encode()
    request = ServerRequest.of(case.method, case.path, headers=fields, body=body)
    answer = await server.application.handle(request)
    assert isinstance(answer.body, bytes)
    return essence(answer.status, answer.body)


async def prepare(server: APIServer) -> None:
    for path, body in SETUP:
        created = await ask(server, server.token, Case("", "POST", path, body))
        assert created["code"] == 201, created


@functools.cache
def answers() -> list[Json]:
    """Ask everything once: no case changes anything."""

    async def run() -> list[Json]:
        async with APIServer(port=None, rbac=True) as server:
            await prepare(server)
            found: list[Json] = []
            for case in CASES:
                is_known = case.user != "system:anonymous"
                token = server.user(case.user, case.groups).token if is_known else ""
                found.append(await ask(server, token, case))
            return found

    return asyncio.run(run())


@pytest.mark.parametrize("index", range(len(CASES)))
def test_a_user_is_answered_as_by_the_real_server(index: int) -> None:
    assert answers()[index] == recorded()[index], CASES[index]


async def test_a_wrong_token_is_refused_even_where_no_token_is_needed() -> None:
    async with APIServer(port=None, rbac=True) as server:
        assert (await ask(server, "wrong", Case("", "GET", "/healthz")))["code"] == 401
        assert (await ask(server, "", Case("", "GET", "/healthz")))["code"] == 200


async def test_a_client_connects_as_a_user_and_sees_what_it_may() -> None:
    async with APIServer(port=None, rbac=True) as server:
        await prepare(server)
        async with server.connect(server.user("alice")) as client:
            await client.resource("v1/pods", namespace=HOME).list()
            with pytest.raises(ForbiddenError):
                await client.resource("v1/secrets", namespace=HOME).list()


async def test_the_token_of_a_service_account_ends_with_the_account() -> None:
    async with APIServer(port=None, rbac=True) as server:
        await prepare(server)
        bot = server.service_account(HOME, "bot")
        pods = Case("", "GET", f"/api/v1/namespaces/{HOME}/pods")
        assert (await ask(server, bot.token, pods))["code"] == 200

        path = f"/api/v1/namespaces/{HOME}/serviceaccounts/bot"
        await ask(server, server.token, Case("", "DELETE", path))

        assert (await ask(server, bot.token, pods))["code"] == 401


async def test_rights_change_with_the_bindings_and_with_a_restore() -> None:
    async with APIServer(port=None, rbac=True) as server:
        await prepare(server)
        alice, before = server.user("alice"), server.cluster.storage.revision
        pods = Case("", "GET", f"/api/v1/namespaces/{HOME}/pods")
        path = f"/apis/rbac.authorization.k8s.io/v1/namespaces/{HOME}/rolebindings/alice"
        assert (await ask(server, alice.token, pods))["code"] == 200

        await ask(server, server.token, Case("", "DELETE", path))
        assert (await ask(server, alice.token, pods))["code"] == 403

        server.restore(before)
        assert (await ask(server, alice.token, pods))["code"] == 200


async def test_who_may_impersonate_is_taken_for_another() -> None:
    async with APIServer(port=None, rbac=True) as server:
        await prepare(server)
        pods = Case("", "GET", f"/api/v1/namespaces/{HOME}/pods")
        zoe = server.user("zoe").token

        as_alice = await ask(server, server.token, pods, impersonate_user="alice")
        as_bob = await ask(server, server.token, pods, impersonate_user="bob")
        by_zoe = await ask(server, zoe, pods, impersonate_user="alice")
        nameless = await ask(server, server.token, pods, impersonate_group="x")

    assert as_alice["code"] == 200
    assert 'User "bob" cannot list' in as_bob["message"]
    assert 'User "zoe" cannot impersonate-on:user-info:list resource' in by_zoe["message"]
    assert nameless["message"] == (
        'requested &user.DefaultInfo{Name:"", UID:"", Groups:[]string{"x"}, '
        "Extra:map[string][]string(nil)} without impersonating a user name"
    )


async def test_a_token_review_knows_the_tokens_and_a_repr_does_not_tell_them() -> None:
    async with APIServer(port=None, rbac=True) as server:
        alice = server.user("alice", ["dev"])
        path = "/apis/authentication.k8s.io/v1/tokenreviews"
        case = Case("", "POST", path, {"spec": {"token": alice.token}})
        found = (await ask(server, server.token, case))["status"]

    assert found["authenticated"]
    assert found["user"]["groups"] == ["dev", "system:authenticated"]
    assert alice.token not in repr(alice)


async def test_without_rbac_there_are_no_other_users() -> None:
    async with APIServer(port=None) as server:
        with pytest.raises(UsageError, match="rbac=True"):
            server.user("alice")


async def test_the_roles_view_edit_and_admin_are_made_of_others() -> None:
    async with APIServer(port=None, rbac=True) as server:
        policy = server.application.access.policy
        counts = [len(policy.rules_of("", name) or ()) for name in ("view", "edit", "admin")]

    assert 0 < counts[0] < counts[1] < counts[2]


def test_roles_that_aggregate_each_other_have_the_same_rules() -> None:
    def role(name: str, label: str, selected: str, verb: str) -> Json:
        return {
            "metadata": {"name": name, "labels": {label: "yes"}},
            "aggregationRule": {"clusterRoleSelectors": [{"matchLabels": {selected: "yes"}}]},
            "rules": [{"verbs": [verb], "apiGroups": [""], "resources": ["pods"]}],
        }

    policy = AccessPolicy(
        PolicyObjects(cluster_roles=[role("a", "x", "y", "get"), role("b", "y", "x", "list")])
    )

    assert set(policy.rules_of("", "a") or ()) == set(policy.rules_of("", "b") or ())
    assert len(policy.rules_of("", "a") or ()) == 2


def missing(held: list[Rule], wanted: Rule) -> list[Rule]:
    """Return the rights of a rule that a user with the other rules, each in its own role, lacks."""
    roles = [
        {"metadata": {"name": str(n)}, "rules": [rule.to_dict()]} for n, rule in enumerate(held)
    ]
    bindings = [
        {
            "metadata": {"name": str(n)},
            "roleRef": {"kind": "ClusterRole", "name": str(n)},
            "subjects": [{"kind": "User", "name": "a"}],
        }
        for n in range(len(held))
    ]
    policy = AccessPolicy(PolicyObjects(cluster_roles=roles, cluster_role_bindings=bindings))
    return policy.missing(RequestUser(name="a"), "", [wanted])


@given(TUPLES, TUPLES, TUPLES)
def test_a_rule_covers_all_that_it_is_made_of(
    verbs: tuple[str, ...], groups: tuple[str, ...], resources: tuple[str, ...]
) -> None:
    rule = Rule(verbs=verbs, groups=groups, resources=resources)

    assert missing([rule], rule) == []
    assert missing(list(rule.singles()), rule) == []


RULES = st.builds(Rule, verbs=TUPLES, groups=TUPLES, resources=TUPLES, names=st.just(()) | TUPLES)


@given(st.lists(RULES, max_size=3), RULES)
def test_a_single_right_is_missing_if_and_only_if_no_held_rule_allows_it(
    held: list[Rule], wanted: Rule
) -> None:
    """The oracle is `Rule.allows`, which decides requests; a star asked for is one more word."""

    def is_held(one: Rule) -> bool:
        resource, _, subresource = one.resources[0].partition("/")
        asked = Attributes(one.verbs[0], one.groups[0], resource, subresource)
        return any(
            rule.allows(asked._replace(name=one.names[0] if one.names else ""))
            for rule in held
            if one.names or not rule.names
        )

    found = missing(held, wanted)

    assert set(found) == {one for one in wanted.singles() if not is_held(one)}


def test_a_rule_for_any_subresource_of_no_name_allows_no_resource() -> None:
    rule = Rule(verbs=("get",), groups=("",), resources=("*/",))

    assert not rule.allows(Attributes("get", "", "secrets"))


@given(TUPLES, WORDS, WORDS)
def test_a_user_without_a_binding_may_do_nothing(
    verbs: tuple[str, ...], group: str, resource: str
) -> None:
    role: Json = {
        "metadata": {"name": "all"},
        "rules": [{"verbs": list(verbs), "apiGroups": [group], "resources": [resource]}],
    }
    policy = AccessPolicy(PolicyObjects(cluster_roles=[role]))

    assert not policy.decide(RequestUser(name="a", groups=("b",)), Attributes("get")).is_allowed
