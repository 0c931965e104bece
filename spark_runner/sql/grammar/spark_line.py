"""Lint accepts what the line of Spark in use accepts: that of the PySpark of the host that submits."""

from functools import cache

from spark_runner.sql.text.cursor import Cursor

Line = tuple[int, int]
"""Of a release, as (4, 1) for 4.1.4."""
OLDEST: Line = (4, 0)
_NEWEST: Line = (4, 3)  # for a host without PySpark: there, the run finds what an older line refuses


def need_line(cursor: Cursor, line: Line, what: str, instead: str, offset: int | None = None) -> None:
    """Raise SqlError, at `offset` or at the next token, if the line in use is older than `line`."""
    if line > OLDEST and (here := spark_line()) < line:
        message = f"{what} needs Spark {_written(line)}, and this host has Spark {_written(here)}; {instead}"
        raise cursor.error(message, offset)


@cache
def spark_line() -> Line:
    """The line of the installed PySpark; without one, the newest that this version supports."""
    # Lazy: few scripts need the line, and this module of Python is slow to load.
    from importlib.metadata import PackageNotFoundError, version  # noqa: PLC0415

    try:
        major, minor, *_ = version("pyspark").split(".")
    except PackageNotFoundError:
        return _NEWEST
    return int(major), int(minor)


def _written(line: Line) -> str:
    return ".".join(map(str, line))
