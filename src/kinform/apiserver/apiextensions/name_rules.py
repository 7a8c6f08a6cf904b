"""Rules for names, with the server's messages."""

from __future__ import annotations

import re
from typing import Final

from kinform.apiserver.scheme import field_errors
from kinform.apiserver.scheme.field_errors import FieldError

__all__ = [
    "DNS_1035", "dns_label", "dns_subdomain", "kind_label", "label_value", "qualified_name",
    "resource_label",
]  # fmt: skip

_1035: Final = re.compile(r"[a-z](?:[-a-z0-9]*[a-z0-9])?")
_1123: Final = re.compile(r"[a-z0-9](?:[-a-z0-9]*[a-z0-9])?")
_QUALIFIED: Final = re.compile(r"(?:[A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]")
_LONGEST_LABEL: Final = 63
_LONGEST_SUBDOMAIN: Final = 253

DNS_1035: Final = (
    "a DNS-1035 label must consist of lower case alphanumeric characters or '-', start with an "
    "alphabetic character, and end with an alphanumeric character (e.g. 'my-name',  or 'abc-123', "
    "regex used for validation is '[a-z]([-a-z0-9]*[a-z0-9])?')"
)
_DNS_1123_LABEL: Final = (
    "a lowercase RFC 1123 label must consist of lower case alphanumeric characters or '-', and "
    "must start and end with an alphanumeric character (e.g. 'my-name',  or '123-abc', regex used "
    "for validation is '[a-z0-9]([-a-z0-9]*[a-z0-9])?')"
)
_DNS_1123_SUBDOMAIN: Final = (
    "a lowercase RFC 1123 subdomain must consist of lower case alphanumeric characters, '-' or "
    "'.', and must start and end with an alphanumeric character (e.g. 'example.com', regex used "
    r"for validation is '[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*')"
)
_QUALIFIED_NAME: Final = (
    "name part must consist of alphanumeric characters, '-', '_' or '.', and must start and end "
    "with an alphanumeric character (e.g. 'MyName',  or 'my.name',  or '123-abc', regex used for "
    "validation is '([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]')"
)
_LABEL_VALUE: Final = (
    "a valid label must be an empty string or consist of alphanumeric characters, '-', '_' or "
    "'.', and must start and end with an alphanumeric character (e.g. 'MyValue',  or 'my_value',  "
    "or '12345', regex used for validation is '(([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9])?')"
)


def _too_long(text: str, limit: int) -> list[str]:
    return [f"must be no more than {limit} bytes"] if len(text.encode()) > limit else []


def _labelled(text: str, pattern: re.Pattern[str], words: str) -> list[str]:
    wrong = _too_long(text, _LONGEST_LABEL)
    return wrong if pattern.fullmatch(text) else [*wrong, words]


def resource_label(path: str, text: str) -> list[FieldError]:
    """Validate the name of a resource or a version: a DNS-1035 label."""
    wrong = _labelled(text, _1035, DNS_1035)
    return [field_errors.invalid(path, text, ",".join(wrong))] if wrong else []


def kind_label(path: str, text: str) -> list[FieldError]:
    """Validate the name of a kind: a DNS-1035 label, but for its capitals."""
    wrong = _labelled(text.lower(), _1035, DNS_1035)
    detail = f"may have mixed case, but should otherwise match: {','.join(wrong)}"
    return [field_errors.invalid(path, text, detail)] if wrong else []


def dns_label(path: str, text: str) -> list[FieldError]:
    """Validate the name of a namespace: an RFC 1123 label."""
    wrong = _labelled(text, _1123, _DNS_1123_LABEL)
    return [field_errors.invalid(path, text, one) for one in wrong]


def dns_subdomain(path: str, text: str) -> list[FieldError]:
    """Validate the name of a group: an RFC 1123 subdomain."""
    wrong = _too_long(text, _LONGEST_SUBDOMAIN)
    if not all(map(_1123.fullmatch, text.split("."))):
        wrong.append(_DNS_1123_SUBDOMAIN)
    return [field_errors.invalid(path, text, ",".join(wrong))] if wrong else []


def qualified_name(path: str, text: str, *, shown: str = "") -> list[FieldError]:
    """Validate the key of a label or an annotation: a name that may have a domain before it."""
    prefix, slash, name = text.rpartition("/")
    wrong: list[str] = []
    if slash and not prefix:
        wrong.append("prefix part must be non-empty")
    elif slash and not all(map(_1123.fullmatch, prefix.split("."))):
        wrong.append(f"prefix part {_DNS_1123_SUBDOMAIN}")
    if not name:
        wrong.append("name part must be non-empty")
    elif len(name) > _LONGEST_LABEL:
        wrong.append(f"name part must be no more than {_LONGEST_LABEL} bytes")
    if not _QUALIFIED.fullmatch(name):
        wrong.append(_QUALIFIED_NAME)
    return [field_errors.invalid(path, shown or text, one) for one in wrong]


def label_value(path: str, value: object) -> list[FieldError]:
    """Validate the value of a label."""
    text = value if isinstance(value, str) else ""
    wrong = _too_long(text, _LONGEST_LABEL)
    if text and not _QUALIFIED.fullmatch(text):
        wrong.append(_LABEL_VALUE)
    return [field_errors.invalid(path, text, one) for one in wrong]
