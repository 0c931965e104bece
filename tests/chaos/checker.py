"""The offline checker: all that the actors told, and what stands in the end, against the invariants.

What was sent and not answered may have been done: an actor dies between the server's acceptance and its own
line in the history. Neither outcome of such a request is ever a violation.
"""

from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping
from itertools import combinations
from pathlib import Path

from tests.chaos.chain import check_chain
from tests.chaos.events import Event, Kind
from tests.chaos.history import in_shard, read_histories
from tests.chaos.life import Life, Place
from tests.chaos.report import Invariant, Report, Violation, merge
from tests.chaos.rules import Rules
from tests.chaos.snapshot import Record, Snapshot, Token


def check(events: Iterable[Event], snapshot: Snapshot, rules: Rules) -> Report:
    """Judge one run; `snapshot` was taken after it, with every actor stopped."""
    lives, seen = _lives(events)
    by_id = {item_id: _Item(item_id, of_id, snapshot) for item_id, of_id in lives.items()}
    tokens: defaultdict[str, list[Token]] = defaultdict(list)
    for token in snapshot.tokens:
        tokens[token.id].append(token)
    violations: list[Violation] = []
    for item in by_id.values():
        violations += item.violations()
        for life in item.lives:
            violations += check_chain(life, rules)
    for item_id in {*snapshot.records, *tokens} - by_id.keys():
        violations.append(Violation(Invariant.UNEXPECTED, item_id, "", "nobody put it"))
    for item_id in {*snapshot.records, *tokens} & by_id.keys():
        violations += _in_one_queue(by_id[item_id], snapshot.records.get(item_id), tokens[item_id])
    violations += [
        Violation(Invariant.LEFT_LOCK, lock, "", "nobody is left to hold it") for lock in snapshot.locks
    ]
    seen["items"] = len(by_id)
    seen["unanswered"] = sum(life.unanswered for item in by_id.values() for life in item.lives)
    seen["lives"] = sum(len(item.lives) for item in by_id.values())
    return Report(tuple(violations), dict(seen))


def check_folder(
    folder: Path, snapshot: Callable[[Callable[[str], bool]], Snapshot], rules: Rules, shards: int = 1
) -> Report:
    """Judge the histories of a folder; with more shards, with less memory.

    `snapshot` gets a condition on ids and returns the snapshot of those.
    """

    def judge(shard: int) -> Report:
        return check(
            read_histories(folder, shard, shards),
            snapshot(lambda item_id: in_shard(item_id, shard, shards)),
            rules,
        )

    return merge(judge(shard) for shard in range(shards))


def _lives(events: Iterable[Event]) -> tuple[dict[str, list[Life]], Counter[str]]:
    keyed: defaultdict[str, defaultdict[str, list[Event]]] = defaultdict(lambda: defaultdict(list))
    seen: Counter[str] = Counter()
    for event in events:
        seen[str(event.kind)] += 1
        if event.id:
            keyed[event.id][event.run_key].append(event)
    lives: dict[str, list[Life]] = {}
    for item_id, by_key in keyed.items():
        of_any = by_key.pop("", [])  # told of an item whose record could not be read: it may be any of them
        lives[item_id] = [Life(item_id, run_key, [*own, *of_any]) for run_key, own in by_key.items()]
    return lives, seen


