"""SQL scripts, with values for their variables."""

import json

from orchestrator.sql.columns.check import column_errors
from orchestrator.sql.flow import flows
from orchestrator.sql.format.script import format_script
from spark_runner.sql.compiler.compile import check_script
from spark_runner.sql.text.errors import SqlError
from spark_runner.sql.text.source import ScriptSource
from spark_runner.sql.text.tokens import TokenKind, meaningful, tokenize
from tests.fuzz.promises import check_error

_VARIABLES = {"a": "x" * 50, "b": "${a}${a}", "n": "7"}


def try_input(data: bytes) -> None:
    """A script gives a plan, or errors with positions; its canonical form has the same tokens."""
    text = data.decode("utf-8", "replace")
    found = check_script(text, file="a.sql", base_dir="/data", variables=_VARIABLES)
    json.dumps(found.plan)
    for error in (*found.errors, *column_errors(found)):
        check_error(error)
    json.dumps([flow.document for flow in flows(found)])
    try:
        once = format_script(ScriptSource("a.sql", text))
    except SqlError as error:
        check_error(error)
        return
    if _words(once) != _words(text):
        message = f"formatting changes the tokens: {once!r}"
        raise AssertionError(message)
    if format_script(ScriptSource("a.sql", once)) != once:
        message = f"formatting twice differs from once: {once!r}"
        raise AssertionError(message)


def _words(text: str) -> list[str]:
    tokens = tokenize(ScriptSource("a.sql", text))
    return [
        token.text.upper() if token.kind is TokenKind.WORD else token.text
        for token in tokens
        if meaningful(token) and token.kind is not TokenKind.END
    ]
