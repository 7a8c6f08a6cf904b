"""Rules for names, keys and values, with the server's messages.

Each function returns messages, none if the text is well-formed.
"""

from __future__ import annotations

import functools
import ipaddress
import re
from typing import Final

__all__ = [
    "config_key",
    "dns_label",
    "dns_subdomain",
    "env_name",
    "ip_address",
    "label_value",
    "path_segment",
    "percent",
    "port_name",
    "port_number",
    "qualified_name",
    "trimmed",
]

_LABEL: Final = "[a-z0-9]([-a-z0-9]*[a-z0-9])?"
_SUBDOMAIN: Final = rf"{_LABEL}(\.{_LABEL})*"
_QUALIFIED: Final = "([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]"
_LABEL_FORM: Final = re.compile(_LABEL)
_SUBDOMAIN_FORM: Final = re.compile(_SUBDOMAIN)
_QUALIFIED_FORM: Final = re.compile(_QUALIFIED)
_KEY_FORM: Final = re.compile("[-._a-zA-Z0-9]+")
_PERCENT_FORM: Final = re.compile("[0-9]+%")

_LABEL_TEXT: Final = (
    "a lowercase RFC 1123 label must consist of lower case alphanumeric characters or '-', and "
    "must start and end with an alphanumeric character (e.g. 'my-name',  or '123-abc', regex "
    f"used for validation is '{_LABEL}')"
)
_SUBDOMAIN_TEXT: Final = (
    "a lowercase RFC 1123 subdomain must consist of lower case alphanumeric characters, '-' or "
    "'.', and must start and end with an alphanumeric character (e.g. 'example.com', regex used "
    f"for validation is '{_SUBDOMAIN}')"
)
_QUALIFIED_TEXT: Final = (
    "must consist of alphanumeric characters, '-', '_' or '.', and must start and end with an "
    "alphanumeric character (e.g. 'MyName',  or 'my.name',  or '123-abc', regex used for "
    f"validation is '{_QUALIFIED}')"
)
_KEY_WITH_PREFIX_TEXT: Final = (
    f"a valid label key {_QUALIFIED_TEXT} with an optional DNS subdomain prefix and '/' "
    "(e.g. 'example.com/MyName')"
)
_VALUE_TEXT: Final = (
    "a valid label must be an empty string or consist of alphanumeric characters, '-', '_' or "
    "'.', and must start and end with an alphanumeric character (e.g. 'MyValue',  or 'my_value', "
    f" or '12345', regex used for validation is '({_QUALIFIED})?')"
)
_KEY_TEXT: Final = (
    "a valid config key must consist of alphanumeric characters, '-', '_' or '.' (e.g. "
    "'key.name',  or 'KEY_NAME',  or 'key-name', regex used for validation is '[-._a-zA-Z0-9]+')"
)
_ENV_TEXT: Final = (
    "a valid environment variable name must consist only of printable ASCII characters other "
    "than '='"
)
_PERCENT_TEXT: Final = (
    "a valid percent string must be a numeric string followed by an ending '%' (e.g. '1%',  or "
    "'93%', regex used for validation is '[0-9]+%')"
)
_IP_TEXT: Final = "must be a valid IP address, (e.g. 10.9.8.7 or 2001:db8::ffff)"
_PORT_TEXT: Final = "must be between 1 and 65535, inclusive"


@functools.lru_cache(maxsize=8192)
def dns_label(text: str) -> tuple[str, ...]:
    """Validate a name such as ``my-name``: at most 63 characters, no dots."""
    problems: list[str] = []
    if len(text) > 63:
        problems.append("must be no more than 63 characters")
    if _LABEL_FORM.fullmatch(text) is None:
        problems.append("must not contain dots" if _SUBDOMAIN_FORM.fullmatch(text) else _LABEL_TEXT)
    return tuple(problems)


@functools.lru_cache(maxsize=8192)
def dns_subdomain(text: str, unit: str = "characters") -> tuple[str, ...]:
    """Validate a name such as ``my.name``: at most 253 characters."""
    problems: list[str] = []
    if len(text) > 253:
        problems.append(f"must be no more than 253 {unit}")
    if _SUBDOMAIN_FORM.fullmatch(text) is None:
        problems.append(_SUBDOMAIN_TEXT)
    return tuple(problems)


