"""Checks the settings of a script, and maps those of streaming SQL engines to settings of Spark."""

from collections.abc import Iterable
from dataclasses import dataclass, field, replace

from spark_runner.protocol.text import did_you_mean
from spark_runner.sql.compiler.bad_rows import BAD_ROW_KEYS, BadRowSettings
from spark_runner.sql.compiler.batch_tuning import BATCH_KEYS, BatchSettings
from spark_runner.sql.compiler.modes import BATCH, STREAMING, checked_mode, checked_time
from spark_runner.sql.compiler.spark_keys import MAX_COMPARED, check_effect, may_be_unknown, nearly_known
from spark_runner.sql.compiler.streaming_settings import (
    JOB_MODE,
    JOB_TRIGGER,
    PREFIXES,
    STREAMING_SETTINGS,
    StreamingSetting,
)
from spark_runner.sql.grammar.statements import ResetStatement, SetStatement
from spark_runner.sql.text.errors import SqlError

JOB_PREFIX = "job."
_OWN_KEYS = (JOB_MODE, JOB_TRIGGER, *BATCH_KEYS, *BAD_ROW_KEYS)

_FAMILY = "*"
_EXACT = {setting.key: setting for setting in STREAMING_SETTINGS if not setting.key.endswith(_FAMILY)}
_FAMILIES = {
    setting.key.removesuffix(_FAMILY): setting for setting in STREAMING_SETTINGS if setting.key not in _EXACT
}


