"""The choice of the configuration, and the error if none is found."""

from __future__ import annotations

import logging
import os
from pathlib import Path

import pytest

from kinform.errors import ConfigError, UsageError
from kinform.rest.clientcmd.loading import load
from kinform.rest.config import Config, Impersonation, TlsConfig
from tests.rest.support_kubeconfig import SERVER, Entry, document, write

IN_CLUSTER = {"KUBERNETES_SERVICE_HOST": "10.96.0.1", "KUBERNETES_SERVICE_PORT": "443"}


@pytest.fixture
def pod(tmp_path: Path) -> Path:
    """A service account's folder, as the kubelet mounts it."""
    folder = tmp_path / "serviceaccount"
    folder.mkdir()
    for name, text in [("token", "pod-token\n"), ("ca.crt", "PEM"), ("namespace", "apps\n")]:
        (folder / name).write_text(text, encoding="utf-8")
    return folder


@pytest.fixture
def home(tmp_path: Path) -> dict[str, str]:
    """An environment with a home directory that holds a kubeconfig."""
    write(tmp_path / "home/.kube/config", document(user={"token": "home"}))
    return {"HOME": str(tmp_path / "home")}


# --- what is given ----------------------------------------------------------------------------


@pytest.mark.parametrize(
    "url, server",
    [
        ("http://127.0.0.1:8001", "http://127.0.0.1:8001"),
        ("https://host/prefix/", "https://host/prefix"),
        ("HTTPS://host:6443/?x=1#y", "https://host:6443"),
        ("https://[fd00::1]:6443", "https://[fd00::1]:6443"),
    ],
)
def test_a_url_stands_for_itself(url: str, server: str, home: dict[str, str]) -> None:
    config = load(url, environ=home)
    assert (config.server, config.token, config.namespace) == (server, None, "default")


@pytest.mark.parametrize("given", ["config", "kubeconfig"])
def test_a_path_is_a_kubeconfig_and_nothing_else_is_read(
    tmp_path: Path, given: str, home: dict[str, str]
) -> None:
    path = Path(write(tmp_path / "mine", document(user={"token": "mine"})))
    environ = {**home, "KUBECONFIG": str(tmp_path / "other")}
    for spelling in (path, str(path)):
        found = (
            load(spelling, environ=environ)
            if given == "config"
            else load(kubeconfig=spelling, environ=environ)
        )
        assert found.token == "mine"


def test_a_config_passes_with_its_namespace_changed() -> None:
    config = Config(server="https://host/", token="x")
    assert load(config, namespace="team", environ={}) == Config(
        server="https://host", token="x", namespace="team"
    )


def test_the_namespace_of_the_caller_wins(home: dict[str, str]) -> None:
    assert load(environ=home, namespace="mine").namespace == "mine"


def test_arguments_that_exclude_each_other_are_refused(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="either config or kubeconfig"):
        load("http://localhost", kubeconfig=tmp_path)
    with pytest.raises(UsageError, match="a context needs a kubeconfig"):
        load("http://localhost", context="dev")


# --- what is found ----------------------------------------------------------------------------


def test_kubeconfig_comes_before_the_home_directory(
    tmp_path: Path, home: dict[str, str], pod: Path
) -> None:
    path = write(tmp_path / "listed", document(user={"token": "listed"}))
    environ = {**home, **IN_CLUSTER, "KUBECONFIG": path}
    assert load(environ=environ, service_account=pod).token == "listed"


def test_the_home_directory_comes_before_the_pod(home: dict[str, str], pod: Path) -> None:
    assert load(environ={**home, **IN_CLUSTER}, service_account=pod).token == "home"


def test_kubeconfig_lists_files_of_which_some_may_be_missing(tmp_path: Path) -> None:
    whole = document(user={"token": "x"})
    first = write(tmp_path / "1", {"users": whole["users"], "clusters": whole["clusters"]})
    second = write(tmp_path / "2", {"contexts": whole["contexts"], "current-context": "dev"})
    paths = [str(tmp_path / "gone"), first, "", first, write(tmp_path / "empty", ""), second]
    config = load(environ={"KUBECONFIG": os.pathsep.join(paths)})
    assert (config.server, config.token) == (SERVER, "x")


def test_a_broken_file_in_the_list_is_an_error_even_if_another_would_serve(
    tmp_path: Path,
) -> None:
    good, bad = write(tmp_path / "good", document()), write(tmp_path / "bad", "a: b: c")
    with pytest.raises(ConfigError, match="bad: is not valid YAML"):
        load(environ={"KUBECONFIG": os.pathsep.join([good, bad])})


