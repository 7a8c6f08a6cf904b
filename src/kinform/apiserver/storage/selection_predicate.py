"""Selectors of lists and watches: parsing, with kube-apiserver's errors, and matching.

`kinform.selectors` reads the same language for clients, and explains mistakes in its own words;
here a mistake must be answered as the real server answers it.
"""

from __future__ import annotations

import functools
import re
from collections.abc import Callable, Mapping
from typing import Final, NamedTuple, NoReturn, final

import msgspec

from kinform.apiserver.endpoints import status
from kinform.apiserver.printers import column_paths
from kinform.apiserver.scheme.field_errors import invalid
from kinform.apiserver.scheme.kind_registry import Kind
from kinform.apiserver.serializer.json_values import Json, JsonValue, as_dict, at, text
from kinform.apiserver.storage.versioned_store import Stored
from kinform.apiserver.validation.names import label_value, qualified_name
from kinform.selectors.requirements import Operator, Requirement

__all__ = [
    "SelectionPredicate",
    "Term",
    "check",
    "fields",
    "parse_fields",
    "parse_labels",
    "supported",
]

_WORD: Final = re.compile(r"[ \t\r\n]*(==|!=|[=!(),<>]|[^ \t\r\n=!(),<>]+|$)")
_SYMBOLS: Final = frozenset({"==", "!=", "=", "!", "(", ")", ",", "<", ">", ""})
_OPERATORS: Final = {
    "=": Operator.EQUALS,
    "==": Operator.EQUALS,
    "!=": Operator.NOT_EQUALS,
    "in": Operator.IN,
    "notin": Operator.NOT_IN,
    ">": Operator.GREATER_THAN,
    "<": Operator.LESS_THAN,
}
_INTEGER: Final = re.compile(r"([+-]?)0*([0-9]{1,19})")
_TERM_OPERATOR: Final = re.compile(r"!=|==|=")


class Term(NamedTuple):
    """One condition on one field; a field that an object has not is ``""``."""

    field: str
    value: str
    is_equal: bool
    """The field must have the value; False: it must not have it."""

    def matches(self, fields: Mapping[str, str]) -> bool:
        """Return whether an object with these fields meets it."""
        return (fields.get(self.field, "") == self.value) is self.is_equal


@final
class SelectionPredicate(msgspec.Struct, frozen=True):
    """The selectors of a list or a watch."""

    labels: tuple[Requirement, ...] = ()
    fields: tuple[Term, ...] = ()

    @property
    def is_everything(self) -> bool:
        """It leaves nothing out."""
        return not self.labels and not self.fields

    def matches(self, stored: Stored) -> bool:
        """Return whether an object is among them."""
        return self.fits(stored.labels, stored.fields)

    def fits(self, labels: Mapping[str, str], fields: Mapping[str, str]) -> bool:
        """Return whether an object with these labels and fields is among them."""
        for requirement in self.labels:
            if not requirement.matches(labels):
                return False
        return all(term.matches(fields) for term in self.fields)

    @property
    def name(self) -> str:
        """The only name it can select, if it says so in its fields; else ``""``."""
        for term in self.fields:
            if term.field == "metadata.name" and term.is_equal:
                return term.value
        return ""


def parse_labels(text: str) -> tuple[Requirement, ...]:
    """Read a label selector.

    Raises:
        StatusError: it is none.
    """
    return tuple(_Labels(text).requirements())


