"""Mends what the protocol cannot have left: damage by hand, by a restored backup, by bugs and crashes."""

import contextlib
import logging
import re
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import NamedTuple

from queues.bundle import commit_many
from queues.claimer import Claimer
from queues.documents import encode, timestamp
from queues.errors import CorruptRecord, InvalidName, ItemNotFound
from queues.events import Event, EventKind
from queues.names import DEFAULT_POOL, Token, check_id
from queues.operations import Check, Create, Delete, Operation
from queues.receipts import Receipts
from queues.record import Record
from queues.root import Root
from queues.session.multi_read import MAX_PATHS, Found
from queues.transaction import Transaction

log = logging.getLogger(__name__)
_STOP_AGE_MS = 3_600_000  # who asked to stop an item that is gone has learnt that long ago
_RECEIPT_AGE_MS = 24 * 3_600_000  # a producer that was idle for so long makes itself a new one
_RECEIPT = re.compile("[0-9a-f]{32}")
_Fault = CorruptRecord | ItemNotFound


class Mend(StrEnum):
    """What was put right."""

    RESTORED = "the token that a record names was made again: it had none"
    ENTERED = "a record that cannot be read got a token in dead: it had none"
    BURIED = "a token without a record was moved to dead"
    SINGLED = "a token beside the one that counts was removed"
    RECEIPT = "the receipt of a producer that is gone was removed"
    STOP = "the request to stop an item that is gone was removed"


class Left(StrEnum):
    """What was found and not touched."""

    UNNAMED = "its token is not the one that its record names: the next claim makes them agree"
    UNREADABLE = "its record cannot be read: whoever claims it brings it to dead"
    UNKNOWN = "its record or a token of it is in a queue or pool that is not known here"
    HELD = "it needs mending and somebody holds it"
    REFUSED = "it changed after it had been looked at, or its mend could not be sent: the next scrub tells"
    FOREIGN = "a node that is not ours"


@dataclass(frozen=True, slots=True)
class Report:
    """What was looked at, mended (in a dry run: would be) and left: ids, names of receipts, foreign paths."""

    records: int
    tokens: int
    mended: Mapping[Mend, tuple[str, ...]]
    left: Mapping[Left, tuple[str, ...]]


class _Place(NamedTuple):
    queue: str
    pool: str
    token: Token


class Finding(NamedTuple):
    """One thing that is wrong: its item, or name, the node that tells, and the multi that puts it right."""

    kind: Mend | Left
    id: str
    path: str
    step: Transaction = ()  # mends it
    event: Event | None = None


