"""The command: ``python -m bench.replay --json FILE [--proto FILE]``."""

from __future__ import annotations

import argparse
import sys
import threading
from collections.abc import Sequence
from pathlib import Path

import msgspec

from bench.replay import commands
from bench.replay.json_wire import JsonWire
from bench.replay.pods import Pods
from bench.replay.proto_wire import ProtoWire
from bench.replay.server import Server

__all__ = ["main"]


def main(arguments: Sequence[str]) -> int:
    """Serve until ``quit``."""
    parser = argparse.ArgumentParser(prog="python -m bench.replay")
    parser.add_argument("--json", type=Path, required=True, help="a file of bench.corpus")
    parser.add_argument("--proto", type=Path, help="the same pods in protobuf")
    options = parser.parse_args(arguments)
    try:
        pods = Pods(options.json, JsonWire())
        proto_pods = Pods(options.proto, ProtoWire()) if options.proto else None
    except (OSError, ValueError) as exc:
        print(f"cannot serve these pods: {exc}", file=sys.stderr)
        return 2
    if proto_pods is not None and len(proto_pods) != len(pods):
        print(f"{len(pods)} pods in JSON, {len(proto_pods)} in protobuf", file=sys.stderr)
        return 2
    threading.stack_size(512 * 1024)  # a thread for each connection: there may be thousands
    server = Server(pods, proto_pods=proto_pods)
    server.start()
    try:
        sys.stdout.buffer.write(msgspec.json.encode({"ready": True, "port": server.port}) + b"\n")
        sys.stdout.buffer.flush()
        control = commands.Control(server)
        commands.run(control, commands=sys.stdin.buffer, answers=sys.stdout.buffer)
    except (BrokenPipeError, KeyboardInterrupt):
        return 1
    finally:
        server.close()
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
