"""The ensemble's time, with a patched clock of the host: never ahead, whatever clocks and replies do."""

import logging
import threading
from collections.abc import Callable, Sequence
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from queues.model.errors import Conflict, OutcomeUnknown
from queues.model.names import Layout
from queues.model.operations import Create, Delete, Operation, Set
from queues.session import Session, SessionState, Stat
from queues.store.clock import EnsembleClock
from queues.store.commit import commit
from tests.queues_support import Open, expire
from tests.waiting import wait_until

MS = 1_000_000
LAYOUT = Layout("/test")
EPOCH_MS = 1_790_000_000_000


class World:
    """Simulated time and an ensemble in it: requests and replies take the given milliseconds."""

    def __init__(self, *trips: tuple[int, int], host_ahead_ms: int = 0) -> None:
        self.ns = 77_000 * MS
        self.host_ahead_ms = host_ahead_ms
        self.ensemble_ahead_ms = 0
        self.nodes = dict[str, bytes]()
        self.modified_ms = 0  # the node of the clock, when there is one
        self.trips = list(trips)  # ms of the request and of the reply, per write; then none
        self.writes = 0
        self.error: Exception | None = None
        self.before_reply: Callable[[], object] = lambda: None
        # The parts of a session that the clock uses.
        self.connections = 1
        self.state = SessionState.CONNECTED
        self.settings = type("Settings", (), {"call_timeout": 5, "hosts": "h1:2181"})
        self.ensured: list[str] = []

    # Replaces queues.session.boottime_ns and the module `time` in queues.store.clock.
    def boottime_ns(self) -> int:
        return self.ns

    def time_ns(self) -> int:
        return EPOCH_MS * MS + self.ns + self.host_ahead_ms * MS

    @property
    def ensemble_ns(self) -> int:
        return EPOCH_MS * MS + self.ns + self.ensemble_ahead_ms * MS

    # The nodes of the clock and of a jump.
    def get(self, path: str) -> tuple[bytes, Stat] | None:
        return None if path not in self.nodes else (self.nodes[path], Stat(1, 0, self.modified_ms, 0, 0, 0))

    def ensure_path(self, path: str) -> None:
        self.ensured.append(path)

    # Replaces queues.store.commit.commit there.
    def commit(self, _session: object, operations: Sequence[Operation]) -> list[Any]:
        for operation in operations:
            if operation.path == LAYOUT.clock_jump:
                return self._write_jump(operation)
        self.writes += 1
        request, reply = self.trips.pop(0) if self.trips else (0, 0)
        self.ns += request * MS
        if self.error is not None:
            raise self.error
        self.modified_ms = modified = self.ensemble_ns // MS
        self.nodes.update({each.path: each.data for each in operations if isinstance(each, Set)})
        self.before_reply()
        self.ns += reply * MS
        return [Stat(1, 0, modified, 0, 0, 0) for _ in operations]

    def _write_jump(self, operation: Operation) -> list[Any]:
        if isinstance(operation, Create):
            assert operation.ephemeral
        elif operation.path not in self.nodes:
            raise Conflict(0, operation, "NoNode", ambiguous=False)
        if isinstance(operation, Delete):
            del self.nodes[operation.path]
        elif isinstance(operation, Create | Set):
            self.nodes[operation.path] = operation.data
        return [None]

    def pass_ms(self, milliseconds: int) -> None:
        self.ns += milliseconds * MS

    def jump(self, milliseconds: int) -> None:
        """A leader with another clock takes over the ensemble."""
        self.ensemble_ahead_ms += milliseconds
        self.connections += 1

    def late_ms(self, clock: EnsembleClock) -> int:
        now_ms = clock.now_ms()
        return self.ensemble_ns // MS - now_ms


def install(world: World, patch: pytest.MonkeyPatch) -> None:
    patch.setattr("queues.store.clock.time", world)
    patch.setattr("queues.store.clock.boottime_ns", world.boottime_ns)
    for module in ("clock", "clock_jump"):
        patch.setattr(f"queues.store.{module}.commit", world.commit)


@pytest.fixture
def patched(monkeypatch: pytest.MonkeyPatch) -> Callable[[World], EnsembleClock]:
    def patch(world: World) -> EnsembleClock:
        install(world, monkeypatch)
        return EnsembleClock(world, LAYOUT)  # type: ignore[arg-type] # it has the needed parts of a session

    return patch


