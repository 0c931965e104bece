"""Checks the invariants of items after each transaction of ZooKeeper's own log.

A check at the end misses violations that were repaired since. The only input is the log: no history of an
actor, and no code of the system under test.
"""

import json
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Iterator
from copy import deepcopy
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from tests.chaos.snapshot import parse_token
from tests.chaos.transaction_log import Change, Created, Deleted, Transaction, Written, read_transactions

_AFTER = {
    "intent": {"started", "closed", "killed"},
    "started": {"succeeded", "failed", "lost", "killed"},
}
"""Allowed transitions of an attempt; all other states are final."""

_BY_HOLDER = {"intent", "closed", "lost"}
"""States that only the holder of the item may write; drivers may write the others too."""

_OPERATOR = "client"
"""Prefixes of the names of holders that may claim any item; all others claim only due items."""

_EARLY_MS = 50
"""Tolerance between the clocks of a consumer and of the leading server."""


def logged_violations(
    data_dirs: Iterable[Path], root: str, ahead_ms: Callable[[str], int] = lambda _log: 0
) -> list[str]:
    """Violations of the items below `root` in the log of these servers; see `read_transactions`.

    Raises LogDamaged, and ValueError for a log without claims: it would prove nothing.
    """
    judge = LogJudge(root)
    found = list(judge.violations(read_transactions(data_dirs, ahead_ms)))
    if not judge.seen["claimed"]:
        message = f"by the transaction log, no item below {root} was claimed"
        raise ValueError(message)
    return found


@dataclass(slots=True)
class _Item:
    """All nodes of one id."""

    record: dict[str, Any] | None = None  # empty: the record is not readable
    version: int = 0
    tokens: set[str] = field(default_factory=set)
    locks: dict[str, tuple[int, str]] = field(default_factory=dict)  # path -> session, name of the holder
    stops: set[str] = field(default_factory=set)
    attempts: dict[str, tuple[str, int]] = field(default_factory=dict)  # path -> state, version
    made: set[str] = field(default_factory=set)  # paths of all attempts of this put so far

    def holders(self, session: int) -> set[str]:
        """The owner names of the locks that a session has on the item."""
        return {name for owner, name in self.locks.values() if owner == session}


class LogJudge:
    """Follows the items below `root` through the transactions; `seen` counts the events."""

    def __init__(self, root: str) -> None:
        self._root = root
        self._items: defaultdict[str, _Item] = defaultdict(_Item)
        self.seen: Counter[str] = Counter()

    def violations(self, transactions: Iterable[Transaction]) -> Iterator[str]:
        """The violations in order, each with its transaction."""
        for transaction in transactions:
            by_id: defaultdict[str, list[tuple[str, Change]]] = defaultdict(list)
            for change in transaction.changes:
                kind, item_id = self._belongs(change.path)
                if kind:
                    by_id[item_id].append((kind, change))
            for item_id, changes in by_id.items():
                for what in self._judge(transaction, self._items[item_id], changes):
                    yield f"{item_id}: {what} (transaction {transaction.zxid:#x})"

    def _belongs(self, path: str) -> tuple[str, str]:
        """Kind and item of a node; empty for a node of no item."""
        if not path.startswith(f"{self._root}/"):
            return "", ""
        match path.removeprefix(f"{self._root}/").split("/"):
            case ["jobs", _, item_id]:
                return "record", item_id
            case ["jobs", _, item_id, name] if name.startswith("attempt-"):
                return "attempt", item_id
            case [("locks" | "stops") as folder, _, item_id]:
                return folder, item_id
            case ["queues", _, _, name]:
                return "tokens", parse_token(name)[0]
        return "", ""

    # ------------------------------------------------------------------ one item in one transaction
    def _judge(
        self, transaction: Transaction, item: _Item, changes: list[tuple[str, Change]]
    ) -> Iterator[str]:
        before = deepcopy(item)
        holders = item.holders(transaction.session)
        for kind, change in changes:
            match kind:
                case "record":
                    yield from _write_record(item, change)
                case "attempt":
                    yield from self._write_attempt(item, change, is_held=bool(holders))
                case "locks":
                    _write_lock(item, change)
                    holders |= item.holders(transaction.session)
                case "tokens":
                    _write_path(item.tokens, change)
                case "stops":
                    _write_path(item.stops, change)
        yield from _change_of_put(before, item)
        yield from _held_once(before, item)
        is_claimed = bool(item.holders(transaction.session)) and not before.holders(transaction.session)
        is_changed = (before.record, before.version) != (item.record, item.version)
        is_spoilt = item.record == {}  # overwritten by a fault, or by an operator
        if is_changed and before.record is not None and not holders and not is_spoilt:
            yield "its record changed without its lock"
        if is_changed or before.tokens != item.tokens:
            yield from _in_one_queue(self._root, item)
        if (is_changed or is_claimed) and not all(name.startswith(_OPERATOR) for name in holders):
            yield from self._early(transaction, before, item)

    def _early(self, transaction: Transaction, before: _Item, item: _Item) -> Iterator[str]:
        if item.record is None:
            what = "removed"  # a request to stop does not allow an early removal
        elif not before.holders(transaction.session):
            what = "claimed"
        elif item.made - before.made:
            what = "begun"  # for whatever it was claimed
        else:
            return  # it has the same holder as before
        self.seen[what] += 1
        if what == "claimed" and before.stops:
            return
        due = max((parse_token(token.rpartition("/")[2])[1] or 0 for token in before.tokens), default=0)
        if due - transaction.time_ms > _EARLY_MS:
            yield f"it was {what} {due - transaction.time_ms} ms before it was due"

    def _write_attempt(self, item: _Item, change: Change, *, is_held: bool) -> Iterator[str]:
        if isinstance(change, Deleted):
            was, _ = item.attempts.pop(change.path, ("", -1))
            if was in _AFTER:
                yield f"an attempt that is {was} was removed"
            return
        document = _document(change.data)
        state, run_key = str(document.get("state")), document.get("run_key")
        self.seen[state] += 1
        if item.record and run_key != item.record.get("run_key"):
            yield f"an attempt of put {run_key} was written, and there is put {item.record.get('run_key')}"
        was, version = item.attempts.get(change.path, ("", -1))
        now = change.version if isinstance(change, Written) else 0
        item.attempts[change.path] = state, now
        if isinstance(change, Created):
            if state != "intent":
                yield f"an attempt began as {state}"
            if change.path in item.made:
                yield "an attempt was made again"
            item.made.add(change.path)
        elif state not in _AFTER.get(was, set()) or now != version + 1:
            yield f"an attempt went from {was}@{version} to {state}@{now}"
        if state in _BY_HOLDER and not is_held:
            yield f"an attempt became {state} without the lock of its item"


