"""Checks the keys of SET and RESET that go to Spark: one without effect would be swallowed."""

from difflib import get_close_matches

from spark_runner.protocol.text import did_you_mean
from spark_runner.sql.compiler.bad_rows import BAD_ROW_KEYS
from spark_runner.sql.compiler.batch_tuning import BATCH_KEYS
from spark_runner.sql.compiler.spark_settings import FIXED_FAMILIES, HADOOP_FAMILIES, SESSION_KEYS, STATIC
from spark_runner.sql.compiler.streaming_settings import JOB_MODE, JOB_TRIGGER
from spark_runner.sql.grammar.statements import ResetStatement, SetStatement
from spark_runner.sql.text.errors import SqlError

_SPARK, _SESSION, _CATALOG = "spark.", "spark.sql.", "spark.sql.catalog."
_HADOOP = "spark.hadoop."
_OWN_KEYS = (JOB_MODE, JOB_TRIGGER, *BATCH_KEYS, *BAD_ROW_KEYS)
_MOSTLY_EQUAL = 0.93  # a slip of the hand; keys of extensions of Spark differ more
_MAX_CHARACTERS = 100  # of a key that is compared with those of Spark
MAX_COMPARED = 20  # keys of one script; each is compared with all keys of Spark


def check_effect(statement: SetStatement | ResetStatement) -> None:
    """Raise SqlError for a key that neither a session of Spark nor Hadoop reads."""
    key = statement.key
    if key in STATIC or f"{key}.".startswith(FIXED_FAMILIES):
        message = f"'{key}' cannot change while Spark runs; write it in `conf` of the definition"
        raise statement.passage.error(message, statement.key_offset)
    if key.startswith(_HADOOP):
        own = key.removeprefix(_HADOOP)
        session = f"SET {own}, or " if own.startswith(HADOOP_FAMILIES) else ""
        message = (
            f"'{key}' has no effect while Spark runs, which removes '{_HADOOP}' at its start alone; write"
            f" {session}'{key}' in `conf` of the definition"
        )
        raise statement.passage.error(message, statement.key_offset)
    if not key.startswith((_SPARK, *HADOOP_FAMILIES)):
        hint = did_you_mean(key, _OWN_KEYS)
        if not hint and key.lower().startswith(_SPARK):
            hint = "; the names of settings are case-sensitive, and those of Spark start with 'spark.'"
        hint = hint or "; settings of Spark start with 'spark.'"
        raise statement.passage.error(f"unknown setting '{key}'{hint}", statement.key_offset)


def may_be_unknown(key: str) -> bool:
    """Whether sessions of this Spark have no such setting; an extension of Spark may have it."""
    return key.startswith(_SESSION) and not key.startswith(_CATALOG) and key not in SESSION_KEYS


def doubt(statement: SetStatement | ResetStatement) -> SqlError | None:
    """A warning for a key that is nearly one of Spark; None for all others."""
    key = statement.key
    if len(key) > _MAX_CHARACTERS:
        return None
    near = get_close_matches(key, SESSION_KEYS, n=1, cutoff=_MOSTLY_EQUAL)
    if not near:
        return None
    message = f"Spark documents no setting '{key}'; did you mean '{near[0]}'?"
    return statement.passage.error(message, statement.key_offset)
