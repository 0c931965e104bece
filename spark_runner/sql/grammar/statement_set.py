"""Parses the beginning and the end of a statement set; the splitter cuts a set at each `;`."""

from spark_runner.sql.grammar.insert import any_insert
from spark_runner.sql.grammar.statements import BeginSet, EndSet
from spark_runner.sql.text.cursor import Cursor

ONLY_INSERTS = "a statement set holds INSERT statements only"
NO_INSERT = "this statement set has no INSERT"
OUTSIDE_OF_SET = "write this INSERT outside of the set"
_LONG = (("EXECUTE", "STATEMENT", "SET"), ("STATEMENT", "SET"))
_OLD = ("BEGIN", "STATEMENT", "SET")


def begins_set(cursor: Cursor) -> bool:
    """Whether the beginning of a statement set comes next."""
    start = cursor.index
    found = any(cursor.take_words(*words) for words in (*_LONG, _OLD))
    cursor.index = start
    return found


def count_begun(cursor: Cursor) -> int:
    """The number of sets that begin here, each within the one before it: all but the first are errors."""
    count = 0
    while begins_set(cursor):
        count += 1
        _ = any(cursor.take_words(*words) for words in (*_LONG, _OLD))
        cursor.take_words("BEGIN")
    return count


def begin_set(cursor: Cursor) -> BeginSet:
    """The beginning in either form, with the INSERT up to the next `;`; raises SqlError."""
    passage, tokens = cursor.passage, cursor.tokens
    if cursor.take_words(*_OLD):
        cursor.finish("write ';' behind BEGIN STATEMENT SET")
        return BeginSet(passage, tokens, None)
    _ = any(cursor.take_words(*words) for words in _LONG)
    if not cursor.take_words("BEGIN"):
        raise cursor.expected("BEGIN")
    if cursor.here is None:
        return BeginSet(passage, tokens, None)
    if cursor.here.is_word("END"):
        raise cursor.error(NO_INSERT, 0)
    if not cursor.here.is_word("INSERT"):
        raise cursor.error(f"{ONLY_INSERTS}, found '{cursor.here.text}'; write it outside of the set")
    inner = Cursor(cursor.rest())
    _ = inner.take_words("INSERT")
    return BeginSet(passage, tokens, any_insert(inner))


def end_set(cursor: Cursor) -> EndSet:
    """Nothing may follow END; raises SqlError."""
    cursor.finish("write ';' behind END")
    return EndSet(cursor.passage, cursor.tokens)
