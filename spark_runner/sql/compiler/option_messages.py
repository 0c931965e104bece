"""Messages about options without the values of variables, which may be secrets."""

from spark_runner.connectors.errors import OptionError
from spark_runner.sql.grammar.statements import Option, Statement
from spark_runner.sql.text.errors import SqlError

_SHORT = 4  # characters; a shorter value may be a part of other words


def option_error(statement: Statement, option: Option, error: OptionError) -> SqlError:
    """The error at its option; variables keep their names in it."""
    is_name = error.fault == "name"
    message = with_names(statement, option.value_offset, option.value, str(error), error.quoted)
    message = with_names(statement, option.key_offset, option.key, message)
    return statement.passage.error(message, option.key_offset if is_name else option.value_offset)


def with_names(statement: Statement, offset: int, value: str, message: str, quoted: str = "") -> str:
    """A message about the value of the token at `offset`, with `${name}` where a variable gives the value.

    `quoted` is a part of the value, or another form of it, that the message quotes.
    """
    written = statement.written(offset, value)
    if written == value:
        return message
    for text in filter(None, (quoted, value)):
        message = message.replace(f"'{text}'", f"'{written}'")
    return message.replace(value, written) if len(value) >= _SHORT else message
