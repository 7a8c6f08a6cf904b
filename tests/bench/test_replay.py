from __future__ import annotations

import json
import selectors
import socket
import subprocess
import sys
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest

from bench import corpus
from bench.replay import http, proto_wire
from bench.replay.commands import Control
from bench.replay.json_wire import JsonWire
from bench.replay.pods import Pods
from bench.replay.proto_wire import ProtoWire
from bench.replay.server import Server

ROOT = Path(__file__).parent.parent.parent
COUNT = 200
FIRST = corpus.FIRST_VERSION
PROTOBUF = "application/vnd.kubernetes.protobuf"
STREAM = "watch=true&sendInitialEvents=true&resourceVersionMatch=NotOlderThan"


# --- protobuf, written and read here: the Go program is not at hand


def write(number: int, value: bytes | str | int) -> bytes:
    if isinstance(value, int):
        return proto_wire.varint(number << 3) + proto_wire.varint(value)
    data = value.encode() if isinstance(value, str) else value
    return proto_wire.varint(number << 3 | 2) + proto_wire.varint(len(data)) + data


def read(data: bytes) -> dict[int, list[bytes]]:
    found: dict[int, list[bytes]] = {}
    for field in proto_wire.fields(data, 0, len(data)):
        found.setdefault(field.number, []).append(data[field.start : field.end])
    return found


def encoded(pod: dict[str, Any]) -> bytes:
    """Return a pod as Go writes it, without what does not matter here."""
    meta, spec, status = pod["metadata"], pod["spec"], pod["status"]
    texts = ((1, "name"), (2, "generateName"), (3, "namespace"))
    metadata = b"".join(write(number, meta[key]) for number, key in texts)
    metadata += write(4, "") + write(5, meta["uid"]) + write(6, meta["resourceVersion"])
    metadata += write(7, 1) + write(8, write(1, 1_700_000_000) + write(2, 0))
    for key, value in meta["labels"].items():
        metadata += write(11, write(1, key) + write(2, value))
    for key, value in meta["annotations"].items():
        metadata += write(12, write(1, key) + write(2, value))
    container = write(2, write(1, "app") + write(2, "x" * 300))
    running = write(1, status["containerStatuses"][0]["name"]) + write(2, b"") + write(3, b"")
    running += write(4, 1) + write(5, status["containerStatuses"][0]["restartCount"])
    states = write(1, "Running") + write(2, write(1, "Ready")) + write(8, running)
    return write(1, metadata) + write(2, container + write(10, spec["nodeName"])) + write(3, states)


def unwrapped(envelope: bytes) -> tuple[str, bytes]:
    """Return the kind and the bytes of an object."""
    assert envelope.startswith(b"k8s\0")
    unknown = read(envelope[4:])
    type_meta = read(unknown[1][0])
    assert type_meta[1] == [b"v1"]
    return type_meta[2][0].decode(), unknown[2][0]


def metadata_of(pod: bytes) -> dict[int, list[bytes]]:
    return read(read(pod)[1][0])


def key_of(pod: bytes) -> tuple[str, str, int]:
    """Return the namespace, name and version of a pod."""
    metadata = metadata_of(pod)
    return metadata[3][0].decode(), metadata[1][0].decode(), int(metadata[6][0])


# --- a server, and a client of its own kind


@pytest.fixture(scope="module")
def files(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Path]:
    folder = tmp_path_factory.mktemp("pods")
    file = corpus.json_file(COUNT, folder=folder)
    proto = corpus.proto_file(COUNT, folder=folder)
    pods = [encoded(json.loads(pod)) for pod in corpus.records(file)]
    proto.write_bytes(b"".join(len(pod).to_bytes(4, "big") + pod for pod in pods))
    return file, proto


@pytest.fixture
def server(files: tuple[Path, Path]) -> Iterator[Server]:
    server = Server(Pods(files[0], JsonWire()), proto_pods=Pods(files[1], ProtoWire()))
    server.start()
    yield server
    server.close()


Do = Callable[..., dict[str, Any]]


