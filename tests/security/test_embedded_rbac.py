"""Users of the embedded server cannot get more rights than roles and bindings give them."""

from __future__ import annotations

import json
import time
from typing import Any, NamedTuple

import pytest

from kinform.apiserver import APIServer
from kinform.apiserver.endpoints.messages import ServerRequest

RBAC = "/apis/rbac.authorization.k8s.io/v1"
ROLES = f"{RBAC}/namespaces/default/roles"
MAPS = "/api/v1/namespaces/default/configmaps"
LEASES = "/apis/coordination.k8s.io/v1/namespaces/default/leases"
APPLY = "application/apply-patch+yaml"
GROUP = "rbac.authorization.k8s.io"
ROLE_MAKER = {"apiGroups": [GROUP], "resources": ["roles"], "verbs": ["create", "update", "patch"]}
EVERYTHING = {"apiGroups": ["*"], "resources": ["*"], "verbs": ["*"]}
ESCALATION = (
    'user "eve" (groups=["system:authenticated"]) is attempting to grant RBAC permissions not '
    "currently held:\n"
)


class Answer(NamedTuple):
    code: int
    body: dict[str, Any]

    @property
    def message(self) -> str:
        return str(self.body.get("message", ""))


async def send(
    server: APIServer, token: str, method: str, path: str, body: object = None, form: str = ""
) -> Answer:
    headers = {
        "authorization": f"Bearer {token}",
        "content-type": form or "application/json",
    }
    text = b"" if body is None else json.dumps(body).encode()
    request = ServerRequest.of(method, path, headers=headers, body=text)
    answer = await server.application.handle(request)
    assert isinstance(answer.body, bytes)
    return Answer(answer.status, json.loads(answer.body))


async def user(server: APIServer, name: str, *rules: object) -> str:
    """Return the token of a user with these rules in the namespace ``default``."""
    role = {"metadata": {"name": name}, "rules": rules}
    binding = {
        "metadata": {"name": name},
        "roleRef": {"apiGroup": GROUP, "kind": "Role", "name": name},
        "subjects": [{"kind": "User", "name": name, "apiGroup": GROUP}],
    }
    assert (await send(server, server.token, "POST", ROLES, role)).code == 201
    bindings = f"{RBAC}/namespaces/default/rolebindings"
    assert (await send(server, server.token, "POST", bindings, binding)).code == 201
    return server.user(name).token


@pytest.mark.parametrize("nothing", ["resourceNames", "nonResourceURLs"])
async def test_a_null_in_a_rule_does_not_hide_what_the_rule_grants(nothing: str) -> None:
    """The answer is the one that kube-apiserver 1.36 gives."""
    async with APIServer(port=None, rbac=True) as server:
        eve = await user(server, "eve", ROLE_MAKER)
        role = {"metadata": {"name": "app"}, "rules": [EVERYTHING | {nothing: None}]}

        created = await send(server, eve, "POST", ROLES, role)
        await send(server, server.token, "POST", ROLES, {"metadata": {"name": "app"}})
        updated = await send(server, eve, "PUT", f"{ROLES}/app", role)
        merged = await send(
            server, eve, "PATCH", f"{ROLES}/app", role, "application/merge-patch+json"
        )
        identity = {"apiVersion": "rbac.authorization.k8s.io/v1", "kind": "Role"}
        applied = await send(
            server, eve, "PATCH", f"{ROLES}/app?fieldManager=x&force=true", identity | role, APPLY
        )

    granted = '{APIGroups:["*"], Resources:["*"], Verbs:["*"]}'
    refused = f'roles.rbac.authorization.k8s.io "app" is forbidden: {ESCALATION}{granted}'
    assert [it.code for it in (created, updated, merged, applied)] == [403] * 4
    assert {it.message for it in (created, updated, merged, applied)} == {refused}


