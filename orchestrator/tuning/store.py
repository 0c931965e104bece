"""The nodes of tunings in ZooKeeper: read, changed by operators, and extended by decisions."""

import threading
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import suppress
from typing import Any

from orchestrator.audit.trail import Trail
from orchestrator.history.history import History
from orchestrator.model.errors import CorruptHistory, CorruptTuning, HistoryNotFound, InvalidTuning
from orchestrator.model.paths import Nodes
from orchestrator.model.tuning import TuningMode
from orchestrator.tuning.record import StoredDecision, TuningRecord, amounts, resources
from orchestrator.tuning.resources import Resource
from orchestrator.tuning.samples import last_run
from queues import (
    AccessDenied,
    Conflict,
    Create,
    Delete,
    InvalidName,
    NodeData,
    Operation,
    OutcomeUnknown,
    Session,
    Set,
    WatchedFolder,
    check_id,
    commit,
    timestamp,
)

_MAX_TRIES = 20  # each failure means that another worker or operator was faster


class TuningStore:
    """All tunings below one root. Safe to use from several threads."""

    def __init__(self, session: Session, nodes: Nodes) -> None:
        self._session, self._nodes = session, nodes
        self._trail = Trail(session, nodes)
        self._history = History(session, nodes)

    def names(self) -> Sequence[str]:
        """The names with a history or a tuning; nodes of other programs, whose names are no ids, are none."""
        folders = (self._nodes.histories, self._nodes.tunings)
        found = {name for folder in folders for name in self._session.children(folder) or ()}
        return sorted(name for name in found if _is_id(name))

    def read(self, name: str) -> TuningRecord:
        """The record of a name, an empty one without a node; raises CorruptTuning."""
        return self._decoded(name, self._session.get(self._nodes.tuning(check_id(name))))

    def get(self, name: str) -> TuningRecord:
        """The record of a name that has a history or a tuning; raises HistoryNotFound, CorruptTuning."""
        self._check_known(name)
        return self.read(name)

    def _check_known(self, name: str) -> None:
        paths = (self._nodes.history(name), self._nodes.tuning(name)) if _is_id(name) else ()
        if all(self._session.exists(path) is None for path in paths):
            raise HistoryNotFound(name)

    def add(self, name: str, decision: StoredDecision) -> bool:
        """Store a decision among the last ones; returns whether it says anything new.

        Raises CorruptTuning, OutcomeUnknown and the errors of writes.
        """
        is_new = True

        def added(record: TuningRecord) -> TuningRecord:
            nonlocal is_new
            after = record.with_decision(decision)
            is_new = after is not record
            return after

        self._change(name, added, lambda _before, _after: ())
        return is_new

    def abandoned(self, before: int) -> Iterator[Delete]:
        """The removals of nodes that were last written before this time, in epoch ms, and serve no run.

        Their name has no history any more, and no operator has set anything for it. Damaged nodes stay.
        """
        session, names = self._session, self._session.children(self._nodes.tunings) or ()
        known = set(session.children(self._nodes.histories) or ())
        for name in names:
            if name in known or not _is_id(name):
                continue
            with suppress(AccessDenied, CorruptTuning):
                found = session.get(self._nodes.tuning(name))
                if found is None or found[1].modified >= before or self._decoded(name, found).is_governed:
                    continue
                yield Delete(self._nodes.tuning(name), found[1].version)

    # ------------------------------------------------------------------ operators
    def set_mode(self, name: str, mode: TuningMode | None) -> TuningRecord:
        """Set the mode of a name; None = that of its definition. Raises HistoryNotFound, CorruptTuning."""
        return self._act(name, "set-mode", lambda _record: {"mode": mode})

    def pin(self, name: str, pins: dict[str, str], *, removed: Iterable[str] = ()) -> TuningRecord:
        """Pin resources of a name, and unpin others; raises InvalidTuning, HistoryNotFound, CorruptTuning."""
        new, gone = amounts(pins), resources(removed)
        return self._act(name, "pin", lambda record: {"pins": _changed("pinned", record.pins, new, gone)})

    def cap(self, name: str, caps: dict[str, str], *, removed: Iterable[str] = ()) -> TuningRecord:
        """Cap resources of a name, and uncap others; raises InvalidTuning, HistoryNotFound, CorruptTuning."""
        new, gone = amounts(caps), resources(removed)
        return self._act(name, "cap", lambda record: {"caps": _changed("capped", record.caps, new, gone)})

    def reset(self, name: str, *, all_: bool = False) -> TuningRecord:
        """Forget the runs so far, and the decisions; with `all_` also pins, caps, mode, and damage.

        Raises HistoryNotFound, and CorruptTuning without `all_`.
        """

        def anew(_record: TuningRecord) -> dict[str, Any]:
            kept: dict[str, Any] = {"mode": None, "pins": {}, "caps": {}} if all_ else {}
            return {"forgotten": self._last_run(name), "decisions": (), **kept}

        return self._act(name, "reset", anew, repairs=all_)

    def _last_run(self, name: str) -> str:
        try:
            runs = self._history.read(name)
        except (CorruptHistory, HistoryNotFound):
            return ""
        return last_run(runs, timestamp())

    def _act(
        self,
        name: str,
        action: str,
        changes: Callable[[TuningRecord], dict[str, Any]],
        *,
        repairs: bool = False,
    ) -> TuningRecord:
        act = self._trail.act(action)
        self._check_known(name)

        def entry(before: TuningRecord, after: TuningRecord) -> Sequence[Operation]:
            facts = [each.model_dump(mode="json", include=_SHOWN) for each in (before, after)]
            return [self._trail.entry(act, "tuning", name, before=facts[0], after=facts[1])]

        return self._change(
            name, lambda record: record.changed_by(act, **changes(record)), entry, repairs=repairs
        )

    def _change(
        self,
        name: str,
        change: Callable[[TuningRecord], TuningRecord],
        more: Callable[[TuningRecord, TuningRecord], Sequence[Operation]],
        *,
        repairs: bool = False,
    ) -> TuningRecord:
        path, after = self._nodes.tuning(check_id(name)), None
        for _ in range(_MAX_TRIES):
            found = self._session.get(path)
            try:
                before = self._decoded(name, found)
            except CorruptTuning:
                if not repairs:
                    raise
                before = TuningRecord(name=name)
            if before == after:  # the change was made, and its reply was lost
                return before
            after = change(before)
            if after is before:
                return before
            if found is None:
                self._session.ensure_path(self._nodes.tunings)
            data = after.encode()
            write = Create(path, data) if found is None else Set(path, data, found[1].version)
            try:
                commit(self._session, [write, *more(before, after)])
            except Conflict:
                continue
            return after
        raise OutcomeUnknown(f"others were faster every time to change {path}")

    def _decoded(self, name: str, found: NodeData | None) -> TuningRecord:
        if found is None:
            return TuningRecord(name=name)
        return TuningRecord.decode(name, self._nodes.tuning(name), found[0])


