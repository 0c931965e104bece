"""The node of a tuning on a real ZooKeeper: what operators set, beside workers that store decisions."""

import threading
from collections.abc import Callable

import pytest

from orchestrator.audit.event import AuditEvent
from orchestrator.model.errors import CorruptTuning, HistoryNotFound, InvalidTuning
from orchestrator.model.tuning import TuningMode
from orchestrator.tuning.resources import Resource
from orchestrator.tuning.store import TuningStore
from queues.model.errors import InvalidName
from tests.claims_support import lose_reply, names_node
from tests.operators_support import Stage
from tests.tuning_support import NAME, decision, plant

HEAP = Resource.DRIVER_MEMORY


@pytest.fixture
def store(stage: Stage) -> TuningStore:
    """The store of an operator, with a name that has run once."""
    stage.make(stage.nodes.history(NAME), {"name": NAME, "runs": [{"run": "key-1"}]})
    return stage.client.tunings


def other(stage: Stage) -> TuningStore:
    """Another store on a session of its own."""
    return TuningStore(stage.other("other").session, stage.nodes)


def events_of(stage: Stage) -> list[AuditEvent]:
    names = sorted(stage.session.children(stage.nodes.audit) or ())
    found = stage.session.get_many([stage.nodes.audit_entry(name) for name in names])
    return [AuditEvent.read(name, node[0]) for name, node in zip(names, found, strict=True) if node]


def version(stage: Stage) -> int | None:
    found = stage.session.exists(stage.nodes.tuning(NAME))
    return None if found is None else found.version


# ---------------------------------------------------------------------- operators
def test_what_operators_set_is_kept_with_its_author_and_recorded_in_the_audit_trail(
    stage: Stage, store: TuningStore
) -> None:
    store.pin(NAME, {"driver.memory": "2g", "driver.overhead": "512m"})
    store.cap(NAME, {"executor.instances": "8"})
    store.set_mode(NAME, TuningMode.APPLY)
    store.pin(NAME, {}, removed=["driver.overhead"])
    record = store.get(NAME)
    assert record.pins == {HEAP: 2048}
    assert record.caps == {Resource.EXECUTOR_INSTANCES: 8}
    assert record.mode is TuningMode.APPLY
    assert record.changed is not None
    assert (record.changed.by, record.changed.action) == ("ip:127.0.0.1", "pin")
    found = sorted(events_of(stage), key=lambda event: event.act.at)
    assert [(event.act.action, event.kind, event.target) for event in found] == [
        (action, "tuning", NAME) for action in ("pin", "cap", "set-mode", "pin")
    ]
    assert found[-1].before["pins"] == {"driver.memory": 2048, "driver.overhead": 512}
    assert found[-1].after["pins"] == {"driver.memory": 2048}


def test_a_reset_forgets_runs_and_decisions_and_with_all_also_what_operators_have_set(
    store: TuningStore,
) -> None:
    store.pin(NAME, {"driver.memory": "2g"})
    store.set_mode(NAME, TuningMode.OFF)
    store.add(NAME, decision())
    after = store.reset(NAME)
    assert (after.forgotten, after.decisions, after.pins) == ("key-1", (), {HEAP: 2048})
    after = store.reset(NAME, all_=True)
    assert (after.pins, after.caps, after.mode) == ({}, {}, None)
    assert store.get(NAME) == after


def test_a_pin_above_its_cap_is_refused_from_both_sides_and_nothing_is_changed(
    stage: Stage, store: TuningStore
) -> None:
    store.cap(NAME, {"driver.memory": "2g"})
    before = version(stage)
    with pytest.raises(InvalidTuning, match="pinned to 3072m and capped at 2048m"):
        store.pin(NAME, {"driver.memory": "3g"})
    store.pin(NAME, {"driver.memory": "2g"})
    with pytest.raises(InvalidTuning, match="pinned to 2048m and capped at 1024m"):
        store.cap(NAME, {"driver.memory": "1g"})
    assert version(stage) == (before or 0) + 1


