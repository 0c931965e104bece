"""The attempt node: one compare-and-set node per attempt, so that user code runs at most once in each.

The version of the node is its state: 0 intent, 1 started, 2 ended; or 0 -> closed | killed, 1 -> lost |
killed. The first write wins, and the loser of each race must obey.

The name of the node holds the run key. Versions and numbers start again when a job is removed and its id is
reused, and a request that a driver resends after a lost reply must not reach the attempt of the later job.
"""

import re
from collections.abc import Mapping
from dataclasses import dataclass, replace
from enum import StrEnum
from typing import Any

from spark_runner.protocol.redacted import redacted
from spark_runner.protocol.zookeeper import (
    PERM_CREATE,
    PERM_DELETE,
    PERM_READ,
    PERM_WRITE,
    Create,
    Delete,
    Grant,
    NodeData,
    Session,
    Set,
    Stat,
    Wake,
    decode,
    encode,
)

VERSION_INTENT = 0
VERSION_STARTED = 1
_LOGIN = re.compile(r"[A-Za-z0-9._-]{1,200}:[A-Za-z0-9+/]{27}=")  # a user and a SHA-1 in base64
_NAME = re.compile(r"attempt-(\d{1,10})(?:-(.+))?")  # at most as many digits as a sequential node has
_MAX_APPLICATION_ID_CHARACTERS = 200
_DEPTH = 3  # of an attempt below the folder of the job records: bucket, job, attempt
_OF_DRIVER = PERM_READ | PERM_WRITE | PERM_CREATE | PERM_DELETE  # the last two for `alive`
_MAX_BYTES = 512 * 1024  # of a rewritten attempt: a multi holds 768 KiB, and carries more operations
MAX_TABLES = 100  # named in an outcome: about 30 KiB, well below what a node should hold


class AttemptState(StrEnum):
    """The state of an attempt."""

    INTENT = "intent"  # not yet submitted, or submitted; no user code ran
    STARTED = "started"  # one driver took it; user code may have run
    SUCCEEDED = "succeeded"  # reported by that driver
    FAILED = "failed"  # reported by that driver
    CLOSED = "closed"  # abandoned before any driver took it; a late driver ends at once
    LOST = "lost"  # its driver ended without a report
    KILLED = "killed"  # ended on request

    @property
    def is_open(self) -> bool:
        """Whether a driver may still change it."""
        return self in {AttemptState.INTENT, AttemptState.STARTED}


def attempt_path(record_path: str, run_key: str, number: int) -> str:
    """One attempt, changed only by compare-and-set; attempts count from 1 and are never reset.

    JSON: run key, number, state, backend and host; of its driver the start, the application and the
    outcome.
    """
    return f"{record_path}/attempt-{number}-{run_key}"


def earlier_path(record_path: str, number: int) -> str:
    """The node of an attempt from a version that did not put the run key into its name."""
    return f"{record_path}/attempt-{number}"


def attempt_number(name: str) -> int | None:
    """The number in the name of an attempt's node; None for other nodes."""
    match = _NAME.fullmatch(name)
    return None if match is None else int(match[1])


def is_attempt(path: str, jobs: str) -> bool:
    """Whether a node is an attempt below `jobs`, the folder of the job records.

    Elsewhere a pool or a job may have a name of the same form.
    """
    inside = path.removeprefix(f"{jobs}/").split("/")
    return path.startswith(f"{jobs}/") and len(inside) == _DEPTH and attempt_number(inside[-1]) is not None


def is_made_by_driver(path: str, jobs: str) -> bool:
    """Whether a node is below an attempt: its driver created it and chose its ACL."""
    return is_attempt(path.rpartition("/")[0], jobs)


def run_name(run_key: str, number: int) -> str:
    """The only name of an attempt outside ZooKeeper (process, application, pod); without the job id."""
    return f"{run_key}-{number}"


def intent(
    path: str, *, run_key: str, number: int, place: Mapping[str, Any], at: str, login: str = ""
) -> Create:
    """The operation that announces an attempt before anything is submitted.

    `login` is the digest id of its driver, where nodes have an ACL.
    """
    document = {
        "run_key": run_key,
        "attempt": number,
        "state": AttemptState.INTENT.value,
        "place": dict(place),
        "created": at,
    }
    return _announced(path, document, login)


def _announced(path: str, document: Mapping[str, Any], login: str) -> Create:
    facts = {key: value for key, value in document.items() if key != "login"}
    if not login:
        return Create(path, encode(facts))
    return Create(path, encode({**facts, "login": login}), grant=Grant(_OF_DRIVER, "digest", login))


def outcome_facts(outcome: Mapping[str, Any]) -> dict[str, Any]:
    """The facts of an outcome that ZooKeeper may store; ZooKeeper keeps all its data in memory.

    Secrets in them are masked. Rows are the user's data: previews and their columns stay on disk, beside the
    logs. Of a script with more than `MAX_TABLES` INSERTs the first ones are listed and the others counted.
    """
    facts = {key: value for key, value in outcome.items() if key != "state"}
    tables = facts.get("tables", [])
    facts["tables"] = [
        {key: value for key, value in table.items() if key not in {"preview", "columns"}}
        for table in tables[:MAX_TABLES]
    ]
    if "bad_rows" in facts:
        facts["bad_rows"] = facts["bad_rows"][:MAX_TABLES]
    if len(tables) > MAX_TABLES:
        facts["tables_left_out"] = len(tables) - MAX_TABLES
    masked: dict[str, Any] = redacted(facts)
    return masked


