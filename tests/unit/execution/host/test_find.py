from __future__ import annotations

import http.server
import socket
import socketserver
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

from harness.errors import EngineUnreachableError, InputError
from harness.execution.engine.tls import TlsFiles
from harness.execution.host.find import EngineAddress, engine_candidates, find_engine
from harness.execution.host.ping import Answer, Reply, check_address, ping
from harness.store.state import StateFolder

SYSTEM = "unix:///var/run/docker.sock"


@pytest.fixture
def state(tmp_path: Path) -> StateFolder:
    return StateFolder(tmp_path)


def test_the_order_is_the_systems_the_users_and_ours(state: StateFolder) -> None:
    urls = [item.url for item in engine_candidates({"XDG_RUNTIME_DIR": "/run/user/7"}, state)]
    assert urls[:2] == [SYSTEM, "unix:///run/user/7/docker.sock"]
    assert urls[2].startswith("unix:///run/harness-")
    assert len(urls[2].removeprefix("unix://").encode()) <= 107


def test_where_the_user_chose_nothing_else_counts(state: StateFolder) -> None:
    environment = {"DOCKER_HOST": "tcp://127.0.0.1:9", "XDG_RUNTIME_DIR": "/run/user/7"}
    assert [item.url for item in engine_candidates(environment, state)] == ["tcp://127.0.0.1:9"]


@pytest.mark.parametrize("host", ["10.0.0.1", "example.org", "[2001:db8::1]"])
def test_tcp_to_another_host_needs_tls(state: StateFolder, host: str) -> None:
    with pytest.raises(InputError, match="DOCKER_HOST: expected TLS to another host") as caught:
        engine_candidates({"DOCKER_HOST": f"tcp://{host}:2375"}, state)
    assert "DOCKER_TLS_VERIFY=1" in caught.value.hint


@pytest.mark.parametrize("host", ["127.0.0.1", "localhost", "[::1]"])
def test_plain_tcp_on_loopback_will_do(state: StateFolder, host: str) -> None:
    (found,) = engine_candidates({"DOCKER_HOST": f"tcp://{host}:2375"}, state)
    assert found.tls is None


def test_ssh_is_refused_with_the_command_that_helps(state: StateFolder) -> None:
    with pytest.raises(InputError, match="ssh:// is not spoken here") as caught:
        engine_candidates({"DOCKER_HOST": "ssh://me@there"}, state)
    assert "ssh -nNT -L" in caught.value.hint


def certificates(folder: Path, *names: str) -> Path:
    folder.mkdir(parents=True)
    for name in names:
        (folder / name).write_text("PEM")
    return folder


def test_tls_comes_from_the_folder_that_docker_would_use(
    state: StateFolder, tmp_path: Path
) -> None:
    all_three = ("ca.pem", "cert.pem", "key.pem")
    named = certificates(tmp_path / "named", *all_three)
    home = certificates(tmp_path / "home" / ".docker", "ca.pem")
    chosen = {"DOCKER_HOST": "tcp://10.0.0.1:2376", "DOCKER_TLS_VERIFY": "1"}
    (by_name,) = engine_candidates({**chosen, "DOCKER_CERT_PATH": str(named)}, state)
    assert by_name.tls == TlsFiles(
        ca=named / "ca.pem", cert=named / "cert.pem", key=named / "key.pem"
    )
    (by_home,) = engine_candidates({**chosen, "HOME": str(home.parent)}, state)
    assert by_home.tls == TlsFiles(ca=home / "ca.pem", cert=None, key=None)


@pytest.mark.parametrize(
    ("names", "message"),
    [((), "no ca.pem in"), (("ca.pem", "key.pem"), "expected cert.pem and key.pem in")],
)
def test_tls_files_that_are_not_there_are_named(
    state: StateFolder, tmp_path: Path, names: tuple[str, ...], message: str
) -> None:
    folder = certificates(tmp_path / "certs", *names)
    environment = {
        "DOCKER_HOST": "tcp://10.0.0.1:2376",
        "DOCKER_TLS_VERIFY": "1",
        "DOCKER_CERT_PATH": str(folder),
    }
    with pytest.raises(InputError, match=message):
        engine_candidates(environment, state)


def test_tls_files_that_hold_something_else_are_named(tmp_path: Path) -> None:
    folder = certificates(tmp_path / "certs", "ca.pem")
    tls = TlsFiles(ca=folder / "ca.pem", cert=None, key=None)
    with pytest.raises(InputError, match=r"the TLS files beside .* can't be used"):
        ping("tcp://127.0.0.1:1", tls)


def test_two_state_folders_never_share_an_engine(tmp_path: Path) -> None:
    one, two = (engine_candidates({}, StateFolder(tmp_path / name))[-1] for name in "ab")
    assert one != two


