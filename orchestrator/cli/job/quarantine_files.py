"""Reads the Parquet files of a quarantine, each by itself: a damaged one does not hide the others."""

from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import Any

from orchestrator.model.set_aside import SetAside

_MOST_CHARACTERS = 10_000  # of one value
_COLUMNS = ("source", "rule", "reason", "record", "file", "run")  # of each row; older files may lack some


def rows_of(
    places: Iterable[SetAside], run_key: str, cannot_show: Callable[[str], None]
) -> Iterator[dict[str, Any]]:
    """The rows of a run in folders of this host, where other runs may have added theirs.

    `cannot_show` gets a message for each part that cannot be shown.
    """
    for each in places:
        folder = Path(each.place.removeprefix("file:"))
        files = _files(folder) if folder.is_absolute() else []
        if not files:
            rows, where = f"{each.quarantined:,} rows of table '{each.table}'", each.place or "another place"
            cannot_show(f"{rows} are in {where}, which this host cannot show")
        for file in files:
            for row in _rows_in(file, cannot_show):
                if row["run"] in {None, run_key}:
                    yield row


def _files(folder: Path) -> list[Path]:
    # Spark, too, ignores the others.
    return sorted(each for each in folder.glob("*.parquet") if not each.name.startswith(("_", ".")))


def _rows_in(file: Path, cannot_show: Callable[[str], None]) -> Iterator[dict[str, Any]]:
    # Few commands need it, and it is slow to load.
    from pyarrow import ArrowException, parquet  # type: ignore[import-untyped]  # noqa: PLC0415 - it publishes no types

    try:
        with parquet.ParquetFile(file) as opened:
            for batch in opened.iter_batches():
                columns = {name: _values(batch.column(name)) for name in batch.schema.names}
                for index in range(batch.num_rows):
                    row = {name: _shown(values[index]) for name, values in columns.items()}
                    yield {**dict.fromkeys(_COLUMNS), **row}
    # Of a file that another program wrote: values beyond those of Python, unknown time zones, equal names.
    except (ArrowException, OSError, ValueError, OverflowError, LookupError) as error:
        cannot_show(f"the file {file} cannot be read: {error}")


def _values(column: Any) -> list[Any]:
    """The values of a column; a text that is no UTF-8, as many such records are, has marks for it."""
    from pyarrow import binary, types  # noqa: PLC0415 - as above

    if not types.is_string(column.type):
        return list(column.to_pylist())
    texts = column.cast(binary()).to_pylist()
    return [None if text is None else text.decode("utf-8", "replace") for text in texts]


def _shown(value: object) -> object:
    if isinstance(value, str):
        return value[:_MOST_CHARACTERS]
    return value if value is None or isinstance(value, int | float) else str(value)