def _change_of_put(before: _Item, item: _Item) -> Iterator[str]:
    """Violations of the run key, which never changes after the put."""
    if item.record is None:
        item.made = set()
    elif before.record and item.record and item.version > before.version:
        was, is_now = before.record["run_key"], item.record["run_key"]
        if was != is_now:
            yield f"its run key changed from {was} to {is_now}"


def _held_once(before: _Item, item: _Item) -> Iterator[str]:
    if before.locks == item.locks:
        return
    pools = {path.split("/")[-2] for path in item.tokens}
    if len(item.locks) > 1:
        yield f"it is held {len(item.locks)} times: {sorted(item.locks)}"
    elif item.record and any(path.split("/")[-2] not in pools for path in item.locks):
        yield f"it is held in another pool than that of its token: {sorted(item.locks)}"


def _write_record(item: _Item, change: Change) -> Iterator[str]:
    match change:
        case Created():
            item.record, item.version = _record(change.data), 0
        case Written():
            if change.version != item.version + 1:
                yield f"the log has a gap: version {change.version} of its record follows {item.version}"
            item.record, item.version = _record(change.data), change.version
        case Deleted():
            item.record = None


def _write_lock(item: _Item, change: Change) -> None:
    if isinstance(change, Created):
        item.locks[change.path] = change.owner, str(_document(change.data).get("worker", ""))
    elif isinstance(change, Deleted):
        item.locks.pop(change.path, None)


def _write_path(paths: set[str], change: Change) -> None:
    if isinstance(change, Created):
        paths.add(change.path)
    elif isinstance(change, Deleted):
        paths.discard(change.path)


def _in_one_queue(root: str, item: _Item) -> Iterator[str]:
    if item.record is None:
        if item.tokens:
            yield f"it has no record, and has tokens in {sorted(item.tokens)}"
    elif len(item.tokens) != 1:
        yield f"it has tokens in {len(item.tokens)} queues: {sorted(item.tokens)}"
    elif item.record:
        named = f"{root}/queues/{item.record['queue']}/{item.record['pool']}/{item.record['token']}"
        if named not in item.tokens:
            yield f"its record names {named}, and its token is {sorted(item.tokens)}"


def _record(data: bytes) -> dict[str, Any]:
    document = _document(data)
    return document if document.keys() >= {"run_key", "queue", "pool", "token"} else {}


def _document(data: bytes) -> dict[str, Any]:
    try:
        document = json.loads(data)
    except ValueError:
        return {}
    return document if isinstance(document, dict) else {}
