"""The command lines of the servers."""

from __future__ import annotations

from pathlib import Path

from kinform.testing.controlplane import _flags

KEYS = _flags.KeyFiles(Path("/keys"))


def apiserver(**options: object) -> list[str]:
    make = _flags.apiserver_flags
    defaults: dict[str, object] = {"port": 1, "etcd_port": 2, "keys": KEYS, "share_ports": True}
    return make(**(defaults | options))  # type: ignore[arg-type]  # keywords by name, for brevity


def etcd(*, client_port: int = 1, peer_port: int = 2, share_ports: bool = True) -> list[str]:
    return _flags.etcd_flags(
        data=Path("/data"),
        client_port=client_port,
        peer_port=peer_port,
        keys=KEYS,
        share_ports=share_ports,
    )


def test_extra_flags_come_last_so_that_they_win() -> None:
    assert apiserver(extra=["--authorization-mode=AlwaysAllow"])[-1].endswith("AlwaysAllow")


def test_feature_gates_are_one_sorted_flag() -> None:
    gates = {"WatchList": False, "ShardedListAndWatch": True}
    assert "--feature-gates=ShardedListAndWatch=true,WatchList=false" in apiserver(
        feature_gates=gates
    )


def test_without_gates_there_is_no_flag_for_them() -> None:
    assert not [flag for flag in apiserver() if flag.startswith("--feature-gates")]


def test_service_account_admission_is_on_only_where_its_controller_runs() -> None:
    off = "--disable-admission-plugins=ServiceAccount"
    assert off in apiserver()
    assert off in apiserver(controllers=["garbage-collector-controller"])
    assert off not in apiserver(controllers=["serviceaccount-controller"])


def test_etcd_listens_on_loopback_alone() -> None:
    arguments = etcd(client_port=1, peer_port=2, share_ports=False)
    addresses = [flag.partition("=")[2] for flag in arguments if "urls" in flag]
    assert set(addresses) == {"https://127.0.0.1:1", "https://127.0.0.1:2"}
    assert "--socket-reuse-port" not in arguments


def test_etcd_wants_certificates_of_an_authority_of_its_own() -> None:
    arguments = etcd()
    for kind in ("", "peer-"):
        assert f"--{kind}client-cert-auth" in arguments
        assert f"--{kind}trusted-ca-file={KEYS.etcd_ca_cert}" in arguments
    assert KEYS.etcd_ca_cert != KEYS.ca_cert
    assert f"--etcd-certfile={KEYS.etcd_client_cert}" in apiserver()
    assert "--etcd-servers=https://127.0.0.1:2" in apiserver()


def test_only_the_chosen_controllers_run() -> None:
    arguments = _flags.controller_manager_flags(
        port=1,
        kubeconfig=Path("/kubeconfig"),
        keys=KEYS,
        share_ports=True,
        controllers=["namespace-controller", "garbage-collector-controller"],
    )
    assert "--controllers=namespace-controller,garbage-collector-controller" in arguments


def test_a_restored_etcd_has_the_name_and_peer_of_the_one_that_will_run() -> None:
    peer = "https://127.0.0.1:7"
    restore = _flags.restore_flags(Path("/snap"), data=Path("/data"), peer_port=7)
    serve = etcd(client_port=6, peer_port=7)
    assert f"--initial-cluster={_flags.ETCD_NAME}={peer}" in set(restore) & set(serve)
    assert f"--initial-advertise-peer-urls={peer}" in set(restore) & set(serve)
