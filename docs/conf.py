"""Sphinx: every name in single backticks, every type in a signature leads somewhere.

Names of other packages are checked too, by importing them: no inventory has to be fetched, so
the documentation builds offline, and a misspelt ``asyncio.TaskGruop`` fails the build.
"""

from __future__ import annotations

import builtins
import importlib
import inspect
import types
from typing import TYPE_CHECKING

from sphinx.domains.python import PythonDomain

if TYPE_CHECKING:
    from collections.abc import Iterator

    from docutils.nodes import Element
    from sphinx.addnodes import pending_xref
    from sphinx.application import Sphinx
    from sphinx.domains.python import ObjectEntry
    from sphinx.environment import BuildEnvironment

project = "kinform"
author = "The kinform authors"
copyright = author

extensions = ["myst_parser", "sphinx.ext.autodoc", "sphinx.ext.napoleon"]
html_theme = "furo"
html_title = "kinform"
templates_path: list[str] = []
exclude_patterns = ["_build"]

nitpicky = True
default_role = "any"
nitpick_ignore_regex = [
    ("py:(class|obj)", r"(kinform\.[\w.]+\.)?(C|K|M|P|R|T|Ts|T_co|T_contra)"),  # type parameters
    ("py:(class|obj)", r"(kinform\.[\w.]+\.)?P\.(args|kwargs)"),
    ("py:class", r"collections\.abc\.Callable\[\[\]"),  # how Sphinx splits a field's annotation
    ("py:class", "Metric|PrometheusCollector"),  # of prometheus_client, an extra
    ("py:class", "FieldValidation|Propagation|ResourceVersionMatch"),  # as kinform.sync shows them
]

autodoc_member_order = "bysource"
autodoc_typehints = "signature"
autodoc_typehints_format = "short"
autodoc_preserve_defaults = True
autodoc_default_options = {"members": True, "show-inheritance": True}
autoclass_content = "class"
napoleon_numpy_docstring = False
napoleon_use_rtype = False

myst_enable_extensions = ["colon_fence", "deflist", "fieldlist"]
myst_heading_anchors = 3


def resolve(
    app: Sphinx, env: BuildEnvironment, node: pending_xref, content: Element
) -> Element | None:
    """Resolve what Sphinx could not: a name is only dangling if it cannot be imported.

    A name of ours leads to where it is documented, if it is; any other is shown as it stands.
    """
    for target in candidates(node):
        value = importable(target)
        if value is None:
            continue
        home = f"{getattr(value, '__module__', '')}.{getattr(value, '__qualname__', '')}"
        domain = env.domains.python_domain
        if home != target and home in domain.objects:
            refdoc: str = node["refdoc"]
            return domain.resolve_xref(env, refdoc, app.builder, "obj", home, node, content)
        return content
    return None


def candidates(node: pending_xref) -> Iterator[str]:
    """Yield the full names that a reference may mean, from where it stands."""
    target: str = node["reftarget"].lstrip(".")
    module, cls = node.get("py:module"), node.get("py:class")
    yield target
    if module:
        yield f"{module}.{target}"
    if module and cls:
        yield f"{module}.{cls}.{target}"


def importable(target: str) -> object | None:
    """Return what ``target`` names, be it a builtin, a module or something inside one."""
    if hasattr(builtins, target.partition(".")[0]):
        target = f"builtins.{target}"
    head, *rest = target.split(".")
    value: object = module_named(head)
    for name in rest:
        if value is None:
            return None
        inside = module_named(f"{value.__name__}.{name}") if inspect.ismodule(value) else None
        value = getattr(value, name, inside)
    return value


def module_named(name: str) -> types.ModuleType | None:
    """Return the module ``name``, if there is one."""
    try:
        return importlib.import_module(name)
    except (ImportError, ValueError):
        return None


def keep_sentences(
    app: Sphinx, what: str, name: str, obj: object, options: object, lines: list[str]
) -> None:
    """Keep napoleon from reading "Why: because" under an attribute as "type: description"."""
    if what in {"attribute", "data", "property"}:
        lines[:0] = ["..", ""]  # an empty comment: the first line has no colon now


def readable_defaults(
    app: Sphinx, what: str, name: str, obj: object, options: object, signature: str, returns: str
) -> tuple[str, str] | None:
    """Write ``...`` for a dataclass's default factory, which would not parse as Python."""
    return (signature.replace("<factory>", "..."), returns) if signature else None


class TwinsApart(PythonDomain):
    """Of two names alike, takes the one of kinform.sync there, and the other one elsewhere."""

    def find_obj(
        self,
        env: BuildEnvironment,
        modname: str,
        classname: str,
        name: str,
        type: str | None,  # noqa: A002 - Sphinx chose it
        searchmode: int = 0,
    ) -> list[tuple[str, ObjectEntry]]:
        """Return what a name may mean."""
        found = super().find_obj(env, modname, classname, name, type, searchmode)
        is_there = (modname or "").startswith("kinform.sync")
        near = [one for one in found if one[0].startswith("kinform.sync.") == is_there]
        return near or found


def setup(app: Sphinx) -> None:
    """Register the above."""
    app.add_domain(TwinsApart, override=True)
    app.connect("missing-reference", resolve)
    app.connect("autodoc-process-docstring", keep_sentences, priority=400)  # napoleon has 500
    app.connect("autodoc-process-signature", readable_defaults)