class Scrubber:
    """Compares all records with all tokens and mends what does not fit, while everything goes on.

    Items move while folder after folder is listed. So what looks wrong is looked at again: its record, all
    folders, its record once more. If that is the same node with the same bytes, the item was not claimed,
    moved or put anew in between, only buried perhaps: `dead` is listed last. Each mend is one multi that
    proves that all this still holds and that nobody holds the item; else it is refused.

    The token counts that the record names; where no record can be read, one in dead. Where that is missing,
    others are left alone: a consumer follows the token, and its claim writes it into the record.
    """

    def __init__(self, root: Root, claimer: Claimer, *, dry_run: bool = False) -> None:
        self._root, self._session, self._layout = root, root.session, root.layout
        self._claimer, self._dry_run = claimer, dry_run

    def scrub(self) -> Report:
        """Look at everything once; raises what reads raise. The clock's node is written in any case."""
        if not self._dry_run:
            self._root.pool_folders.restore_unnamed()
        records, tokens, findings = self._search()
        done = self._mend(findings)
        mended = {kind: tuple(found) for kind, found in done.items() if isinstance(kind, Mend)}
        left = {kind: tuple(found) for kind, found in done.items() if isinstance(kind, Left)}
        return Report(records, tokens, mended, left)

    def look(self) -> list[Finding]:
        """All that `scrub` would mend or leave, held or not; writes nothing but the clock's node."""
        return self._search()[2]

    def _search(self) -> tuple[int, int, list[Finding]]:
        layout, survey = self._layout, _Survey(self._root)
        ids, suspects = list[str](), list[str]()
        for bucket, name in _inside(self._root, _folders(self._root, layout.buckets)):
            if _is_id(name) and layout.record(name) == f"{bucket}/{name}":
                ids.append(name)
            else:
                survey.foreign.append(f"{bucket}/{name}")
        for start in range(0, len(ids), MAX_PATHS):  # some at a time: 200,000 records are too many to keep
            for item_id, node in self._read(ids[start : start + MAX_PATHS]):
                suspects += [item_id] if any(survey.judge(item_id, node)) else []
        suspects += survey.places.keys() - set(ids)
        findings = [*self._look_again(suspects), *self._left_overs(survey)]
        return len(ids), sum(map(len, survey.places.values())), findings

    def _read(self, ids: Sequence[str]) -> list[tuple[str, Found]]:
        nodes = self._session.get_many([self._layout.record(item_id) for item_id in ids])
        return list(zip(ids, nodes, strict=True))

    def _look_again(self, ids: Sequence[str]) -> Iterator[Finding]:
        if ids:
            before, survey, after = self._read(ids), _Survey(self._root), self._read(ids)
            for (item_id, node), last in zip(before, after, strict=True):
                if (item_id, node) == last:
                    yield from survey.judge(item_id, node)

    def _left_overs(self, survey: "_Survey") -> Iterator[Finding]:
        receipts, now = self._layout.receipts, self._root.clock.confirmed_ms()
        ages = {self._layout.stops(pool): _STOP_AGE_MS for pool in survey.pools} | {receipts: _RECEIPT_AGE_MS}
        there = {f"{folder}/{name}": (folder, name) for folder, name in _inside(self._root, ages)}
        for path, node in zip(there, self._session.get_many(list(there)), strict=True):
            folder, name = there[path]
            if not (_RECEIPT.fullmatch(name) if folder == receipts else _is_id(name)):
                survey.foreign.append(path)
            elif node is not None and node[1].modified < now - ages[folder]:
                removal, record = Delete(path, node[1].version), self._layout.record(name)
                if folder == receipts:
                    yield Finding(Mend.RECEIPT, name, path, (removal,))
                elif self._session.exists(record) is None:
                    yield Finding(Mend.STOP, name, path, (Create(record), Delete(record), removal))
        yield from (Finding(Left.FOREIGN, path, path) for path in survey.foreign)

    def _mend(self, findings: Sequence[Finding]) -> Mapping[Mend | Left, list[str]]:
        locks = [op.path for f in findings for op in f.step if isinstance(op, Create) and op.ephemeral]
        held = {path for path, node in zip(locks, self._session.get_many(locks), strict=True) if node}
        outcomes, mends = defaultdict[Mend | Left, list[str]](list), list[Finding]()
        for finding in findings:
            is_held = self._claimer.holds(finding.id) or any(op.path in held for op in finding.step)
            if finding.step and is_held:
                outcomes[Left.HELD].append(finding.id)
            elif finding.step and not self._dry_run:
                self._root.ensure_bucket(finding.id)  # some prove that there is no record
                mends.append(finding)
            else:
                outcomes[finding.kind].append(finding.id)
        receipts = Receipts(self._session, self._layout)  # not those of the producers, which may be mended
        refusals = commit_many(self._session, [f.step for f in mends], receipts)
        receipts.close()
        for finding, refused in zip(mends, refusals, strict=True):
            outcomes[Left.REFUSED if refused else finding.kind].append(finding.id)
            log.warning("%s: %s", finding.id, refused or finding.kind)
            if finding.event and not refused:
                self._root.listeners.notify(finding.event)
        return outcomes


