"""The ensemble: its servers, their clocks and their response times."""

import re
import socket
import statistics
import threading
import time
from collections import defaultdict
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from functools import partial

from pydantic import BaseModel, ConfigDict

from orchestrator.doctor.findings import Finding, FindingKind, Severity
from orchestrator.doctor.snapshot import ClusterSnapshot
from orchestrator.model.times import moment
from queues import (
    Check,
    ClockJump,
    QueueSet,
    Session,
    SessionSettings,
    Tls,
    commit,
    send_four_letter_word,
)

_PORT = 2181  # ZooKeeper's default
_CONNECT_SECONDS = 1.0  # a server that is slower is of no use
_ANSWER_SECONDS = 5.0  # the first handshake of TLS in a busy Java takes more than one
_AT_ONCE = 8  # an ensemble has three to seven servers
_WORD = "srvr"  # the only four-letter word that servers answer by default
_NOT_SERVING, _NOT_LISTED = "not currently serving requests", "not in the whitelist"  # ZooKeeper's words
_MODE = re.compile(r"^Mode: (leader|follower|observer|standalone)\s*$", re.MULTILINE)
_VERSION = re.compile(r"^Zookeeper version: ([0-9][0-9A-Za-z.]{0,20})", re.MULTILINE)


class ServerStatus(BaseModel):
    """One of the configured servers."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    address: str
    reached: bool
    error: str = ""  # why it was not, or why its role is not known
    role: str = ""  # leader, follower, observer or standalone; empty where it says nothing
    version: str = ""  # likewise


def servers(settings: SessionSettings) -> list[ServerStatus]:
    """Each configured server: whether it accepts a connection now, its role and its version."""
    with ThreadPoolExecutor(_AT_ONCE) as pool:
        return list(pool.map(partial(_status, tls=settings.tls), _addresses(settings.hosts)))


def _status(address: str, tls: Tls | None) -> ServerStatus:
    target = _target(address)
    if error := _refusal(target):
        return ServerStatus(address=address, reached=False, error=error)
    return ServerStatus(address=address, reached=True, **_asked(target, tls))


def connection_lines(hosts: str) -> list[str]:
    """A line for each server of an ensemble that did not answer: whether it accepts connections.

    Takes a second at most; empty for one server, which the error names anyway.
    """
    targets = [_target(address) for address in _addresses(hosts)]
    if len(targets) == 1:
        return []
    found = dict[tuple[str, int], str]()
    # Daemons: the lookup of a name has no time limit, and must not delay the end of the command.
    looks = [
        threading.Thread(target=lambda at=target: found.update({at: _refusal(at)}), daemon=True)
        for target in targets
    ]
    deadline = time.monotonic() + _CONNECT_SECONDS
    for look in looks:
        look.start()
    for look in looks:
        look.join(max(0.0, deadline - time.monotonic()))
    return [f"{host}:{port}  {_words(found.get((host, port), 'timed out'))}" for host, port in targets]


def _words(refusal: str) -> str:
    if refusal:
        return f"not reached: {refusal}"
    return "accepts connections, but has no majority or starts"


def _addresses(hosts: str) -> list[str]:
    return list(filter(None, map(str.strip, hosts.partition("/")[0].split(","))))


def _target(address: str) -> tuple[str, int]:
    host, _, port = address.rpartition(":")
    return (host.strip("[]"), int(port)) if host and port.isdecimal() else (address, _PORT)


def _refusal(target: tuple[str, int]) -> str:
    """Why a server accepts no connection; empty if it does."""
    try:
        socket.create_connection(target, _CONNECT_SECONDS).close()
    except OSError as error:
        return error.strerror or str(error)
    return ""


def _asked(target: tuple[str, int], tls: Tls | None) -> dict[str, str]:
    """The role and the version of a server, or the error why it does not say its role."""
    host, port = target
    try:
        answer = send_four_letter_word(f"{host}:{port}", _WORD, _ANSWER_SECONDS, tls)
    except OSError as error:
        return {"error": f"it does not answer {_WORD}: {error}"}
    mode, version = _MODE.search(answer), _VERSION.search(answer)
    if mode is not None:
        return {"role": mode[1], "version": version[1] if version else ""}
    if _NOT_SERVING in answer:
        return {"error": "it serves no requests: it has no majority of the servers, or it starts"}
    refused = _NOT_LISTED in answer
    reason = "the server's 4lw.commands.whitelist lacks it" if refused else "it uses TLS, or is no ZooKeeper"
    return {"error": f"it does not answer {_WORD}: {reason}"}


def check_servers(snapshot: ClusterSnapshot) -> Iterator[Finding]:
    """Servers that accept no connection: clients do not notice while a majority does."""
    for server in servers(snapshot.session.settings):
        if not server.reached:
            what = f"the server {server.address} accepts no connection from this host: {server.error}"
            remedy = "check that it runs: ZooKeeper needs a majority of its servers"
            yield Finding.of(FindingKind.UNREACHABLE_SERVER, snapshot.layout.root, what, remedy)


_TOLERATED_SECONDS = 2.0
_SLOW_MS = 100.0
_READS, _WRITES = 10, 5
_REMEDY = "check the time service (NTP) of that host and of the ZooKeeper servers"


def latencies(session: Session, path: str) -> list[float]:
    """The durations of ten reads of one node in milliseconds, the fastest first."""
    return _timed(lambda: session.exists(path), _READS)


def write_latencies(session: Session, path: str) -> list[float]:
    """The durations of five multis in milliseconds: they take the path of a write, and change nothing."""
    return _timed(lambda: commit(session, [Check(path)]), _WRITES)


def _timed(call: Callable[[], object], times: int) -> list[float]:
    taken = list[float]()
    for _ in range(times):
        before = time.perf_counter()
        call()
        taken.append((time.perf_counter() - before) * 1000)
    return sorted(taken)


def check_latency(snapshot: ClusterSnapshot) -> Iterator[Finding]:
    """A warning if reads or writes are slow, otherwise a note with the figures."""
    session, path = snapshot.session, snapshot.layout.root
    taken = {"reads": latencies(session, path)}
    if session.exists(path) is not None:  # otherwise the tree was not created yet
        taken["writes"] = write_latencies(session, path)
    medians = {what: statistics.median(times) for what, times in taken.items()}
    what = "; ".join(
        f"{len(times)} {what} took {times[0]:.1f} to {times[-1]:.1f} ms, median {medians[what]:.1f} ms"
        for what, times in taken.items()
    )
    slow = any(median > _SLOW_MS for median in medians.values())
    remedy = "check the disks and garbage collection of the servers, and the network" if slow else ""
    severity = Severity.WARNING if slow else Severity.NOTE
    yield Finding(kind=FindingKind.ZOOKEEPER_LATENCY, severity=severity, path=path, what=what, remedy=remedy)


def check_own_clock(queue_set: QueueSet) -> Iterator[Finding]:
    """The clock of this host; only the node of the ensemble's clock is written."""
    ahead = time.time() - queue_set.clock.now_ms() / 1000
    if abs(ahead) > _TOLERATED_SECONDS:
        yield _skew(queue_set.layout.clock, "the clock of this host", ahead)


