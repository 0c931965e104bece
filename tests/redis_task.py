"""Commands for Redis, written as a task of Spark does."""

from collections.abc import Mapping, Sequence
from typing import Any

from spark_runner.connectors.redis.pipeline import Pipeline
from tests.push_support import push_parts


class RedisTask:
    """One task, without Spark."""

    def __init__(self, options: Mapping[str, Any]) -> None:
        self._options, self._pipeline = options, Pipeline(options)

    def write(self, keys: Sequence[bytes | None], commands: Sequence[bytes | None]) -> dict[int, str]:
        """Write rows, each with one command; returns why some are rejected, by their index."""
        records, rejected = self._pipeline.records(keys, commands, [1] * len(keys), keys)
        dead = push_parts(records, self._pipeline.deliver, self._options)
        return rejected | {number: why for why, number in dead}

    def close(self) -> None:
        """Close all connections."""
        self._pipeline.close()