def test_the_first_that_answers_is_taken(state: StateFolder) -> None:
    def ask(address: EngineAddress) -> Reply:
        return Reply("denied") if address.url == SYSTEM else Reply("answers", "1.43")

    found = find_engine({"XDG_RUNTIME_DIR": "/run/user/7"}, state, ask=ask)
    assert found.origin == "your rootless engine"


@pytest.mark.parametrize(
    ("answer", "words"),
    [
        ("denied", "this user may not use it (fix: ask an administrator to add you to the group"),
        ("silent", "nobody answers"),
        ("unverified", "TLS could not verify one of the two ends"),
        ("other", "what answers is not a Docker Engine"),
        ("too-old", "its API is older than 1.41"),
    ],
)
def test_each_reason_is_told_apart(state: StateFolder, answer: Answer, words: str) -> None:
    with pytest.raises(EngineUnreachableError, match="none that can be used") as caught:
        find_engine({}, state, ask=lambda at: Reply(answer if at.url == SYSTEM else "absent"))
    assert words in str(caught.value.issues[0])


def test_a_host_without_any_says_how_to_get_one(state: StateFolder) -> None:
    with pytest.raises(EngineUnreachableError, match="engine: none on this host") as caught:
        find_engine({}, state, ask=lambda _: Reply("absent"))
    assert "harness setup" in caught.value.hint
    assert caught.value.exit_code == 6


@pytest.mark.parametrize(
    "url",
    [
        "",
        "unix://relative",
        "unix:",
        "tcp://",
        "tcp://host",
        "tcp://host:x",
        "tcp://[::1",
        "ssh://a",
        "npipe:////./pipe/docker",
        "/var/run/docker.sock",
    ],
)
def test_an_address_of_another_form_is_refused(url: str) -> None:
    with pytest.raises(InputError, match="engine address: expected unix:///path or tcp"):
        check_address(url)


class _Server(socketserver.ThreadingMixIn, socketserver.UnixStreamServer):
    daemon_threads = True


class _Handler(http.server.BaseHTTPRequestHandler):
    version = "1.43"
    body = b"OK"
    status = 200

    def do_GET(self) -> None:
        self.send_response(self.status)
        self.send_header("Api-Version", self.version)
        self.end_headers()
        self.wfile.write(self.body)

    def log_message(self, *_: object) -> None:
        return

    def address_string(self) -> str:
        return "test"


@pytest.fixture
def handler() -> type[_Handler]:
    return type("Handler", (_Handler,), {})


@pytest.fixture
def url(tmp_path: Path, handler: type[_Handler]) -> Iterator[str]:
    path = tmp_path / "s"
    with _Server(str(path), handler) as server:
        thread = threading.Thread(target=server.serve_forever, args=(0.01,))
        thread.start()
        yield f"unix://{path}"
        server.shutdown()
        thread.join()


@pytest.mark.parametrize(
    ("answer", "reply"),
    [
        (("1.43", b"OK", 200), Reply("answers", "1.43")),
        (("1.41", b"OK", 200), Reply("answers", "1.41")),
        (("1.40", b"OK", 200), Reply("too-old", "1.40")),
        (("2.0", b"OK", 200), Reply("answers", "2.0")),
        (("", b"OK", 200), Reply("other")),
        (("1.43", b"hello", 200), Reply("other")),
        (("1.43", b"OK", 500), Reply("other")),
    ],
)
def test_an_answer_is_judged(
    handler: type[_Handler], url: str, answer: tuple[str, bytes, int], reply: Reply
) -> None:
    handler.version, handler.body, handler.status = answer
    assert ping(url) == reply


def test_nothing_at_the_address_is_absent_and_a_socket_without_a_server_is_silent(
    tmp_path: Path,
) -> None:
    assert ping(f"unix://{tmp_path / 'none'}") == Reply("absent")
    with socket.socket(socket.AF_UNIX) as dead:
        dead.bind(str(tmp_path / "dead"))
    assert ping(f"unix://{tmp_path / 'dead'}") == Reply("silent")


def test_what_speaks_no_http_is_other(tmp_path: Path) -> None:
    class Babble(socketserver.BaseRequestHandler):
        def handle(self) -> None:
            self.request.recv(100)
            self.request.sendall(b"SSH-2.0-x\r\n\r\n")

    with _Server(str(tmp_path / "s"), Babble) as server:
        thread = threading.Thread(target=server.serve_forever, args=(0.01,))
        thread.start()
        assert ping(f"unix://{tmp_path / 's'}") == Reply("other")
        server.shutdown()
        thread.join()
