"""Each fault of the nemesis, on a real server and actors that only write."""

import random
import sys
import threading
from collections.abc import Iterator
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path

import psutil
import pytest
from kazoo.client import KazooClient

from tests.chaos.actor_process import ActorProcess
from tests.chaos.damage import Spoiler
from tests.chaos.ensemble_support import BreakableEnsemble, ensemble_offset_ms
from tests.chaos.events import Event, Kind
from tests.chaos.faults import (
    CloseSession,
    Corrupt,
    CutDownstream,
    CutUpstream,
    DropReply,
    KillLeader,
    Refuse,
    Restart,
    RestartServers,
    ShiftClock,
    SigCont,
    SigKill,
    SigStop,
)
from tests.chaos.history import History, read_history
from tests.chaos.link import Direction
from tests.chaos.nemesis import Nemesis
from tests.chaos.proxy import FaultProxy, ProxyLoop
from tests.chaos.schedule import Planned
from tests.servers.zookeeper import zookeeper_client
from tests.waiting import wait_until

SESSION_S = 2.0
LONG_S = 60  # healed by the test


@dataclass
class Arena:
    """One actor `a` that writes without end, and a nemesis for it."""

    actor: ActorProcess
    nemesis: Nemesis
    history: History
    direct: KazooClient

    def events(self, kind: Kind) -> list[Event]:
        if not self.actor.history_file.exists():
            return []
        return [event for event in read_history(self.actor.history_file) if event.kind is kind]

    def wait_for_writes(self) -> None:
        """Wait until the actor writes successfully again."""
        before = len(self.events(Kind.STEP_ACKED))
        wait_until(lambda: len(self.events(Kind.STEP_ACKED)) > before + 2, 30, "the actor writes")

    def results(self) -> list[str]:
        events = read_history(self.history.path)
        return [f"{it.extra['fault']}: {it.extra['result']}" for it in events if it.kind is Kind.FAULT]


def arena_at(stack: ExitStack, hosts: str, root: str, folder: Path) -> Arena:
    direct = stack.enter_context(zookeeper_client(hosts))
    direct.ensure_path(f"{root}/jobs/00/a")
    proxy = stack.enter_context(FaultProxy(stack.enter_context(ProxyLoop()), hosts))
    command = [sys.executable, "-m", "tests.chaos.echo_actor", "a"]
    arguments = [str(folder), proxy.address, root, str(SESSION_S)]
    actor = stack.enter_context(ActorProcess("a", folder, proxy, [*command, *arguments]))
    history = stack.enter_context(History(folder, "nemesis"))
    spoiler = Spoiler(direct, root, history, random.Random(1))  # noqa: S311 - chosen to be repeatable
    made = Arena(actor, Nemesis({"a": actor}, history, hosts, spoil=spoiler.spoil), history, direct)
    made.wait_for_writes()
    return made


@pytest.fixture
def arena(zookeeper_hosts: str, zookeeper_root: str, tmp_path: Path) -> Iterator[Arena]:
    with ExitStack() as stack:
        made = arena_at(stack, zookeeper_hosts, zookeeper_root, tmp_path)
        yield made
        assert made.nemesis.failures == []
        made.nemesis.recover()
        assert made.actor.stop() == 0


def test_a_killed_actor_comes_back_as_another_process(arena: Arena) -> None:
    before = arena.actor.pid
    arena.nemesis.apply(SigKill("a"))
    wait_until(lambda: arena.actor.exit_code == -9, 5, "the process is gone")
    arena.nemesis.apply(Restart("a"))
    arena.wait_for_writes()
    assert arena.actor.pid != before
    assert [event.extra["pid"] for event in arena.events(Kind.STARTED)] == [before, arena.actor.pid]
    assert {event.incarnation for event in arena.events(Kind.STEP_ACKED)} == {0, 1}


def test_a_stopped_actor_does_nothing_until_it_is_resumed(arena: Arena) -> None:
    process = psutil.Process(arena.actor.pid)
    arena.nemesis.apply(SigStop("a"))
    wait_until(lambda: process.status() == psutil.STATUS_STOPPED, 5, "the process is stopped")
    arena.nemesis.apply(SigCont("a"))
    arena.wait_for_writes()


def test_what_the_nemesis_left_broken_is_whole_after_recover(arena: Arena) -> None:
    arena.nemesis.apply(CutUpstream("a", LONG_S))
    arena.nemesis.apply(SigStop("a"))
    arena.nemesis.recover()
    arena.wait_for_writes()
    arena.nemesis.apply(SigKill("a"))
    arena.nemesis.recover()
    arena.wait_for_writes()
    assert arena.results()[1:] == ["sigstop: done", "sigcont: done", "sigkill: done", "restart: done"]


