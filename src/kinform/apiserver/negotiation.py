"""Which form of an answer the client asked for, by its ``Accept`` header and query."""

from __future__ import annotations

from typing import Final, final

import msgspec

from kinform.apiserver import status
from kinform.apiserver.status import StatusError
from kinform.apiserver.wire import Request

__all__ = ["Form", "negotiate"]

_YAML: Final = "application/yaml"
_MEDIA: Final = frozenset({"application/json", "*/*", _YAML})
_PARTIAL: Final = frozenset({"PartialObjectMetadata", "PartialObjectMetadataList"})
_WHOLE: Final = "application/json, application/yaml, application/vnd.kubernetes.protobuf"
_STREAMED: Final = "application/json;stream=watch, application/vnd.kubernetes.protobuf;stream=watch"
_PEOPLE: Final = ("curl", "Wget", "Mozilla/5.0")
"""Programs behind which a person sits: they get their JSON indented."""


@final
class Form(msgspec.Struct, frozen=True):
    """How objects are shown."""

    is_yaml: bool = False
    is_table: bool = False
    is_partial: bool = False
    """Only metadata: PartialObjectMetadata or a list of them."""
    is_partial_list: bool = False
    """It was a list of them that was asked for."""
    version: str = "v1"
    """Of the Table or the PartialObjectMetadata, in ``meta.k8s.io``."""
    is_pretty: bool = False

    @property
    def is_plain(self) -> bool:
        """The objects as they are stored can be sent as they are."""
        return not (self.is_yaml or self.is_table or self.is_partial or self.is_pretty)

    @property
    def content_type(self) -> str:
        """What the answer calls itself."""
        return _YAML if self.is_yaml else "application/json"


def negotiate(request: Request, *, is_watch: bool = False, can_watch: bool = False) -> Form:
    """Return the first form among those accepted that this server can make.

    Args:
        is_watch: The request is a watch.
        can_watch: At its path there are watches too, so refusals list their forms.

    Raises:
        StatusError: it can make none of them.
    """
    accept = request.headers.get("accept", "").strip()
    pretty = _is_pretty(request)
    if not accept:
        return Form(is_pretty=pretty)
    is_known = False
    for media, parameters in _clauses(accept):
        if media not in _MEDIA:
            continue
        is_known = True
        form = _form(media, parameters, is_pretty=pretty)
        if form is not None and not (is_watch and form.is_yaml):
            return form
    if not is_known:
        available = f"{_WHOLE}, {_STREAMED}" if can_watch else _WHOLE
        message = f"406: Not Acceptable\n\nAvailable representations: {available}"
        raise StatusError(406, "NotAcceptable", message, details={})
    raise status.not_acceptable(_STREAMED if is_watch else _WHOLE)


def _clauses(accept: str) -> list[tuple[str, dict[str, str]]]:
    """Return what is accepted, the best first."""
    found: list[tuple[str, dict[str, str]]] = []
    for clause in accept.split(","):
        media, *parameters = (part.strip() for part in clause.split(";"))
        found.append((media, dict(_pairs(parameters))))
    return sorted(found, key=lambda it: -_quality(it[1].get("q", "")))


def _quality(text: str) -> float:
    try:
        return float(text) if text else 1.0
    except ValueError:
        return 1.0


def _form(media: str, parameters: dict[str, str], *, is_pretty: bool) -> Form | None:
    is_yaml = media == _YAML
    is_pretty = is_pretty or parameters.get("pretty") in {"1", "true"}
    kind = parameters.get("as", "")
    if not kind:
        return Form(is_yaml=is_yaml, is_pretty=is_pretty)
    version = parameters.get("v", "")
    if parameters.get("g") != "meta.k8s.io" or version not in {"v1", "v1beta1"}:
        return None
    if kind == "Table":
        return Form(is_yaml=is_yaml, is_table=True, version=version, is_pretty=is_pretty)
    if kind in _PARTIAL:
        return Form(
            is_yaml=is_yaml,
            is_partial=True,
            is_partial_list=kind == "PartialObjectMetadataList",
            version=version,
            is_pretty=is_pretty,
        )
    return None


def _pairs(parameters: list[str]) -> list[tuple[str, str]]:
    return [
        (name.strip(), value.strip()) for name, _, value in (p.partition("=") for p in parameters)
    ]


def _is_pretty(request: Request) -> bool:
    if "pretty" in request.query:
        return request.option("pretty").lower() in {"true", "1"}
    return request.headers.get("user-agent", "").startswith(_PEOPLE)