def test_a_context_can_be_chosen(tmp_path: Path) -> None:
    both = document()
    both["contexts"] = [
        {"name": "dev", "context": {"cluster": "dev"}},
        {"name": "prod", "context": {"cluster": "dev", "namespace": "live"}},
    ]
    path = write(tmp_path / "c", both)
    assert load(path, context="prod").namespace == "live"
    assert load(environ={"KUBECONFIG": path}, context="prod").namespace == "live"


def test_an_unknown_context_is_an_error_even_in_a_pod(home: dict[str, str], pod: Path) -> None:
    with pytest.raises(ConfigError, match="context 'x' does not exist; known contexts: 'dev'"):
        load(environ={**home, **IN_CLUSTER}, context="x", service_account=pod)


def test_a_context_asked_for_without_any_kubeconfig_is_an_error(pod: Path) -> None:
    with pytest.raises(ConfigError, match="no configuration found"):
        load(environ=IN_CLUSTER, context="x", service_account=pod)


# --- in a pod ---------------------------------------------------------------------------------


def test_a_pod_uses_its_service_account(pod: Path) -> None:
    config = load(environ=IN_CLUSTER, service_account=pod)
    assert config == Config(
        server="https://10.96.0.1:443",
        namespace="apps",
        tls=TlsConfig(ca_file=str(pod / "ca.crt")),
        token_file=str(pod / "token"),
        source="in-cluster",
    )


def test_pod_namespace_wins_over_the_file(pod: Path) -> None:
    environ = {**IN_CLUSTER, "POD_NAMESPACE": "mine"}
    assert load(environ=environ, service_account=pod).namespace == "mine"


def test_without_a_namespace_file_it_is_default(pod: Path) -> None:
    (pod / "namespace").unlink()
    assert load(environ=IN_CLUSTER, service_account=pod).namespace == "default"


def test_an_ipv6_host_is_put_in_brackets(pod: Path) -> None:
    environ = {**IN_CLUSTER, "KUBERNETES_SERVICE_HOST": "fd00::1"}
    assert load(environ=environ, service_account=pod).server == "https://[fd00::1]:443"


def test_a_pod_without_a_ca_trusts_the_systems_and_says_so(
    pod: Path, caplog: pytest.LogCaptureFixture
) -> None:
    """client-go: a CA that cannot be loaded is logged, not fatal."""
    (pod / "ca.crt").unlink()
    assert load(environ=IN_CLUSTER, service_account=pod).tls == TlsConfig()
    assert "the pod has no CA file" in caplog.text


@pytest.mark.parametrize(
    "content",
    [
        pytest.param("", id="empty"),
        pytest.param({**document(), "current-context": ""}, id="no-current-context"),
    ],
)
def test_a_pod_with_a_kubeconfig_that_says_nothing_uses_its_account(
    tmp_path: Path, pod: Path, content: Entry | str
) -> None:
    environ = {**IN_CLUSTER, "KUBECONFIG": write(tmp_path / "c", content)}
    assert load(environ=environ, service_account=pod).source == "in-cluster"


# --- nothing there ----------------------------------------------------------------------------


def test_the_error_lists_every_place_and_why_it_did_not_serve(tmp_path: Path) -> None:
    with pytest.raises(ConfigError) as caught:
        load(environ={"HOME": str(tmp_path)}, service_account=tmp_path)
    assert str(caught.value) == (
        "no configuration found: $KUBECONFIG is not set;"
        f" {tmp_path}/.kube/config does not exist;"
        " in-cluster: $KUBERNETES_SERVICE_HOST is not set;"
        " pass a URL or the path of a kubeconfig, or set KUBECONFIG"
    )


def test_the_error_tells_about_listed_files_and_the_token(tmp_path: Path) -> None:
    gone, empty = str(tmp_path / "gone"), write(tmp_path / "empty", "# nothing\n")
    environ = {"KUBECONFIG": os.pathsep.join([gone, empty]), **IN_CLUSTER}
    with pytest.raises(ConfigError) as caught:
        load(environ=environ, service_account=tmp_path)
    for reason in [
        f"{gone} does not exist",
        f"{empty} has no clusters, users or contexts",
        f"in-cluster: {tmp_path}/token does not exist",
    ]:
        assert reason in caught.value.message


def test_the_error_tells_about_a_missing_current_context_port_and_home(tmp_path: Path) -> None:
    path = write(tmp_path / "c", {**document(), "current-context": ""})
    environ = {"KUBECONFIG": path, "KUBERNETES_SERVICE_HOST": "x"}
    with pytest.raises(ConfigError, match="current-context: is not set; known contexts: 'dev'"):
        load(environ=environ, service_account=tmp_path)
    with pytest.raises(ConfigError, match=r"\$HOME is not set; .*SERVICE_PORT is not set"):
        load(environ={"KUBERNETES_SERVICE_HOST": "x"}, service_account=tmp_path)


