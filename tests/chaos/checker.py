"""The offline checker: compares the histories of all actors and the last snapshot with the invariants.

A request without an answer may have been applied: an actor can die between the server's acceptance and its
own line in the history. Neither outcome of such a request is a violation.
"""

from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping
from itertools import combinations
from pathlib import Path

from tests.chaos.chain import check_chain
from tests.chaos.events import Event, Kind
from tests.chaos.history import in_shard, read_histories
from tests.chaos.item_history import ItemHistory, Location
from tests.chaos.report import Invariant, Report, Violation, merge
from tests.chaos.rules import Rules
from tests.chaos.snapshot import Record, Snapshot, Token


def check(events: Iterable[Event], snapshot: Snapshot, rules: Rules) -> Report:
    """Check one run; `snapshot` was taken after it, with every actor stopped."""
    histories, seen = _item_histories(events)
    by_id = {item_id: _Item(item_id, of_id, snapshot) for item_id, of_id in histories.items()}
    tokens: defaultdict[str, list[Token]] = defaultdict(list)
    for token in snapshot.tokens:
        tokens[token.id].append(token)
    violations: list[Violation] = []
    for item in by_id.values():
        violations += item.violations()
        for history in item.histories:
            violations += check_chain(history, rules)
    for item_id in {*snapshot.records, *tokens} - by_id.keys():
        violations.append(Violation(Invariant.UNEXPECTED, item_id, "", "it was never put"))
    for item_id in {*snapshot.records, *tokens} & by_id.keys():
        violations += _in_one_queue(by_id[item_id], snapshot.records.get(item_id), tokens[item_id])
    violations += [Violation(Invariant.LEFT_LOCK, lock, "", "it has no holder") for lock in snapshot.locks]
    seen["items"] = len(by_id)
    seen["unanswered"] = sum(history.unanswered for item in by_id.values() for history in item.histories)
    seen["lives"] = sum(len(item.histories) for item in by_id.values())
    return Report(tuple(violations), dict(seen))


def check_folder(
    folder: Path, snapshot: Callable[[Callable[[str], bool]], Snapshot], rules: Rules, shards: int = 1
) -> Report:
    """Check the histories of a folder; more shards need less memory.

    `snapshot` receives a condition on ids and returns the snapshot of these ids.
    """

    def judge(shard: int) -> Report:
        return check(
            read_histories(folder, shard, shards),
            snapshot(lambda item_id: in_shard(item_id, shard, shards)),
            rules,
        )

    return merge(judge(shard) for shard in range(shards))


def _item_histories(events: Iterable[Event]) -> tuple[dict[str, list[ItemHistory]], Counter[str]]:
    keyed: defaultdict[str, defaultdict[str, list[Event]]] = defaultdict(lambda: defaultdict(list))
    seen: Counter[str] = Counter()
    for event in events:
        seen[str(event.kind)] += 1
        if event.id:
            keyed[event.id][event.run_key].append(event)
    histories: dict[str, list[ItemHistory]] = {}
    for item_id, by_key in keyed.items():
        of_any = by_key.pop("", [])  # the record could not be read: the event may be of any history
        histories[item_id] = [ItemHistory(item_id, key, [*own, *of_any]) for key, own in by_key.items()]
    return histories, seen


