"""limit and continue: pages of one version, tokens good and bad."""

from __future__ import annotations

import base64

from tests.contract.case import case, each
from tests.contract.cases import CONFIGMAPS, EVERYWHERE, rv
from tests.contract.session import Session


async def fill(s: Session, count: int = 5, **labels: str) -> None:
    for number in range(count):
        await s.configmap(f"c{number}", **labels)


@case("paging", "three pages of a list, the last without a token")
async def three_pages(s: Session) -> None:
    await fill(s)
    token: str | None = None
    while token != "":
        token = (await s.get(CONFIGMAPS, limit=2, continue_=token)).token


@case("paging", "a limit that is just the number of objects leaves nothing")
async def just_enough(s: Session) -> None:
    await fill(s, 3)
    await s.get(CONFIGMAPS, limit=3)


@case("paging", "a limit beyond the number of objects")
async def more_than_enough(s: Session) -> None:
    await fill(s, 3)
    await s.get(CONFIGMAPS, limit=500)


@case("paging", "a limited list of nothing")
async def nothing(s: Session) -> None:
    await s.get(CONFIGMAPS, limit=5)


@each(
    "paging",
    "odd limits",
    {
        "zero": {"limit": "0"},
        "negative": {"limit": "-1"},
        "garbage": {"limit": "many"},
        "empty": {"limit": ""},
        "decimal": {"limit": "1.5"},
        "beyond_64_bits": {"limit": "9223372036854775808"},
        "largest": {"limit": "9223372036854775807"},
    },
)
async def limit_of(s: Session, *, limit: str) -> None:
    await fill(s, 2)
    await s.get(CONFIGMAPS, limit=limit)


@case("paging", "pages are of one version, whatever is written in between")
async def consistent(s: Session) -> None:
    await fill(s)
    page = await s.get(CONFIGMAPS, limit=2)
    await s.remove(f"{CONFIGMAPS}/c3")
    await s.change(f"{CONFIGMAPS}/c4", {"data": {"k": "late"}})
    await s.configmap("c9")
    await s.configmap("a")
    page = await s.get(CONFIGMAPS, limit=2, continue_=page.token)
    await s.get(CONFIGMAPS, limit=2, continue_=page.token)
    await s.get(CONFIGMAPS)


@case("paging", "a token can be used twice, and with another limit")
async def token_twice(s: Session) -> None:
    await fill(s)
    token = (await s.get(CONFIGMAPS, limit=1)).token
    await s.get(CONFIGMAPS, limit=1, continue_=token)
    await s.get(CONFIGMAPS, limit=3, continue_=token)


@case("paging", "a token without a limit brings all the rest")
async def token_without_limit(s: Session) -> None:
    await fill(s)
    token = (await s.get(CONFIGMAPS, limit=1)).token
    await s.get(CONFIGMAPS, continue_=token)


@each(
    "paging",
    "what remains is counted only without selectors",
    {
        "labels": {"labelSelector": "kept=yes"},
        "labels_not": {"labelSelector": "kept!=no"},
        "fields": {"fieldSelector": "metadata.name!=c1"},
        "both": {"labelSelector": "kept=yes", "fieldSelector": "metadata.name!=c1"},
        "empty_selectors": {"labelSelector": "", "fieldSelector": ""},
    },
)
async def remaining(s: Session, **selectors: str) -> None:
    await fill(s, 4, kept="yes")
    page = await s.get(CONFIGMAPS, limit=2, **selectors)
    if page.token:
        await s.get(CONFIGMAPS, limit=2, continue_=page.token, **selectors)


@case("paging", "a page is filled with what a selector finds, over gaps")
async def sparse(s: Session) -> None:
    for number in range(9):
        await s.configmap(f"c{number}", third="yes" if number % 3 == 0 else "no")
    page = await s.get(CONFIGMAPS, limit=2, labelSelector="third=yes")
    await s.get(CONFIGMAPS, limit=2, labelSelector="third=yes", continue_=page.token)


@case("paging", "a page whose rest does not match ends without a token or with one")
async def rest_does_not_match(s: Session) -> None:
    for number in range(4):
        await s.configmap(f"c{number}", first="yes" if number < 2 else "no")
    page = await s.get(CONFIGMAPS, limit=2, labelSelector="first=yes")
    if page.token:
        await s.get(CONFIGMAPS, limit=2, labelSelector="first=yes", continue_=page.token)


@each(
    "paging",
    "tokens that are none",
    {
        "words": {"token": "not a token"},
        "base64_of_words": {"token": base64.urlsafe_b64encode(b"words").decode().rstrip("=")},
        "base64_of_json": {"token": base64.urlsafe_b64encode(b'{"v":"meta.k8s.io/v1"}').decode()},
        "other_version": {
            "token": base64.urlsafe_b64encode(
                b'{"v":"meta.k8s.io/v2","rv":5,"start":"c1"}'
            ).decode()
        },
        "padded": {"token": "YQ=="},
    },
)
async def bad_token(s: Session, *, token: str) -> None:
    await fill(s, 2)
    await s.get(CONFIGMAPS, limit=1, continue_=token)
    await s.get(CONFIGMAPS, continue_=token)