def test_an_explicit_file_must_exist(tmp_path: Path, home: dict[str, str]) -> None:
    with pytest.raises(ConfigError, match="gone: does not exist; give the path of a kubeconfig"):
        load(tmp_path / "gone", environ=home)


def test_an_explicit_file_must_say_something(tmp_path: Path, home: dict[str, str]) -> None:
    with pytest.raises(ConfigError, match="config: has no clusters, users or contexts"):
        load(write(tmp_path / "config", "\n"), environ=home)


def test_a_folder_is_no_configuration(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="cannot be read: is a directory"):
        load(tmp_path, environ={})


# --- what cannot work is refused before anything is sent --------------------------------------


@pytest.mark.parametrize(
    "server",
    [
        "https://",
        "https://host:port",
        "https://host:0",
        "https://ho st",
        "https://host\r\nX: y",
        "https://[::1",
        "ftp://host",
    ],
)
def test_a_server_must_be_a_url(server: str) -> None:
    with pytest.raises(ConfigError, match="server: is not a URL like 'https://host:6443'"):
        load(Config(server=server), environ={})


@pytest.mark.parametrize("server", ["https://me:pa55word@host", "http://me:pa55word@host:x"])
def test_a_url_must_hold_no_password_and_is_not_quoted(server: str) -> None:
    with pytest.raises(ConfigError) as caught:
        load(server, environ={})
    assert "pa55word" not in str(caught.value) + repr(caught.value)


@pytest.mark.parametrize(
    "tls, server",
    [(TlsConfig(), "http://host:80"), (TlsConfig(insecure_skip_verify=True), "https://host:80")],
)
def test_without_a_scheme_tls_settings_decide(tls: TlsConfig, server: str) -> None:
    """client-go: ``DefaultServerURL``."""
    assert load(Config(server="host:80", tls=tls), environ={}).server == server


@pytest.mark.parametrize(
    "cluster, user, key",
    [
        pytest.param(
            {"certificate-authority": "ca", "insecure-skip-tls-verify": True},
            {},
            "clusters[dev].cluster.insecure-skip-tls-verify",
            id="ca-and-insecure",
        ),
        pytest.param(
            {}, {"client-certificate": "crt"}, "users[dev].user.client-key", id="cert-without-key"
        ),
        pytest.param(
            {}, {"client-key": "key"}, "users[dev].user.client-certificate", id="key-without-cert"
        ),
        pytest.param(
            {},
            {"token": "x", "username": "me"},
            "users[dev].user.username",
            id="token-and-password",
        ),
        pytest.param({}, {"token": "a\nb"}, "users[dev].user.token", id="token-with-newline"),
        pytest.param({}, {"as": "a\r\nb"}, "users[dev].user.as", id="header-injection"),
        pytest.param(
            {"proxy-url": "socks5://x"}, {}, "clusters[dev].cluster.proxy-url", id="socks"
        ),
        pytest.param(
            {"server": "http://api.example"},
            {"token": "x"},
            "clusters[dev].cluster.server",
            id="token-in-clear",
        ),
    ],
)
def test_contradictions_are_refused_with_file_and_key(
    tmp_path: Path, cluster: Entry, user: Entry, key: str
) -> None:
    path = write(tmp_path / "config", document(cluster=cluster, user=user))
    with pytest.raises(ConfigError) as caught:
        load(path, environ={})
    assert (caught.value.source, caught.value.key) == (path, key)


@pytest.mark.parametrize("host", ["localhost:8001", "127.0.0.1", "[::1]:80", "api.localhost"])
def test_on_this_machine_credentials_may_travel_in_clear(host: str) -> None:
    assert load(Config(server=f"http://{host}", token="x"), environ={}).token == "x"


def test_impersonation_alone_is_no_secret() -> None:
    config = Config(server="http://host", impersonate=Impersonation(user="jane"))
    assert load(config, environ={}) == config


# --- exposure ---------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "user, mode, warned",
    [({"token": "x"}, 0o644, True), ({"token": "x"}, 0o600, False), ({"as": "x"}, 0o644, False)],
)
def test_a_secret_that_others_can_read_is_warned_of(
    tmp_path: Path, caplog: pytest.LogCaptureFixture, user: Entry, mode: int, warned: bool
) -> None:
    path = Path(write(tmp_path / "c", document(user=user)))
    path.chmod(mode)
    with caplog.at_level(logging.WARNING, "kinform"):
        load(path, environ={})
    assert ("can be read by other users" in caplog.text) is warned
