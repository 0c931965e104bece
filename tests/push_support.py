"""Support for tests of a push."""

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from spark_runner.connectors.errors import Unreachable
from spark_runner.connectors.pushed_rows import rows_of, settings_of_parts
from spark_runner.push.batch import Batch, DeadLetter, Record
from spark_runner.push.engine import Engine
from spark_runner.push.errors import PushError
from spark_runner.push.retry import Results, RetryPolicy
from spark_runner.push.settings import Limits, PushSettings

WAIT_S = 30
QUICK = RetryPolicy(attempts=4, first_pause=0.001, max_pause=0.01)


def settings(**given: object) -> PushSettings:
    """Settings with short pauses, and batches that leave when they are full."""
    return PushSettings(**{"batch_seconds": 60.0, "retry": QUICK, **given})  # type: ignore[arg-type]  # a test gives what it names


def push_parts(
    records: Sequence[Record],
    deliver: Callable[[Batch], Results],
    options: Mapping[str, Any],
    *,
    is_ordered: bool = True,
) -> list[Any]:
    """Deliver parts of many rows as one task of a sink does, without Spark; returns the rejected rows.

    Raises Unreachable as a task, and errors of `deliver`.
    """
    dead, given = list[DeadLetter](), settings_of_parts(options, 30.0, is_ordered=is_ordered)
    try:
        with Engine(deliver, given, Limits(), on_dead=dead.extend) as engine:
            engine.put(records)
    except PushError as error:
        raise Unreachable(str(error)) from error
    return [each for letter in dead for each in rows_of(letter)]