@pytest.mark.parametrize(
    ("given", "sentence"),
    [
        ({"driver.soul": "2g"}, "'driver.soul' is no resource that is tuned: use one of driver.memory, "),
        ({"driver.memory": "0"}, "write at least 512m, for example 2g"),
        ({"driver.memory": "-1g"}, "write at least 512m"),
        ({"driver.memory": "2q"}, "driver.memory=2q is not possible"),
        ({"driver.memory": "9" * 18 + "p"}, "is not possible"),
        ({"driver.memory": "nan"}, "is not possible"),
        ({"driver.memory": "\N{ARABIC-INDIC DIGIT TWO}g"}, "is not possible"),
        ({"executor.instances": "0"}, "write at least 1, for example 4"),
        ({"executor.instances": "1.5"}, "is not possible"),
        ({"executor.instances": "9999999999"}, "is not possible"),
    ],
)
def test_an_amount_that_no_driver_can_have_is_refused_with_the_reason(
    stage: Stage, store: TuningStore, given: dict[str, str], sentence: str
) -> None:
    for change in (store.pin, store.cap):
        with pytest.raises(InvalidTuning) as refused:
            change(NAME, given)
        assert sentence in str(refused.value)
    assert version(stage) is None


def test_only_what_is_set_can_be_removed(store: TuningStore) -> None:
    store.cap(NAME, {"driver.memory": "4g"})
    with pytest.raises(InvalidTuning, match=r"'driver\.soul' is no resource that is tuned"):
        store.pin(NAME, {}, removed=["driver.soul"])
    with pytest.raises(InvalidTuning, match=r"driver\.memory is not pinned"):
        store.pin(NAME, {}, removed=["driver.memory"])
    with pytest.raises(InvalidTuning, match=r"driver\.cores is not capped"):
        store.cap(NAME, {}, removed=["driver.cores"])
    with pytest.raises(InvalidTuning, match=r"driver\.memory is both set and removed"):
        store.cap(NAME, {"driver.memory": "2g"}, removed=["driver.memory"])
    assert store.get(NAME).caps == {HEAP: 4096}


@pytest.mark.parametrize(
    "name", ["unknown", "", ".", "..", "a/b", "../config", "a b", "x" * 200, "caf\u00e9"]
)
def test_a_name_without_runs_is_not_found_whatever_it_looks_like(
    stage: Stage, store: TuningStore, name: str
) -> None:
    acts: list[Callable[[], object]] = [
        lambda: store.get(name),
        lambda: store.pin(name, {"driver.memory": "2g"}),
        lambda: store.cap(name, {"driver.memory": "2g"}),
        lambda: store.set_mode(name, TuningMode.OFF),
        lambda: store.reset(name, all_=True),
    ]
    for act in acts:
        with pytest.raises(HistoryNotFound):
            act()
    assert stage.session.children(stage.nodes.tunings) is None


def test_a_node_whose_name_is_no_id_is_left_alone(stage: Stage, store: TuningStore) -> None:
    plant(stage.session, stage.nodes.tuning("no name"), b"{}")
    assert store.names() == [NAME]
    with pytest.raises(HistoryNotFound):
        store.get("no name")
    with pytest.raises(InvalidName):
        store.read("no name")


