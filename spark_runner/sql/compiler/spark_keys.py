"""Checks the keys of SET and RESET that go to Spark: one without effect would be swallowed."""

from difflib import SequenceMatcher, get_close_matches

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
_BY_LOWER = {key.lower(): key for key in SESSION_KEYS}
_MUCH_ALIKE = 0.88  # all that are a slip away, and few others
_MOSTLY_EQUAL = 0.93  # hidden settings of Spark, and those of extensions, differ more
_SHORT_NAME = 12  # characters behind `spark.sql.`; two edits make another name of it
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


def nearly_known(statement: SetStatement | ResetStatement) -> SqlError | None:
    """A warning for a key that is much like one of Spark; raises SqlError for a slip in one.

    Spark accepts both, and neither has an effect unless an extension of Spark reads it.
    """
    key = statement.key
    if len(key) > _MAX_CHARACTERS:
        return None
    near = get_close_matches(key.lower(), _BY_LOWER, n=3, cutoff=_MUCH_ALIKE)
    if slips := [each for each in near if _edits(key.lower(), each) <= _most_slips(each)]:
        message = f"Spark has no setting '{key}'; did you mean '{_BY_LOWER[slips[0]]}'?"
        raise statement.passage.error(message, statement.key_offset)
    if not near or SequenceMatcher(None, near[0], key.lower()).ratio() < _MOSTLY_EQUAL:
        return None
    message = f"Spark documents no setting '{key}'; did you mean '{_BY_LOWER[near[0]]}'?"
    return statement.passage.error(message, statement.key_offset)


def _most_slips(key: str) -> int:
    """The edits that make no other setting of it: hidden ones of Spark, and of extensions, need more."""
    return 1 if len(key) - len(_SESSION) < _SHORT_NAME else 2


def _edits(one: str, other: str) -> int:
    """The inserted, deleted, changed and swapped characters between two texts."""
    before, row = list[int](), list(range(len(other) + 1))
    for i, char in enumerate(one, 1):
        made = [i]
        for j, wanted in enumerate(other, 1):
            least = min(row[j] + 1, made[j - 1] + 1, row[j - 1] + (char != wanted))
            if i > 1 and j > 1 and char == other[j - 2] and one[i - 2] == wanted:
                least = min(least, before[j - 2] + 1)
            made.append(least)
        before, row = row, made
    return row[-1]