@final
class _Labels:
    """The parser: one word of foresight, as the server's has."""

    def __init__(self, text: str) -> None:
        self._words = [match.group(1) for match in _WORD.finditer(text)] or [""]
        self._next = 0

    def requirements(self) -> list[Requirement]:
        found: list[Requirement] = []
        if self._peek() == "":
            return found
        if self._peek() in _SYMBOLS - {"!"}:
            _refuse(f"found '{self._peek()}', expected: !, identifier, or 'end of string'")
        while True:
            found.append(self._requirement())
            word = self._take()
            if word == "":
                return found
            if word != ",":
                _refuse(f"found '{word}', expected: ',' or 'end of string'")
            if self._peek() in _SYMBOLS - {"!"}:
                _refuse(f"found '{self._peek()}', expected: identifier after ','")

    def _requirement(self) -> Requirement:
        if self._peek() == "!":
            self._take()
            return _checked(self._key(), Operator.DOES_NOT_EXIST, [])
        key = self._key()
        if self._peek() in {"", ","}:
            return _checked(key, Operator.EXISTS, [])
        symbol = self._take()
        operator = _OPERATORS.get(symbol)
        if operator is None:
            _fail(f"found '{symbol}', expected: in, notin, =, ==, !=, gt, lt")
        if operator in (Operator.IN, Operator.NOT_IN):
            return _checked(key, operator, self._values())
        return _checked(key, operator, [self._exact_value()])

    def _key(self) -> str:
        word = self._take()
        if word in _SYMBOLS:
            _fail(f"found '{word}', expected: identifier")
        if problems := qualified_name(word):
            _fail(str(invalid("<nil>", word, "; ".join(problems))))
        return word

    def _exact_value(self) -> str:
        if self._peek() in {"", ","}:
            return ""
        word = self._take()
        if word in _SYMBOLS:
            _fail(f"found '{word}', expected: identifier")
        return word

    def _values(self) -> list[str]:
        if (word := self._take()) != "(":
            _fail(f"found '{word}' expected: '('")
        word = self._peek()
        if word == ")":
            self._take()
            return [""]
        if word in _SYMBOLS and word != ",":
            _fail(f"found '{word}', expected: ',', ')' or identifier")
        return self._identifiers()

    def _identifiers(self) -> list[str]:
        values: list[str] = []
        while True:
            word = self._take()
            if word not in _SYMBOLS:
                values.append(word)
                follower = self._take()
                if follower == ")":
                    return values
                if follower != ",":
                    _fail(f"found '{follower}', expected: ',' or ')'")
            elif word == ",":
                values.append("")
            elif word == ")":
                return [*values, ""]
            else:
                _fail(f"found '{word}', expected: ',', or identifier")

    def _peek(self) -> str:
        return self._words[min(self._next, len(self._words) - 1)]

    def _take(self) -> str:
        word = self._peek()
        self._next += 1
        return word


def _checked(key: str, operator: Operator, values: list[str]) -> Requirement:
    if operator in (Operator.GREATER_THAN, Operator.LESS_THAN):
        why = "for 'Gt', 'Lt' operators, the value must be an integer"
        if not _is_integer(values[0]) and not label_value(values[0]):
            _fail(str(invalid("values[0]", values[0], why)))
    for index, value in enumerate(values):
        if problems := label_value(value):
            _fail(str(invalid(f"values[{index}][{key}]", value, "; ".join(problems))))
    return Requirement(key, operator, tuple(values))


def _is_integer(text: str) -> bool:
    # Go's ParseInt(text, 10, 64).
    found = _INTEGER.fullmatch(text)
    return found is not None and -(2**63) <= int(found[1] + found[2]) < 2**63


def _fail(message: str) -> NoReturn:
    _refuse(f"unable to parse requirement: {message}")


def _refuse(message: str) -> NoReturn:
    raise status.bad_request(message)


def parse_fields(text: str) -> tuple[Term, ...]:
    r"""Read a field selector; which fields there are is not judged here.

    Raises:
        StatusError: it is none.
    """
    found: list[Term] = []
    for term in _terms(text):
        if not term:
            continue
        match = _TERM_OPERATOR.search(term)
        if match is None:
            _refuse(f"invalid selector: '{text}'; can't understand '{term}'")
        value = _unescaped(term[match.end() :])
        found.append(Term(term[: match.start()], value, match.group() != "!="))
    return tuple(found)


