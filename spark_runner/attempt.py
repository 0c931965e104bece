"""The attempt node: one compare-and-set node per attempt, so that user code runs at most once in each.

Its version is the state: 0 intent, 1 started, 2 ended; or 0 -> closed | killed, 1 -> lost | killed. Whoever
writes first wins, and the loser of each race has to obey.

Its name holds the run key: versions and numbers begin anew when a job is removed and its id is used again,
and what a driver sends a second time after a lost reply must not reach the attempt of the later job.
"""

import re
from collections.abc import Mapping
from dataclasses import dataclass, replace
from enum import StrEnum
from typing import Any

from spark_runner.redacted import redacted
from spark_runner.zookeeper import (
    CREATE,
    DELETE,
    READ,
    WRITE,
    Create,
    Delete,
    Grant,
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
_NAME = re.compile(r"attempt-(\d{1,10})(?:-(.+))?")  # as many digits as a path of a sequential node has
_MAX_APPLICATION_ID_CHARACTERS = 200
_DEPTH = 3  # of an attempt below the folder of the records: bucket, job, attempt
_OF_DRIVER = READ | WRITE | CREATE | DELETE  # the last two for `alive`
_MAX_BYTES = 512 * 1024  # of an attempt that is written again: a multi holds 768 KiB, and more rides in it
MAX_TABLES = 100  # named in an outcome: about 30 KiB, well below what a node should hold


class AttemptState(StrEnum):
    """How far an attempt has come."""

    INTENT = "intent"  # will be submitted, or has been; no user code ran
    STARTED = "started"  # one driver took it; its user code may have run
    SUCCEEDED = "succeeded"  # that driver said so
    FAILED = "failed"  # that driver said so
    CLOSED = "closed"  # given up before any driver took it; a late driver ends at once
    LOST = "lost"  # its driver is gone without a word
    KILLED = "killed"  # ended because somebody asked

    @property
    def is_open(self) -> bool:
        """Whether a driver may still change it."""
        return self in {AttemptState.INTENT, AttemptState.STARTED}


def attempt_path(record_path: str, run_key: str, number: int) -> str:
    """The node of an attempt; attempts count from 1 and are never reset."""
    return f"{record_path}/attempt-{number}-{run_key}"


def earlier_path(record_path: str, number: int) -> str:
    """The node of an attempt that was made before the run key came into its name."""
    return f"{record_path}/attempt-{number}"


def attempt_number(name: str) -> int | None:
    """The number in the name of an attempt's node, None for another node."""
    match = _NAME.fullmatch(name)
    return None if match is None else int(match[1])


def is_attempt(path: str, jobs: str) -> bool:
    """Whether a node is that of an attempt: `jobs` is the folder of the records.

    Elsewhere a pool or a job may have the name of an attempt.
    """
    inside = path.removeprefix(f"{jobs}/").split("/")
    return path.startswith(f"{jobs}/") and len(inside) == _DEPTH and attempt_number(inside[-1]) is not None


def is_made_by_driver(path: str, jobs: str) -> bool:
    """Whether a node is below an attempt: its driver made it, and says who may read it."""
    return is_attempt(path.rpartition("/")[0], jobs)


def run_name(run_key: str, number: int) -> str:
    """The only name of an attempt outside ZooKeeper (process, application, pod): never the job's id."""
    return f"{run_key}-{number}"


def intent(
    path: str, *, run_key: str, number: int, place: Mapping[str, Any], at: str, login: str = ""
) -> Create:
    """The operation that announces an attempt, before anything is submitted.

    `login` is the digest id that its driver has, where nodes are not open to everybody.
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
    told = {key: value for key, value in document.items() if key != "login"}
    if not login:
        return Create(path, encode(told))
    return Create(path, encode({**told, "login": login}), grant=Grant(_OF_DRIVER, "digest", login))


def recordable(outcome: Mapping[str, Any]) -> dict[str, Any]:
    """The facts of an outcome that may stand in ZooKeeper, where everything is kept in memory.

    Secrets in them are masked. Rows are the user's data: previews stay on the disk, beside the logs, and so
    do their columns. Of a script with very many INSERTs the first ones are named, and the others counted.
    """
    facts = {key: value for key, value in outcome.items() if key != "state"}
    tables = facts.get("tables", [])
    facts["tables"] = [
        {key: value for key, value in table.items() if key not in {"preview", "columns"}}
        for table in tables[:MAX_TABLES]
    ]
    if len(tables) > MAX_TABLES:
        facts["tables_left_out"] = len(tables) - MAX_TABLES
    masked: dict[str, Any] = redacted(facts)
    return masked


def application_in(document: Mapping[str, Any]) -> str | None:
    """The id of Spark's application as a driver has written it, fit for a record; None without one."""
    told = document.get("application_id")
    return told[:_MAX_APPLICATION_ID_CHARACTERS] if isinstance(told, str) and told else None


@dataclass(frozen=True, slots=True)
class Attempt:
    """An attempt as it was read, with the version that the next change must meet.

    `changed_ms`: when it was written last (its start, once it is started), in epoch milliseconds of the
    ensemble.
    """

    path: str
    version: int
    document: Mapping[str, Any]
    changed_ms: int = 0

    @classmethod
    def read(cls, session: Session, path: str, wake: Wake | None = None) -> "Attempt | None":
        """The attempt at this path, None where there is none; raises ValueError for bytes of another kind."""
        found = session.get(path, wake)
        if found is None:
            return None
        return cls.of(path, *found)

    @classmethod
    def watched(cls, session: Session, path: str, wake: Wake | None = None) -> "Attempt | None":
        """The same as a worker needs it: a driver must not hide by what it writes into its attempt.

        What has been made unreadable since the attempt was announced has started: only its driver wrote.
        Raises ValueError for an intent that cannot be read.
        """
        found = session.get(path, wake)
        if found is None:
            return None
        try:
            return cls.of(path, *found)
        except ValueError:
            if found[1].version == VERSION_INTENT:
                raise
            started = {"state": AttemptState.STARTED.value}
            unreadable = cls(path, found[1].version, started, found[1].modified)
            named = {"run_key": unreadable.run_key, "attempt": unreadable.number}
            return replace(unreadable, document={**named, **started})

    @classmethod
    def of(cls, path: str, data: bytes, stat: Stat) -> "Attempt":
        """The attempt in these bytes; raises ValueError for bytes of another kind."""
        document = decode(data)
        AttemptState(str(document.get("state")))
        return cls(path, stat.version, document, stat.modified)

    @property
    def state(self) -> AttemptState:
        """The state as it stands in the document; no driver takes back that it has started."""
        state = AttemptState(self.document["state"])
        is_taken = state is AttemptState.INTENT and self.version > VERSION_INTENT
        return AttemptState.STARTED if is_taken else state

    @property
    def run_key(self) -> str:
        """The run key of the job that made it: as its node is named, for a driver can write the document."""
        named = _NAME.fullmatch(self.path.rpartition("/")[2])
        return str(self.document.get("run_key")) if named is None or named[2] is None else named[2]

    @property
    def run(self) -> str:
        """Its name outside ZooKeeper, by which its driver is found and ended."""
        return run_name(self.run_key, self.number)

    @property
    def number(self) -> int:
        """Which attempt of the job it is: as its node is named, for a driver can write the document."""
        named = attempt_number(self.path.rpartition("/")[2])
        return int(self.document["attempt"]) if named is None else named

    @property
    def incarnation(self) -> str:
        """The submission whose driver took the attempt; empty while none did."""
        return str(self.document.get("incarnation", ""))

    @property
    def alive(self) -> str:
        """The path of the ephemeral of the driver's session; its data is the progress."""
        return f"{self.path}/alive"

    @property
    def login(self) -> str:
        """The digest id of the login that its driver has; empty where it has none.

        A driver can write its attempt: what is no such id would be refused wherever it is to get rights.
        """
        told = self.document.get("login")
        return told if isinstance(told, str) and _LOGIN.fullmatch(told) else ""

    def renewed(self, login: str) -> tuple[Delete, Create]:
        """The operations that give an intent to the driver with this login alone.

        A driver that has another one finds no node of its own any more, so it can never take the attempt.
        """
        return Delete(self.path, self.version), _announced(self.path, self.document, login)

    def advance(self, state: AttemptState, **facts: Any) -> Set:
        """The compare-and-set to `state`: refused when anybody was faster.

        A driver may have filled its node: what no request could hold again is left out.
        """
        told = {"state": state.value, **facts}
        data = encode({**self.document, **told})
        if len(data) > _MAX_BYTES:
            data = encode({"run_key": self.run_key, "attempt": self.number, **told})
        return Set(self.path, data, self.version)
