"""A real control plane on loopback: etcd and kube-apiserver as child processes of the tests."""