def check_clocks(snapshot: ClusterSnapshot) -> Iterator[Finding]:
    """The clock of this host, and those of workers by the times in the nodes that they created."""
    yield from check_own_clock(snapshot.queue_set)
    if jumped := ClockJump(snapshot.session, snapshot.layout).found_ms() / 1000:
        how = "ahead" if jumped > 0 else "behind"
        what = (
            f"ZooKeeper's clock jumped {abs(jumped):.1f} s {how}; programs that saw it keep the time before"
        )
        yield Finding.of(FindingKind.CLOCK_SKEW, snapshot.layout.clock_jump, what, _REMEDY)
    locks = defaultdict[str, list[float]](list)
    for lock in snapshot.locks.values():
        locks[lock.worker].append(_ahead(lock.since, lock.created))
    leader, serving = snapshot.leader, defaultdict[str, list[float]](list)
    for consumer in (consumer for consumers in snapshot.consumers.values() for consumer in consumers):
        if consumer.text("since"):
            serving[consumer.name].append(_ahead(consumer.text("since"), consumer.created))
    for worker in snapshot.workers:
        # An announcement is created anew with each session, and a lock keeps its document when its job moves
        # to another pool: their `since` may be old, so only one from the future proves anything. The leader
        # and consumers write `since` when they create the node. A node that took long to arrive seems to be
        # behind, so the latest one counts.
        ahead = max(0.0, _ahead(worker.text("since"), worker.created), *locks[worker.name])
        if serving[worker.name]:
            ahead = max(serving[worker.name])
        if leader is not None and leader.name == worker.name and leader.text("since"):
            ahead = _ahead(leader.text("since"), leader.created)
        if abs(ahead) > _TOLERATED_SECONDS:
            yield _skew(worker.path, f"the clock of {worker.name} on {worker.text('host')}", ahead)


def _skew(path: str, whose: str, ahead: float) -> Finding:
    how = "ahead of" if ahead > 0 else "behind"
    what = f"{whose} is {abs(ahead):.1f} s {how} that of ZooKeeper; times in logs and records do not match"
    return Finding.of(FindingKind.CLOCK_SKEW, path, what, _REMEDY)


def _ahead(since: str, created_ms: int) -> float:
    """The seconds by which a time of a host is later than the ensemble's; 0 for a text that is no time."""
    at = moment(since)
    return 0.0 if at is None else at.timestamp() - created_ms / 1000
