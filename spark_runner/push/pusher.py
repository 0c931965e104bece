"""The push for users who write PySpark: a subclass sends batches, and gets order, retries and limits."""

import json
import time
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import islice
from typing import Any

from pyspark.sql import DataFrame, Row, SparkSession
from pyspark.sql import functions as sql

from spark_runner.push.batch import Batch, Priority, Record
from spark_runner.push.errors import PushError, Refused, TimedOut
from spark_runner.push.positions import BadPosition, check_position
from spark_runner.push.pushes import Pushes
from spark_runner.push.retry import Results
from spark_runner.push.settings import Limits, PushSettings
from spark_runner.push.task import Portion, PushTask

_PORTION = 1000  # rows that are read at once
_AVAILABLE_S = 2.0  # between questions for how many rows the source has
_RESULT = "delivered BIGINT, reason STRING, row STRING, position STRING"


@dataclass(frozen=True, slots=True)
class Pushed:
    """What has become of the rows: `dead` has the columns `reason` and `row` (STRING).

    `position` is that of `fetch` up to which each row is delivered, or in `dead`.
    """

    delivered: int
    dead: DataFrame
    position: Any = None


class Pusher:
    """Delivers rows to a target. A subclass implements `push`, and what else it needs.

    It travels to the tasks of Spark, so its attributes must be serializable; what is not, such as a
    connection, is made by `open`.
    """

    def open(self) -> None:
        """Prepare to push, once in each task."""

    def close(self) -> None:
        """End, once in each task in which it was opened."""

    def push(self, rows: Sequence[Any]) -> Results:
        """Send rows in one request; several threads call it at the same time.

        Returns None if the target took all of them, or the errors of single rows by their index. Raises a
        DeliveryError for all of them: Retryable, Overloaded, TimedOut, Refused, Permanent. TimeoutError and
        ConnectionError count as TimedOut and Refused; any other error ends the push.
        """
        raise NotImplementedError

    def fetch(self, position: Any) -> tuple[Sequence[Any], Any] | None:
        """The next rows after a position of the source, and the position after them; None at the end.

        The first position is that of `run_fetched`. Positions are values for JSON.
        """
        raise NotImplementedError

    def available(self, position: Any) -> int | None:  # noqa: ARG002 - of subclasses
        """How many rows the source has after a position, for `job show`; asked every 2 s at most."""
        return None

    def lane(self, row: Any) -> str:  # noqa: ARG002 - of subclasses
        """The lane of a row, such as its topic: a slow one delays no other."""
        return ""

    def key(self, row: Any) -> Any:  # noqa: ARG002 - of subclasses
        """The key of a row; in order `key`, rows with an equal one are delivered in their order."""
        return None

    def priority(self, row: Any) -> Priority:  # noqa: ARG002 - of subclasses
        """Which rows of a lane are served first; rows in an order have none."""
        return Priority.MEDIUM

    def size(self, row: Any) -> int:
        """The size of a row in the buffer, in bytes, about."""
        return len(repr(row))

    def run(
        self, frame: DataFrame, name: str, settings: PushSettings | None = None, limits: Limits | None = None
    ) -> Pushed:
        """Push the rows of a frame, each partition in its order; a further attempt of a task pushes again.

        In an order, rows that belong together must be in one partition, in this order. `name` is shown by
        `job show`. The limits hold for all tasks together. Raises PushError, and errors of Spark.
        """
        return self._run(frame, name, settings, limits, None)

    def run_fetched(
        self,
        session: SparkSession,
        name: str,
        position: Any = None,
        settings: PushSettings | None = None,
        limits: Limits | None = None,
    ) -> Pushed:
        """Push the rows that `fetch` finds, in one task; otherwise as `run`.

        It goes on where the last push of this name in a job of the same name has come to; the first one
        begins at `position`. Rows that were not acknowledged then come again.
        """
        return self._run(session.range(0, 1, 1, 1), name, settings, limits, (position,))

    def _run(
        self,
        frame: DataFrame,
        name: str,
        settings: PushSettings | None,
        limits: Limits | None,
        fetched: tuple[Any] | None,
    ) -> Pushed:
        session, pushes = frame.sparkSession, Pushes.of_job or Pushes()
        kept_as = "" if fetched is None else name
        settings, limits = settings or PushSettings(), limits or Limits()
        with pushes.start(session, name, settings, limits, kept_as=kept_as, is_of_name=True) as task:
            begin = None if fetched is None else (task.reached.get(0, *fetched),)
            results = frame.rdd.mapPartitions(_Partition(self, task, begin))
            # Kept, for a further look at the result would push the rows again.
            found = session.createDataFrame(results, _RESULT).localCheckpoint()
        totals = found.agg(sql.sum("delivered"), sql.max("position")).collect()[0]
        dead = found.where("reason IS NOT NULL").select("reason", "row")
        position = None if totals[1] is None else json.loads(totals[1])
        if position is not None:
            pushes.reached(name, position)
        return Pushed(totals[0], dead, position)


class _Partition:
    """Pushes the rows of one partition, in a task of Spark."""

    def __init__(self, pusher: Pusher, task: PushTask, fetched: tuple[Any] | None) -> None:
        self.pusher, self.task, self.fetched = pusher, task, fetched

    def __call__(self, rows: Iterable[Any]) -> Iterator[tuple[int, str | None, str | None, str | None]]:
        self.pusher.open()
        try:
            portions = self._read(iter(rows)) if self.fetched is None else self._fetch(*self.fetched)
            position = None
            for news in self.task.run(self._deliver, portions):
                position = news.position
                yield news.delivered, None, None, None
                for letter in news.dead:
                    yield 0, letter.reason, _text(letter.record.value), None
            yield 0, None, None, None if position is None else json.dumps(position)
        finally:
            self.pusher.close()

    def _read(self, rows: Iterator[Any]) -> Iterator[Portion]:
        while found := list(islice(rows, _PORTION)):
            yield Portion(self._records(found))

    def _fetch(self, position: Any) -> Iterator[Portion]:
        asked, available = float("-inf"), None
        while found := self.pusher.fetch(position):
            rows, position = found
            if time.monotonic() - asked >= _AVAILABLE_S:
                asked, available = time.monotonic(), self.pusher.available(position)
            elif available is not None:
                available = max(0, available - len(rows))
            yield Portion(self._records(rows), _checked(position), available)

    def _records(self, rows: Iterable[Any]) -> list[Record]:
        of = self.pusher
        return [Record(row, of.size(row), of.lane(row), of.key(row), of.priority(row)) for row in rows]

    def _deliver(self, batch: Batch) -> Results:
        try:
            return self.pusher.push([record.value for record in batch.records])
        except TimeoutError as error:
            raise TimedOut(str(error) or "timed out") from error
        except ConnectionError as error:
            raise Refused(str(error) or type(error).__name__) from error


def _checked(position: Any) -> Any:
    try:
        check_position(position)
    except BadPosition as error:
        raise PushError(f"'fetch' returned a position that cannot be kept: {error}") from error
    return position


def _text(row: Any) -> str:
    return json.dumps(row.asDict(recursive=True) if isinstance(row, Row) else row, default=str)
