"""The peers: programs that do the same work with different clients, driven by lines on stdin.

The commands and answers are described in `bench.peers.driver`. Each is started as
``python -m bench.peers.NAME --url URL``, and each uses its client as well as that client allows.
"""
