"""All that is fuzzed, with what guides it and the words of its language."""

from __future__ import annotations

import re
from pathlib import Path

from tests.fuzz import (
    targets_apply,
    targets_kubeconfig,
    targets_patches,
    targets_reading,
    targets_selectors,
    targets_server,
    targets_wire,
)
from tools.fuzz.engine import Target

__all__ = ["TARGETS", "found", "seeds"]

_FOLDER = Path(__file__).parent


def _words(text: str) -> tuple[bytes, ...]:
    return tuple(word.encode() for word in re.split(r"\s+", text.strip()))


_METADATA = _words(
    "metadata name namespace uid resourceVersion labels annotations finalizers ownerReferences "
    "generation creationTimestamp deletionTimestamp managedFields kind apiVersion spec status"
)
_JSON = (
    *(b'{"', b'"}', b'":"', b'":{"', b'":[', b'],"', b'","', b"null", b"true", b"1e5", b"-0"),
    *(b'\\"', b"\\\\", b"\\u0000", b"\\ud800", b"\\n", b"{}", b"[]", b"\xf0\x9f\x98\x80"),
)
_EVENTS = _words(
    '{"type":"ADDED","object":{ "MODIFIED" "DELETED" "BOOKMARK" "ERROR" "type" "object" }}'
)
_LIST = _words(
    '{"kind":"PodList","apiVersion":"v1","metadata":{},"items":[ {"metadata":{"name":"a"}} }, {"m '
    '"items" "kind" "continue" "Status" "List" ]} }]}'
)
_STATUS = _words(
    "Status Failure reason message details causes retryAfterSeconds Retry-After: Content-Type: "
    "application/json text/html text/plain Expired Gone Timeout ResourceVersionTooLarge 410 429 503"
)
_YAML = (
    *(
        b"&a ",
        b"*a",
        b"<<: ",
        b"!!int ",
        b"!!float ",
        b"!!bool ",
        b"!!binary ",
        b"!!set ",
        b"!!str ",
    ),
    *(b"!!timestamp ", b"!!omap ", b"!!null ", b"? ", b"- ", b": ", b"|\n ", b"---\n", b"...\n"),
    *(b"%YAML 1.1\n", b".inf", b".nan", b"0x1", b"0b", b"1:30", b"2024-01-01", b"~", b"on", b"\t"),
)
_KUBECONFIG = _words(
    "clusters users contexts cluster user context name server current-context token password "
    "username exec command args env apiVersion interactiveMode as as-groups as-user-extra "
    "proxy-url tls-server-name extensions certificate-authority-data client-key-data tokenFile "
    "insecure-skip-tls-verify auth-provider https:// client.authentication.k8s.io/v1"
)
_SELECTOR = (
    *_words("= == != ! in notin ( ) , < > () (,) a b a/b 5 -5 +5 007"),
    b" ",
    b"\t",
    b"exists",
)
_PATCH = _words("op path from value add remove replace move copy test / ~0 ~1 /- /0 /-1 //")
_DIRECTIVES = _words(
    "$patch replace delete merge $retainKeys $setElementOrder/containers containers env ports "
    "$deleteFromPrimitiveList/finalizers $setElementOrder/finalizers volumes tolerations strategy "
    "containerPort port nodeSelector externalIPs template initContainers"
)
_FIELDS = _words('f:a f:b . k:{"name":"x"} v:"y" i:0 f: k: v:1 k:{} v:[]')
_SPECS = _words("spec size tags plain labels whole keyed deep k v x data ports containers template")
_REQUESTS = (
    *_words(
        "GET POST PUT PATCH DELETE HEAD OPTIONS /api/v1 /apis/apps/v1 /namespaces/default /pods "
        "/configmaps /services /deployments /status /scale /eviction /binding /token /finalize "
        "watch=1 limit= continue= resourceVersion= resourceVersionMatch=Exact labelSelector= "
        "fieldSelector= dryRun=All force=true fieldManager=a fieldValidation=Strict "
        "timeoutSeconds=1 sendInitialEvents=true allowWatchBookmarks=true pretty=1 "
        "propagationPolicy=Foreground gracePeriodSeconds= %2e%2e %00 /../ ?"
    ),
    *(b"\n%%\n", b"accept: application/json;as=Table;v=v1;g=meta.k8s.io\n", b"accept: "),
    *(b"content-type: application/json-patch+json\n", b"content-type: application/yaml\n"),
    *(b"content-type: application/strategic-merge-patch+json\n", b"accept-encoding: gzip\n"),
    *(b"content-type: application/apply-patch+yaml\n", b"content-type: "),
    *(b"content-type: application/merge-patch+json\n", b"application/vnd.kubernetes.protobuf"),
)

