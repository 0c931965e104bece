"""The rule of schedules that follow jobs: each success counts for one run, and no run lacks one."""

from dataclasses import dataclass, field

import pytest
from hypothesis import given
from hypothesis import strategies as st

from orchestrator.history.successes import Awaited, Success
from orchestrator.model.act import Act
from orchestrator.model.definition import build_definition
from orchestrator.model.times import from_text, to_text
from orchestrator.schedules.record import ScheduleRecord
from orchestrator.schedules.triggers import armed, circle_of, new_successes

NOW = from_text("2026-11-21T11:00:00Z")
NAMES = ("a", "b", "c")


def record_of(*after: str, overlap: str = "queue") -> ScheduleRecord:
    document = {"name": "report", "python": "pass", "schedule": {"after": list(after), "overlap": overlap}}
    act = Act(at=to_text(NOW), by="me", action="register")
    return ScheduleRecord.registered_at(build_definition(document, "job.yaml"), None, NOW, act).counting_from(
        {}
    )


def awaited(run: str, at: int = NOW) -> Awaited:
    return Awaited(Success(job=f"job-{run}", run=run, at=to_text(at)))


def test_a_run_is_decided_once_every_job_has_succeeded() -> None:
    record = record_of("a", "b")
    assert armed(record, {}, NOW) is None
    assert armed(record, {"a": awaited("1"), "b": Awaited()}, NOW) is None
    decided = armed(record, {"a": awaited("1"), "b": awaited("2", NOW + 5_000)}, NOW + 9_000)
    assert decided is not None
    assert decided.armed is not None
    assert (decided.armed.time, decided.armed.by) == ("2026-11-21T11:00:05Z", ("job-1", "job-2"))
    assert decided.armed_run == "report-20261121T110005Z"


def test_the_successes_of_a_run_count_for_no_other_one() -> None:
    found = {"a": awaited("1"), "b": awaited("2")}
    decided = armed(record_of("a", "b"), found, NOW)
    assert decided is not None
    after = decided.fired(NOW)
    assert new_successes(after, found) == {}
    assert set(new_successes(after, {**found, "a": awaited("3")})) == {"a"}
    assert armed(after, {"a": awaited("3"), "b": awaited("2")}, NOW) is None


def test_runs_after_successes_of_the_same_second_have_different_ids() -> None:
    record, ids = record_of("a"), list[str | None]()
    for run in ("1", "2", "3"):
        decided = armed(record, {"a": awaited(run)}, NOW)
        assert decided is not None
        assert decided.armed is not None
        ids.append(decided.armed_run)
        record = decided.fired(from_text(decided.armed.time))
    assert ids == [f"report-20261121T11000{second}Z" for second in range(3)]


def test_a_success_by_a_clock_that_is_ahead_has_no_fire_time_in_the_future() -> None:
    decided = armed(record_of("a"), {"a": awaited("1", NOW + 7_200_000)}, NOW)
    assert decided is not None
    assert decided.armed_run == "report-20261121T110000Z"


def test_a_decided_run_is_forgotten_by_a_pause_and_by_other_names() -> None:
    decided = armed(record_of("a"), {"a": awaited("1")}, NOW)
    assert decided is not None
    assert decided.pausing().resumed(NOW).armed is None
    assert decided.pausing().resumed(NOW).seen is None, "the store fills in what has succeeded meanwhile"
    other = build_definition({"name": "report", "python": "pass", "schedule": {"after": ["b"]}}, "x")
    assert decided.replaced(other, None, NOW, "me").armed is None
    same = decided.replaced(decided.definition, None, NOW, "me")
    assert (same.armed, same.seen) == (decided.armed, decided.seen)


def test_the_order_of_the_names_is_no_change() -> None:
    record = record_of("a", "b")
    assert record.replaced(record_of("b", "a").definition, None, NOW, "me").seen == {}


@pytest.mark.parametrize("seen", [{}, {"a": "1"}])
def test_the_node_distinguishes_no_success_yet_from_nothing_known(seen: dict[str, str]) -> None:
    record = record_of("a").counting_from(seen)
    assert ScheduleRecord.decode("report", "/x", record.encode()).seen == seen


# ---------------------------------------------------------------------- circles
def test_a_way_back_is_found_through_other_schedules() -> None:
    waits = {"b": ["c", "x"], "c": ["d"], "d": ["a"], "x": ["x2"], "x2": ["x"]}
    assert circle_of("a", ["b"], lambda name: waits.get(name, ())) == ["a", "b", "c", "d", "a"]
    assert circle_of("a", ["x", "unknown"], lambda name: waits.get(name, ())) is None


# ---------------------------------------------------------------------- any course of events
@dataclass
class Cluster:
    """A schedule after a and b, successes of all names, and leaders that die anywhere."""

    record: ScheduleRecord = field(default_factory=lambda: record_of("a", "b"))
    nodes: dict[str, Awaited] = field(default_factory=dict)
    log: list[str] = field(default_factory=list)  # successes and runs in their order
    jobs: set[str] = field(default_factory=set)
    now: int = NOW

    def succeed(self, name: str) -> None:
        run = f"{name}{len(self.log)}"
        self.nodes[name] = awaited(run, self.now)
        self.log.append(name)

    def lead(self, dies_after: int) -> None:
        """One step of a leader that makes at most so many writes: decide, put, record."""
        if self.record.armed is None and dies_after > 0:
            self.record = armed(self.record, self.nodes, self.now) or self.record
        if self.record.armed is None or dies_after <= 1:
            return
        job_id = self.record.armed_run
        assert job_id is not None
        if job_id not in self.jobs:  # otherwise the id is taken
            self.jobs.add(job_id)
            self.log.append("run")
        if dies_after > 2:
            self.record = self.record.fired(from_text(self.record.armed.time))


_EVENTS = st.lists(
    st.one_of(
        st.sampled_from(NAMES),
        st.integers(0, 3),
        st.sampled_from(["time passes"]),
    ),
    max_size=60,
)


@given(events=_EVENTS)
def test_each_run_follows_one_new_success_of_every_name_wherever_leaders_die(events: list[str | int]) -> None:
    cluster = Cluster()
    for event in events:
        if isinstance(event, int):
            cluster.lead(event)
        elif event in NAMES:
            cluster.succeed(event)
        else:
            cluster.now += 400
    cluster.lead(3)
    cluster.lead(3)
    log = cluster.log
    runs = [index for index, what in enumerate(log) if what == "run"]
    # A run that was decided may be put after further successes: these count for the next run.
    for number, index in enumerate(runs, 1):
        assert all(log[:index].count(name) >= number for name in ("a", "b"))
    last = cluster.record.seen or {}
    new = {name for name in ("a", "b") if name in cluster.nodes and _run(cluster, name) != last.get(name)}
    assert new != {"a", "b"}, "no run is missing"
    assert len(cluster.jobs) == len(runs)


def _run(cluster: Cluster, name: str) -> str:
    success = cluster.nodes[name].success
    assert success is not None
    return success.run