@pytest.fixture
def do(server: Server) -> Do:
    control = Control(server)

    def answer(do: str, **arguments: object) -> dict[str, Any]:
        given = control.answer(json.dumps({"do": do, **arguments}).encode())
        assert given is not None
        return dict(given)

    return answer


class Client:
    """One connection, read as HTTP says."""

    def __init__(self, port: int) -> None:
        self.socket = socket.create_connection(("127.0.0.1", port), timeout=20)
        self.file = self.socket.makefile("rb")
        self.headers: dict[str, str] = {}

    def get(self, target: str, *, accept: str = "application/json") -> int:
        """Send a request, return the code of the answer."""
        request = f"GET {target} HTTP/1.1\r\nHost: x\r\nAccept: {accept}\r\n\r\n"
        self.socket.sendall(request.encode())
        code = int(self.file.readline().split()[1])
        self.headers = {}
        while (line := self.file.readline().decode().strip()) != "":
            name, _, value = line.partition(": ")
            self.headers[name] = value
        return code

    def chunk(self) -> bytes:
        """Return the next chunk; nothing at the end of the body."""
        data = self.file.read(int(self.file.readline(), 16))
        assert self.file.read(2) == b"\r\n"
        return data

    def body(self) -> bytes:
        if "Content-Length" in self.headers:
            return self.file.read(int(self.headers["Content-Length"]))
        return b"".join(iter(self.chunk, b""))

    def json(self, target: str) -> dict[str, Any]:
        assert self.get(target) == 200
        body: dict[str, Any] = json.loads(self.body())
        return body

    def events(self, count: int) -> list[dict[str, Any]]:
        return [json.loads(self.chunk()) for _ in range(count)]

    def frames(self, count: int) -> list[tuple[str, str, bytes]]:
        """Return the types, kinds and bytes of events in protobuf."""
        found = []
        for _ in range(count):
            frame = self.chunk()
            assert int.from_bytes(frame[:4], "big") == len(frame) - 4
            event = read(frame[4:])
            found.append((event[1][0].decode(), *unwrapped(read(event[2][0])[1][0])))
        return found

    def close(self) -> None:
        self.file.close()
        self.socket.close()


@pytest.fixture
def connect(server: Server) -> Iterator[Callable[[], Client]]:
    clients: list[Client] = []

    def connect() -> Client:
        clients.append(Client(server.port))
        return clients[-1]

    yield connect
    for client in clients:
        client.close()


@pytest.fixture
def client(connect: Callable[[], Client]) -> Client:
    return connect()


@pytest.fixture
def beside() -> Iterator[ThreadPoolExecutor]:
    with ThreadPoolExecutor(1) as executor:
        yield executor


def versions(pods: list[dict[str, Any]]) -> list[int]:
    return [int(pod["metadata"]["resourceVersion"]) for pod in pods]


def restarts(pod: dict[str, Any]) -> int:
    count: int = pod["status"]["containerStatuses"][0]["restartCount"]
    return count


# --- lists


def test_whole_list_has_all_pods_whatever_the_limit(
    do: Do, client: Client, files: tuple[Path, Path]
) -> None:
    assert do("serve", objects=COUNT, lists="whole") == {"serving": COUNT}
    body = client.json("/api/v1/pods?limit=10")
    assert body["kind"] == "PodList"
    assert body["metadata"] == {"resourceVersion": str(FIRST + COUNT - 1)}
    assert body["items"] == [json.loads(pod) for pod in corpus.records(files[0])]
    assert client.headers["Transfer-Encoding"] == "chunked"


def test_pages_have_as_many_pods_as_asked_for(do: Do, client: Client) -> None:
    do("serve", objects=130, lists="pages")
    sizes, remaining, seen, token = [], [], [], ""
    while True:
        page = client.json(f"/api/v1/pods?limit=50&continue={token}")
        sizes.append(len(page["items"]))
        remaining.append(page["metadata"].get("remainingItemCount"))
        seen += versions(page["items"])
        if not (token := page["metadata"].get("continue", "")):
            break
    assert [50, 50, 30] == sizes
    assert [80, 30, None] == remaining
    assert [FIRST + number for number in range(130)] == seen


