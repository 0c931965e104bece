"""The folder in which a streaming query keeps its progress, bound to what the query computes.

`orchestrator.json` beside the files of Spark has `fingerprint`, of the tables, views and the query, and
`stream`, the identity of all batches that this folder counts.
"""

import contextlib
import uuid
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace
from typing import Any

from pyspark.sql import SparkSession

from spark_runner.connectors.errors import ConnectorError
from spark_runner.sql.checkpoints.listing import finished_batches, has_begun, offsets_reached
from spark_runner.sql.checkpoints.record import RECORD, DamagedRecord, Record
from spark_runner.sql.checkpoints.removal import put_away, sweep
from spark_runner.sql.execution.hadoop_folders import folders_of
from spark_runner.sql.execution.moved_inserts import check_not_moved


class Checkpoint:
    """One folder; `url` is absolute. `use` says how the job begins: see CheckpointUse of its definition.

    `use` has the `run_key` of the job, too. A checkpoint is begun anew once per job: its further attempts
    continue.
    """

    def __init__(self, session: SparkSession, url: str, use: Mapping[str, Any] | None = None) -> None:
        self.url = url
        self._folders = folders_of(session, url)
        use = use or {}
        self._start, self._run_key = use.get("start", "continue"), str(use.get("run_key", ""))
        self._positions = {name.lower(): each for name, each in (use.get("positions") or {}).items()}

    @contextlib.contextmanager
    def opened(self, fingerprint: str, targets: tuple[str, ...] = ()) -> Iterator[Record]:
        """What the folder counts; a new stream in an empty folder. The folder is locked on this host.

        `targets` are those of a statement set.

        Raises ConnectorError if it belongs to another query, or a running driver uses it. In a file system
        of a cluster Spark itself ends the query whose batch another one has counted.
        """
        with contextlib.ExitStack() as stack:
            self._lock(stack)
            earlier = self._jobs() if self._start == "fresh" else None
            if earlier is not None and not (self._run_key and self._run_key in earlier):
                put_away(self._folders, self.url)
                self._lock(stack)  # the folder that takes its place
            record = self._record(fingerprint, targets, tuple(earlier or ()))
            sweep(self._folders, self.url)
            yield replace(record, reached=offsets_reached(self._folders, self.url))

    def identify(self, record: Record, identities: Iterable[str]) -> None:
        """Keep the identities of what the streams of the query read, beside those of the record."""
        if (found := record.identified(identities)).identities != record.identities:
            self._folders.replace(f"{self.url}/{RECORD}", found.text())

    def keep_limit(self, limit: int) -> None:
        """Keep the rows per micro-batch with which a further attempt goes on."""
        file = f"{self.url}/{RECORD}"
        if (text := self._folders.read(file)) is not None:
            self._folders.replace(file, replace(Record.of(text, self.url), limit=limit).text())

    def stream(self) -> tuple[str, int] | None:
        """The stream that the folder counts, and its ended batches.

        None without one, and for one that the job begins anew.
        """
        text = self._folders.read(f"{self.url}/{RECORD}")
        if text is None or (self._start == "fresh" and self._run_key not in (self._jobs() or ())):
            return None
        return Record.of(text, self.url).stream, finished_batches(self._folders, self.url)

    def check_not_moved(self, targets: Iterable[str], used: Mapping[str, Counter[str]]) -> None:
        """Raise ConnectorError for an INSERT whose rows so far another checkpoint counts; see there."""
        if self._start != "fresh":
            check_not_moved(self._folders, self.url, targets, used)

    def _lock(self, stack: contextlib.ExitStack) -> None:
        self._folders.make(self.url)
        if not stack.enter_context(self._folders.lock(self.url)):
            raise ConnectorError(
                f"refused: another running job uses the checkpoint '{self.url}'; wait for its end, or"
                " give this job another name"
            )

    def _jobs(self) -> list[str] | None:
        """The jobs that have begun it anew, of which this one may be one; None if it is empty."""
        text = self._folders.read(f"{self.url}/{RECORD}")
        if text is None and self._is_empty():
            return None
        try:
            return [] if text is None else Record.of(text, self.url).jobs()
        except DamagedRecord:
            return []

    def _is_empty(self) -> bool:
        """Whether nothing but drafts of records is in it."""
        return all(name.startswith(".") for name in self._folders.names(self.url) or ())

    def _record(self, fingerprint: str, targets: tuple[str, ...], earlier: tuple[str, ...]) -> Record:
        file = f"{self.url}/{RECORD}"
        text = self._folders.read(file)
        if text is None:
            if not self._is_empty():
                raise ConnectorError(f"refused: '{self.url}' is not empty, and has no {RECORD}")
            begun = self._start == "fresh"
            record = Record(
                fingerprint,
                uuid.uuid4().hex,
                self._run_key if begun else "",
                self._positions if begun else {},
                targets,
                earlier,
            )
            self._folders.replace(file, record.text())
            return record
        record = Record.of(text, self.url)
        if record.fingerprint == fingerprint:
            return record
        # A stream without a batch has read nothing, so there is nothing that another query could miss.
        if self._start == "continue" and has_begun(self._folders, self.url):
            raise ConnectorError(
                "refused: the tables, views or the query of this INSERT are not those that its checkpoint"
                f" '{self.url}' counts; submit the job with --resume to continue with the new ones, with"
                " --fresh to read all data again, or with --from POSITION to begin there"
            )
        record = record.taken_over(fingerprint, targets)
        self._folders.replace(file, record.text())
        return record
