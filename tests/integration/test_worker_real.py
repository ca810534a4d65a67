"""A worker on a real engine: its box, its ends, and what it can't do to init or to the host."""

from __future__ import annotations

import dataclasses
import json
import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from harness.execution.engine.docker_images import DockerImageEngine
from harness.execution.worker.run_operation import run_operation
from harness.execution.worker.sweep import sweep
from harness.model.limits import MIB
from tests.fakes.bench import SMALL, Bench, Ran, Scenario, real_engine, real_image
from tests.fakes.group_socket import open_to_its_group

pytestmark = pytest.mark.docker

PROJECT = Path(__file__).resolve().parent.parent.parent


@pytest.fixture(scope="module")
def engine() -> Iterator[DockerImageEngine]:
    engine = real_engine()
    yield engine
    engine.close()


@pytest.fixture
def bench(engine: DockerImageEngine, tmp_path: Path) -> Iterator[Bench]:
    made = Bench(engine, real_image(), tmp_path, real=True)
    yield made
    sweep(engine, made.state, lambda _run: False)


def run(bench: Bench, code: str, **limits: int) -> Ran:
    scenario = Scenario(code=code, events=())
    return bench.run(scenario, limits=dataclasses.replace(SMALL, **limits))


def ask(bench: Bench, code: str) -> object:
    """Run code that prints JSON."""
    ran = run(bench, code)
    assert str(ran.outcome) == "passed", ran.err
    return json.loads(ran.out)


def running_container(engine: DockerImageEngine, state: str) -> str:
    """Wait for the worker itself: a trial of the overlay, which never starts, comes before it."""
    while True:
        for container in engine.owned(state).containers:
            if (found := engine.inspect(container)) and found.running:
                return container
        time.sleep(0.05)


# --- the box ---


def test_there_is_no_capability_no_new_privilege_and_a_seccomp_filter(bench: Bench) -> None:
    code = """
import json
lines = dict(line.split(':', 1) for line in open('/proc/self/status').read().splitlines())
print(json.dumps({key: lines[key].strip() for key in lines}))
"""
    status = ask(bench, code)
    assert isinstance(status, dict)
    assert {status[f"Cap{kind}"] for kind in ("Inh", "Prm", "Eff", "Bnd", "Amb")} == {"0" * 16}
    assert (status["NoNewPrivs"], status["Seccomp"]) == ("1", "2")
    assert status["Uid"].split()[0] == str(bench.uid)


def test_there_is_no_network_but_loopback(bench: Bench) -> None:
    code = """
import json, os, socket
try:
    socket.create_connection(('192.0.2.1', 80), 3); reached = True
except OSError as error:
    reached = error.strerror
print(json.dumps([os.listdir('/sys/class/net'), reached]))
"""
    assert ask(bench, code) == [["lo"], "Network is unreachable"]


@pytest.mark.alone
@pytest.mark.fault("L072")
def test_the_box_s_own_name_resolves_at_once_and_other_names_fail_at_once(bench: Bench) -> None:
    code = """
import json, socket, time
start = time.monotonic()
own = {socket.gethostbyname(socket.gethostname()) for _ in range(10)}
own_ms = (time.monotonic() - start) * 1000
start = time.monotonic()
try:
    socket.getaddrinfo('example.invalid', 80); found = True
except OSError:
    found = False
print(json.dumps([list(own), own_ms < 100, found, (time.monotonic() - start) < 1]))
"""
    assert ask(bench, code) == [["127.0.0.1"], True, False, True]


def test_every_writable_mount_honours_no_setuid_bit_and_no_device(bench: Bench) -> None:
    code = """
import json
mounts = [line.split() for line in open('/proc/self/mounts')]
print(json.dumps({where: options.split(',') for _, where, _, options, *_ in mounts}))
"""
    mounts = ask(bench, code)
    assert isinstance(mounts, dict)
    for where in ("/workspace", "/tmp", "/home/worker", "/dev/shm"):
        assert {"rw", "nosuid", "nodev"} <= set(mounts[where]), where
    assert "ro" in mounts["/"]


@pytest.mark.fault("L086")
def test_a_uid_without_a_passwd_entry_has_a_home_and_a_name(bench: Bench) -> None:
    code = """
import getpass, json, os, pathlib
home = pathlib.Path.home()
(home / '.cache').mkdir()
print(json.dumps([str(home), getpass.getuser(), oct(home.stat().st_mode & 0o777), os.getcwd()]))
"""
    assert ask(bench, code) == ["/home/worker", "worker", "0o700", "/workspace"]


