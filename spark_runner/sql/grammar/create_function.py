"""Parses CREATE TEMPORARY FUNCTION."""

from spark_runner.sql.grammar.statements import CreateFunction
from spark_runner.sql.grammar.types import take_type
from spark_runner.sql.text.cursor import Cursor
from spark_runner.sql.text.passage import Passage
from spark_runner.sql.text.tokens import TokenKind

_OF_JAVA = (
    "functions of Java classes are not supported, because Spark loads them through Hive;"
    " write the function in Python: AS 'module.attribute'"
)
_TARGET = "AS 'module.attribute', a function in a Python file of the job"


def create_function(cursor: Cursor, *, replace: bool) -> CreateFunction:
    """The rest of a CREATE TEMPORARY FUNCTION from its name on; raises SqlError."""
    name, name_offset = cursor.name("function")
    if cursor.here and cursor.here.is_symbol("("):
        raise cursor.error(f"functions in SQL are not supported; write {_TARGET}")
    if not cursor.take_words("AS"):
        raise cursor.expected(_TARGET)
    token = cursor.here
    if token is None or token.kind is not TokenKind.STRING:
        raise cursor.expected("'module.attribute' in quotes")
    target = cursor.text_of(cursor.take())
    returns: Passage | None = None
    has_language = False
    while cursor.here:
        if not has_language and cursor.take_words("LANGUAGE"):
            has_language = True
            _check_language(cursor)
        elif returns is None and cursor.take_words("RETURNS"):
            returns = take_type(cursor)
        elif cursor.here.is_word("USING"):
            raise cursor.error(_OF_JAVA)
        else:
            cursor.finish("LANGUAGE PYTHON and RETURNS type may follow, each once")
    return CreateFunction(
        cursor.passage, cursor.tokens, name, name_offset, replace, target, token.start, returns
    )


def _check_language(cursor: Cursor) -> None:
    if cursor.here and cursor.here.is_word("JAVA", "SCALA"):
        raise cursor.error(_OF_JAVA)
    if not cursor.take_words("PYTHON"):
        raise cursor.expected("PYTHON")
