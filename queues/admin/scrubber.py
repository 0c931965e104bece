"""Repairs damage that the protocol cannot cause: manual edits, restored backups, bugs and crashes."""

import contextlib
import logging
import re
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import NamedTuple

from queues.claims.claimer import Claimer
from queues.model.codec import encode, timestamp
from queues.model.errors import CorruptRecord, InvalidName, ItemNotFound
from queues.model.events import Event, EventKind
from queues.model.names import DEFAULT_POOL, Token, check_id
from queues.model.operations import Check, Create, Delete, Operation
from queues.model.record import Record
from queues.session.wire import MAX_PATHS, NodeData
from queues.store.batch import commit_many
from queues.store.commit import Receipts, Transaction
from queues.store.root import Root

log = logging.getLogger(__name__)
_STOP_AGE_MS = 3_600_000  # an author of such a request has seen its result long ago
_RECEIPT_AGE_MS = 24 * 3_600_000  # a producer that was idle for so long makes a new one
_RECEIPT = re.compile("[0-9a-f]{32}")
_Fault = CorruptRecord | ItemNotFound


class Repair(StrEnum):
    """The kinds of repairs."""

    RESTORED = "the missing token that a record names was made again"
    ENTERED = "an unreadable record without a token got one in dead"
    MOVED_TO_DEAD = "a token without a record was moved to dead"
    DEDUPLICATED = "a surplus token of an item was removed"
    RECEIPT = "the receipt of a producer that no longer exists was removed"
    STOP = "the request to stop an item that no longer exists was removed"


class Unrepaired(StrEnum):
    """The kinds of defects that were left unchanged."""

    MISMATCHED = "its token differs from the one that its record names: the next claim aligns them"
    UNREADABLE = "its record cannot be read: the next claim moves it to dead"
    UNKNOWN = "its record or one of its tokens is in an unknown queue or pool"
    HELD = "it needs a repair and is held"
    REFUSED = "it changed during the scrub, or its repair could not be sent: the next scrub decides"
    FOREIGN = "a node of another origin"


@dataclass(frozen=True, slots=True)
class ScrubReport:
    """Counts, and what was repaired (in a dry run: would be) and was not: ids, receipts, foreign paths."""

    records: int
    tokens: int
    repaired: Mapping[Repair, tuple[str, ...]]
    unrepaired: Mapping[Unrepaired, tuple[str, ...]]


class _Location(NamedTuple):
    queue: str
    pool: str
    token: Token


class ScrubFinding(NamedTuple):
    """One defect: the id of its item, or a name, the node that shows it, and the multi that repairs it."""

    kind: Repair | Unrepaired
    id: str
    path: str
    operations: Transaction = ()  # the repair; empty if there is none
    event: Event | None = None


