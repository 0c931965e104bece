"""SQL scripts, with values for their variables."""

import json

from spark_runner.sql.compiler.compile import compile_script
from spark_runner.sql.text.errors import SqlError
from tests.fuzz.promises import check_error

_VARIABLES = {"a": "x" * 50, "b": "${a}${a}", "n": "7"}


def try_input(data: bytes) -> None:
    """A script gives a plan of JSON, or an error with its position."""
    text = data.decode("utf-8", "replace")
    try:
        json.dumps(compile_script(text, file="a.sql", base_dir="/data", variables=_VARIABLES))
    except SqlError as error:
        check_error(error)