def test_a_closed_session_is_lost_to_its_owner(arena: Arena) -> None:
    before = arena.actor.credentials()
    arena.nemesis.apply(CloseSession("a"))
    wait_until(lambda: arena.actor.credentials() != before, 20, "the actor has another session")
    arena.wait_for_writes()
    assert arena.results() == ["close_session: done"]


def test_a_dropped_reply_leaves_a_request_without_an_answer(arena: Arena) -> None:
    arena.nemesis.apply(DropReply("a"))
    wait_until(lambda: arena.events(Kind.LOST), 10, "the actor misses a reply")
    assert arena.events(Kind.LOST)[0].extra["why"] == "ConnectionLoss"
    assert arena.actor.proxy.counters.replies_dropped == 1
    arena.wait_for_writes()


def test_an_actor_that_is_cut_off_is_back_afterwards(arena: Arena) -> None:
    arena.nemesis.apply(Refuse("a", 0.5))
    wait_until(lambda: arena.actor.proxy.counters.refused, 10, "the actor is refused")
    arena.wait_for_writes()


def test_silence_holds_back_one_direction(arena: Arena) -> None:
    for fault, direction in ((CutUpstream, Direction.UP), (CutDownstream, Direction.DOWN)):
        arena.nemesis.apply(fault("a", 0.3))
        proxy = arena.actor.proxy
        wait_until(lambda: proxy.counters.held[direction], 10, "something is held back")  # noqa: B023 - called here
        arena.wait_for_writes()


def test_a_shifted_clock_is_what_the_actor_reads(arena: Arena) -> None:
    def shift_s() -> int:
        event = arena.events(Kind.STEP_SENT)[-1]
        offset_ms = ensemble_offset_ms(arena.direct, "/chaos-clock")
        return round(((event.wall_ms or 0) - event.t // 1_000_000 - offset_ms) / 1000)

    assert shift_s() == 0
    arena.nemesis.apply(ShiftClock("a", -30.0))
    wait_until(lambda: shift_s() == -30, 10, "the actor's clock is behind")
    arena.direct.delete("/chaos-clock")


def test_an_overwritten_record_is_in_the_history_with_its_version(arena: Arena, zookeeper_root: str) -> None:
    path = f"{zookeeper_root}/jobs/00/quiet"
    arena.direct.create(path, b'{"run_key": "r"}')
    arena.nemesis.apply(Corrupt(5))  # the actor's own record changes constantly and may be missed
    (spoilt,) = [
        event
        for event in read_history(arena.history.path)
        if event.kind is Kind.CORRUPTED and event.id == "quiet"
    ]
    assert (spoilt.run_key, spoilt.version) == ("r", arena.direct.get(path)[1].version)
    arena.nemesis.apply(Corrupt(5))
    assert arena.direct.get(path)[1].version == spoilt.version  # it is overwritten once


def test_a_fault_that_fails_is_reported_and_does_not_end_the_run(arena: Arena) -> None:
    schedule = [
        Planned(0.0, DropReply("nobody")),
        Planned(0.0, DropReply("a")),
        Planned(LONG_S, SigKill("a")),
    ]
    stop = threading.Event()
    thread = threading.Thread(target=arena.nemesis.run, args=(schedule, stop))
    thread.start()
    wait_until(lambda: len(arena.results()) >= 2, 10, "both faults were tried")
    stop.set()
    thread.join(10)
    assert not thread.is_alive()
    assert arena.results()[0] == "drop_reply: failed: KeyError: 'nobody'"
    assert arena.results()[1] == "drop_reply: done"
    assert len(arena.nemesis.failures) == 1
    arena.nemesis.failures.clear()


def test_a_killed_leader_is_replaced_and_comes_back(tmp_path: Path) -> None:
    with ExitStack() as stack:
        ensemble = stack.enter_context(BreakableEnsemble(tmp_path / "zookeeper"))
        arena = arena_at(stack, ensemble.hosts, "/chaos", tmp_path)
        nemesis = Nemesis({"a": arena.actor}, arena.history, ensemble.hosts, ensemble=ensemble)
        before = ensemble.wait_for_leader()
        nemesis.apply(KillLeader())
        assert ensemble.modes()[before] is None
        assert ensemble.wait_for_leader() != before
        arena.wait_for_writes()
        nemesis.apply(RestartServers())
        ensemble.wait_until_whole()
        assert sorted(filter(None, ensemble.modes().values())) == ["follower", "follower", "leader"]
        assert arena.results() == [f"kill_leader: server {before}", f"restart_servers: servers [{before}]"]
        arena.wait_for_writes()
        assert arena.actor.stop() == 0