class KnownTunings:
    """The tunings as a worker reads them before each attempt: a name without a node costs no request.

    A watch on the folder says which names have one; a node that was just created may be missed for a second.
    """

    def __init__(self, store: TuningStore, session: Session, nodes: Nodes) -> None:
        self._store, self._session = store, session
        self._folder = WatchedFolder(session, nodes.tunings, lambda: None)
        self._names = frozenset[str]()
        self._guard = threading.Lock()
        session.on_change(self._rearm)

    def read(self, name: str) -> TuningRecord:
        """The record of a name, an empty one without a node; raises CorruptTuning and the errors of reads."""
        with self._guard:
            if self._folder.changed and not self._names:
                self._session.ensure_path(self._folder.path)  # a missing folder cannot be watched
            if self._folder.refresh(urgent=True):
                self._names = frozenset(self._folder.names)
        return self._store.read(name) if name in self._names else TuningRecord(name=name)

    def add(self, name: str, decision: StoredDecision) -> bool:
        """See TuningStore."""
        return self._store.add(name, decision)

    def _rearm(self) -> None:
        self._folder.changed = True  # the watch ended with the connection


_SHOWN = {"mode", "pins", "caps", "forgotten"}


def _is_id(name: str) -> bool:
    try:
        check_id(name)
    except InvalidName:
        return False
    return True


def _changed(
    what: str, before: dict[Resource, float], new: dict[Resource, float], gone: set[Resource]
) -> dict[Resource, float]:
    for resource in sorted(gone):
        if resource in new:
            raise InvalidTuning(f"{resource} is both set and removed")
        if resource not in before:
            raise InvalidTuning(f"{resource} is not {what}")
    return {resource: value for resource, value in (before | new).items() if resource not in gone}