class _Item:
    """All histories of one id, and the record at the end."""

    def __init__(self, item_id: str, histories: list[ItemHistory], snapshot: Snapshot) -> None:
        self.id = item_id
        self.histories = histories
        self.record = snapshot.records.get(item_id)
        self.by_key: Mapping[str, ItemHistory] = {history.run_key: history for history in histories}
        self.twice = {
            frozenset((one.run_key, other.run_key))
            for one, other in combinations([history for history in histories if history.acknowledged], 2)
            if not _one_after_the_other(one, other)
        }

    def violations(self) -> Iterator[Violation]:
        for history in self.histories:
            for invariant, what in (*self._lost(history), *self._put_twice(history), *self._unput(history)):
                yield Violation(invariant, self.id, history.run_key, what)
        yield from self._record_left()

    def _lost(self, history: ItemHistory) -> Iterator[tuple[Invariant, str]]:
        there = self.record
        if not history.acknowledged or history.removable_since is not None:
            return
        if there is None:
            yield Invariant.LOST, "it was put and never removed, and has no record"
        elif not there.readable:
            if not history.is_spoiled:
                yield Invariant.LOST, "its record cannot be read, and no fault has spoilt it"
        elif there.run_key != history.run_key and {there.run_key, history.run_key} not in self.twice:
            yield Invariant.LOST, f"another put has its id: {there.run_key}"

    def _put_twice(self, history: ItemHistory) -> Iterator[tuple[Invariant, str]]:
        if (times := len(history.of(Kind.PUT_ACKED))) > 1:
            yield Invariant.PUT_TWICE, f"its put was acknowledged {times} times"
        for pair in self.twice:
            if min(pair) == history.run_key:
                yield Invariant.PUT_TWICE, f"another put of the id was acknowledged meanwhile: {max(pair)}"

    def _unput(self, history: ItemHistory) -> Iterator[tuple[Invariant, str]]:
        there = self.record is not None and self.record.run_key == history.run_key
        if not history.possible and (there or history.changes or history.acknowledged):
            yield Invariant.UNEXPECTED, "its put was refused, or no put was sent"

    def _record_left(self) -> Iterator[Violation]:
        record = self.record
        if record is None:
            return
        history = self.by_key.get(record.run_key)
        if not self.histories or (record.readable and history is None):
            yield Violation(Invariant.UNEXPECTED, self.id, record.run_key, "it was never put")
        if not record.readable and self.histories and all(it.removed is not None for it in self.histories):
            yield Violation(
                Invariant.UNEXPECTED, self.id, "", "its record is there, unreadable, though it was removed"
            )
        if history is None:
            return
        if history.removed is not None:
            yield Violation(
                Invariant.UNEXPECTED, self.id, history.run_key, f"it is there, though {history.removed}"
            )
            return
        for what in _left_by_the_last_change(history, record):
            yield Violation(Invariant.STALE_FENCE, self.id, history.run_key, what)


def _one_after_the_other(one: ItemHistory, other: ItemHistory) -> bool:
    """Whether one may have been removed before the other's put was acknowledged."""
    for first, second in ((one, other), (other, one)):
        since = first.removable_since
        if since is not None and since < max(event.t for event in second.of(Kind.PUT_ACKED)):
            return True
    return False


def _left_by_the_last_change(history: ItemHistory, record: Record) -> Iterator[str]:
    if record.version < history.last_version:
        yield f"its record has version {record.version}; {history.last_version} was accepted before"
        return
    if history.is_spoiled:
        return
    last = history.changes[-1] if history.changes else history.put
    if last is not None and record.version == (last.version or 0) and last.nonce not in {"", record.nonce}:
        yield f"version {record.version} has nonce {record.nonce}, and {last} had {last.nonce}"
        return
    here = Location(record.queue, record.pool, record.due)
    locations = history.possible_locations(record.version)
    if locations and not any(here.agrees(location) for location in locations):
        yield f"its record says {here}, where no step moved it"


def _in_one_queue(item: _Item, record: Record | None, tokens: list[Token]) -> Iterator[Violation]:
    def violation(what: str) -> Violation:
        return Violation(Invariant.NOT_IN_ONE_QUEUE, item.id, "" if record is None else record.run_key, what)

    where = ", ".join(f"{token.queue}/{token.pool} due {token.due}" for token in tokens)
    if record is None:
        yield violation(f"it has no record, and has tokens in {where}")
    elif len(tokens) != 1:
        yield violation(f"it has tokens in {len(tokens)} queues: {where or 'none'}")
    elif record.readable and not any(history.is_spoiled for history in item.histories):
        token = tokens[0]
        here = Location(record.queue, record.pool, record.due)
        if not here.agrees(Location(token.queue, token.pool, token.due)):
            yield violation(
                f"its record says {record.queue}/{record.pool} due {record.due}; its token is in {where}"
            )