@given(
    trips=st.lists(st.tuples(st.integers(0, 3_000), st.integers(0, 3_000)), max_size=8),
    pauses=st.lists(st.integers(0, 400_000), max_size=6),
)
def test_it_is_never_ahead_and_behind_by_the_best_round_trip_at_most(
    trips: list[tuple[int, int]], pauses: list[int]
) -> None:
    world = World(*trips)
    with pytest.MonkeyPatch.context() as patch:
        install(world, patch)
        clock = EnsembleClock(world, LAYOUT)  # type: ignore[arg-type] # as above
        for pause in (0, *pauses):
            world.pass_ms(pause)
            before = world.writes
            late = world.late_ms(clock)
            used = trips[before : world.writes]
            assert late >= 0
            if used:
                assert late <= min(map(sum, used)) + 1
            assert late <= 6_001


def test_a_long_round_trip_is_measured_again_until_there_is_a_short_one(
    patched: Callable[[World], EnsembleClock],
) -> None:
    world = World((0, 900), (800, 0), (5, 5), (0, 0))
    assert world.late_ms(patched(world)) <= 10
    assert world.writes == 3


def test_the_shortest_of_five_long_round_trips_is_taken(patched: Callable[[World], EnsembleClock]) -> None:
    world = World((0, 900), (0, 700), (0, 300), (0, 500), (0, 800), (0, 0))
    assert world.late_ms(patched(world)) == 300
    assert world.writes == 5


def test_it_is_measured_once_in_ten_minutes_and_over_each_new_connection(
    patched: Callable[[World], EnsembleClock],
) -> None:
    world = World()
    clock = patched(world)
    for _ in range(1000):
        clock.now_ms()
    world.pass_ms(599_000)
    clock.now_ms()
    assert world.writes == 1
    world.pass_ms(2_000)
    clock.now_ms()
    assert world.writes == 2
    world.connections += 1  # it may lead to a leader with another clock
    clock.now_ms()
    clock.now_ms()
    assert world.writes == 3


def test_a_measurement_that_fails_is_made_later_and_the_old_one_serves(
    patched: Callable[[World], EnsembleClock], caplog: pytest.LogCaptureFixture
) -> None:
    world = World()
    clock = patched(world)
    world.error = OutcomeUnknown("no answer")
    with pytest.raises(OutcomeUnknown):
        clock.now_ms()
    world.error = None
    clock.now_ms()
    world.pass_ms(601_000)
    world.state, writes = SessionState.SUSPENDED, world.writes
    assert world.late_ms(clock) == 0
    assert world.writes == writes  # no caller waits for a connection to read the time
    world.state, world.error = SessionState.CONNECTED, OutcomeUnknown("no answer")
    assert world.late_ms(clock) == 0
    assert world.late_ms(clock) == 0
    assert world.writes == writes + 1
    assert "could not be measured again" in caplog.text
    world.error = None
    world.pass_ms(5_001)
    clock.now_ms()
    assert world.writes == writes + 2


def test_no_thread_waits_while_another_measures_again(patched: Callable[[World], EnsembleClock]) -> None:
    world = World()
    clock = patched(world)
    clock.now_ms()
    world.pass_ms(601_000)
    measuring, go_on = threading.Event(), threading.Event()

    def hold() -> None:
        measuring.set()
        go_on.wait(10)

    world.before_reply = hold
    other = threading.Thread(target=clock.now_ms)
    other.start()
    assert measuring.wait(5)
    assert world.late_ms(clock) == 0
    assert other.is_alive()  # it still measures
    assert world.writes == 2
    go_on.set()
    other.join(5)


def test_the_folder_of_the_clock_is_made_when_it_is_not_there(
    patched: Callable[[World], EnsembleClock],
) -> None:
    world = World()
    clock = patched(world)
    write, errors = world.commit, [Conflict(0, "set", "NoNode", ambiguous=False)]

    def refuse_once(session: object, operations: Sequence[Operation]) -> list[Any]:
        if errors:
            raise errors.pop()
        return write(session, operations)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("queues.store.clock.commit", refuse_once)
        assert world.late_ms(clock) == 0
    assert world.ensured == [LAYOUT.clock]


# ---------------------------------------------------------------------- a host with a wrong clock
@pytest.mark.parametrize(("ahead_ms", "words"), [(30_000, "30.0 s ahead of"), (-2_500, "2.5 s behind")])
def test_a_host_whose_clock_is_off_says_so_and_is_corrected(
    patched: Callable[[World], EnsembleClock], caplog: pytest.LogCaptureFixture, ahead_ms: int, words: str
) -> None:
    world = World(host_ahead_ms=ahead_ms)
    clock = patched(world)
    assert world.late_ms(clock) == 0
    (record,) = caplog.records
    assert record.levelno == logging.WARNING
    assert words in record.getMessage()