def test_the_environment_is_exactly_the_seal_s(bench: Bench) -> None:
    code = "import json, os; print(json.dumps(dict(os.environ)))"
    assert ask(bench, code) == dict(bench.operation(("x",)).env)


def test_only_workspace_and_scratch_can_be_written(bench: Bench) -> None:
    code = """
import json, os
def write(folder):
    try:
        open(os.path.join(folder, 'probe'), 'w').close(); return True
    except OSError:
        return False
places = ['/workspace', '/tmp', '/dev/shm', '/home/worker', '/', '/etc', '/usr', '/dev', '/run']
print(json.dumps([place for place in places if write(place)]))
"""
    assert ask(bench, code) == ["/workspace", "/tmp", "/dev/shm", "/home/worker"]


def test_init_can_be_neither_read_nor_written_nor_killed(bench: Bench) -> None:
    code = """
import ctypes, json, os, signal
def refused(path, flags):
    try:
        os.close(os.open(path, flags)); return False
    except PermissionError:
        return True
for number in (signal.SIGKILL, signal.SIGSTOP, signal.SIGTERM, signal.SIGCHLD):
    os.kill(1, number)
ptrace = ctypes.CDLL(None, use_errno=True).ptrace(16, 1, 0, 0)
print(json.dumps([refused('/proc/1/mem', os.O_RDWR), refused('/proc/1/environ', os.O_RDONLY),
                  refused('/proc/1/fd/1', os.O_WRONLY), ptrace]))
"""
    assert ask(bench, code) == [True, True, True, -1]


def test_the_payload_has_no_descriptor_of_init_s(bench: Bench) -> None:
    code = """
import json, os
print(json.dumps({fd: os.readlink(f'/proc/self/fd/{fd}').split(':')[0]
                  for fd in os.listdir('/proc/self/fd') if os.path.exists(f'/proc/self/fd/{fd}')}))
"""
    found = ask(bench, code)
    assert isinstance(found, dict)
    assert found["0"] == "/dev/null"
    assert (found["1"], found["2"]) == ("pipe", "pipe")
    assert set(found) == {"0", "1", "2"}


def test_frames_that_the_payload_prints_are_output_and_nothing_else(bench: Bench) -> None:
    forged = b"X\x00\x00\x00\x02{}F\x00\x00\x00\x00"
    ran = run(bench, f"import sys; sys.stdout.buffer.write({forged!r}); sys.exit(5)")
    assert str(ran.outcome) == "failed(5)"
    assert ran.out == forged


# --- the ends ---


@pytest.mark.fault("L001")
def test_a_timeout_ends_the_whole_process_tree(bench: Bench) -> None:
    code = """
import os, time
for _ in range(3):
    if os.fork() == 0:
        os.setsid()
        while True:
            open('grow', 'a').write('x'); time.sleep(0.05)
time.sleep(60)
"""
    ran = run(bench, code, wall_ms=800)
    assert str(ran.outcome) == "timeout(wall)"
    size = (ran.result.upper / "grow").stat().st_size
    time.sleep(1)
    assert (ran.result.upper / "grow").stat().st_size == size


def test_a_background_process_that_holds_stdout_does_not_hold_the_run(bench: Bench) -> None:
    code = """
import os, time
print('main', flush=True)
if os.fork() == 0:
    os.setsid(); time.sleep(60)
"""
    started = time.monotonic()
    ran = run(bench, code)
    assert str(ran.outcome) == "passed"
    assert ran.out == b"main\n"
    assert time.monotonic() - started < 8


def test_orphans_are_reaped_while_the_payload_runs(bench: Bench) -> None:
    code = """
import os, time
for _ in range(200):
    if os.fork() == 0:
        if os.fork() == 0:
            os._exit(0)
        os._exit(0)
    os.wait()
time.sleep(0.5)
zombies = 0
for name in os.listdir('/proc'):
    if name.isdigit():
        zombies += open(f'/proc/{name}/stat').read().rsplit(')', 1)[1].split()[0] == 'Z'
print(zombies)
"""
    ran = run(bench, code)
    assert ran.out == b"0\n"
    assert str(ran.outcome) == "passed"


@pytest.mark.parametrize(
    ("argv", "code", "errno"), [("/etc/hostname", 126, 13), ("/no/such/program", 127, 2)]
)
def test_what_can_not_be_executed_is_named(bench: Bench, argv: str, code: int, errno: int) -> None:
    ran = bench.run_operation(bench.operation((argv,)))
    assert str(ran.outcome) == f"failed({code}): could not be executed"
    assert ran.result.facts.steps[0].exec_errno == errno


