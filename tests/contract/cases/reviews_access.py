"""Reviews: questions to the server that are asked by creating an object."""

from __future__ import annotations

from tests.contract.case import case, each
from tests.contract.cases.kinds_bodies import Body, only, seen
from tests.contract.session import Session

REVIEWS = "/apis/authorization.k8s.io/v1"
PODS = {"verb": "get", "resource": "pods", "namespace": "default"}


@each(
    "reviews",
    "may I",
    {
        "resource": {"spec": {"resourceAttributes": PODS}},
        "url": {"spec": {"nonResourceAttributes": {"path": "/healthz", "verb": "get"}}},
        "both": {
            "spec": {
                "resourceAttributes": PODS,
                "nonResourceAttributes": {"path": "/", "verb": "get"},
            }
        },
        "neither": {"spec": {}},
    },
)
async def self_access(s: Session, *, spec: Body) -> None:
    view = only("kind", "apiVersion", "spec", "metadata")
    await s.post(f"{REVIEWS}/selfsubjectaccessreviews", {"spec": spec}, view=view)


@case("reviews", "an administrator may do everything")
async def allowed(s: Session) -> None:
    body = {"spec": {"resourceAttributes": PODS}}
    view = seen(lambda body: body["status"]["allowed"])
    await s.post(f"{REVIEWS}/selfsubjectaccessreviews", body, view=view)


@case("reviews", "may another")
async def other_access(s: Session) -> None:
    body = {"spec": {"user": "nobody-knows", "resourceAttributes": PODS}}
    view = only("kind", "spec")
    await s.post(f"{REVIEWS}/subjectaccessreviews", body, view=view)
    await s.post(f"{REVIEWS}/subjectaccessreviews", {"spec": {"resourceAttributes": PODS}})
    path = "/apis/authorization.k8s.io/v1/namespaces/{ns}/localsubjectaccessreviews"
    await s.post(path, body)


@case("reviews", "the rules of who asks, and who that is")
async def self_rules(s: Session) -> None:
    body = {"spec": {"namespace": "default"}}
    await s.post(f"{REVIEWS}/selfsubjectrulesreviews", body, view=only("kind", "spec"))
    await s.post("/apis/authentication.k8s.io/v1/selfsubjectreviews", {}, view=only("kind"))


@case("reviews", "reviews can only be created")
async def only_created(s: Session) -> None:
    await s.get(f"{REVIEWS}/selfsubjectaccessreviews")
    await s.get(f"{REVIEWS}/selfsubjectaccessreviews/a")
    await s.delete(f"{REVIEWS}/selfsubjectaccessreviews")


@case("reviews", "an unknown token is not authenticated")
async def token(s: Session) -> None:
    path = "/apis/authentication.k8s.io/v1/tokenreviews"
    view = seen(lambda body: [body["kind"], "authenticated" in body["status"]])
    await s.post(path, {"spec": {"token": "unknown"}}, view=view)
    await s.post(path, {"spec": {}})