def _terms(text: str) -> list[str]:
    """Split at commas that are not escaped; the server looks at the parts in this order."""
    terms, start, escaped = list[str](), 0, False
    for index, character in enumerate(text):
        if escaped:
            escaped = False
        elif character == "\\":
            escaped = True
        elif character == ",":
            terms.append(text[start:index])
            start = index + 1
    return sorted([*terms, text[start:]])


def _unescaped(value: str) -> str:
    out, characters = list[str](), iter(value)
    for character in characters:
        if character == "\\":
            following = next(characters, "")
            if following not in {"\\", ",", "="} or not following:
                _refuse(f"invalid field selector: invalid escape sequence: \\{following}")
            out.append(following)
        elif character in ",=":
            code = ord(character)
            _refuse(f"invalid field selector: unescaped character in value: {code}")
        else:
            out.append(character)
    return "".join(out)


# --- the fields that a field selector can name

_NAME: Final = "metadata.name"
_NAMESPACE: Final = "metadata.namespace"
_SLICES: Final = "resourceslices.resource.k8s.io"
_REFERENCE: Final = (
    "kind",
    "namespace",
    "name",
    "uid",
    "apiVersion",
    "resourceVersion",
    "fieldPath",
)

# Beyond the name and the namespace, by group and resource. A pod's ``spec.host`` is the node's
# old name; ``status.podIPs`` is accepted but has no value.
_LABELS: Final[dict[str, frozenset[str]]] = {
    "pods": frozenset(
        {
            "spec.host",
            "spec.hostNetwork",
            "spec.nodeName",
            "spec.restartPolicy",
            "spec.schedulerName",
            "spec.serviceAccountName",
            "status.nominatedNodeName",
            "status.phase",
            "status.podIP",
            "status.podIPs",
        }
    ),
    "events": frozenset(
        {
            *(f"involvedObject.{part}" for part in _REFERENCE),
            "reason",
            "reportingComponent",
            "source",
            "type",
        }
    ),
    "events.events.k8s.io": frozenset(
        {*(f"regarding.{part}" for part in _REFERENCE), "reason", "reportingController", "type"}
    ),
    "namespaces": frozenset({"status.phase"}),
    "nodes": frozenset({"spec.unschedulable"}),
    "replicationcontrollers": frozenset({"status.replicas"}),
    "secrets": frozenset({"type"}),
    "services": frozenset({"spec.clusterIP", "spec.type"}),
    "jobs.batch": frozenset({"status.successful"}),
    "certificatesigningrequests.certificates.k8s.io": frozenset({"spec.signerName"}),
    _SLICES: frozenset({"spec.driver", "spec.nodeName"}),
}
# Of those above, these have the namespace not among their fields.
_WITHOUT_NAMESPACE: Final = frozenset(
    {"namespaces", "nodes", "certificatesigningrequests.certificates.k8s.io", _SLICES}
)


def supported(kind: Kind) -> frozenset[str]:
    """Return the fields that a selector may name; an alias such as ``spec.host`` included."""
    if kind.custom is not None:
        chosen = (path.lstrip(".") for path in kind.custom.selectable_fields)
        return frozenset({_NAME, _NAMESPACE, *chosen})
    return _builtin(kind.qualified)


@functools.cache
def _builtin(qualified: str) -> frozenset[str]:
    own = _LABELS.get(qualified, frozenset())
    return own | ({_NAME} if qualified in _WITHOUT_NAMESPACE else {_NAME, _NAMESPACE})


def check(kind: Kind, field: str) -> None:
    """Validate a field that a selector names. Of several, the server judges the least first.

    Raises:
        StatusError: objects of this kind cannot be selected by it.
    """
    if field in supported(kind):
        return
    if kind.qualified == "jobs.batch":
        message = f'field label "{field}" not supported for Job'
    elif kind.qualified == _SLICES:
        message = f"field label not supported for {kind.api_version}, Kind={kind.kind}: {field}"
    elif kind.custom is not None or kind.qualified in _LABELS:
        message = f"field label not supported: {field}"
    else:
        known = f'only "{_NAME}", "{_NAMESPACE}"'
        shown = msgspec.json.encode(field).decode()
        message = f"{shown} is not a known field selector: {known}"
    raise status.bad_request(message)


