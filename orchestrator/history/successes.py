"""The last success of each job name for which a schedule waits.

The node of a name exists only while a schedule waits for the name. The multi that moves a job to finish as
SUCCESS sets the node, so a success is recorded exactly when it happens, whatever becomes of the job later.
"""

import threading
from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from loguru import logger
from pydantic import BaseModel, ConfigDict, ValidationError, field_validator

from orchestrator.model.act import Word
from orchestrator.model.fields import explain
from orchestrator.model.paths import Nodes
from orchestrator.model.times import from_text, to_text
from queues import (
    Check,
    Create,
    InvalidName,
    NodeData,
    Operation,
    Record,
    Session,
    Set,
    WatchedFolder,
    check_id,
    decode,
    encode,
)
from spark_runner.protocol.attempt import run_name


class Success(BaseModel):
    """One success: the job, the name of its attempt, which no other has, and the time in ISO 8601, UTC."""

    model_config = ConfigDict(frozen=True, extra="ignore")

    job: Word
    run: Word
    at: str

    @field_validator("at")
    @classmethod
    def _is_time(cls, value: str) -> str:
        from_text(value)
        return value

    @classmethod
    def of(cls, record: Record, attempt: int, now: int) -> "Success":
        """The success of this attempt of a job; `now` in epoch milliseconds of the ensemble."""
        return cls(job=record.id, run=run_name(record.run_key, attempt), at=to_text(now))

    def encode(self) -> bytes:
        """The bytes of the node."""
        return encode(self.model_dump(mode="json"))


def set_success(path: str, success: Success) -> Set:
    """The operation that records a success; refused where no schedule waits for the name any more."""
    return Set(path, success.encode(), -1)


@dataclass(frozen=True, slots=True)
class Awaited:
    """What the node of a name holds."""

    success: Success | None = None  # None: there was none, or it cannot be read
    version: int = 0
    error: str = ""  # why it cannot be read; the next success replaces it


class Successes:
    """The nodes of all names below one root. Safe to use from several threads."""

    def __init__(self, session: Session, nodes: Nodes) -> None:
        self._session, self._nodes = session, nodes

    def read(self, names: Iterable[str]) -> Mapping[str, Awaited]:
        """The last success of each name that has a node, as it is now; raises the errors of reads."""
        wanted = sorted(set(names))
        found = self._session.get_many([self._nodes.success(name) for name in wanted])
        return {name: _awaited(node) for name, node in zip(wanted, found, strict=True) if node is not None}

    def await_names(self, names: Iterable[str]) -> tuple[Mapping[str, Awaited], list[Operation]]:
        """What was read of these names, and the operations by which a registration begins to wait for them.

        They are refused if a job succeeds in between, or if the leader removes a node.
        """
        wanted = list(names)
        if not wanted:
            return {}, []
        self._session.ensure_path(self._nodes.successes)
        paths = [self._nodes.success(name) for name in wanted]
        seen, operations = dict[str, Awaited](), list[Operation]()
        for name, path, node in zip(wanted, paths, self._session.get_many(paths), strict=True):
            seen[name] = Awaited() if node is None else _awaited(node)
            operations.append(Create(path) if node is None else Set(path, node[0], node[1].version))
        return seen, operations

    def ensure(self, name: str) -> None:
        """Create the node of a name that is missing, for example after a restore of other nodes."""
        logger.warning("{} is missing and is created: a schedule waits for it", self._nodes.success(name))
        self._session.ensure_path(self._nodes.success(name))

    def unchanged(self, found: Mapping[str, Awaited]) -> list[Check]:
        """The checks that the nodes of these names are as they were read."""
        return [Check(self._nodes.success(name), each.version) for name, each in found.items()]


def _awaited(node: NodeData) -> Awaited:
    data, version = node[0], node[1].version
    if not data:
        return Awaited(version=version)
    try:
        return Awaited(Success.model_validate(decode(data)), version)
    except ValidationError as error:
        return Awaited(version=version, error=explain(error, Success, "it").replace("\n", "; "))
    except ValueError as error:
        return Awaited(version=version, error=str(error))


class KnownSuccesses:
    """The names for which schedules wait, as a worker knows them: a job of another name costs no request.

    A watch on the folder says which names have a node. ZooKeeper delivers it before any later change, so no
    success of a job that is enqueued after the registration of a schedule is missed. Thread-safe.
    """

    def __init__(self, session: Session, nodes: Nodes) -> None:
        self._session, self._nodes = session, nodes
        self._folder = WatchedFolder(session, nodes.successes, lambda: None)
        self._names = frozenset[str]()
        self._guard = threading.Lock()
        session.on_change(self._rearm)

    def operations(self, name: str, record: Record, attempt: int, now: int) -> tuple[Set, ...]:
        """What the multi that finishes a job as SUCCESS has to include; raises the errors of reads."""
        with self._guard:
            if self._folder.changed:
                self._session.ensure_path(self._folder.path)  # a missing folder cannot be watched
            if self._folder.refresh(urgent=True):
                self._names = frozenset(self._folder.names)
            is_current = not self._folder.changed  # otherwise it was listed a moment ago
            is_known = name in self._names
        if not is_known and (is_current or not self._exists(name)):
            return ()
        return (set_success(self._nodes.success(name), Success.of(record, attempt, now)),)

    def _exists(self, name: str) -> bool:
        try:
            return self._session.exists(self._nodes.success(check_id(name))) is not None
        except InvalidName:  # of a record that another program wrote
            return False

    def _rearm(self) -> None:
        self._folder.changed = True  # the watch ended with the connection
