"""Programs that do the same with different clients, driven by lines on their standard input.

What they are told and what they answer stands in `bench.peers.driver`. Each is started as
``python -m bench.peers.NAME --url URL``, and each uses its client as well as that client allows.
"""