TARGETS = {
    target.name: target
    for target in (
        Target(
            name="watch",
            run=targets_wire.fuzz_watch,
            files=("sansio/wire/watch.py", "sansio/wire/scan.py", "sansio/wire/heads.py"),
            tokens=(*_JSON, *_EVENTS, *_METADATA),
        ),
        Target(
            name="chunked",
            run=targets_wire.fuzz_chunked,
            files=("sansio/wire/chunked.py",),
            tokens=(
                b"\r\n",
                b"0\r\n",
                b"0\r\n\r\n",
                b"5\r\nhello\r\n",
                b";a=b",
                b"ffffffffffffffff",
            ),
            longest=20_000,
        ),
        Target(
            name="gzip",
            run=targets_wire.fuzz_gzip,
            files=("sansio/wire/gzip.py",),
            tokens=(
                b"\x1f\x8b\x08",
                b"\x78\x9c",
                b"\x1f\x8b\x08\0\0\0\0\0\0\3\3\0\0\0\0\0\0\0\0\0",
            ),
        ),
        Target(
            name="list",
            run=targets_wire.fuzz_list,
            files=("sansio/wire/list.py", "sansio/wire/scan.py", "sansio/wire/heads.py"),
            tokens=(*_JSON, *_LIST, *_METADATA),
        ),
        Target(
            name="objects",
            run=targets_reading.fuzz_objects,
            files=(
                "kinform/objects/object.py",
                "kinform/objects/models.py",
                "sansio/wire/heads.py",
                "sansio/wire/scan.py",
            ),
            tokens=(*_JSON, *_METADATA),
        ),
        Target(
            name="status",
            run=targets_reading.fuzz_status,
            files=(
                "rest/_responses.py",
                "kinform/errors.py",
                "sansio/retry.py",
                "rest/transport/__init__.py",
            ),
            tokens=(*_JSON, *_STATUS),
        ),
        Target(
            name="headers",
            run=targets_reading.fuzz_headers,
            files=(
                "rest/warnings.py",
                "sansio/retry.py",
                "rest/transport/__init__.py",
                "email/_parseaddr.py",
            ),
            tokens=(
                *_words("299 - , : GMT Wed, 21 Oct 2026 07:28:00 +0000 -0000 Jan 9999"),
                b'"',
                b"\\",
            ),
        ),
        Target(
            name="label_selector",
            run=targets_selectors.fuzz_label_selector,
            files=(
                "selectors/labels.py",
                "selectors/requirements.py",
                "apiserver/storage/selection_predicate.py",
            ),
            tokens=(*_SELECTOR, b"a" * 63, b"a" * 253, b"9223372036854775808"),
        ),
        Target(
            name="field_selector",
            run=targets_selectors.fuzz_field_selector,
            files=("selectors/fields.py", "apiserver/storage/selection_predicate.py"),
            tokens=(*_words(r"metadata.name status.phase = == != , \, \= \\ \ !"), b" "),
        ),
        Target(
            name="selector_objects",
            run=targets_selectors.fuzz_selector_objects,
            files=("selectors/labels.py", "selectors/requirements.py", "selectors/fields.py"),
            tokens=_words("matchLabels matchExpressions key operator values In NotIn Exists"),
        ),
        Target(
            name="documents",
            run=targets_kubeconfig.fuzz_documents,
            files=("rest/clientcmd/_documents.py", "yaml/constructor.py"),
            tokens=_YAML,
        ),
        Target(
            name="kubeconfig",
            run=targets_kubeconfig.fuzz_kubeconfig,
            files=(
                *(
                    "rest/clientcmd/kubeconfig.py",
                    "rest/clientcmd/loading.py",
                    "rest/clientcmd/_documents.py",
                    "rest/transport/tls.py",
                ),
                *("rest/auth/credentials.py", "rest/transport/proxy.py", "rest/config.py"),
            ),
            tokens=(*_YAML, *_KUBECONFIG),
        ),
        Target(
            name="json_patch",
            run=targets_patches.fuzz_json_patch,
            files=("apiserver/patch/json_patch.py",),
            tokens=(*_JSON, *_PATCH),
        ),
        Target(
            name="merge_patch",
            run=targets_patches.fuzz_merge_patch,
            files=("apiserver/patch/merge_patch.py", "apiserver/patch/strategic_merge.py"),
            tokens=_JSON,
        ),
        Target(
            name="diff",
            run=targets_patches.fuzz_diff,
            files=("sansio/json_diff.py", "sansio/list_matching.py"),
            tokens=_JSON,
        ),
        Target(
            name="strategic_merge",
            run=targets_patches.fuzz_strategic_merge,
            files=("apiserver/patch/strategic_merge.py", "apiserver/scheme/type_errors.py"),
            tokens=(*_JSON, *_DIRECTIVES),
        ),
        Target(
            name="field_sets",
            run=targets_apply.fuzz_field_sets,
            files=("apiserver/fieldmanager/field_sets.py",),
            tokens=(*_JSON, *_FIELDS),
        ),
        Target(
            name="server_side_apply",
            run=targets_apply.fuzz_server_side_apply,
            files=(
                *("apiserver/fieldmanager/apply.py", "apiserver/fieldmanager/merge.py"),
                "apiserver/fieldmanager/managed_fields.py",
            ),
            tokens=(*_JSON, *_METADATA, *_SPECS),
        ),
        Target(
            name="server",
            run=targets_server.fuzz_server,
            files=tuple(
                str(path.relative_to(_FOLDER.parents[1] / "src"))
                for path in sorted(_FOLDER.parents[1].glob("src/kinform/apiserver/**/*.py"))
            ),
            tokens=(*_JSON, *_METADATA, *_REQUESTS),
        ),
    )
}


def seeds(name: str) -> list[bytes]:
    """Return the inputs that a target starts from, in the order of their names."""
    return _files(_FOLDER / "corpus" / name) + found(name)


def found(name: str) -> list[bytes]:
    """Return the inputs that a target failed on once."""
    return _files(_FOLDER / "found" / name)


def _files(folder: Path) -> list[bytes]:
    return [path.read_bytes() for path in sorted(folder.glob("*"))]
