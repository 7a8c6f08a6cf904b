"""The public API: what ``import kinform`` offers is decided here, not by accident."""

from __future__ import annotations

import ast
import importlib
import importlib.metadata
import inspect
import types

import pytest

import kinform
from kinform import errors

EXPECTED = """
ALL_NAMESPACES APIResource Added AlreadyExistsError AmbiguousResourceError ApiError ApiWarning
Bookmark ChannelSource Client Config ConfigError ConflictError Context Controller DecodeError
Deleted Entry EventRecorder EventType Finalizer ForbiddenError GroupVersion GroupVersionKind
GroupVersionResource InvalidError KindSource KinformError LeaderElection LeaderElector
LeadershipLost ListOptions ListResult Lister LogStream Manager NotFoundError Object ObjectMeta
ObjectName PatchType QueueShutDown RESTClient RateLimiter ReflectorOptions Registration Request
Resource ResourceClient ResourceExpiredError ResourceVersionRegressed Result SelectorError
ServerTimeoutError SharedInformer SharedInformerFactory SourceError StreamSource TerminalError
TimerSource TokenBucketLimiter TooManyRequestsError Transport TransportError TransportFailure
UnauthorizedError UnavailableError UnknownResourceError Updated UsageError VersionInfo Watch
WatchEvent WorkQueue __version__ cache clientset clock connect errors index_by meta rest
retry_on_conflict runtime selectors strip_managed_fields sync testing wait_for_cache_sync workqueue
""".split()


def names_for_type_checkers() -> dict[str, str]:
    """Return what the ``if TYPE_CHECKING:`` block of kinform/__init__.py imports, and whence."""
    tree = ast.parse(inspect.getsource(kinform))
    (block,) = (
        node
        for node in tree.body
        if isinstance(node, ast.If) and ast.unparse(node.test) == "TYPE_CHECKING"
    )
    return {
        alias.name: str(statement.module)
        for statement in block.body
        if isinstance(statement, ast.ImportFrom)
        for alias in statement.names
    }


def test_the_export_list_is_the_one_written_here() -> None:
    assert kinform.__all__ == EXPECTED


def test_type_checkers_see_what_is_there_at_run_time() -> None:
    at_run_time = {**kinform._HOMES, **dict.fromkeys(kinform._MODULES, "kinform")}
    assert names_for_type_checkers() == at_run_time
    assert sorted(at_run_time) == sorted(kinform.__all__)


@pytest.mark.parametrize("name", kinform.__all__)
def test_every_export_can_be_had_and_is_documented(name: str) -> None:
    value = getattr(kinform, name)
    assert inspect.getdoc(value)
    if isinstance(value, types.ModuleType):
        assert value is importlib.import_module(f"kinform.{name}")
    elif not isinstance(value, str):
        assert f"{value.__module__}.".startswith(f"{kinform._HOMES[name]}.")
        assert value.__name__ == name


def test_the_version_is_the_installed_one() -> None:
    assert kinform.__version__ == importlib.metadata.version("kinform")


def test_dir_lists_every_export() -> None:
    assert set(kinform.__all__) <= set(dir(kinform))


def test_every_error_is_exported_and_has_one_root() -> None:
    assert set(errors.__all__) <= set(kinform.__all__)
    raised = [getattr(errors, name) for name in errors.__all__ if name.endswith("Error")]
    assert all(issubclass(error, errors.KinformError) for error in raised)


def test_a_misspelt_name_is_an_attribute_error() -> None:
    with pytest.raises(AttributeError, match="module 'kinform' has no attribute 'Clinet'"):
        getattr(kinform, "Clinet")  # noqa: B009 - a checker would see the mistake