class Scrubber:
    """Compares all records with all tokens and repairs mismatches, while producers and consumers work.

    Items move while the folders are listed one by one. Therefore each candidate is read again: its record,
    all folders, its record once more. If both reads return the same node with the same bytes, the item was
    not claimed, moved or put anew in between; it may only have been moved to dead, so `dead` is listed last.
    Each repair is one multi that checks that all this still holds and that the item is not held; otherwise
    the multi is refused.

    The valid token is the one that the record names, or one in dead if no record can be read. If it is
    missing, other tokens stay: a consumer follows the token, and its claim writes it into the record.
    """

    def __init__(self, root: Root, claimer: Claimer, *, dry_run: bool = False) -> None:
        self._root, self._session, self._layout = root, root.session, root.layout
        self._claimer, self._dry_run = claimer, dry_run

    def scrub(self) -> ScrubReport:
        """Scrub everything once; raises what reads raise. The clock's node is written in any case."""
        if not self._dry_run:
            self._root.pool_folders.restore_unnamed()
        records, tokens, findings = self._search()
        done = self._repair(findings)
        repaired = {kind: tuple(found) for kind, found in done.items() if isinstance(kind, Repair)}
        unrepaired = {kind: tuple(found) for kind, found in done.items() if isinstance(kind, Unrepaired)}
        return ScrubReport(records, tokens, repaired, unrepaired)

    def look(self) -> list[ScrubFinding]:
        """All defects, repairable or not, held or not; writes only the clock's node."""
        return self._search()[2]

    def _search(self) -> tuple[int, int, list[ScrubFinding]]:
        layout, snapshot = self._layout, _TokenSnapshot(self._root)
        ids, candidates = list[str](), list[str]()
        for bucket, name in _inside(self._root, _folders(self._root, layout.buckets)):
            if _is_id(name) and layout.record(name) == f"{bucket}/{name}":
                ids.append(name)
            else:
                snapshot.foreign.append(f"{bucket}/{name}")
        for start in range(
            0, len(ids), MAX_PATHS
        ):  # in parts: 200,000 records are too many to keep in memory
            for item_id, node in self._read(ids[start : start + MAX_PATHS]):
                candidates += [item_id] if any(snapshot.judge(item_id, node)) else []
        candidates += snapshot.locations.keys() - set(ids)
        findings = [*self._look_again(candidates), *self._left_overs(snapshot)]
        return len(ids), sum(map(len, snapshot.locations.values())), findings

    def _read(self, ids: Sequence[str]) -> list[tuple[str, NodeData | None]]:
        nodes = self._session.get_many([self._layout.record(item_id) for item_id in ids])
        return list(zip(ids, nodes, strict=True))

    def _look_again(self, ids: Sequence[str]) -> Iterator[ScrubFinding]:
        if ids:
            before, snapshot, after = self._read(ids), _TokenSnapshot(self._root), self._read(ids)
            for (item_id, node), last in zip(before, after, strict=True):
                if (item_id, node) == last:
                    yield from snapshot.judge(item_id, node)

    def _left_overs(self, snapshot: "_TokenSnapshot") -> Iterator[ScrubFinding]:
        receipts, now = self._layout.receipts, self._root.clock.confirmed_ms()
        ages = {self._layout.stops(pool): _STOP_AGE_MS for pool in snapshot.pools} | {
            receipts: _RECEIPT_AGE_MS
        }
        there = {f"{folder}/{name}": (folder, name) for folder, name in _inside(self._root, ages)}
        for path, node in zip(there, self._session.get_many(list(there)), strict=True):
            folder, name = there[path]
            if not (_RECEIPT.fullmatch(name) if folder == receipts else _is_id(name)):
                snapshot.foreign.append(path)
            elif node is not None and node[1].modified < now - ages[folder]:
                removal, record = Delete(path, node[1].version), self._layout.record(name)
                if folder == receipts:
                    yield ScrubFinding(Repair.RECEIPT, name, path, (removal,))
                elif self._session.exists(record) is None:
                    yield ScrubFinding(Repair.STOP, name, path, (Create(record), Delete(record), removal))
        yield from (ScrubFinding(Unrepaired.FOREIGN, path, path) for path in snapshot.foreign)

    def _repair(self, findings: Sequence[ScrubFinding]) -> Mapping[Repair | Unrepaired, list[str]]:
        locks = [op.path for f in findings for op in f.operations if isinstance(op, Create) and op.ephemeral]
        held = {path for path, node in zip(locks, self._session.get_many(locks), strict=True) if node}
        outcomes, repairs = defaultdict[Repair | Unrepaired, list[str]](list), list[ScrubFinding]()
        for finding in findings:
            is_held = self._claimer.holds(finding.id) or any(op.path in held for op in finding.operations)
            if finding.operations and is_held:
                outcomes[Unrepaired.HELD].append(finding.id)
            elif finding.operations and not self._dry_run:
                self._root.ensure_bucket(finding.id)  # some repairs check that there is no record
                repairs.append(finding)
            else:
                outcomes[finding.kind].append(finding.id)
        receipts = Receipts(self._session, self._layout)  # not the producers' own, which may need a repair
        refusals = commit_many(self._session, [f.operations for f in repairs], receipts)
        receipts.close()
        for finding, refused in zip(repairs, refusals, strict=True):
            outcomes[Unrepaired.REFUSED if refused else finding.kind].append(finding.id)
            log.warning("%s: %s", finding.id, refused or finding.kind)
            if finding.event and not refused:
                self._root.listeners.notify(finding.event)
        return outcomes