def test_token_of_somebody_else_is_a_bad_request(do: Do, client: Client) -> None:
    do("serve", objects=130, lists="pages")
    assert client.get("/api/v1/pods?limit=50&continue=abc") == 400
    assert json.loads(client.body())["reason"] == "BadRequest"


def test_streamed_list_ends_with_a_bookmark(do: Do, client: Client) -> None:
    do("serve", objects=COUNT, lists="stream")
    assert client.get(f"/api/v1/pods?{STREAM}") == 200
    *added, bookmark = client.events(COUNT + 1)
    assert {event["type"] for event in added} == {"ADDED"}
    assert {event["object"]["kind"] for event in added} == {"Pod"}
    assert [FIRST + n for n in range(COUNT)] == versions([event["object"] for event in added])
    assert bookmark["type"] == "BOOKMARK"
    assert bookmark["object"]["metadata"] == {
        "resourceVersion": str(FIRST + COUNT - 1),
        "annotations": {"k8s.io/initial-events-end": "true"},
    }


@pytest.mark.parametrize("lists", ["whole", "pages"])
def test_streamed_list_is_refused_where_there_is_none(do: Do, client: Client, lists: str) -> None:
    do("serve", objects=COUNT, lists=lists)
    assert client.get(f"/api/v1/pods?{STREAM}") == 422
    status = json.loads(client.body())
    assert ("Invalid", 422) == (status["reason"], status["code"])
    assert len(client.json("/api/v1/pods?limit=500")["items"]) == COUNT  # same connection


@pytest.mark.parametrize("lists", ["whole", "pages"])
def test_pods_beyond_the_file_are_others(do: Do, client: Client, lists: str) -> None:
    do("serve", objects=3 * COUNT - 7, lists=lists)
    pods = client.json("/api/v1/pods")["items"]
    assert [FIRST + n for n in range(3 * COUNT - 7)] == versions(pods)
    names = {(pod["metadata"]["namespace"], pod["metadata"]["name"]) for pod in pods}
    assert len(pods) == len(names) == len({pod["metadata"]["uid"] for pod in pods})
    nodes = {pod["spec"]["nodeName"] for pod in pods}
    assert len(nodes) == 3 * COUNT // corpus.PODS_PER_NODE


def test_namespaces_have_twenty_pods_each(do: Do, client: Client) -> None:
    do("serve", objects=60, namespaces=3)
    seen = []
    for number in range(3):
        pods = client.json(f"/api/v1/namespaces/bench-{number}/pods")["items"]
        assert {pod["metadata"]["namespace"] for pod in pods} == {f"bench-{number}"}
        seen += versions(pods)
    assert [FIRST + n for n in range(60)] == seen
    assert client.get("/api/v1/namespaces/bench-3/pods") == 404
    assert json.loads(client.body())["reason"] == "NotFound"


def test_namespaces_need_pods(do: Do) -> None:
    assert do("serve", objects=59, namespaces=3) == {
        "error": "3 namespaces need 60 objects, not 59"
    }


# --- events