def test_a_text_file_without_a_header_is_not_run_by_a_shell(bench: Bench) -> None:
    make = "import os; open('script', 'w').write('echo ran'); os.chmod('script', 0o755)"
    operation = bench.operation(("python3", "-c", make), ("/workspace/script",))
    ran = bench.run_operation(operation)
    assert str(ran.outcome) == "failed(126): could not be executed"
    assert ran.out == b""


def test_a_step_that_lames_init_makes_the_next_one_fail_and_nothing_pass(bench: Bench) -> None:
    lame = """
import resource, time
resource.prlimit(1, resource.RLIMIT_NOFILE, (0, 0))
for _ in range(5):
    print('still heard', flush=True); time.sleep(0.1)
"""
    ran = bench.run(Scenario(code=lame, events=()), Scenario(code="print('ran')", events=()))
    assert str(ran.outcome) == "failed(126): could not be executed"
    assert ran.outcome.step == 1
    assert ran.result.facts.steps[1].exec_errno == 24
    assert ran.out == b"still heard\n" * 5


@pytest.mark.fault("L015")
def test_a_child_killed_for_memory_is_found_from_the_cgroup(bench: Bench) -> None:
    code = """
import subprocess, sys
subprocess.run([sys.executable, '-c', 'x = bytearray(300 << 20)'])
sys.exit(1)
"""
    ran = run(bench, code, memory_bytes=64 * MIB)
    assert str(ran.outcome) == "oom"
    assert ran.result.facts.finished
    assert ran.result.usage["oom_kills"] >= 1
    assert ran.result.usage["memory_peak_bytes"] > 32 * MIB


def test_a_fork_bomb_is_bounded(bench: Bench) -> None:
    code = """
import os, time
made = 0
while made < 500:
    try:
        if os.fork() == 0:
            time.sleep(60)
            os._exit(0)
    except OSError:
        break
    made += 1
print(made < 64)
"""
    ran = run(bench, code, pids=64)
    assert ran.out == b"True\n"
    assert str(ran.outcome) == "passed"


def test_usage_and_limits_are_read_from_the_kernel(bench: Bench) -> None:
    code = "import time; end = time.process_time() + 0.4\nwhile time.process_time() < end: pass"
    ran = run(bench, code)
    assert ran.result.usage["cpu_ms"] >= 300
    assert ran.result.observed["cgroupMemoryLimit"] == SMALL.memory_bytes
    assert ran.result.observed["cgroupPidsLimit"] == SMALL.pids


@pytest.mark.fault("L018")
def test_a_container_removed_from_outside_is_no_verdict(
    bench: Bench, engine: DockerImageEngine
) -> None:
    other = real_engine()

    def remove() -> None:
        container = running_container(other, bench.state)
        time.sleep(0.7)
        other.remove(container)

    thread = threading.Thread(target=remove)
    thread.start()
    ran = run(bench, "print('before', flush=True); import time; time.sleep(30)")
    thread.join()
    other.close()
    assert str(ran.outcome) == "infra-failure(the container was removed from outside)"
    assert ran.out == b"before\n"


