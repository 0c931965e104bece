"""Attacks by another user of this host; each reports what succeeded, and what was refused and why.

The functions run in a process of that user. A successful attack changes as little as possible.
"""

import ctypes
import os
import socket
from collections.abc import Callable, Iterable, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing, suppress
from functools import partial
from pathlib import Path
from typing import Any

from kazoo.client import KazooClient

from orchestrator.compose import build_client, open_session
from orchestrator.config.settings import Settings
from queues.model.errors import AccessDenied
from tests.another_user import as_another_user
from tests.hostile.powers import powers
from tests.hostile.targets import Target
from tests.jobs_support import python_job

_ANSWER_S = 2.0
_PTRACE_SEIZE = 0x4206
WORDS = ("conf", "cons", "dump", "envi", "mntr", "stat", "wchp")


class Tries:
    """The results of the attempts of one attack."""

    def __init__(self) -> None:
        self.got: list[str] = []
        self.refused: list[str] = []

    def __call__(self, what: str, act: Callable[[], Any], *refusals: type[Exception]) -> None:
        """Make one attempt: any result of `act` is a success; the refusals are the expected errors."""
        expected: tuple[type[Exception], ...] = (PermissionError, *refusals)
        try:
            answer = act()
        except expected as error:
            self.refused.append(f"{what}: {type(error).__name__}")
        except (FileNotFoundError, ProcessLookupError):
            return  # has ended meanwhile
        else:
            self.got.append(f"{what}: {answer!r:.200}")

    def note(self, what: str, *, is_got: bool, answer: object = "") -> None:
        """Record an attempt whose result is known."""
        (self.got if is_got else self.refused).append(f"{what}: {answer!r:.200}")


Attack = Callable[[Target, Tries], None]


# ---------------------------------------------------------------------- files and processes
def reads_and_writes_files(target: Target, tries: Tries) -> None:
    for path in target.files:
        if path in target.folders:
            tries(f"list {path}", partial(os.scandir, path))
            tries(f"write in {path}", (path / "planted").touch)
        else:
            tries(f"read {path}", partial(_opened, path))


def looks_into_processes(target: Target, tries: Tries) -> None:
    for pid in target.pids:
        proc = Path(f"/proc/{pid}")
        for name in ("environ", "maps"):
            tries(f"{name} of {pid}", partial(_first_byte, proc / name))
        tries(f"mem of {pid}", partial(_memory, proc / "mem"))
        for name in ("fd", "map_files"):
            tries(f"{name} of {pid}", partial(os.scandir, proc / name))
        with suppress(FileNotFoundError, ProcessLookupError):
            words = (proc / "cmdline").read_bytes()
            shown = any(secret.encode() in words for secret in target.secrets)
            tries.note(
                f"secrets in the command line of {pid}", is_got=shown, answer=words if shown else "none"
            )


def commands_processes(target: Target, tries: Tries) -> None:
    libc = ctypes.CDLL(None, use_errno=True)
    for pid in target.pids:
        tries(f"signal {pid}", partial(os.kill, pid, 0))
        tries(f"slow down {pid}", partial(os.setpriority, os.PRIO_PROCESS, pid, 19))
        tries(f"bind {pid} to a processor", partial(os.sched_setaffinity, pid, {0}))
        is_traced = libc.ptrace(_PTRACE_SEIZE, pid, 0, 0) == 0
        tries.note(f"trace {pid}", is_got=is_traced, answer=os.strerror(ctypes.get_errno()))


def _opened(path: Path) -> str:
    os.close(os.open(path, os.O_RDONLY))
    return "open"


def _first_byte(path: Path) -> str:
    with path.open("rb") as file:
        if not file.read(1):
            raise ProcessLookupError  # it has ended, and has no memory
    return "read"


def _memory(path: Path) -> str:
    with path.open("rb", buffering=0) as file:
        try:
            file.read(1)
        except OSError:
            return "open"  # nothing is mapped at the address 0
    raise ProcessLookupError


# ---------------------------------------------------------------------- ports
def speaks_http_to_each_port(target: Target, tries: Tries) -> None:
    paths = ("/", "/metrics", "/api/v1/applications", "/json/")
    for port, path, said in _said_by_all(
        target.ports, {path: f"GET {path} HTTP/1.0\r\n\r\n" for path in paths}
    ):
        is_got = said.startswith(b"HTTP/") and b" 200" in said[:20]
        tries.note(f"{path} of port {port}", is_got=is_got, answer=said)