def application_in(document: Mapping[str, Any]) -> str | None:
    """The id of Spark's application that a driver wrote, cut to fit a record; None without one."""
    written = document.get("application_id")
    return written[:_MAX_APPLICATION_ID_CHARACTERS] if isinstance(written, str) and written else None


@dataclass(frozen=True, slots=True)
class Attempt:
    """An attempt as it was read, with the version that the next change must match.

    `changed_ms` is the time of the last write (the start, once it is started) and `created_ms` that of the
    intent, in epoch milliseconds of the ensemble.
    """

    path: str
    version: int
    document: Mapping[str, Any]
    changed_ms: int = 0
    created_ms: int = 0

    @classmethod
    def read(cls, session: Session, path: str, wake: Wake | None = None) -> "Attempt | None":
        """The attempt at this path; None without one. Raises ValueError for bytes that are not an attempt."""
        found = session.get(path, wake)
        if found is None:
            return None
        return cls.of(path, *found)

    @classmethod
    def watched(cls, session: Session, path: str, wake: Wake | None = None) -> "Attempt | None":
        """The attempt at this path, for a worker: a driver must not hide by damaging its own attempt.

        An attempt that became unreadable after its announcement has started, because only its driver writes
        it. Raises ValueError for an intent that cannot be read.
        """
        return cls.found(path, session.get(path, wake))

    @classmethod
    def found(cls, path: str, found: NodeData | None) -> "Attempt | None":
        """The attempt in a node that was read; otherwise as `watched`."""
        if found is None:
            return None
        try:
            return cls.of(path, *found)
        except ValueError:
            if found[1].version == VERSION_INTENT:
                raise
            started = {"state": AttemptState.STARTED.value}
            unreadable = cls(path, found[1].version, started, found[1].modified, found[1].created)
            named = {"run_key": unreadable.run_key, "attempt": unreadable.number}
            return replace(unreadable, document={**named, **started})

    @classmethod
    def of(cls, path: str, data: bytes, stat: Stat) -> "Attempt":
        """The attempt in these bytes; raises ValueError for bytes that are not an attempt."""
        document = decode(data)
        AttemptState(str(document.get("state")))
        return cls(path, stat.version, document, stat.modified, stat.created)

    @property
    def state(self) -> AttemptState:
        """The state in the document; a driver cannot revoke its start."""
        state = AttemptState(self.document["state"])
        is_taken = state is AttemptState.INTENT and self.version > VERSION_INTENT
        return AttemptState.STARTED if is_taken else state

    @property
    def run_key(self) -> str:
        """The run key of its job, from the name of its node: a driver can write the document."""
        named = _NAME.fullmatch(self.path.rpartition("/")[2])
        return str(self.document.get("run_key")) if named is None or named[2] is None else named[2]

    @property
    def run(self) -> str:
        """Its name outside ZooKeeper, by which workers find and kill its driver."""
        return run_name(self.run_key, self.number)

    @property
    def number(self) -> int:
        """Its number within the job, from the name of its node: a driver can write the document."""
        named = attempt_number(self.path.rpartition("/")[2])
        return int(self.document["attempt"]) if named is None else named

    @property
    def incarnation(self) -> str:
        """The submission whose driver took the attempt; empty before that."""
        return str(self.document.get("incarnation", ""))

    @property
    def alive(self) -> str:
        """The sign of life of a driver: an ephemeral of its session; JSON of its progress."""
        return f"{self.path}/alive"

    @property
    def login(self) -> str:
        """The digest id of its driver's login; empty without one.

        A driver can write its attempt, and ZooKeeper would refuse a malformed id in an ACL: such an id counts
        as none.
        """
        written = self.document.get("login")
        return written if isinstance(written, str) and _LOGIN.fullmatch(written) else ""

    @property
    def is_passing(self) -> bool:
        """Whether it was abandoned for a temporary reason, so that its job may be retried."""
        return bool(self.document.get("passing"))

    @property
    def is_unsent(self) -> bool:
        """Whether its node records that nothing was sent to its backend; earlier versions wrote that."""
        return bool(self.document.get("unsent"))

    def renewed(self, login: str) -> tuple[Delete, Create]:
        """The operations that reserve an intent for the driver with this login.

        A driver with another login has no access to the new node, so it can never take the attempt.
        """
        return Delete(self.path, self.version), _announced(self.path, self.document, login)

    def closed(self, *, ended: str, error: Mapping[str, Any] | None = None, passing: bool = False) -> Set:
        """The compare-and-set that abandons the attempt before a driver has taken it."""
        facts: dict[str, Any] = {} if error is None else {"error": error}
        if passing:
            facts["passing"] = True
        return self.advance(AttemptState.CLOSED, ended=ended, **facts)

    def advance(self, state: AttemptState, **facts: Any) -> Set:
        """The compare-and-set to `state`; ZooKeeper refuses it after any other change.

        A driver may have filled its node beyond the limit of a request. Its own facts are then dropped.
        """
        news = {"state": state.value, **facts}
        data = encode({**self.document, **news})
        if len(data) > _MAX_BYTES:
            data = encode({"run_key": self.run_key, "attempt": self.number, **news})
        return Set(self.path, data, self.version)