def test_blast_sends_the_next_events_in_order(
    do: Do, client: Client, beside: ThreadPoolExecutor
) -> None:
    do("serve", objects=150)
    before = client.json("/api/v1/pods")["items"]
    client.get("/api/v1/pods?watch=1&resourceVersion=1")
    for start in (0, 400):
        assert do("prepare", events=400) == {"prepared": 400}
        answer = beside.submit(do, "blast", watchers=1)
        events = client.events(400)
        assert {event["type"] for event in events} == {"MODIFIED"}
        pods = [event["object"] for event in events]
        assert [FIRST + 150 + start + k for k in range(400)] == versions(pods)
        for k, pod in enumerate(pods, start):
            assert before[k % 150]["metadata"]["uid"] == pod["metadata"]["uid"]
            assert (restarts(before[k % 150]) + k // 150 + 1) % 10 == restarts(pod)
        sent = answer.result(20)
        assert sent["sent"] == 400
        assert sent["began"] < sent["ended"]


def test_blast_reaches_all_watches(
    do: Do, connect: Callable[[], Client], beside: ThreadPoolExecutor
) -> None:
    do("serve", objects=COUNT)
    do("prepare", events=300)
    answer = beside.submit(do, "blast", watchers=3)  # waits for the watches
    clients = [connect() for _ in range(3)]
    for client in clients:
        client.get("/api/v1/pods?watch=true")
    with ThreadPoolExecutor(3) as readers:
        seen = list(readers.map(lambda client: client.events(300), clients))
    assert seen[0] == seen[1] == seen[2]
    assert answer.result(20)["sent"] == 300


def test_watches_of_namespaces_get_the_events_of_their_pods(
    do: Do, connect: Callable[[], Client], beside: ThreadPoolExecutor
) -> None:
    do("serve", objects=40, namespaces=2)
    do("prepare", events=80)
    clients = [connect(), connect()]
    for number, client in enumerate(clients):
        client.get(f"/api/v1/namespaces/bench-{number}/pods?watch=true")
    answer = beside.submit(do, "blast", watchers=2)
    for number, client in enumerate(clients):
        pods = [event["object"] for event in client.events(40)]
        assert {pod["metadata"]["namespace"] for pod in pods} == {f"bench-{number}"}
        first = FIRST + 40 + 20 * number
        assert [*range(first, first + 20), *range(first + 40, first + 60)] == versions(pods)
    assert answer.result(20)["sent"] == 80


def test_pace_stamps_events_with_the_time(do: Do, client: Client) -> None:
    do("serve", objects=8)
    client.get("/api/v1/pods?watch=true")
    answer = do("pace", events=20, per_second=1000, watchers=1)
    pods = [event["object"] for event in client.events(20)]
    assert [FIRST + 8 + k for k in range(20)] == versions(pods)
    times = [int(pod["metadata"]["annotations"][corpus.SENT]) for pod in pods]
    assert sorted(times) == times
    assert answer["began"] <= times[0] <= times[-1] <= answer["ended"]
    assert times[-1] - answer["began"] >= 18_000_000  # 19 ms, by another clock


def test_blast_waits_no_longer_than_it_may(do: Do) -> None:
    do("serve", objects=8)
    do("prepare", events=1)
    answer = do("blast", watchers=2, timeout=0.01)
    assert answer == {"error": "waited 0.01 s for 2 watches, 0 are open"}


def test_client_that_goes_away_in_a_blast_is_an_error(
    do: Do, client: Client, beside: ThreadPoolExecutor
) -> None:
    do("serve", objects=COUNT)
    do("prepare", events=5000)  # more than sockets keep
    client.get("/api/v1/pods?watch=true")
    answer = beside.submit(do, "blast", watchers=1)
    client.events(3)
    client.close()
    assert "1 of 1 watches failed: the client" in answer.result(20)["error"]
    assert do("prepare", events=1) == {"prepared": 1}


def test_expired_watches_list_the_latest_state(
    do: Do, client: Client, beside: ThreadPoolExecutor
) -> None:
    do("serve", objects=100)
    client.get("/api/v1/pods?watch=true")
    do("prepare", events=250)
    answer = beside.submit(do, "blast", watchers=1)
    pods = {event["object"]["metadata"]["uid"]: event["object"] for event in client.events(250)}
    answer.result(20)
    do("pace", events=1, per_second=10)
    (last,) = client.events(1)
    pods[last["object"]["metadata"]["uid"]] = last["object"]
    assert do("expire") == {"expired": 1}
    (error,) = client.events(1)
    assert ("ERROR", "Expired", 410) == (
        error["type"],
        error["object"]["reason"],
        error["object"]["code"],
    )
    assert client.chunk() == b""
    body = client.json("/api/v1/pods")  # on the same connection
    assert body["metadata"]["resourceVersion"] == last["object"]["metadata"]["resourceVersion"]
    expected = [
        {key: value for key, value in pod.items() if key not in {"kind", "apiVersion"}}
        for pod in pods.values()
    ]
    assert expected == body["items"]
    client.get("/api/v1/pods?watch=true")
    do("pace", events=1, per_second=10)
    (event,) = client.events(1)
    assert [FIRST + 100 + 251] == versions([event["object"]])


def test_bookmark_has_the_latest_version(do: Do, client: Client) -> None:
    do("serve", objects=10)
    client.get("/api/v1/pods?watch=true&allowWatchBookmarks=true")
    do("pace", events=1, per_second=10)
    assert do("bookmark") == {"bookmarked": 1}
    _, bookmark = client.events(2)
    assert bookmark["type"] == "BOOKMARK"
    assert bookmark["object"]["metadata"] == {"resourceVersion": str(FIRST + 10)}


def test_who_did_not_ask_for_bookmarks_gets_none(do: Do, client: Client) -> None:
    do("serve", objects=10)
    client.get("/api/v1/pods?watch=true")
    do("pace", events=1, per_second=10)
    assert do("bookmark") == {"bookmarked": 0}


def test_events_that_were_prepared_before_others_are_not_sent(do: Do, client: Client) -> None:
    do("serve", objects=10)
    client.get("/api/v1/pods?watch=true")
    do("prepare", events=5)
    do("pace", events=1, per_second=10)
    assert "nothing is prepared" in do("blast")["error"]


# --- protobuf


def test_lists_in_protobuf_have_the_pods(do: Do, client: Client, files: tuple[Path, Path]) -> None:
    do("serve", objects=COUNT)
    assert client.get("/api/v1/pods", accept=f"{PROTOBUF},application/json") == 200
    assert client.headers["Content-Type"] == PROTOBUF
    kind, raw = unwrapped(client.body())
    pods = read(raw)
    assert kind == "PodList"
    assert pods[2] == list(corpus.records(files[1]))
    metadata = read(pods[1][0])
    assert metadata[2] == [str(FIRST + COUNT - 1).encode()]
    assert metadata[3] == [b""]


def test_pages_in_protobuf_show_what_json_shows(do: Do, client: Client) -> None:
    do("serve", objects=2 * COUNT, lists="pages")
    json_page = client.json("/api/v1/pods?limit=250")
    client.get("/api/v1/pods?limit=250", accept=PROTOBUF)
    _, raw = unwrapped(client.body())
    metadata = read(read(raw)[1][0])
    assert metadata[3] == [json_page["metadata"]["continue"].encode()]
    assert int(proto_wire._read_varint(metadata[4][0], 0)[0]) == 2 * COUNT - 250
    shown = [
        (pod["metadata"]["namespace"], pod["metadata"]["name"], version)
        for pod, version in zip(json_page["items"], versions(json_page["items"]), strict=True)
    ]
    assert shown == [key_of(pod) for pod in read(raw)[2]]
    uids = [pod["metadata"]["uid"].encode() for pod in json_page["items"]]
    assert uids == [metadata_of(pod)[5][0] for pod in read(raw)[2]]
    nodes = [pod["spec"]["nodeName"].encode() for pod in json_page["items"]]
    assert nodes == [read(read(pod)[2][0])[10][0] for pod in read(raw)[2]]


def test_watches_in_protobuf_tell_what_json_tells(
    do: Do, connect: Callable[[], Client], beside: ThreadPoolExecutor
) -> None:
    do("serve", objects=50, lists="stream")
    plain, proto = connect(), connect()
    plain.get(f"/api/v1/pods?{STREAM}")
    proto.get(f"/api/v1/pods?{STREAM}", accept=PROTOBUF)
    assert proto.headers["Content-Type"] == f"{PROTOBUF};stream=watch"
    do("prepare", events=120)
    answer = beside.submit(do, "blast", watchers=2)
    with ThreadPoolExecutor(1) as reader:
        expected = reader.submit(plain.events, 171)
        frames = proto.frames(171)
    answer.result(20)
    for event, (kind, of, pod) in zip(expected.result(20), frames, strict=True):
        assert (event["type"], "Pod") == (kind, of)
        metadata = event["object"]["metadata"]
        if kind == "BOOKMARK":
            entry = read(metadata_of(pod)[12][0])
            assert {1: [b"k8s.io/initial-events-end"], 2: [b"true"]} == entry
            continue
        assert (
            metadata["namespace"],
            metadata["name"],
            int(metadata["resourceVersion"]),
        ) == key_of(pod)
        running = read(read(read(pod)[3][0])[8][0])
        assert restarts(event["object"]) == running[5][0][0]


def test_paced_events_and_errors_in_protobuf(do: Do, client: Client) -> None:
    do("serve", objects=50)
    client.get("/api/v1/pods?watch=true", accept=f"{PROTOBUF};stream=watch,application/json;q=0.9")
    answer = do("pace", events=1, per_second=10)
    do("expire")
    (kind, _, pod), (error, of, status) = client.frames(2)
    annotations = [read(entry) for entry in metadata_of(pod)[12]]
    (sent,) = (entry[2][0] for entry in annotations if entry[1] == [corpus.SENT.encode()])
    assert kind == "MODIFIED"
    assert answer["began"] <= int(sent) <= answer["ended"]
    assert (error, of) == ("ERROR", "Status")
    fields = read(status)
    assert (fields[2], fields[4]) == ([b"Failure"], [b"Expired"])
    assert proto_wire._read_varint(fields[6][0], 0)[0] == 410
    assert client.chunk() == b""


def test_namespaces_in_protobuf(do: Do, client: Client) -> None:
    do("serve", objects=40, namespaces=2)
    client.get("/api/v1/namespaces/bench-1/pods", accept=PROTOBUF)
    _, raw = unwrapped(client.body())
    keys = [key_of(pod) for pod in read(raw)[2]]
    assert {"bench-1"} == {namespace for namespace, _, _ in keys}
    assert [FIRST + 20 + n for n in range(20)] == [version for _, _, version in keys]


def test_refusals_in_protobuf(do: Do, client: Client) -> None:
    do("serve", objects=40)
    assert client.get(f"/api/v1/pods?{STREAM}", accept=PROTOBUF) == 422
    kind, status = unwrapped(client.body())
    assert (kind, read(status)[4]) == ("Status", [b"Invalid"])


@pytest.mark.parametrize(
    "accept, expected",
    [
        ("", "json"),
        ("*/*", "json"),
        ("text/html", "json"),
        ("proto,json", "proto"),
        ("json,proto", "json"),
        ("json;q=0.5, proto", "proto"),
        ("proto;as=Table;v=v1,json", "json"),
        ("application/*;q=0.1,proto;q=0.2", "proto"),
    ],
)
def test_accept_header_decides(accept: str, expected: str) -> None:
    assert expected == http.preferred(accept, ["json", "proto"])


# --- the rest


@pytest.mark.parametrize(
    "path",
    [
        "/version",
        "/api",
        "/apis",
        "/api/v1",
        "/apis/apiextensions.k8s.io/v1",
        "/apis/apiextensions.k8s.io/v1/customresourcedefinitions",
        "/api/v1/namespaces",
    ],
)
def test_what_clients_ask_on_their_way_is_answered(client: Client, path: str) -> None:
    assert client.json(path)


def test_other_paths_are_not_found(client: Client) -> None:
    assert client.get("/apis/apps/v1/deployments") == 404
    status = json.loads(client.body())
    assert ("Status", "NotFound") == (status["kind"], status["reason"])


def test_selectors_are_refused_rather_than_ignored(do: Do, client: Client) -> None:
    do("serve", objects=5)
    assert client.get("/api/v1/pods?labelSelector=a%3Db") == 400


def test_statistics_count_requests_and_bytes(do: Do, client: Client) -> None:
    do("serve", objects=5, lists="stream")
    body = client.json("/api/v1/pods")
    client.get(f"/api/v1/pods?{STREAM}")
    client.events(6)
    do("pace", events=1, per_second=10)
    found = do("stats")
    assert found.pop("bytes") > 2 * len(json.dumps(body, separators=(",", ":")))
    assert found == {"lists": 1, "watches": 1, "streams": 1, "open": 1}


@pytest.mark.parametrize(
    "line",
    [
        b"{}",
        b"nonsense",
        b'{"do":"dance"}',
        b'{"do":"prepare","events":0}',
        b'{"do":"prepare","events":1}',
    ],
)
def test_commands_that_make_no_sense_are_errors(server: Server, line: bytes) -> None:
    answer = Control(server).answer(line)
    assert answer is not None
    assert answer["error"]


def test_server_closes_what_is_open(server: Server, do: Do, client: Client) -> None:
    do("serve", objects=5)
    client.get("/api/v1/pods?watch=true")
    server.close()
    assert client.file.read() == b""


# --- the programs


def spawned(*arguments: str) -> subprocess.Popen[bytes]:
    command = [sys.executable, "-m", *arguments]
    # Without buffers: of two answers that come at once, the second must be seen by `heard`.
    pipe = subprocess.PIPE
    return subprocess.Popen(command, stdin=pipe, stdout=pipe, cwd=ROOT, bufsize=0)


def tell(program: subprocess.Popen[bytes], **command: object) -> None:
    assert program.stdin is not None
    program.stdin.write(json.dumps(command).encode() + b"\n")
    program.stdin.flush()


def heard(program: subprocess.Popen[bytes]) -> dict[str, Any]:
    """Return the next answer."""
    assert program.stdout is not None
    with selectors.DefaultSelector() as selector:
        selector.register(program.stdout, selectors.EVENT_READ)
        assert selector.select(30), "no answer for 30 s"
    answer: dict[str, Any] = json.loads(program.stdout.readline())
    return answer


@pytest.mark.slow
def test_program_quits_at_the_end_of_its_input(files: tuple[Path, Path]) -> None:
    with spawned("bench.replay", "--json", str(files[0]), "--proto", str(files[1])) as program:
        port = heard(program)["port"]
        tell(program, do="serve", objects=10)
        assert heard(program) == {"serving": 10}
        client = Client(port)
        client.get("/api/v1/pods?watch=true")
        assert program.stdin is not None
        program.stdin.close()
        assert program.wait(20) == 0
        assert client.file.read() == b""
        client.close()


@pytest.mark.slow
@pytest.mark.parametrize(
    "lists, namespaces", [("whole", 0), ("pages", 0), ("stream", 0), ("pages", 5), ("stream", 5)]
)
def test_null_client_counts_what_is_sent(
    files: tuple[Path, Path], lists: str, namespaces: int
) -> None:
    server = spawned("bench.replay", "--json", str(files[0]))
    with server:
        url = f"http://127.0.0.1:{heard(server)['port']}"
        tell(
            server,
            do="serve",
            objects=1000 if not namespaces else 100,
            lists=lists,
            namespaces=namespaces,
        )
        count = heard(server)["serving"]
        options = ("--url", url, "--lists", lists, "--namespaces", str(namespaces))
        with spawned("bench.peers.null_client", *options) as peer:
            assert heard(peer)["ready"]
            tell(peer, do="start", objects=count)
            assert heard(peer) == {"synced": True, "objects": count, "delivered": count}
            watchers = namespaces or 1
            tell(peer, do="expect", events=500)
            assert heard(peer) == {"expecting": 500}
            tell(server, do="prepare", events=500)
            tell(server, do="blast", watchers=watchers)
            assert heard(server) == {"prepared": 500}
            assert heard(server)["sent"] == 500
            assert heard(peer) == {"delivered": 500}
            tell(peer, do="latency", events=20)
            assert heard(peer) == {"expecting": 20}
            tell(server, do="pace", events=20, per_second=2000, watchers=watchers)
            assert heard(server)["sent"] == 20
            ages = heard(peer)
            assert 0 < ages["p50"] <= ages["p99"] <= ages["p999"] <= ages["max"]
            tell(peer, do="relisted")
            assert heard(peer) == {"expecting": "relist"}
            tell(server, do="expire")
            assert heard(server) == {"expired": watchers}
            assert heard(peer) == {"relisted": True, "objects": count}
            tell(peer, do="join")
            assert heard(peer) == {"unsupported": True}
            tell(peer, do="quit")
            assert peer.wait(20) == 0
        tell(server, do="quit")
        assert server.wait(20) == 0