def test_a_wrong_clock_is_logged_once_per_change(
    patched: Callable[[World], EnsembleClock], caplog: pytest.LogCaptureFixture
) -> None:
    world = World()
    clock = patched(world)
    for ahead_ms in (1_900, 30_000, 30_400, 29_500, -5_000, -5_000, 0, -1_000):
        world.host_ahead_ms = ahead_ms
        world.connections += 1
        assert world.late_ms(clock) == 0
    messages = [record.getMessage() for record in caplog.records]
    assert [("ahead" in text, "behind" in text, "again" in text) for text in messages] == [
        (True, False, False),
        (False, True, False),
        (False, False, True),
    ]


def test_a_long_round_trip_is_not_taken_for_a_clock_that_is_off(
    patched: Callable[[World], EnsembleClock], caplog: pytest.LogCaptureFixture
) -> None:
    world = World(*[(0, 7_000)] * 5)
    patched(world).now_ms()
    assert not caplog.records


# ---------------------------------------------------------------------- an ensemble whose clock jumps
HOUR_MS = 3_600_000


@pytest.mark.parametrize("ahead_ms", [2 * HOUR_MS, -2 * HOUR_MS, 300_000, 20_000])
def test_a_jump_of_the_ensembles_clock_moves_no_time_until_the_host_confirms_it(
    patched: Callable[[World], EnsembleClock], caplog: pytest.LogCaptureFixture, ahead_ms: int
) -> None:
    world = World()
    clock = patched(world)
    before = clock.now_ms()
    world.jump(ahead_ms)
    assert clock.now_ms() == before
    world.pass_ms(60_000)
    assert clock.now_ms() == before + 60_000  # it still runs
    assert clock.confirmed_ms() == before + 60_000 + min(0, ahead_ms)
    assert [word in caplog.text for word in ("suddenly", "behind" if ahead_ms < 0 else "ahead")] == [True] * 2
    world.host_ahead_ms = ahead_ms  # it was the right one
    world.pass_ms(30_001)
    assert world.late_ms(clock) == 0
    assert clock.confirmed_ms() == world.ensemble_ns // MS
    assert len(caplog.records) == 2  # each logged once


def test_a_long_round_trip_is_not_taken_for_a_jump(
    patched: Callable[[World], EnsembleClock], caplog: pytest.LogCaptureFixture
) -> None:
    world = World((0, 0), *[(0, 6_000)] * 5, host_ahead_ms=-2 * HOUR_MS)
    clock = patched(world)
    clock.now_ms()
    caplog.clear()
    world.pass_ms(601_000)
    clock.now_ms()
    assert not caplog.records
    assert LAYOUT.clock_jump not in world.nodes


def test_a_time_is_confirmed_as_well_as_a_long_round_trip_lets_it_be_seen(
    patched: Callable[[World], EnsembleClock],
) -> None:
    world = World((0, 0), *[(0, 8_000)] * 5)
    clock = patched(world)
    clock.now_ms()
    world.host_ahead_ms = 2 * HOUR_MS + 28_000  # 32 s ± half of the 8
    world.jump(2 * HOUR_MS)
    assert world.late_ms(clock) == 8_000


def test_a_jump_that_the_host_confirms_is_followed_at_once(patched: Callable[[World], EnsembleClock]) -> None:
    world = World()
    world.ensemble_ahead_ms = 2 * HOUR_MS
    clock = patched(world)
    assert world.late_ms(clock) == 0  # no other clock contradicts it
    world.jump(-2 * HOUR_MS)
    assert world.late_ms(clock) == 0


def test_a_clock_that_comes_back_from_its_jump_is_followed_again(
    patched: Callable[[World], EnsembleClock],
) -> None:
    world = World(host_ahead_ms=-600_000)  # this one confirms nothing
    clock = patched(world)
    before = clock.now_ms()
    world.jump(2 * HOUR_MS)
    assert clock.now_ms() == before
    world.jump(-2 * HOUR_MS)
    assert clock.now_ms() == before
    writes = world.writes
    world.pass_ms(500_000)
    clock.now_ms()
    assert world.writes == writes  # normal: measured every ten minutes


def test_a_client_after_a_jump_follows_those_that_saw_it_if_its_own_clock_agrees(
    patched: Callable[[World], EnsembleClock],
) -> None:
    world = World()
    seen, before = patched(world), world.ensemble_ns // MS
    seen.now_ms()
    world.jump(2 * HOUR_MS)
    assert seen.now_ms() == before
    assert patched(world).now_ms() == before
    world.host_ahead_ms = 24 * HOUR_MS  # two against one
    assert patched(world).now_ms() == before + 2 * HOUR_MS
    world.host_ahead_ms = 0
    world.jump(-2 * HOUR_MS)
    assert seen.now_ms() == before
    assert LAYOUT.clock_jump not in world.nodes


