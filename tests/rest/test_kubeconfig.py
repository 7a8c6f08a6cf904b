"""kubeconfig files: what kubectl makes of them, and what is said about broken ones."""

from __future__ import annotations

import base64
import os
import tempfile
import traceback
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kinform.errors import ConfigError
from kinform.rest.clientcmd import kubeconfig
from kinform.rest.config import Config, Impersonation
from tests.rest.support_kubeconfig import SERVER, Entry, document, write

SECRET = "s3cr3t-that-must-not-show"


def load(folder: Path, content: Entry | str, *, context: str | None = None) -> Config:
    return kubeconfig.read(write(folder / "config", content)).config(context)


def b64(text: str) -> str:
    return base64.b64encode(text.encode()).decode()


# --- what is in a kubeconfig ------------------------------------------------------------------


def test_a_context_leads_to_server_user_and_namespace(tmp_path: Path) -> None:
    config = load(tmp_path, document(user={"token": "abc"}, context={"namespace": "team"}))
    assert (config.server, config.token, config.namespace) == (SERVER, "abc", "team")
    assert config.source == f"{tmp_path / 'config'} (context 'dev')"


def test_the_namespace_is_default_where_the_context_has_none(tmp_path: Path) -> None:
    assert load(tmp_path, document()).namespace == "default"


def test_a_context_without_a_user_is_anonymous(tmp_path: Path) -> None:
    config = load(tmp_path, document(context={"user": ""}))
    assert (config.token, config.username, config.exec_plugin) == (None, None, None)


def test_settings_of_the_cluster(tmp_path: Path) -> None:
    cluster: Entry = {
        "certificate-authority-data": b64("the CA"),
        "tls-server-name": "kubernetes",
        "proxy-url": "http://proxy:3128",
        "disable-compression": True,
    }
    config = load(tmp_path, document(cluster=cluster))
    assert config.tls.ca_data == b"the CA"
    assert config.tls.server_name == "kubernetes"
    assert config.proxy_url == "http://proxy:3128"
    assert not config.compression
    assert not config.tls.insecure_skip_verify


def test_verification_can_be_switched_off(tmp_path: Path) -> None:
    config = load(tmp_path, document(cluster={"insecure-skip-tls-verify": True}))
    assert config.tls.insecure_skip_verify


def test_data_wins_over_files(tmp_path: Path) -> None:
    user: Entry = {
        "client-certificate-data": b64("cert"),
        "client-certificate": "cert.pem",
        "client-key-data": b64("key"),
        "client-key": "key.pem",
    }
    cluster: Entry = {"certificate-authority-data": b64("ca"), "certificate-authority": "ca.pem"}
    tls = load(tmp_path, document(user=user, cluster=cluster)).tls
    assert (tls.ca_data, tls.cert_data, tls.key_data) == (b"ca", b"cert", b"key")
    assert (tls.ca_file, tls.cert_file, tls.key_file) == (None, None, None)