@dataclass
class Settings:
    """Checks one SET and RESET after another; keys of streaming engines are compared without case."""

    bad_rows: BadRowSettings = field(default_factory=BadRowSettings)
    batches: BatchSettings = field(default_factory=BatchSettings)
    default_mode: str = BATCH
    mode: str = BATCH
    mode_set: SetStatement | None = None  # where the script sets it
    trigger_ms: int | None = None  # between two triggers of mode streaming
    trigger_set: SetStatement | None = None  # where the script sets it
    warnings: list[SqlError] = field(default_factory=list)  # keys that Spark may not have
    _compared: int = 0  # keys that were compared with those of Spark
    _mapped: dict[str, str] = field(
        default_factory=dict
    )  # setting of Spark: the streaming setting that set it

    def for_spark(self, statement: SetStatement | ResetStatement) -> SetStatement | ResetStatement | None:
        """The statement with the key and value of Spark; None if Spark has nothing to do.

        Raises SqlError at a key or value that would have no effect, or another one than it asks for.
        """
        key = statement.key.lower()
        if key.startswith(JOB_PREFIX):
            self._of_job(key, statement)
            return None
        if not f"{key}.".startswith(PREFIXES):
            self._check_key_of_spark(statement)
            self._forget(statement.key)
            return statement
        setting = _find(key)
        if setting is None:
            raise _unknown(statement, (setting.key for setting in STREAMING_SETTINGS))
        if isinstance(statement, SetStatement):
            return self._set(statement, setting)
        return self._reset(statement, setting)

    def _check_key_of_spark(self, statement: SetStatement | ResetStatement) -> None:
        """Raise SqlError for a key without effect or with a slip; keep a warning for a doubtful one."""
        if not statement.key:
            return
        check_effect(statement)
        if self._compared < MAX_COMPARED and may_be_unknown(statement.key):
            self._compared += 1
            self.warnings += filter(None, [nearly_known(statement)])

    def _of_job(self, key: str, statement: SetStatement | ResetStatement) -> None:
        if key not in _OWN_KEYS:
            raise _unknown(statement, _OWN_KEYS)
        if isinstance(statement, SetStatement):
            self._set_own(key, statement)
        elif key == JOB_MODE:
            self.mode, self.mode_set = self.default_mode, None
        elif key == JOB_TRIGGER:
            self.trigger_ms, self.trigger_set = None, None
        elif key in BATCH_KEYS:
            self.batches.reset(key)
        else:
            self.bad_rows.reset(key)

    def _set_own(self, key: str, statement: SetStatement) -> None:
        if key == JOB_MODE:
            self.mode, self.mode_set = checked_mode(statement, _written(statement)), statement
        elif key == JOB_TRIGGER:
            self._set_trigger(statement)
        elif key in BATCH_KEYS:
            self.batches.set(statement)
        else:
            self.bad_rows.set(statement)

    def _set_trigger(self, statement: SetStatement) -> None:
        milliseconds, before = checked_time(statement, _written(statement)), self.trigger_set
        if before and before.key.lower() != statement.key.lower():
            message = f"'{statement.key}' and '{before.key}' are both '{JOB_TRIGGER}'; keep one of them"
            raise statement.passage.error(message, statement.key_offset)
        self.trigger_ms, self.trigger_set = milliseconds, statement

    def check_trigger(self) -> None:
        """Raise SqlError for an interval of triggers in a mode that has none."""
        if self.trigger_set and self.mode != STREAMING:
            key = self.trigger_set.key
            message = f"'{key}' needs {JOB_MODE} '{STREAMING}', and this script has mode '{self.mode}'"
            raise self.trigger_set.passage.error(message, self.trigger_set.key_offset)

    def _forget(self, key: str) -> None:
        """Spark's own key sets or resets `key`; an empty one resets all."""
        if key:
            self._mapped.pop(key, None)
        else:
            self._mapped.clear()

    def _set(self, statement: SetStatement, setting: StreamingSetting) -> SetStatement | None:
        value = " ".join(statement.value.split())
        if value.lower() in setting.accepted or (not setting.becomes and setting.values.fullmatch(value)):
            return None
        if not setting.becomes:
            raise _refused(statement, setting)
        if setting.becomes in _OWN_KEYS:
            self._set_own(setting.becomes, statement)
            return None
        if not setting.values.fullmatch(value):
            message = f"'{statement.key}' cannot be '{_written(statement)}'; {setting.instead}"
            raise statement.passage.error(message, statement.value_offset)
        other = self._mapped.setdefault(setting.becomes, setting.key)
        if other != setting.key:
            # Their order of precedence is not the order of the statements.
            message = (
                f"'{statement.key}' and '{other}' are both '{setting.becomes}' in Spark; keep one of them"
            )
            raise statement.passage.error(message, statement.key_offset)
        return replace(statement, key=setting.becomes, value=value)

    def _reset(self, statement: ResetStatement, setting: StreamingSetting) -> ResetStatement | None:
        if setting.becomes in _OWN_KEYS:
            given = self.mode_set if setting.becomes == JOB_MODE else self.trigger_set
            if given and given.key.lower() == setting.key:
                self._of_job(setting.becomes, statement)
            return None
        if self._mapped.get(setting.becomes) != setting.key:
            return None  # this key has not set anything
        del self._mapped[setting.becomes]
        return replace(statement, key=setting.becomes)


def _find(key: str) -> StreamingSetting | None:
    if key in _EXACT:
        return _EXACT[key]
    return next((setting for start, setting in _FAMILIES.items() if f"{key}.".startswith(start)), None)


def _written(statement: SetStatement) -> str:
    return statement.written(statement.value_offset, statement.value)


def _refused(statement: SetStatement, setting: StreamingSetting) -> SqlError:
    if setting.takes_values:
        message = f"'{statement.key}' cannot be '{_written(statement)}' in Spark; {setting.instead}"
        return statement.passage.error(message, statement.value_offset)
    message = f"'{statement.key}' would have no effect in Spark; {setting.instead}"
    return statement.passage.error(message, statement.key_offset)


def _unknown(statement: SetStatement | ResetStatement, known: Iterable[str]) -> SqlError:
    names = tuple(known)
    hint = did_you_mean(statement.key, names)
    if not hint:
        hint = f"; known is '{names[0]}'" if len(names) == 1 else "; settings of Spark start with 'spark.'"
    return statement.passage.error(f"unknown setting '{statement.key}'{hint}", statement.key_offset)