@functools.lru_cache(maxsize=8192)
def path_segment(text: str) -> tuple[str, ...]:
    """Validate a name that has to fit into a URL, and nothing more."""
    if text in {".", ".."}:
        return (f"may not be '{text}'",)
    return tuple(f"may not contain '{one}'" for one in "/%" if one in text)


@functools.lru_cache(maxsize=8192)
def qualified_name(text: str) -> tuple[str, ...]:
    """Validate a key such as ``example.com/name``: of a label, an annotation, a taint."""
    prefix, slash, name = text.rpartition("/")
    if "/" in prefix:
        return (_KEY_WITH_PREFIX_TEXT,)
    problems: list[str] = []
    if slash and not prefix:
        problems.append("prefix part must be non-empty")
    elif slash:
        problems += [f"prefix part {problem}" for problem in dns_subdomain(prefix, "bytes")]
    if not name:
        problems.append("name part must be non-empty")
    elif len(name) > 63:
        problems.append("name part must be no more than 63 bytes")
    if _QUALIFIED_FORM.fullmatch(name) is None:
        problems.append(f"name part {_QUALIFIED_TEXT}")
    return tuple(problems)


@functools.lru_cache(maxsize=8192)
def label_value(text: str) -> tuple[str, ...]:
    """Validate the value of a label."""
    problems: list[str] = []
    if len(text.encode()) > 63:
        problems.append("must be no more than 63 bytes")
    if text and _QUALIFIED_FORM.fullmatch(text) is None:
        problems.append(_VALUE_TEXT)
    return tuple(problems)


@functools.lru_cache(maxsize=8192)
def config_key(text: str) -> tuple[str, ...]:
    """Validate a key of a ConfigMap or a Secret."""
    problems: list[str] = []
    if len(text) > 253:
        problems.append("must be no more than 253 characters")
    if _KEY_FORM.fullmatch(text) is None:
        problems.append(_KEY_TEXT)
    elif text == ".":
        problems.append("must not be '.'")
    elif text == "..":
        problems.append("must not be '..'")
    elif text.startswith(".."):
        problems.append("must not start with '..'")
    return tuple(problems)


@functools.lru_cache(maxsize=4096)
def env_name(text: str) -> tuple[str, ...]:
    """Validate the name of an environment variable."""
    well_formed = text and all(" " <= one <= "~" and one != "=" for one in text)
    return () if well_formed else (_ENV_TEXT,)


@functools.lru_cache(maxsize=4096)
def port_name(text: str) -> tuple[str, ...]:
    """Validate the name of a port, such as ``http``."""
    problems: list[str] = []
    if len(text) > 15:
        problems.append("must be no more than 15 characters")
    if re.fullmatch("[-a-z0-9]+", text) is None:
        problems.append("must contain only alpha-numeric characters (a-z, 0-9), and hyphens (-)")
    if re.search("[a-z]", text) is None:
        problems.append("must contain at least one letter (a-z)")
    if "--" in text:
        problems.append("must not contain consecutive hyphens")
    if text.startswith("-") or text.endswith("-"):
        problems.append("must not begin or end with a hyphen")
    return tuple(problems)


def port_number(number: int) -> tuple[str, ...]:
    """Validate the number of a port."""
    return () if 1 <= number <= 65535 else (_PORT_TEXT,)


def percent(text: str) -> tuple[str, ...]:
    """Validate a share such as ``25%``."""
    return () if _PERCENT_FORM.fullmatch(text) else (_PERCENT_TEXT,)


def ip_address(text: str) -> tuple[str, ...]:
    """Validate an IP address."""
    try:
        ipaddress.ip_address(text)
    except ValueError:
        return (_IP_TEXT,)
    return ()


def trimmed(text: str) -> str:
    """Return a generateName as it is judged: a dash at its end is fine, more will follow."""
    return f"{text[:-2]}a" if text.endswith("-") and len(text) > 1 else text