class _Survey:
    """All tokens, as they were found while folder after folder was listed, and what is wrong by them."""

    def __init__(self, root: Root) -> None:
        self._root, self._layout = root, root.layout
        self.pools = root.pools.names(low=True)
        self.places, self.foreign = defaultdict[str, list[_Place]](list), list[str]()
        # Also in queues that are not ours; in dead last, so that what is buried meanwhile is not missed.
        queues = _folders(root, self._layout.queue("", "").rstrip("/"))
        for path in sorted(queues, key=lambda path: path.endswith(f"/{root.dead}")):
            for folder, name in _inside(root, _folders(root, path)):
                token = Token.parse(name)
                if token is None or not _is_id(token.id):
                    self.foreign.append(f"{folder}/{name}")
                else:
                    queue, pool = folder.split("/")[-2:]
                    self.places[token.id].append(_Place(queue, pool, token))

    def judge(self, item_id: str, node: Found) -> Iterator[Finding]:
        """What is wrong with an item, if this is its record."""
        places, path = self.places.get(item_id, []), self._layout.record(item_id)
        fence: Transaction = (Check(path, node[1].version),) if node else (Create(path), Delete(path))
        named, error = list[_Place](), None
        try:
            record = Record.decode(item_id, node[0]) if node else None
            named = [_Place(record.queue, record.pool, record.token)] if record else []
        except CorruptRecord as corrupt:
            error = corrupt
        if any(p.queue not in self._root.queues or p.pool not in self.pools for p in (*places, *named)):
            yield Finding(Left.UNKNOWN, item_id, path)
        elif named:
            yield from self._if_named(named[0], places, fence)
        elif node or places:
            yield from self._if_lost(error or ItemNotFound(item_id), node, places, fence)

    def _if_named(self, named: _Place, places: list[_Place], fence: Transaction) -> Iterator[Finding]:
        if not places:  # `bury` changes no record: that there is no grave proves that it was not buried
            grave = self._layout.token(*named._replace(queue=self._root.dead))
            free = self._free(named.token.id, {named.pool})
            step = (*fence, *free, Create(grave), Delete(grave), Create(self._layout.token(*named)))
            yield Finding(Mend.RESTORED, named.token.id, self._layout.record(named.token.id), step)
        elif named in places:
            yield from (self._removal(place, named, fence) for place in places if place != named)
        elif any(place.queue != self._root.dead for place in places):
            yield Finding(Left.UNNAMED, named.token.id, self._layout.record(named.token.id))

    def _if_lost(
        self, fault: _Fault, node: Found, places: list[_Place], fence: Transaction
    ) -> Iterator[Finding]:
        graves = [place for place in places if place.queue == self._root.dead]
        if graves:  # beside them `bury` would be refused for ever, or make a second one
            yield from (self._removal(place, graves[0], fence) for place in places if place not in graves)
        elif node is None:  # one of several: the next scrub removes the others
            free, token = self._free(fault.item_id, {places[0].pool}), self._layout.token(*places[0])
            yield self._burial(Mend.BURIED, places[0], fault, token, (*fence, *free, Delete(token)))
        elif places or not self.pools:
            yield Finding(Left.UNREADABLE, fault.item_id, self._layout.record(fault.item_id))
        else:  # free in all pools, as nobody knows which; a name that another scrubber would choose as well
            pool = DEFAULT_POOL if DEFAULT_POOL in self.pools else self.pools[0]
            place = _Place("", pool, Token(node[1].modified, node[1].created * 1000, fault.item_id))
            path, free = self._layout.record(fault.item_id), self._free(fault.item_id, self.pools)
            yield self._burial(Mend.ENTERED, place, fault, path, (*fence, *free))

    def _removal(self, place: _Place, kept: _Place, fence: Transaction) -> Finding:
        free = self._free(place.token.id, {place.pool, kept.pool})
        path = self._layout.token(*place)
        step = (*fence, *free, Check(self._layout.token(*kept)), Delete(path))
        return Finding(Mend.SINGLED, place.token.id, path, step)

    def _burial(self, kind: Mend, place: _Place, fault: _Fault, path: str, proof: Transaction) -> Finding:
        (queue, pool, token), dead, why = place, self._root.dead, str(fault)
        note = encode({"reason": why, "queue": queue, "since": timestamp()})
        event = Event(EventKind.DEAD, token.id, queue, pool, dead, pool, token.due, detail=why, released=True)
        grave = Create(self._layout.token(dead, pool, token), note)
        return Finding(kind, token.id, path, (*proof, grave), event)

    def _free(self, item_id: str, pools: Iterable[str]) -> list[Operation]:
        """Proves that nobody holds the item: its lock can be made, and is removed at once."""
        locks = [self._layout.lock(pool, item_id) for pool in pools]
        return [op for lock in locks for op in (Create(lock, ephemeral=True), Delete(lock))]


def _inside(root: Root, folders: Iterable[str]) -> Iterator[tuple[str, str]]:
    """Folder and name of all that stands in these folders; those that are empty are not listed."""
    for folder, node in zip(folders, root.session.get_many(list(folders)), strict=True):
        if node is not None and node[1].children:
            yield from ((folder, name) for name in root.session.children(folder) or ())


def _folders(root: Root, path: str) -> list[str]:
    return [f"{path}/{name}" for name in root.session.children(path) or ()]


def _is_id(name: str) -> bool:
    with contextlib.suppress(InvalidName):
        return bool(check_id(name))
    return False
