"""A server that sends pods as fast as a client takes them: the same bytes to every client.

``python -m bench.replay --json FILE [--proto FILE]`` serves the pods of `bench.corpus` over plain
HTTP/1.1. What is sent is a record of the file, with a few bytes overwritten (`bench.replay.pods`),
in a frame of JSON or protobuf (`json_wire`, `proto_wire`). Commands on stdin tell what is served
and which events happen (`commands`). It is not an API server: it knows lists and watches of pods,
and the requests that clients send before. Nothing is compressed, and watches have no timeout.
"""