@pytest.mark.parametrize("ahead_ms", [20_000, -20_000])
def test_a_new_client_whose_clock_is_near_both_goes_by_the_nearer_one(
    patched: Callable[[World], EnsembleClock], ahead_ms: int
) -> None:
    world = World()
    seen, before = patched(world), world.ensemble_ns // MS
    seen.now_ms()
    world.jump(ahead_ms)
    assert seen.now_ms() == before
    world.host_ahead_ms = ahead_ms // 10
    assert patched(world).now_ms() == before
    world.host_ahead_ms = ahead_ms * 9 // 10
    assert patched(world).now_ms() == before + ahead_ms


@pytest.mark.parametrize("data", [b"", b"7", b"{}", b'{"ahead_ms": "much"}', b'{"ahead_ms": 1e999}'])
def test_a_node_without_a_valid_jump_is_logged_and_hinders_no_client(
    patched: Callable[[World], EnsembleClock], caplog: pytest.LogCaptureFixture, data: bytes
) -> None:
    world = World(host_ahead_ms=-2 * HOUR_MS)
    world.nodes[LAYOUT.clock_jump] = data
    assert world.late_ms(patched(world)) == 0
    assert "cannot be read" in caplog.text


@pytest.mark.parametrize("ahead_ms", [2 * HOUR_MS, -2 * HOUR_MS])
def test_a_new_client_goes_by_the_stored_time_when_its_own_clock_agrees(
    patched: Callable[[World], EnsembleClock], ahead_ms: int
) -> None:
    world = World()
    gone = patched(world)
    gone.now_ms()
    for minutes in (5, 10):  # stored by a new client alone, then by one that measures again
        world.pass_ms(minutes * 60_000)
        world.jump(ahead_ms)
        right = world.time_ns() // MS
        assert patched(world).now_ms() == right
        del world.nodes[LAYOUT.clock_jump]  # with the session that reported it
        assert patched(world).now_ms() == right + (ahead_ms if minutes == 5 else 0)
        world.nodes.pop(LAYOUT.clock_jump, None)
        world.jump(-ahead_ms)
        gone.now_ms()


@pytest.mark.parametrize("host_ahead_ms", [2 * HOUR_MS, 15 * 60_000, -60_000, -2 * HOUR_MS])
@pytest.mark.parametrize("away_ms", [0, 60_000, 660_000, 1_200_000, 5 * HOUR_MS])
def test_a_new_client_whose_own_clock_is_off_goes_by_the_ensemble(
    patched: Callable[[World], EnsembleClock], host_ahead_ms: int, away_ms: int
) -> None:
    world = World()
    patched(world).now_ms()
    world.pass_ms(away_ms)
    world.host_ahead_ms = host_ahead_ms
    assert world.late_ms(patched(world)) == 0


@pytest.mark.parametrize("data", [b"-1", b"noon", b"9" * 16, b"\xff", b"0"])
def test_a_stored_time_that_makes_no_sense_is_ignored(
    patched: Callable[[World], EnsembleClock], data: bytes
) -> None:
    world = World()
    world.nodes[LAYOUT.clock] = data
    world.jump(2 * HOUR_MS)
    assert world.late_ms(patched(world)) == 0


def test_without_another_clock_the_ensembles_clock_is_the_time_and_no_server_is_judged(
    patched: Callable[[World], EnsembleClock],
) -> None:
    world = World(host_ahead_ms=-2 * HOUR_MS)
    clock = patched(world)
    assert world.late_ms(clock) == 0
    assert clock.confirmed_ms() == clock.now_ms() - 2 * HOUR_MS


# ---------------------------------------------------------------------- on a server
def test_the_reported_time_is_never_later_than_that_of_a_following_write(open_queues: Open) -> None:
    queues = open_queues()
    for number in range(50):
        read = queues.clock.now_ms()
        path = f"{queues.layout.root}/probe-{number}"
        commit(queues.session, [Create(path)])
        stat = queues.session.exists(path)
        assert stat is not None
        assert read <= stat.modified < read + 5_000


def test_a_new_session_measures_anew(open_queues: Open, monkeypatch: pytest.MonkeyPatch) -> None:
    queues = open_queues()
    before = queues.clock.now_ms()
    send, sent = Session.send, list[str]()

    def spy(session: Session, operations: Sequence[Operation], timeout: float) -> list[Any]:
        sent.extend(operation.path for operation in operations)
        return send(session, operations, timeout)

    monkeypatch.setattr(Session, "send", spy)
    expire(queues.session)
    wait_until(lambda: queues.clock.now_ms() >= before and queues.layout.clock in sent, 5, "it is measured")