class _Item:
    """All lives of one id, and the record that is left."""

    def __init__(self, item_id: str, lives: list[Life], snapshot: Snapshot) -> None:
        self.id = item_id
        self.lives = lives
        self.record = snapshot.records.get(item_id)
        self.by_key: Mapping[str, Life] = {life.run_key: life for life in lives}
        self.twice = {
            frozenset((one.run_key, other.run_key))
            for one, other in combinations([life for life in lives if life.acknowledged], 2)
            if not _one_after_the_other(one, other)
        }

    def violations(self) -> Iterator[Violation]:
        for life in self.lives:
            for invariant, what in (*self._lost(life), *self._put_twice(life), *self._unput(life)):
                yield Violation(invariant, self.id, life.run_key, what)
        yield from self._record_left()

    def _lost(self, life: Life) -> Iterator[tuple[Invariant, str]]:
        there = self.record
        if not life.acknowledged or life.removable_since is not None:
            return
        if there is None:
            yield Invariant.LOST, "it was put and never removed, and has no record"
        elif not there.readable:
            if not life.is_spoiled:
                yield Invariant.LOST, "its record cannot be read, and no fault has spoilt it"
        elif there.run_key != life.run_key and {there.run_key, life.run_key} not in self.twice:
            yield Invariant.LOST, f"another put has its id: {there.run_key}"

    def _put_twice(self, life: Life) -> Iterator[tuple[Invariant, str]]:
        if (times := len(life.of(Kind.PUT_ACKED))) > 1:
            yield Invariant.PUT_TWICE, f"its put was acknowledged {times} times"
        for pair in self.twice:
            if min(pair) == life.run_key:
                yield Invariant.PUT_TWICE, f"another put of the id was acknowledged meanwhile: {max(pair)}"

    def _unput(self, life: Life) -> Iterator[tuple[Invariant, str]]:
        there = self.record is not None and self.record.run_key == life.run_key
        if not life.possible and (there or life.changes or life.acknowledged):
            yield Invariant.UNEXPECTED, "its put was refused, or nobody has sent one"

    def _record_left(self) -> Iterator[Violation]:
        record = self.record
        if record is None:
            return
        life = self.by_key.get(record.run_key)
        if not self.lives or (record.readable and life is None):
            yield Violation(Invariant.UNEXPECTED, self.id, record.run_key, "nobody put it")
        if not record.readable and self.lives and all(life.removed is not None for life in self.lives):
            yield Violation(
                Invariant.UNEXPECTED, self.id, "", "it is there, unreadable, though it was removed"
            )
        if life is None:
            return
        if life.removed is not None:
            yield Violation(
                Invariant.UNEXPECTED, self.id, life.run_key, f"it is there, though {life.removed}"
            )
            return
        for what in _left_by_the_last_change(life, record):
            yield Violation(Invariant.STALE_FENCE, self.id, life.run_key, what)


def _one_after_the_other(one: Life, other: Life) -> bool:
    """Whether one may have been removed before the other's put was acknowledged."""
    for first, second in ((one, other), (other, one)):
        since = first.removable_since
        if since is not None and since < max(event.t for event in second.of(Kind.PUT_ACKED)):
            return True
    return False


def _left_by_the_last_change(life: Life, record: Record) -> Iterator[str]:
    if record.version < life.last_version:
        yield f"its record has version {record.version}, and version {life.last_version} was accepted before"
        return
    if life.is_spoiled:
        return
    last = life.changes[-1] if life.changes else life.put
    if last is not None and record.version == (last.version or 0) and last.nonce not in {"", record.nonce}:
        yield f"version {record.version} has nonce {record.nonce}, and {last} had {last.nonce}"
        return
    here = Place(record.queue, record.pool, record.due)
    places = life.possible_places(record.version)
    if places and not any(here.agrees(place) for place in places):
        yield f"its record says {here}, where no step brought it"


def _in_one_queue(item: _Item, record: Record | None, tokens: list[Token]) -> Iterator[Violation]:
    def violation(what: str) -> Violation:
        return Violation(Invariant.NOT_IN_ONE_QUEUE, item.id, "" if record is None else record.run_key, what)

    where = ", ".join(f"{token.queue}/{token.pool} due {token.due}" for token in tokens)
    if record is None:
        yield violation(f"it has no record, and stands in {where}")
    elif len(tokens) != 1:
        yield violation(f"it stands in {len(tokens)} queues: {where or 'none'}")
    elif record.readable and not any(life.is_spoiled for life in item.lives):
        token = tokens[0]
        if not Place(record.queue, record.pool, record.due).agrees(Place(token.queue, token.pool, token.due)):
            yield violation(
                f"its record says {record.queue}/{record.pool} due {record.due}, it stands in {where}"
            )
