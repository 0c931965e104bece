"""Writes rows by the push engine: the tasks of Spark deliver them within limits of the whole write."""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from pyspark.sql import DataFrame, SparkSession

from spark_runner.connectors.base import WriteRequest, Written
from spark_runner.connectors.errors import ConnectorError, OtherRows, Unreachable
from spark_runner.connectors.written_rows import Rejected, written_by
from spark_runner.push.batch import Batch, DeadLetter
from spark_runner.push.errors import PushError
from spark_runner.push.retry import Results, RetryPolicy
from spark_runner.push.settings import Limits, Order, PushSettings
from spark_runner.push.task import Portion, PushTask

if TYPE_CHECKING:
    from spark_runner.connectors.written_rows import Writes

_KEY_GROUPS = 32  # of a task that sends row by row; with batches, fewer groups fill more of them
_LEAST_GROUPS = 4
_ALWAYS = 10**9  # attempts: until the target takes nothing for the retry timeout
_MAX_PAUSE_S = 2.0  # between them


def order_of(options: Mapping[str, Any], request: WriteRequest) -> Order:
    """The order in which rows are delivered; by default, rows with an equal PRIMARY KEY keep theirs."""
    default = Order.BY_KEY if request.primary_key else Order.NONE
    order = Order(options["order"]) if options["order"] else default
    if order is Order.BY_KEY and not request.primary_key:
        raise ConnectorError("order 'key' needs a PRIMARY KEY")
    if order is Order.NONE and options["order_by"]:
        raise ConnectorError("option 'order_by' needs a PRIMARY KEY, or order 'strict'")
    return order


def tasks_of(options: Mapping[str, Any], session: SparkSession) -> int:
    """The number of tasks that deliver: none without a request of its own."""
    return min(
        int(options["parallelism"]) or session.sparkContext.defaultParallelism, int(options["concurrency"])
    )


def settings_of(options: Mapping[str, Any], order: Order, tasks: int, request_timeout: float) -> PushSettings:
    """How a write pushes by so many tasks; a request takes at most `request_timeout` seconds."""
    size, in_flight = options["batch_size"], -(-options["concurrency"] // tasks)
    return PushSettings(
        order=order,
        batch_records=size,
        batch_bytes=options["batch_bytes"],
        batch_seconds=options["linger"],
        is_repeatable=not options["linger"],
        key_groups=_KEY_GROUPS if size == 1 else max(_LEAST_GROUPS, 2 * in_flight),
        time_limit=options["time_limit"],
        retry=RetryPolicy(attempts=options["retry_attempts"]),
        retry_timeout=options["retry_timeout"],
        request_timeout=request_timeout,
    )


def settings_of_parts(
    options: Mapping[str, Any], request_timeout: float, *, is_ordered: bool, threads: int = 1
) -> PushSettings:
    """How a write pushes parts of many rows, each of which is a request.

    A part comes again until each of its rows has a result. In order, a task sends one after the other, else
    it has so many threads.
    """
    return PushSettings(
        order=Order.STRICT if is_ordered else Order.NONE,
        batch_records=1,
        max_threads=threads,
        retry=RetryPolicy(attempts=_ALWAYS, busy_attempts=_ALWAYS, max_pause=_MAX_PAUSE_S),
        retry_timeout=options["retry_timeout"],
        request_timeout=request_timeout,
    )


def pushed_by(
    rows: DataFrame,
    task_of: "Callable[[PushTask], Writes]",
    settings: PushSettings,
    options: Mapping[str, Any],
    request: WriteRequest,
    *,
    kept_as: str = "",
    **more: Any,
) -> Written:
    """Write the rows of a frame by tasks that push; `more` is given to `written_by`.

    Positions are kept under the name `kept_as`: rows that an earlier attempt has delivered are passed over,
    if they are the same. Raises the errors of the tasks, and ConnectorError.
    """
    session = rows.sparkSession
    limits = Limits(
        options["concurrency"], options["rate_limit"], options["buffer_records"], options["buffer_bytes"]
    )
    try:
        with request.pushes.start(session, request.target, settings, limits, kept_as=kept_as) as task:
            return written_by(rows, task_of(task), options, **more)
    except OtherRows:
        request.pushes.forget(kept_as)
        return pushed_by(rows, task_of, settings, options, request, kept_as=kept_as, **more)
    except PushError as error:
        raise ConnectorError(str(error)) from error


def delivered(
    task: PushTask,
    deliver: Callable[[Batch], Results],
    portions: Iterable[Portion],
    rejected_of: Callable[[DeadLetter], Sequence[Rejected]],
) -> Iterator[tuple[int, list[Rejected]]]:
    """The number of rows delivered, and those rejected, as they come.

    Raises Unreachable, and errors of `deliver`.
    """
    try:
        for news in task.run(deliver, portions):
            yield news.delivered, [each for letter in news.dead for each in rejected_of(letter)]
    except PushError as error:
        raise Unreachable(str(error)) from error


def rows_of(letter: DeadLetter) -> Sequence[Any]:
    """The rejected rows of a part of many: it is never rejected as a whole."""
    assert letter.rejected is not None, letter.reason  # noqa: S101 - see above
    return letter.rejected
