"""The settings of a script for the tuning of its micro-batches."""

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

from spark_runner.sql.compiler.modes import STREAMING, checked_time
from spark_runner.sql.compiler.streaming_settings import JOB_MODE
from spark_runner.sql.grammar.statements import SetStatement

TUNING, TARGET = "job.batch.tuning", "job.batch.target"
ROWS_MIN, ROWS_MAX = "job.batch.rows.min", "job.batch.rows.max"
BATCH_KEYS = (TUNING, TARGET, ROWS_MIN, ROWS_MAX)
_LIMITED = frozenset({"kafka"})  # connectors whose sources are a LimitedSource
_ROWS = re.compile(r"[1-9][0-9]{0,8}")


@dataclass
class BatchSettings:
    """The last value of each setting; they hold for the whole script."""

    _values: dict[str, Any] = field(default_factory=dict)
    _statements: dict[str, SetStatement] = field(default_factory=dict)  # where the script sets them

    def set(self, statement: SetStatement) -> None:
        """Take a SET of one of `BATCH_KEYS`; raises SqlError at a wrong value."""
        key, value = statement.key.lower(), statement.value.strip()
        if key == TUNING:
            if value.lower() not in {"on", "off"}:
                raise statement.passage.error(f"'{statement.key}' is on or off", statement.value_offset)
            found: Any = value.lower() == "on"
        elif key == TARGET:
            found = checked_time(statement, statement.written(statement.value_offset, statement.value))
        elif not _ROWS.fullmatch(value):
            message = f"'{statement.key}' is a number of rows, from 1 to 999999999"
            raise statement.passage.error(message, statement.value_offset)
        else:
            found = int(value)
        self._values[key], self._statements[key] = found, statement

    def reset(self, key: str) -> None:
        """Forget a setting."""
        self._values.pop(key, None)
        self._statements.pop(key, None)

    def to_plan(self, mode: str, steps: Iterable[Mapping[str, Any]]) -> dict[str, Any]:
        """The part of the plan with these steps; empty without tuning.

        Raises SqlError for settings that contradict each other, and for those that have no effect.
        """
        for key, statement in self._statements.items():
            if mode != STREAMING:
                message = (
                    f"'{statement.key}' needs {JOB_MODE} '{STREAMING}', and this script has mode '{mode}'"
                )
                raise statement.passage.error(message, statement.key_offset)
            if key != TUNING and TUNING not in self._values:
                message = f"'{statement.key}' has no effect without {TUNING} 'on'"
                raise statement.passage.error(message, statement.key_offset)
        least, most = self._values.get(ROWS_MIN), self._values.get(ROWS_MAX)
        if least is not None and most is not None and least > most:
            statement = self._statements[ROWS_MAX]
            message = f"'{statement.key}' is less than {ROWS_MIN}, {least}"
            raise statement.passage.error(message, statement.value_offset)
        if not self._values.get(TUNING):
            return {}
        if not any(step.get("stream") and step["connector"] in _LIMITED for step in steps):
            statement = self._statements[TUNING]
            message = f"'{statement.key}' needs a stream of a table of connector 'kafka'"
            raise statement.passage.error(message, statement.key_offset)
        given = {"target_ms": self._values.get(TARGET), "least": least, "most": most}
        return {"batch_tuning": {name: value for name, value in given.items() if value is not None}}