def fields(kind: Kind, obj: Json) -> dict[str, str]:
    """Return the value of every field that a selector may name, ``""`` where there is none."""
    metadata: Json = obj["metadata"]
    found: dict[str, str] = {
        _NAME: metadata.get("name", ""),
        _NAMESPACE: metadata.get("namespace", ""),
    }
    if kind.custom is not None:
        for path in kind.custom.selectable_fields:
            values = column_paths.compiled(path).find(obj)
            found[path.lstrip(".")] = _shown(values[0]) if values else ""
        return found
    add = _ADD.get(kind.storage)
    if add is not None:
        add(obj, found)
    return found


def _shown(value: JsonValue) -> str:
    if isinstance(value, bool):
        return "true" if value else "false"
    return "" if value is None else str(value)


def _pod(obj: Json, found: dict[str, str]) -> None:
    spec, state = as_dict(obj.get("spec")), as_dict(obj.get("status"))
    node = spec.get("nodeName") or ""
    found["spec.nodeName"] = node
    found["spec.host"] = node
    found["spec.restartPolicy"] = spec.get("restartPolicy") or ""
    found["spec.schedulerName"] = spec.get("schedulerName") or ""
    found["spec.serviceAccountName"] = spec.get("serviceAccountName") or ""
    found["spec.hostNetwork"] = "true" if spec.get("hostNetwork") else "false"
    found["status.phase"] = state.get("phase") or ""
    found["status.podIP"] = state.get("podIP") or ""
    found["status.podIPs"] = ""
    found["status.nominatedNodeName"] = state.get("nominatedNodeName") or ""


def _event(obj: Json, found: dict[str, str]) -> None:
    """Add the fields of an Event under the names of both groups, which share their objects."""
    target = as_dict(obj.get("involvedObject") or obj.get("regarding"))
    for part in _REFERENCE:
        found[f"involvedObject.{part}"] = found[f"regarding.{part}"] = target.get(part) or ""
    source = as_dict(obj.get("source") or obj.get("deprecatedSource"))
    reporter: str = obj.get("reportingComponent") or obj.get("reportingController") or ""
    found["reason"] = obj.get("reason") or ""
    found["reportingComponent"] = found["reportingController"] = reporter
    found["source"] = source.get("component") or reporter
    found["type"] = obj.get("type") or ""


def _texts(*labels: str) -> Callable[[Json, dict[str, str]], None]:
    paths = [(label, label.split(".")) for label in labels]

    def add(obj: Json, found: dict[str, str]) -> None:
        for label, path in paths:
            found[label] = text(obj, *path)

    return add


def _node(obj: Json, found: dict[str, str]) -> None:
    found["spec.unschedulable"] = "true" if at(obj, "spec", "unschedulable") else "false"


def _replicas(obj: Json, found: dict[str, str]) -> None:
    found["status.replicas"] = str(at(obj, "status", "replicas") or 0)


def _job(obj: Json, found: dict[str, str]) -> None:
    found["status.successful"] = str(at(obj, "status", "succeeded") or 0)


_ADD: Final[dict[str, Callable[[Json, dict[str, str]], None]]] = {
    "pods": _pod,
    "events": _event,
    "namespaces": _texts("status.phase"),
    "nodes": _node,
    "replicationcontrollers": _replicas,
    "secrets": _texts("type"),
    "services": _texts("spec.clusterIP", "spec.type"),
    "jobs.batch": _job,
    "certificatesigningrequests.certificates.k8s.io": _texts("spec.signerName"),
    _SLICES: _texts("spec.driver", "spec.nodeName"),
}
