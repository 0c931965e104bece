"""The columns of a CSV file by its header and its first rows."""

import csv
import re
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import date, datetime
from itertools import islice
from pathlib import Path

_ROWS = 1_000  # to read; a later row of another type is an error of the run, with its file
_MAX_COLUMNS = 1_000
_DELIMITERS = (",", ";", "\t", "|")
_INTEGER = re.compile(r"-?(?:0|[1-9][0-9]{0,17})")  # 007 is a text: as a number it would lose its zeros
_NUMBER = re.compile(r"-?(?:0|[1-9][0-9]{0,14})\.[0-9]{1,15}")
_DECIMALS = range(2, 5)  # of amounts and rates: others are of measurements, and later rows may have more
_USUAL_DIGITS = 10  # of a DECIMAL
_SPARE_DIGITS = 2  # before the point, for later rows
_DATE = re.compile(r"[0-9]{4}-[0-9]{2}-[0-9]{2}")
_TIMESTAMP = re.compile(
    r"[0-9]{4}-[0-9]{2}-[0-9]{2}[ T][0-9]{2}:[0-9]{2}:[0-9]{2}(?:\.[0-9]{1,6})?(?:Z|[+-][0-9]{2}:[0-9]{2})?"
)


@dataclass(frozen=True, slots=True)
class CsvColumns:
    """The delimiter, and each column with its type."""

    delimiter: str
    columns: tuple[tuple[str, str], ...]


def read_csv_columns(file: Path) -> CsvColumns | None:
    """The columns of a file with a header; None where they cannot be found, and all are texts then."""
    try:
        with file.open(encoding="utf-8-sig", newline="") as opened:
            line = opened.readline(1 << 20)
            delimiter = max(_DELIMITERS, key=line.count)
            opened.seek(0)
            rows = list(islice(csv.reader(opened, delimiter=delimiter, strict=True), _ROWS + 1))
    except (OSError, UnicodeDecodeError, csv.Error):
        return None
    if len(rows) < 2 or not _is_header(rows[0]):  # noqa: PLR2004 - a header, and a row
        return None
    names, values = rows[0], rows[1:]
    if any(len(row) != len(names) for row in values if row):
        return None
    return CsvColumns(
        delimiter,
        tuple((name, _type([row[index] for row in values if row])) for index, name in enumerate(names)),
    )


def _is_header(names: Sequence[str]) -> bool:
    lower = [name.lower() for name in names]
    return (
        0 < len(names) <= _MAX_COLUMNS
        and len(set(lower)) == len(lower)
        and all(name and name.isprintable() and name == name.strip() and "${" not in name for name in names)
    )


def _type(values: Sequence[str]) -> str:
    known = [value for value in values if value]
    if not known:
        return "STRING"
    for kind, fits in (
        ("BIGINT", _INTEGER.fullmatch),
        ("DOUBLE", _is_number),
        ("BOOLEAN", {"true", "false"}.__contains__),
        ("DATE", _is_date),
        ("TIMESTAMP", _is_timestamp),
    ):
        if all(fits(value) for value in known):
            return _decimal(known) or kind if kind == "DOUBLE" else kind
    return "STRING"


def _decimal(values: Sequence[str]) -> str:
    """The DECIMAL of numbers that all have the same few decimals, as amounts do; empty for others.

    A DOUBLE would round their sums, and a DECIMAL the further decimals of other numbers.
    """
    pairs = [value.lstrip("-").partition(".") for value in values]
    decimals = {len(after) for _, _, after in pairs}
    if len(decimals) != 1 or (scale := decimals.pop()) not in _DECIMALS:
        return ""
    digits = max(len(before) for before, _, _ in pairs) + _SPARE_DIGITS
    return f"DECIMAL({max(_USUAL_DIGITS, digits + scale)}, {scale})"


def _is_number(value: str) -> bool:
    return bool(_INTEGER.fullmatch(value) or _NUMBER.fullmatch(value))


def _is_date(value: str) -> bool:
    return bool(_DATE.fullmatch(value)) and _parses(date, value)


def _is_timestamp(value: str) -> bool:
    return bool(_TIMESTAMP.fullmatch(value)) and _parses(datetime, value)


def _parses(kind: type[date], value: str) -> bool:
    try:
        kind.fromisoformat(value)
    except ValueError:
        return False
    return True