@each(
    "paging",
    "a token with a version beside it",
    {
        "zero": {"version": "0", "match": None},
        "past": {"version": "past", "match": None},
        "current": {"version": "current", "match": None},
        "garbage": {"version": "abc", "match": None},
        "zero_not_older_than": {"version": "0", "match": "NotOlderThan"},
        "past_exact": {"version": "past", "match": "Exact"},
        "match_only": {"version": None, "match": "NotOlderThan"},
        "garbage_match": {"version": None, "match": "Newest"},
    },
)
async def token_and_version(s: Session, *, version: str | None, match: str | None) -> None:
    past = rv(await s.configmap("a"))
    current = rv(await s.configmap("b"))
    token = (await s.get(CONFIGMAPS, limit=1)).token
    asked = {"past": past, "current": current}.get(version or "", version)
    await s.get(
        CONFIGMAPS,
        limit=1,
        continue_=token,
        resourceVersion=asked,
        resourceVersionMatch=match,
    )


@each(
    "paging",
    "a first page at a version, and its second",
    {
        "zero": {"version": "0", "match": None},
        "past": {"version": "past", "match": None},
        "past_exact": {"version": "past", "match": "Exact"},
        "past_not_older_than": {"version": "past", "match": "NotOlderThan"},
        "zero_not_older_than": {"version": "0", "match": "NotOlderThan"},
    },
)
async def first_page_at(s: Session, *, version: str, match: str | None) -> None:
    await s.configmap("a")
    past = rv(await s.configmap("b"))
    await s.settle(CONFIGMAPS, rv(await s.configmap("c")))
    asked = past if version == "past" else version
    page = await s.get(CONFIGMAPS, limit=1, resourceVersion=asked, resourceVersionMatch=match)
    await s.configmap("bb")
    while page.token:
        page = await s.get(CONFIGMAPS, limit=1, continue_=page.token)


@case("paging", "a token of one namespace in another")
async def token_elsewhere(s: Session) -> None:
    other = await s.namespace("other")
    await fill(s, 3)
    for number in range(3):
        await s.configmap(f"c{number}", ns=other)
    token = (await s.get(CONFIGMAPS, limit=1)).token
    await s.get(f"/api/v1/namespaces/{other}/configmaps", limit=1, continue_=token)


@case("paging", "a token of one kind with another")
async def token_of_another_kind(s: Session) -> None:
    await fill(s, 2)
    await s.make("/api/v1/namespaces/{ns}/secrets", {"metadata": {"name": "s"}})
    token = (await s.get(CONFIGMAPS, limit=1)).token
    await s.get("/api/v1/namespaces/{ns}/secrets", limit=1, continue_=token)


@case("paging", "a token after its object is gone")
async def token_object_gone(s: Session) -> None:
    await fill(s, 3)
    token = (await s.get(CONFIGMAPS, limit=1)).token
    await s.remove(f"{CONFIGMAPS}/c0")
    await s.remove(f"{CONFIGMAPS}/c1")
    await s.get(CONFIGMAPS, limit=1, continue_=token)


@case("paging", "pages across namespaces, with a selector")
async def everywhere(s: Session) -> None:
    for name in ("n", "n-x"):
        other = await s.namespace(name)
        for number in range(2):
            await s.configmap(f"c{number}", ns=other, case=s.ident)
    token: str | None = None
    while token != "":
        page = await s.get(EVERYWHERE, limit=1, labelSelector=f"case={s.ident}", continue_=token)
        token = page.token


@case("paging", "pages of custom resources")
async def custom(s: Session) -> None:
    group = await s.crd()
    path = f"/apis/{group}/v1/namespaces/{{ns}}/widgets"
    for name in ("a", "b", "c"):
        body = {"apiVersion": f"{group}/v1", "kind": "Widget", "metadata": {"name": name}}
        await s.make(path, body)
    page = await s.get(path, limit=2)
    await s.get(path, limit=2, continue_=page.token)


@case("paging", "pages as Tables and as metadata only")
async def other_forms(s: Session) -> None:
    await fill(s, 2)
    for form in ("Table", "PartialObjectMetadataList"):
        accept = {"Accept": f"application/json;as={form};v=v1;g=meta.k8s.io"}
        page = await s.get(CONFIGMAPS, limit=1, headers=accept)
        await s.get(CONFIGMAPS, limit=1, continue_=page.token, headers=accept)


@case("paging", "limit and continue mean nothing to a get")
async def get_ignores(s: Session) -> None:
    await fill(s, 1)
    await s.get(f"{CONFIGMAPS}/c0", limit=1, continue_="abc")
    await s.get(f"{CONFIGMAPS}/c0", limit="many")


@case("paging", "an empty token is no token")
async def empty_token(s: Session) -> None:
    await fill(s, 2)
    await s.get(CONFIGMAPS, limit=1, continue_="")


@case("paging", "a limited deletecollection deletes one page")
async def deletecollection(s: Session) -> None:
    await fill(s, 3)
    await s.delete(CONFIGMAPS, limit=2)
    await s.get(CONFIGMAPS)