def test_paths_are_relative_to_the_file_they_stand_in(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    user: Entry = {"client-certificate": "pki/me.crt", "client-key": "/abs/me.key"}
    user["tokenFile"] = "../token"
    write(tmp_path / "sub/config", document(user=user, cluster={"certificate-authority": "ca"}))
    monkeypatch.chdir(tmp_path)
    config = kubeconfig.read("sub/config").config()
    assert config.tls.ca_file == str(tmp_path / "sub/ca")
    assert config.tls.cert_file == str(tmp_path / "sub/pki/me.crt")
    assert config.tls.key_file == "/abs/me.key"
    assert config.token_file == str(tmp_path / "sub/../token")


def test_a_user_may_have_a_password(tmp_path: Path) -> None:
    config = load(tmp_path, document(user={"username": "me", "password": SECRET}))
    assert (config.username, config.password) == ("me", SECRET)
    assert SECRET not in repr(config)


def test_impersonation(tmp_path: Path) -> None:
    user: Entry = {
        "as": "jane",
        "as-uid": "42",
        "as-groups": ["dev", "ops"],
        "as-user-extra": {"scopes": ["a", "b"]},
    }
    assert load(tmp_path, document(user=user)).impersonate == Impersonation(
        user="jane", uid="42", groups=("dev", "ops"), extra={"scopes": ("a", "b")}
    )


def test_an_exec_plugin_with_everything(tmp_path: Path) -> None:
    extension = {"audience": "x", "ports": [1, 2.5], "on": True}
    cluster: Entry = {
        "extensions": [
            {"name": "other", "extension": {}},
            {"name": "client.authentication.k8s.io/exec", "extension": extension},
        ]
    }
    plugin: Entry = {
        "apiVersion": "client.authentication.k8s.io/v1beta1",
        "command": "./bin/login",
        "args": ["--cluster", "a"],
        "env": [{"name": "REGION", "value": "north"}],
        "installHint": "get it",
        "provideClusterInfo": True,
        "interactiveMode": "Never",
    }
    found = load(tmp_path, document(cluster=cluster, user={"exec": plugin})).exec_plugin
    assert found is not None
    assert found.command == str(tmp_path / "bin/login")
    assert (found.args, found.env) == (("--cluster", "a"), {"REGION": "north"})
    assert (found.install_hint, found.interactive_mode) == ("get it", "Never")
    assert found.provide_cluster_info
    assert found.cluster_extension == extension


def test_a_command_without_a_slash_is_left_to_path(tmp_path: Path) -> None:
    plugin = {"apiVersion": "client.authentication.k8s.io/v1", "command": "aws"}
    found = load(tmp_path, document(user={"exec": plugin})).exec_plugin
    assert found is not None
    assert (found.command, found.interactive_mode) == ("aws", "IfAvailable")


# --- YAML and JSON ----------------------------------------------------------------------------

YAML = """
apiVersion: v1
kind: Config
current-context: no
clusters:
- name: 0123
  cluster: {server: "https://api.example", insecure-skip-tls-verify: true}
users:
- name: 12:30:45
  user:
    token: 0x1F
    username: ~
    password: null
    client-key:
contexts:
- name: no
  context: {cluster: 0123, user: 12:30:45, namespace: 2024-01-01}
preferences: {}
"""


def test_words_that_yaml_takes_for_numbers_stay_as_written(tmp_path: Path) -> None:
    config = load(tmp_path, YAML)
    assert (config.token, config.namespace, config.password) == ("0x1F", "2024-01-01", None)
    assert config.tls.insecure_skip_verify
    assert config.tls.key_file is None


def test_an_extension_keeps_its_types(tmp_path: Path) -> None:
    text = YAML.replace("token: 0x1F", "exec: {command: x, apiVersion: VERSION}")
    text = text.replace("VERSION", "client.authentication.k8s.io/v1").replace(
        "insecure-skip-tls-verify: true",
        "extensions: [{name: client.authentication.k8s.io/exec, "
        "extension: {a: 1, b: [true, 1.5], c: 12:30, d: no, 5: x}}]",
    )
    plugin = load(tmp_path, text).exec_plugin
    assert plugin is not None
    assert plugin.cluster_extension == {
        "a": 1,
        "b": [True, 1.5],
        "c": "12:30",
        "d": False,
        "5": "x",
    }


def test_json_indented_by_tabs_is_a_kubeconfig(tmp_path: Path) -> None:
    text = '{\n\t"current-context": "a",\n\t"contexts": [{"name": "a", "context": '
    text += '{"cluster": "a"}}],\n\t"clusters": [{"name": "a", "cluster": {"server": "http://x"}}]}'
    assert load(tmp_path, text).server == "http://x"


def test_numbers_and_truth_values_in_json_can_be_texts(tmp_path: Path) -> None:
    config = load(tmp_path, document(user={"token": 123}, context={"namespace": True}))
    assert (config.token, config.namespace) == ("123", "true")


def test_a_few_aliases_are_fine(tmp_path: Path) -> None:
    text = YAML.replace("user:\n    token: 0x1F", "user: &me\n    token: 0x1F")
    text = text.replace("preferences: {}", "preferences: *me")
    assert load(tmp_path, text).token == "0x1F"


def bomb(levels: int, width: int) -> str:
    lines = ["a0: &a0 [x, x]"]
    lines += [f"a{i}: &a{i} [{', '.join([f'*a{i - 1}'] * width)}]" for i in range(1, levels + 1)]
    return "\n".join(lines)


@pytest.mark.parametrize(
    "text",
    [
        pytest.param(bomb(9, 9), id="billion-laughs"),
        pytest.param(bomb(30, 1), id="chain"),
        pytest.param("a: &a {}\nb: [" + ", ".join(["*a"] * 33) + "]", id="too-many"),
        pytest.param("a: &a [*a]", id="itself"),
    ],
)
def test_aliases_that_multiply_are_refused(tmp_path: Path, text: str) -> None:
    with pytest.raises(ConfigError, match="nested aliases, or more than 32"):
        load(tmp_path, text)


@pytest.mark.parametrize(
    "key, value",
    [
        ("certificate-authority-data", ""),
        ("certificate-authority-data", " "),
        ("certificate-authority", ""),
    ],
)
def test_an_empty_ca_is_an_error(tmp_path: Path, key: str, value: str) -> None:
    """Unlike kubectl, which trusts the CAs of the system then."""
    with pytest.raises(ConfigError, match="is empty, which would trust") as caught:
        load(tmp_path, document(cluster={key: value}))
    assert caught.value.key == f"clusters[dev].cluster.{key}"
    assert load(tmp_path, document(cluster={key: None})).tls.ca_data is None


def nested_json(levels: int) -> str:
    return '{"a":' * levels + "1" + "}" * levels


@pytest.mark.parametrize("text", ["[" * 5000, nested_json(5000), nested_json(100), "- " * 500])
def test_deep_nesting_is_refused(tmp_path: Path, text: str) -> None:
    with pytest.raises(ConfigError, match="nested more than 100 levels"):
        load(tmp_path, text)


def test_a_huge_file_is_refused(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="larger than 4194304 bytes"):
        load(tmp_path, "#" * (4 * 1024 * 1024 + 1))


@pytest.mark.parametrize(
    "text",
    [
        pytest.param(f"users: [{SECRET}", id="unclosed"),
        pytest.param(f"a: b: {SECRET}", id="mapping-in-value"),
        pytest.param(f"token: *{SECRET}", id="alias-that-is-a-password"),
        pytest.param(f"token: !{SECRET} x", id="tag-that-is-a-password"),
        pytest.param(f"token: !!int {SECRET}", id="value-does-not-fit"),
        pytest.param(f"token: !!bool {SECRET}", id="no-truth-value"),
        pytest.param(f"token: {SECRET}\na: !!int ''", id="no-digits"),
        pytest.param(f"token: {SECRET}\na: !!float ''", id="no-number"),
        pytest.param(f"token: !!int [{SECRET}]", id="list-with-a-tag-of-values"),
        pytest.param(f"token: '{SECRET}", id="unclosed-quote"),
        pytest.param(f'token: "\\q{SECRET}"', id="unknown-escape"),
        pytest.param(f"token: {SECRET}\x01", id="control-character"),
        pytest.param(f"token: {SECRET}\n---\nb: 1", id="two-documents"),
        pytest.param(f"? [{SECRET}]\n: 1", id="unhashable-key"),
        pytest.param(f'{{"token": "{SECRET}"', id="broken-json"),
    ],
)
def test_broken_yaml_is_located_and_never_quoted(tmp_path: Path, text: str) -> None:
    with pytest.raises(ConfigError, match="is not valid YAML") as caught:
        load(tmp_path, text)
    assert caught.value.source == str(tmp_path / "config")
    assert SECRET not in "".join(traceback.format_exception(caught.value))
    assert caught.value.__context__ is None


def test_the_place_of_a_yaml_error_is_told(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match=r"\(line 2, column 9\)"):
        load(tmp_path, "kind: Config\nusers: b: c")


def test_bytes_that_are_no_text_are_refused(tmp_path: Path) -> None:
    (tmp_path / "config").write_bytes(b"\xff\x00\x12")
    with pytest.raises(ConfigError, match="is not valid YAML"):
        kubeconfig.read(str(tmp_path / "config"))


# --- what is wrong with it --------------------------------------------------------------------

V1 = {"apiVersion": "client.authentication.k8s.io/v1", "command": "x"}


@pytest.mark.parametrize(
    "content, key, says",
    [
        pytest.param(
            document(cluster={"server": ""}),
            "clusters[dev].cluster.server",
            "is not set",
            id="no-server",
        ),
        pytest.param(
            document(cluster={"server": ["x"]}),
            "clusters[dev].cluster.server",
            "must be a text",
            id="server-is-a-list",
        ),
        pytest.param(
            document(cluster={"insecure-skip-tls-verify": "yes"}),
            "clusters[dev].cluster.insecure-skip-tls-verify",
            "must be true or false",
            id="flag-is-text",
        ),
        pytest.param(
            document(cluster={"certificate-authority-data": "!!"}),
            "clusters[dev].cluster.certificate-authority-data",
            "is not base64",
            id="data-is-no-base64",
        ),
        pytest.param(
            document(user={"client-key-data": f"{SECRET}?"}),
            "users[dev].user.client-key-data",
            "is not base64",
            id="key-is-no-base64",
        ),
        pytest.param(
            document(user={"auth-provider": {"name": "gcp"}}),
            "users[dev].user.auth-provider",
            "use an exec plugin",
            id="auth-provider",
        ),
        pytest.param(
            document(user={"as-groups": ["a"]}), "users[dev].user.as", "must be set", id="groups"
        ),
        pytest.param(
            document(user={"as": "a", "as-groups": "a"}),
            "users[dev].user.as-groups",
            "must be a list",
            id="groups-are-text",
        ),
        pytest.param(
            document(user={"as": "a", "as-groups": ["a", {}]}),
            "users[dev].user.as-groups[1]",
            "must be a text",
            id="a-group-is-a-mapping",
        ),
        pytest.param(
            document(user={"exec": {**V1, "command": ""}}),
            "users[dev].user.exec.command",
            "name the program",
            id="exec-without-command",
        ),
        pytest.param(
            document(user={"exec": {"command": "x"}}),
            "users[dev].user.exec.apiVersion",
            "is not set; use client.authentication.k8s.io/v1 or",
            id="exec-without-version",
        ),
        pytest.param(
            document(user={"exec": {**V1, "apiVersion": "client.authentication.k8s.io/v1alpha1"}}),
            "users[dev].user.exec.apiVersion",
            "v1alpha1' is not supported; use client.authentication.k8s.io/v1 or",
            id="exec-v1alpha1",
        ),
        pytest.param(
            document(user={"exec": {**V1, "interactiveMode": "Sometimes"}}),
            "users[dev].user.exec.interactiveMode",
            "must be one of Never, IfAvailable, Always",
            id="exec-mode",
        ),
        pytest.param(
            document(user={"exec": {**V1, "env": [{"name": "A=B", "value": SECRET}]}}),
            "users[dev].user.exec.env[0].name",
            "cannot be the name of a variable",
            id="exec-env",
        ),
        pytest.param(
            document(user={"exec": "aws"}), "users[dev].user.exec", "must be a mapping", id="exec"
        ),
        pytest.param(
            document(context={"cluster": "gone"}),
            "contexts[dev].context.cluster",
            "cluster 'gone' does not exist; known clusters: 'dev'",
            id="unknown-cluster",
        ),
        pytest.param(
            document(context={"user": "gone"}),
            "contexts[dev].context.user",
            "user 'gone' does not exist; known users: 'dev'",
            id="unknown-user",
        ),
        pytest.param(
            document(context={"cluster": ""}),
            "contexts[dev].context.cluster",
            "is not set",
            id="no-cluster",
        ),
        pytest.param(
            {**document(), "current-context": "gone"},
            "current-context",
            "context 'gone' does not exist; known contexts: 'dev'",
            id="unknown-current-context",
        ),
        pytest.param(
            {**document(), "current-context": ""},
            "current-context",
            "is not set; known contexts: 'dev'; pass context=",
            id="no-current-context",
        ),
        pytest.param({"kind": "Config"}, "", "holds no contexts", id="nothing-in-it"),
        pytest.param({"kind": "Pod"}, "kind", "is 'Pod'", id="another-kind"),
        pytest.param({"users": [1]}, "users[0]", "must be a mapping", id="user-is-a-number"),
        pytest.param(
            {"clusters": [{"name": "a"}, {"name": "a"}]},
            "clusters[1].name",
            "'a' is listed twice",
            id="twice",
        ),
        pytest.param('"just text"', "", "is not a kubeconfig", id="text"),
    ],
)
def test_an_error_names_the_file_the_key_and_the_cure(
    tmp_path: Path, content: Entry | str, key: str, says: str
) -> None:
    with pytest.raises(ConfigError) as caught:
        load(tmp_path, content)
    assert (caught.value.source, caught.value.key) == (str(tmp_path / "config"), key)
    assert says in caught.value.message
    assert SECRET not in "".join(traceback.format_exception(caught.value))


def test_an_unknown_context_lists_the_known_ones(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="context 'x' does not exist; known contexts: 'dev'"):
        load(tmp_path, document(), context="x")


def test_of_many_contexts_only_some_are_listed(tmp_path: Path) -> None:
    many = {**document(), "contexts": [{"name": f"c{i:02}"} for i in range(50)]}
    with pytest.raises(ConfigError, match="'c19', 30 more"):
        load(tmp_path, many, context="x")


def test_a_folder_is_no_kubeconfig_and_is_closed_again(tmp_path: Path) -> None:
    before = os.dup(0)
    with pytest.raises(ConfigError, match="cannot be read: is a directory"):
        kubeconfig.read(str(tmp_path))
    after = os.dup(0)
    os.close(before)
    os.close(after)
    assert after <= before + 1, "the folder's descriptor is still open"


def test_a_pipe_is_no_kubeconfig_and_is_not_waited_for(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")
    with pytest.raises(ConfigError, match="cannot be read: not a regular file"):
        kubeconfig.read(str(tmp_path / "pipe"))


def test_a_path_that_cannot_be_one_is_refused(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="cannot be read: not a possible path"):
        kubeconfig.read(f"{tmp_path}/a\0b")


# --- merging ----------------------------------------------------------------------------------


def test_the_first_file_gives_an_entry_whole(tmp_path: Path) -> None:
    """As kubectl: entries of one name are not mixed."""
    first = write(tmp_path / "1", document(user={"token": "first"}))
    second = write(tmp_path / "2", document(user={"token": "x", "tokenFile": "t"}))
    config = kubeconfig.merge([kubeconfig.read(first), kubeconfig.read(second)]).config()
    assert (config.token, config.token_file) == ("first", None)


def test_cluster_and_user_may_come_from_different_files(tmp_path: Path) -> None:
    whole = document(user={"tokenFile": "t"}, cluster={"certificate-authority": "ca"})
    clusters = write(tmp_path / "a/config", {"clusters": whole["clusters"]})
    rest = write(tmp_path / "b/config", {**whole, "clusters": None})
    config = kubeconfig.merge([kubeconfig.read(clusters), kubeconfig.read(rest)]).config()
    assert config.tls.ca_file == str(tmp_path / "a/ca")
    assert config.token_file == str(tmp_path / "b/t")
    assert config.error("tls.ca_file", "x").source == clusters
    assert config.error("token_file", "x").source == rest
    assert config.error("token_file", "x").key == "users[dev].user.tokenFile"


NAMES = st.sampled_from(["a", "b", "c"])
FILES = st.lists(
    st.fixed_dictionaries(
        {"users": st.sets(NAMES), "clusters": st.sets(NAMES), "contexts": st.sets(NAMES)},
        optional={"current-context": st.sampled_from(["", "a", "b"])},
    ),
    min_size=1,
    max_size=4,
)


@given(FILES)
def test_of_every_entry_and_scalar_the_first_file_wins(contents: list[dict[str, object]]) -> None:
    """The model is a loop over the files that keeps what it has."""
    expected: dict[str, dict[str, str]] = {"users": {}, "clusters": {}, "contexts": {}}
    current = ""
    with tempfile.TemporaryDirectory() as folder:
        parts: list[kubeconfig.Kubeconfig] = []
        for index, content in enumerate(contents):
            entries: Entry = {}
            for kind, found in expected.items():
                names = sorted(str(name) for name in content[kind])  # type: ignore[attr-defined]
                entries[kind] = [{"name": name} for name in names]
                for name in names:
                    found.setdefault(name, str(index))
            entries["current-context"] = content.get("current-context", "")
            current = current or str(entries["current-context"])
            parts.append(kubeconfig.read(write(Path(folder, str(index)), entries)))
    merged = kubeconfig.merge(parts)
    actual = {
        kind: {name: Path(entry.source).name for name, entry in entries.items()}
        for kind, entries in [
            ("users", merged.users),
            ("clusters", merged.clusters),
            ("contexts", merged.contexts),
        ]
    }
    assert (expected, current) == (actual, merged.current_context)


# --- nothing secret shows ---------------------------------------------------------------------


def test_no_repr_shows_a_secret(tmp_path: Path) -> None:
    user: Entry = {
        "token": SECRET,
        "client-key-data": b64(SECRET),
        "client-certificate-data": b64(SECRET),
        "exec": {
            **V1,
            "args": [f"--password={SECRET}"],
            "env": [{"name": "PASSWORD", "value": SECRET}],
        },
    }
    cluster: Entry = {
        "proxy-url": f"http://me:{SECRET}@proxy",
        "extensions": [{"name": "client.authentication.k8s.io/exec", "extension": SECRET}],
    }
    found = kubeconfig.read(write(tmp_path / "c", document(user=user, cluster=cluster)))
    config = found.config()
    assert config.token == SECRET
    assert SECRET not in repr(config) + repr(found) + repr(found.users["dev"])
