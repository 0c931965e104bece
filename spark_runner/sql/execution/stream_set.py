"""A statement set of a mode that streams: one query, whose micro-batches all its INSERTs read.

Each micro-batch takes the place of the stream that they share, in the session that Spark has for the query.
That is right for INSERTs without state alone, whose rows depend on no earlier micro-batch.
"""

import contextlib
import copy
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

from pyspark.sql import DataFrame

from spark_runner.connectors.files.inputs import file_read_below
from spark_runner.sql.checkpoints.record import Record
from spark_runner.sql.execution import catalogs
from spark_runner.sql.execution.caching import CachedNames
from spark_runner.sql.execution.judgement import visible
from spark_runner.sql.execution.stream_frames import check_streamable, refused_in_set
from spark_runner.sql.execution.stream_query import Target
from spark_runner.sql.execution.stream_session import StreamSession
from spark_runner.sql.grammar.statement_set import OUTSIDE_OF_SET
from spark_runner.sql.text.literals import quote_name


class StreamSet:
    """The set that is open: it collects its INSERTs until its END."""

    def __init__(self, run: StreamSession, begin: Mapping[str, Any]) -> None:
        self._run, self.begin = run, begin
        self._inserts: list[tuple[Mapping[str, Any], Target, list[str] | None]] = []
        self._tables: dict[int, Mapping[str, Any]] = {}  # targets by the id of the step of the INSERT

    def add(self, frame: DataFrame, step: Mapping[str, Any], target: Target) -> None:
        """Add an INSERT with its rows as a stream; raises SqlError for one with a state.

        Raises the errors of Spark for one that it refuses to stream.
        """
        check_streamable(frame)
        if words := refused_in_set(frame):
            raise self._run.error(words, step)
        self._inserts.append((step, target, visible(frame)))
        self._tables[id(step)] = target.table

    def start(self) -> None:
        """Start the query; in mode available-now, wait for its end."""
        run, source = self._run, self._run.tables[self.begin["stream"].lower()]
        # The steps of later statements, and their texts, do not belong to the set.
        batches = _Batches(run, self.begin["cached"], source, self._tables)

        def begun_at(record: Record) -> DataFrame:
            run.begin_at(record)
            return run.session.table(quote_name(source["name"]))

        again = run.rows_again(lambda script: script.session.table(quote_name(source["name"])))
        run.streams.start_set(begun_at, self.begin, self._inserts, batches.rows, run.table_reads, again=again)
        run.await_at_once([target.table for _, target, _ in self._inserts])


class _Batches:
    """Gives the INSERTs of a set the rows of a micro-batch."""

    def __init__(
        self,
        run: StreamSession,
        shared: Sequence[str],
        source: Mapping[str, Any],
        tables: Mapping[int, Mapping[str, Any]],
    ) -> None:
        self._source, self._tables = source, tables
        self._checked: set[int] = set()  # the ids of the steps of INSERTs whose reads were looked at
        self._declared = list(run.declarations.reading({id(source)}))
        own = source["name"]
        # A view that several INSERTs share keeps its rows; without one, or beside one, the micro-batch does.
        names = {name.lower() for name in shared} | (
            {own.lower()} if _is_kept(source, shared, tables) else set()
        )
        self._kept = [step for step in self._declared if step["name"].lower() in names]
        self._script = copy.copy(run)
        self._script.is_in_batch = True
        self._script.sent = run.sent.copy()

    @contextlib.contextmanager
    def rows(self, frame: DataFrame) -> Iterator[Callable[[Mapping[str, Any]], DataFrame]]:
        """Declare the names that read the stream for this micro-batch."""
        script = self._script
        script.session = frame.sparkSession  # a copy of that of the script, of this query alone
        script.cached = CachedNames(script.session)
        for step in self._kept:
            script.cached.add(step)
        try:
            for step in self._declared:
                if step is self._source:
                    script.kept(step, frame).createOrReplaceTempView(quote_name(step["name"]))
                else:
                    script.declare(step)
            yield self._rows
        finally:
            script.cached.clear()

    def _rows(self, step: Mapping[str, Any]) -> DataFrame:
        if step["kind"] == "catalog":
            found = catalogs.rows_of_insert(self._script, step)
        else:
            found = self._script.query(step, self._tables[id(step)])
        if found.isStreaming:
            raise self._script.error(f"this INSERT reads another stream than its set; {OUTSIDE_OF_SET}", step)
        if id(step) not in self._checked:
            self._check_files(found, step)
            names = [table["name"] for table in self._tables.values() if table["connector"] == "catalog"]
            catalogs.check_reads(self._script, step, found, names)
            self._checked.add(id(step))
        return found

    def _check_files(self, frame: DataFrame, step: Mapping[str, Any]) -> None:
        """Raise SqlError for a query that names files of a target: each micro-batch would find others."""
        places = {table["location"] for table in self._tables.values()} - {""}
        if found := file_read_below(frame, *places):
            message = f"refused: this INSERT reads '{found}', which an INSERT of the same set writes"
            raise self._script.error(message, step)


def _is_kept(source: Mapping[str, Any], shared: Sequence[str], tables: Mapping[int, Any]) -> bool:
    """Whether the micro-batch itself is read more than once."""
    if len(tables) == 1:
        return False
    return source["name"] in shared or not shared or not source["location"]