def calls_java_by_each_port(target: Target, tries: Tries) -> None:
    """As PySpark does by Py4J, without the token."""
    call = "c\nz:java.lang.System\ngetenv\nsPATH\ne\n"
    for port, _, said in _said_by_all(target.ports, {"getenv": call}):
        tries.note(f"Java behind port {port}", is_got=said.startswith(b"!y"), answer=said)


def says_four_letters_to_zookeeper(target: Target, tries: Tries) -> None:
    port = int(target.zookeeper.rpartition(":")[2])
    for _, word, said in _said_by_all((port,), {word: word for word in WORDS}):
        tries.note(f"{word} of {port}", is_got=b"not in the whitelist" not in said, answer=said)


def _said_by_all(ports: Iterable[int], requests: Mapping[str, str]) -> list[tuple[int, str, bytes]]:
    """Port, name of the request and answer; sent concurrently, because many ports do not answer."""
    asked = [(port, name) for port in ports for name in requests]
    with ThreadPoolExecutor(16) as threads:
        answers = list(threads.map(lambda each: _said(each[0], requests[each[1]]), asked))
    return [(port, name, said) for (port, name), said in zip(asked, answers, strict=True)]


def _said(port: int, words: str) -> bytes:
    """The answer of a port until it closes or times out."""
    said = b""
    with suppress(OSError), closing(socket.create_connection(("127.0.0.1", port), _ANSWER_S)) as there:
        there.sendall(words.encode())
        while len(said) < 10_000 and (more := there.recv(4096)):
            said += more
            if said.endswith(b"\n"):
                break
    return said


# ---------------------------------------------------------------------- ZooKeeper
def uses_the_nodes_of_zookeeper(target: Target, tries: Tries) -> None:
    """See, read, list, write, create below, open and delete each node."""
    client = _client(target)
    client.start(timeout=30)
    try:
        for path in target.nodes:
            found = powers(client, path)
            tries.note(path, is_got=bool(found), answer=sorted(found) or "NoAuth")
    finally:
        client.stop()
        client.close()


def enqueues_a_job(target: Target, tries: Tries) -> None:
    """With the library, on the root of the victim."""
    root = next(node for node in target.nodes if node.endswith("orchestrator") or "test-" in node)
    settings = Settings(zookeeper_hosts=target.zookeeper, root=root)

    def submit() -> str:
        with open_session(settings, settings.zookeeper_hosts) as session:
            return build_client(session, settings).submit(python_job("pass", name="theirs")).id

    tries("enqueue a job", submit, AccessDenied)


def _client(target: Target) -> Any:
    auth = [("digest", target.digest)] if target.digest else None
    sasl = None
    if target.sasl is not None:
        user, password = target.sasl
        sasl = {"mechanism": "DIGEST-MD5", "username": user, "password": password}
    return KazooClient(target.zookeeper, auth_data=auth, sasl_options=sasl)


# ---------------------------------------------------------------------- all of them
ON_FILES: tuple[Attack, ...] = (reads_and_writes_files,)
ON_PROCESSES: tuple[Attack, ...] = (looks_into_processes, commands_processes)
ON_PORTS: tuple[Attack, ...] = (speaks_http_to_each_port, calls_java_by_each_port)
ON_ZOOKEEPER: tuple[Attack, ...] = (uses_the_nodes_of_zookeeper, enqueues_a_job)
ON_WORDS: tuple[Attack, ...] = (says_four_letters_to_zookeeper,)
ALL = (*ON_FILES, *ON_PROCESSES, *ON_PORTS, *ON_ZOOKEEPER, *ON_WORDS)


def run(attack: Attack, target: Target) -> Tries:
    """Run an attack as another user."""

    def act() -> list[list[str]]:
        tries = Tries()
        attack(target, tries)
        return [tries.got, tries.refused]

    answer = as_another_user(act)
    assert isinstance(answer, list), f"{attack.__name__} is broken: {answer}"
    tries = Tries()
    tries.got, tries.refused = answer
    return tries


def booty(attacks: Iterable[Attack], target: Target) -> dict[str, list[str]]:
    """The successes of each attack by its name; each attack must have made attempts."""
    found = {attack.__name__: run(attack, target) for attack in attacks}
    idle = [name for name, tries in found.items() if not tries.got and not tries.refused]
    assert not idle, f"tried nothing: {idle}"
    return {name: tries.got for name, tries in found.items() if tries.got}