class _TokenSnapshot:
    """All tokens, as the folders listed them one by one, and the defects that they show."""

    def __init__(self, root: Root) -> None:
        self._root, self._layout = root, root.layout
        self.pools = root.pools.names(low=True)
        self.locations, self.foreign = defaultdict[str, list[_Location]](list), list[str]()
        # Unknown queues included. `dead` is last, so that items moved there meanwhile are not missed.
        queues = _folders(root, self._layout.queue("", "").rstrip("/"))
        for path in sorted(queues, key=lambda path: path.endswith(f"/{root.dead}")):
            for folder, name in _inside(root, _folders(root, path)):
                token = Token.parse(name)
                if token is None or not _is_id(token.id):
                    self.foreign.append(f"{folder}/{name}")
                else:
                    queue, pool = folder.split("/")[-2:]
                    self.locations[token.id].append(_Location(queue, pool, token))

    def judge(self, item_id: str, node: NodeData | None) -> Iterator[ScrubFinding]:
        """The defects of an item that has this record."""
        locations, path = self.locations.get(item_id, []), self._layout.record(item_id)
        fence: Transaction = (Check(path, node[1].version),) if node else (Create(path), Delete(path))
        named, error = list[_Location](), None
        try:
            record = Record.decode(item_id, node[0]) if node else None
            named = [_Location(record.queue, record.pool, record.token)] if record else []
        except CorruptRecord as corrupt:
            error = corrupt
        if any(p.queue not in self._root.queues or p.pool not in self.pools for p in (*locations, *named)):
            yield ScrubFinding(Unrepaired.UNKNOWN, item_id, path)
        elif named:
            yield from self._if_named(named[0], locations, fence)
        elif node or locations:
            yield from self._if_lost(error or ItemNotFound(item_id), node, locations, fence)

    def _if_named(
        self, named: _Location, locations: list[_Location], fence: Transaction
    ) -> Iterator[ScrubFinding]:
        if not locations:  # `move_to_dead` changes no record: the multi checks that dead has no token of it
            dead = self._layout.token(*named._replace(queue=self._root.dead))
            free = self._free(named.token.id, {named.pool})
            operations = (*fence, *free, Create(dead), Delete(dead), Create(self._layout.token(*named)))
            yield ScrubFinding(
                Repair.RESTORED, named.token.id, self._layout.record(named.token.id), operations
            )
        elif named in locations:
            yield from (self._removal(location, named, fence) for location in locations if location != named)
        elif any(location.queue != self._root.dead for location in locations):
            yield ScrubFinding(Unrepaired.MISMATCHED, named.token.id, self._layout.record(named.token.id))

    def _if_lost(
        self, fault: _Fault, node: NodeData | None, locations: list[_Location], fence: Transaction
    ) -> Iterator[ScrubFinding]:
        dead = [location for location in locations if location.queue == self._root.dead]
        if dead:  # with the others, `move_to_dead` would always be refused, or make a second one
            yield from (
                self._removal(location, dead[0], fence) for location in locations if location not in dead
            )
        elif node is None:  # one of several: the next scrub removes the others
            free, token = self._free(fault.item_id, {locations[0].pool}), self._layout.token(*locations[0])
            yield self._dead_letter(
                Repair.MOVED_TO_DEAD, locations[0], fault, token, (*fence, *free, Delete(token))
            )
        elif locations or not self.pools:
            yield ScrubFinding(Unrepaired.UNREADABLE, fault.item_id, self._layout.record(fault.item_id))
        else:  # free in all pools, as the pool is unknown; another scrubber would choose the same name
            pool = DEFAULT_POOL if DEFAULT_POOL in self.pools else self.pools[0]
            location = _Location("", pool, Token(node[1].modified, node[1].created * 1000, fault.item_id))
            path, free = self._layout.record(fault.item_id), self._free(fault.item_id, self.pools)
            yield self._dead_letter(Repair.ENTERED, location, fault, path, (*fence, *free))

    def _removal(self, location: _Location, kept: _Location, fence: Transaction) -> ScrubFinding:
        free = self._free(location.token.id, {location.pool, kept.pool})
        path = self._layout.token(*location)
        operations = (*fence, *free, Check(self._layout.token(*kept)), Delete(path))
        return ScrubFinding(Repair.DEDUPLICATED, location.token.id, path, operations)

    def _dead_letter(
        self, kind: Repair, location: _Location, fault: _Fault, path: str, checks: Transaction
    ) -> ScrubFinding:
        (queue, pool, token), dead, why = location, self._root.dead, str(fault)
        note = encode({"reason": why, "queue": queue, "since": timestamp()})
        event = Event(EventKind.DEAD, token.id, queue, pool, dead, pool, token.due, detail=why, released=True)
        letter = Create(self._layout.token(dead, pool, token), note)
        return ScrubFinding(kind, token.id, path, (*checks, letter), event)

    def _free(self, item_id: str, pools: Iterable[str]) -> list[Operation]:
        """Operations that succeed only if the item is not held: they make its lock and remove it at once."""
        locks = [self._layout.lock(pool, item_id) for pool in pools]
        return [op for lock in locks for op in (Create(lock, ephemeral=True), Delete(lock))]


def _inside(root: Root, folders: Iterable[str]) -> Iterator[tuple[str, str]]:
    """Folder and name of each child of these folders; empty folders are not listed."""
    for folder, node in zip(folders, root.session.get_many(list(folders)), strict=True):
        if node is not None and node[1].children:
            yield from ((folder, name) for name in root.session.children(folder) or ())


def _folders(root: Root, path: str) -> list[str]:
    return [f"{path}/{name}" for name in root.session.children(path) or ()]


def _is_id(name: str) -> bool:
    with contextlib.suppress(InvalidName):
        return bool(check_id(name))
    return False