# ---------------------------------------------------------------------- at the same time
def test_operators_and_workers_at_the_same_time_lose_nothing_of_one_another(
    stage: Stage, store: TuningStore
) -> None:
    stores, failed = [store, other(stage), other(stage)], list[Exception]()
    pins = [{str(resource): "1g" if resource.is_memory else "2"} for resource in Resource]

    def act(number: int) -> None:
        mine = stores[number % len(stores)]
        try:
            mine.pin(NAME, pins[number])
            for each in range(3):
                mine.add(NAME, decision(number * 3 + each))
            mine.cap(NAME, {name: "9g" if text == "1g" else "9" for name, text in pins[number].items()})
        except Exception as error:  # noqa: BLE001 - raised below
            failed.append(error)

    threads = [threading.Thread(target=act, args=(number,)) for number in range(6)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert failed == []
    record = store.get(NAME)
    assert set(record.pins) == set(record.caps) == set(list(Resource)[:6])
    assert {each.run for each in record.decisions} == {f"key-{number}" for number in range(18)}
    assert len(events_of(stage)) == 12


def test_a_change_whose_reply_is_lost_is_made_and_recorded_once(
    stage: Stage, store: TuningStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    store.set_mode(NAME, TuningMode.APPLY)
    for act in (
        lambda: store.pin(NAME, {"driver.memory": "2g"}),
        lambda: store.cap(NAME, {"driver.memory": "4g"}),
        lambda: store.pin(NAME, {}, removed=["driver.memory"]),
        lambda: store.reset(NAME),
        lambda: store.add(NAME, decision()),
    ):
        before, events = version(stage), len(events_of(stage))
        with monkeypatch.context() as patch:
            lost = lose_reply(patch, names_node("/tuning/"))
            act()
        assert version(stage) == (before or 0) + 1
        assert len(events_of(stage)) == events + len(lost[0]) - 1


# ---------------------------------------------------------------------- damage
DEEP = b"[" * 900 + b"]" * 900
STORED = b'"at": "x", "code": "c", "parameters": "-", "runs": 1'
FOREIGN = {
    "no JSON": b"by hand",
    "a list": b"[]",
    "nested too deeply": b'{"a":' * 50_000,
    "many digits": b'{"a": ' + b"9" * 5_000 + b"}",
    "half a surrogate": b'{"name": "x", "mode": "\\ud800"}',
    "not a number": b'{"pins": {"driver.memory": NaN}}',
    "infinite": b'{"pins": {"driver.memory": Infinity}}',
    "too much": b'{"caps": {"driver.memory": 1e30}}',
    "unknown resource": b'{"pins": {"driver.soul": 1}}',
    "unknown mode": b'{"mode": "always"}',
    "wrong types": b'{"decisions": {"a": 1}, "pins": [], "forgotten": 7}',
    "decisions nested deeply": b'{"decisions": [{' + STORED + b', "choices": {"a": {"b": ' + DEEP + b"}}}]}",
    "a choice that is none": b'{"decisions": [{' + STORED + b', "choices": {"a": {"after": []}}}]}',
    "an input that is none": b'{"decisions": [{' + STORED + b', "choices": {}, "input": NaN}]}',
    "too large": b'{"name": "' + b"x" * 200_000 + b'"}',
}


@pytest.mark.parametrize("data", FOREIGN.values(), ids=[*FOREIGN])
def test_foreign_content_is_reported_and_only_a_reset_of_everything_replaces_it(
    stage: Stage, store: TuningStore, data: bytes
) -> None:
    plant(stage.session, stage.nodes.tuning(NAME), data)
    acts: list[Callable[[], object]] = [
        lambda: store.read(NAME),
        lambda: store.get(NAME),
        lambda: store.add(NAME, decision()),
        lambda: store.pin(NAME, {"driver.memory": "2g"}),
        lambda: store.set_mode(NAME, None),
        lambda: store.reset(NAME),
    ]
    for act in acts:
        with pytest.raises(CorruptTuning, match=f"tuning reset {NAME} --all"):
            act()
    found = stage.session.get(stage.nodes.tuning(NAME))
    assert found is not None
    assert found[0] == data
    repaired = store.reset(NAME, all_=True)
    assert store.get(NAME) == repaired
    assert [event.act.action for event in events_of(stage)] == ["reset"]


def test_fields_of_a_later_version_do_not_hide_the_others(stage: Stage, store: TuningStore) -> None:
    later = b'{"mode": "apply", "later": [1], "pins": {"driver.memory": 600.5}}'
    plant(stage.session, stage.nodes.tuning(NAME), later)
    assert (store.get(NAME).mode, store.get(NAME).pins) == (TuningMode.APPLY, {HEAP: 600.5})