@pytest.mark.parametrize(
    ("rules", "code", "message"),
    [
        ([None], 422, "rules[0].verbs: Required value: verbs must contain at least one value"),
        ([{"verbs": None}], 422, "rules[0].apiGroups: Required value: resource rules must supply"),
        ([EVERYTHING | {"apiGroups": "*"}], 400, "PolicyRule.rules.apiGroups of type []string"),
        (EVERYTHING, 400, "cannot unmarshal object into Go struct field Role.rules of type"),
        (
            [{"apiGroups": [None], "resources": ["pods"], "verbs": ["get"]}],
            403,
            f'{ESCALATION}{{APIGroups:[""], Resources:["pods"], Verbs:["get"]}}',
        ),
        (
            [{"verbs": ["get"], "nonResourceURLs": [None]}],
            403,
            f'{ESCALATION}{{NonResourceURLs:[""], Verbs:["get"]}}',
        ),
    ],
)
async def test_odd_rules_are_refused_as_the_real_server_does(
    rules: object, code: int, message: str
) -> None:
    async with APIServer(port=None, rbac=True) as server:
        eve = await user(server, "eve", ROLE_MAKER)

        answer = await send(server, eve, "POST", ROLES, {"metadata": {"name": "r"}, "rules": rules})

    assert answer.code == code
    assert message in answer.message


async def test_an_apply_that_creates_needs_the_verb_create() -> None:
    """The answers are those of kube-apiserver 1.36."""
    rule = {"apiGroups": [""], "resources": ["configmaps"], "verbs": ["patch"]}
    async with APIServer(port=None, rbac=True) as server:
        pat = await user(server, "pat", rule)
        max_ = await user(server, "max", rule | {"verbs": ["patch", "create"]})
        new = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "new"}}
        wrong = new | {"metadata": {"name": "new_"}}

        refused = await send(server, pat, "PATCH", f"{MAPS}/new?fieldManager=x", new, APPLY)
        dry = f"{MAPS}/new?fieldManager=x&dryRun=All"
        tried = await send(server, pat, "PATCH", dry, new, APPLY)
        invalid = await send(server, pat, "PATCH", f"{MAPS}/new_?fieldManager=x", wrong, APPLY)
        created = await send(server, max_, "PATCH", f"{MAPS}/new?fieldManager=x", new, APPLY)
        changed = await send(server, pat, "PATCH", f"{MAPS}/new?fieldManager=x", new, APPLY)

    assert refused.message == (
        'configmaps "new" is forbidden: User "pat" cannot create resource "configmaps" '
        'in API group "" in the namespace "default"'
    )
    assert refused.body["details"] == {"name": "new", "kind": "configmaps"}
    assert [refused.code, tried.code, invalid.code] == [403, 403, 422]
    assert [created.code, changed.code] == [201, 200]


async def test_a_put_that_creates_needs_the_verb_create() -> None:
    """The answers are those of kube-apiserver 1.36."""
    rule = {"apiGroups": ["coordination.k8s.io"], "resources": ["leases"], "verbs": ["update"]}
    async with APIServer(port=None, rbac=True) as server:
        pat = await user(server, "pat", rule)
        max_ = await user(server, "max", rule | {"verbs": ["update", "create"]})
        new = {"metadata": {"name": "new"}, "spec": {}}

        refused = await send(server, pat, "PUT", f"{LEASES}/new", new)
        wrong = new | {"spec": {"leaseDurationSeconds": -1}}
        invalid = await send(server, pat, "PUT", f"{LEASES}/new", wrong)
        created = await send(server, max_, "PUT", f"{LEASES}/new", new)
        changed = await send(server, pat, "PUT", f"{LEASES}/new", new)

    assert refused.message == (
        'leases.coordination.k8s.io "new" is forbidden: User "pat" cannot create resource "leases" '
        'in API group "coordination.k8s.io" in the namespace "default"'
    )
    assert refused.body["details"]["group"] == "coordination.k8s.io"
    assert [refused.code, invalid.code] == [403, 422]
    assert [created.code, changed.code] == [201, 200]


async def test_a_role_that_is_a_large_product_is_refused_at_once() -> None:
    """30 KB say 27 billion rights; only its author's rights decide how long they are compared."""
    words = [str(n) for n in range(3000)]
    async with APIServer(port=None, rbac=True) as server:
        eve = await user(server, "eve", ROLE_MAKER)
        rule = {"apiGroups": words, "resources": words, "verbs": words}
        began = time.process_time()

        refused = await send(
            server, eve, "POST", ROLES, {"metadata": {"name": "r"}, "rules": [rule]}
        )

        spent = time.process_time() - began
        boss = await user(server, "boss", EVERYTHING)
        allowed = await send(
            server, boss, "POST", ROLES, {"metadata": {"name": "r"}, "rules": [rule]}
        )
    assert (refused.code, allowed.code) == (403, 201)
    assert "too many combinations of verbs and resources" in refused.message
    assert spent < 1