@pytest.mark.fault("L087")
def test_runs_at_once_do_not_share_a_name(bench: Bench) -> None:
    outcomes: list[str] = []

    def one() -> None:
        engine = real_engine()
        mine = Bench(engine, bench.image, bench.folder, real=True)
        outcomes.append(str(run(mine, "print(1)").outcome))
        engine.close()

    threads = [threading.Thread(target=one) for _ in range(5)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert outcomes == ["passed"] * 5


@pytest.mark.fault("L087")
def test_the_same_run_twice_at_once_gets_two_names(bench: Bench) -> None:
    operation = bench.operation(("true",))
    first = run_operation(bench.engine, operation)
    again = bench.folder / "again"
    again.mkdir(mode=0o700)
    second = run_operation(bench.engine, dataclasses.replace(operation, folder=again))
    assert first.facts.finished
    assert second.facts.finished


# --- the controller ---

LOUD = """
import os
chunk = b'x' * (1 << 20)
for _ in range({mib}):
    os.write(1, chunk)
os.write(1, b'END')
"""

CONTROLLER = """
import dataclasses, json, pathlib, re, sys
from harness.model.limits import MIB
from tests.fakes.bench import SMALL, Bench, Scenario, real_engine, real_image
folder, state, code = sys.argv[1:4]
bench = Bench(real_engine(), real_image(), pathlib.Path(folder), real=True)
bench.state = state
limits = dataclasses.replace(SMALL, output_bytes=4096 * MIB, wall_ms=100_000)
ran = bench.run(Scenario(code=code, events=()), limits=limits, keep_bytes=4 * MIB)
# Not getrusage: its peak is inherited from the process that started this one.
status = pathlib.Path("/proc/self/status").read_text()
peak = int(re.search(r"VmHWM:\\s+(\\d+) kB", status)[1]) // 1024
print(json.dumps([str(ran.outcome), ran.result.stdout.record.total_bytes, ran.out[-3:].decode(),
                  len(ran.out), peak]))
"""


def controller(bench: Bench, code: str) -> subprocess.Popen[bytes]:
    """Start a controller in a process of its own."""
    return subprocess.Popen(
        [sys.executable, "-c", CONTROLLER, str(bench.folder), bench.state, code],
        cwd=PROJECT,
        env={**os.environ, "PYTHONPATH": str(PROJECT)},
        stdout=subprocess.PIPE,
    )


@pytest.mark.fault("L022")
@pytest.mark.timeout(180)
def test_a_gigabyte_on_one_line_costs_the_controller_little_memory(bench: Bench) -> None:
    process = controller(bench, LOUD.format(mib=1024))
    out, _ = process.communicate(timeout=170)
    outcome, total, end, stored, peak = json.loads(out)
    assert (outcome, total, end) == ("passed", 1024 * MIB + 3, "END")
    assert stored < 9 * MIB
    assert peak < 150


@pytest.mark.fault("L006")
def test_a_killed_controller_s_container_ends_by_itself_and_is_swept(
    bench: Bench, engine: DockerImageEngine
) -> None:
    process = controller(bench, "import time; time.sleep(600)")
    container = running_container(engine, bench.state)
    time.sleep(0.7)
    process.send_signal(signal.SIGKILL)
    process.communicate()
    state = engine.wait(container, 10)
    assert state is not None
    assert not state.running
    swept = sweep(engine, bench.state, lambda _run: False)
    assert swept.containers == (container,)
    assert len(swept.volumes) == len(swept.runs) == 1
    assert swept.problems == ()
    assert engine.owned(bench.state).volumes == {}


def test_an_onlooker_that_never_returns_does_not_stop_the_clock(bench: Bench) -> None:
    stuck = threading.Event()

    def wait(_stream: str, _data: bytes) -> None:
        stuck.wait(60)

    code = "import time\nwhile True: print('x' * 1000, flush=True); time.sleep(0.01)"
    started = time.monotonic()
    ran = bench.run(
        Scenario(code=code, events=()),
        limits=dataclasses.replace(SMALL, wall_ms=1500),
        sink=wait,
    )
    stuck.set()
    assert str(ran.outcome) == "timeout(wall)"
    assert time.monotonic() - started < 12


PLAIN_USER = """
import encodings.ascii, json, os, pathlib, sys, tempfile
from tests.fakes.bench import Bench, Scenario, real_engine, real_image
state, user, group = sys.argv[1], int(sys.argv[2]), int(sys.argv[3])
engine, image = real_engine(), real_image()
folder = pathlib.Path(tempfile.mkdtemp())
os.chown(folder, user, user)
os.setgroups([group])
os.setgid(user)
os.setuid(user)
bench = Bench(engine, image, folder, real=True)
bench.state = state
code = "import os; os.remove('keep.txt'); os.makedirs('shut/in'); os.chmod('shut', 0)"
ran = bench.run(Scenario(code=code, events=()))
work = ran.result.workspace_folder / 'work' / 'work'
owner = work.lstat().st_uid
bench.remove(ran)
print(json.dumps([str(ran.outcome), owner, ran.result.workspace_folder.exists()]))
for path in sorted(folder.rglob('*'), reverse=True):
    path.rmdir() if path.is_dir() else path.unlink()
folder.rmdir()
"""


@pytest.mark.root
def test_a_plain_user_can_remove_what_the_kernel_left_to_root(
    bench: Bench, engine: DockerImageEngine
) -> None:
    if os.geteuid() != 0:
        pytest.skip("needs root, to become a plain user of the engine's group")
    with open_to_its_group(engine.url) as socket:
        done = subprocess.run(
            [sys.executable, "-c", PLAIN_USER, bench.state, "61234", str(socket.stat().st_gid)],
            cwd=PROJECT,
            env={**os.environ, "PYTHONPATH": str(PROJECT), "DOCKER_HOST": f"unix://{socket}"},
            stdout=subprocess.PIPE,
            check=True,
            timeout=60,
        )
    assert json.loads(done.stdout) == ["passed", 0, False]
    assert bench.engine.owned(bench.state).volumes == {}
