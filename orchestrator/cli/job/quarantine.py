"""`orchestrator job quarantine`: the rows of a run that did not fit."""

import itertools
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Annotated, Any

import typer

from orchestrator.cli.connect import connected
from orchestrator.cli.options import JobId, Output, OutputFormat, Quiet, Verbose
from orchestrator.cli.output import show_rows, stderr_console

_COLUMNS = {"source": "table", "rule": "rule", "reason": "reason", "record": "record", "file": "file"}
_MOST_CHARACTERS = 10_000  # of one value


def quarantine(
    job_id: JobId,
    limit: Annotated[int, typer.Option("-n", "--limit", min=1, max=10_000, help="Rows to show.")] = 20,
    output: Output = OutputFormat.TABLE,
    verbose: Verbose = 0,
    quiet: Quiet = False,
) -> None:
    """Show rows that did not fit in the last attempt of a job: their record, the rule and the reason.

    Example: orchestrator job quarantine 3f1c -n 100 -o jsonl
    """
    with connected() as (client, _):
        detail = client.detail(job_id)
    recorded = detail.attempts[-1].get("bad_rows") if detail.attempts else None
    places = [item for item in recorded or () if isinstance(item, Mapping) and item.get("quarantined")]
    rows = list(itertools.islice(_rows(places, quiet=quiet), limit))
    show_rows(rows, _COLUMNS, output)
    total = sum(int(item["quarantined"]) for item in places)
    if not quiet and total > len(rows):
        stderr_console().print(f"{len(rows):,} of {total:,} rows are shown", markup=False)


def _rows(places: list[Mapping[str, Any]], *, quiet: bool) -> Iterator[dict[str, Any]]:
    """The rows in folders of this host; says where the others are."""
    for item in places:
        place = str(item.get("place", ""))
        folder = Path(place.removeprefix("file:"))
        if folder.is_absolute() and folder.is_dir() and any(folder.glob("*.parquet")):
            yield from _rows_in(folder)
        elif not quiet:
            words = (
                f"{item['quarantined']:,} rows of table '{item['table']}' are in {place or 'another place'}"
            )
            stderr_console().print(f"{words}, which this host cannot show", markup=False)


def _rows_in(folder: Path) -> Iterator[dict[str, Any]]:
    # Few commands need it, and it is slow to load.
    from pyarrow import dataset  # type: ignore[import-untyped]  # noqa: PLC0415 - it publishes no types

    for batch in dataset.dataset(folder, format="parquet").to_batches():
        for row in batch.to_pylist():
            yield {name: _shown(row.get(name)) for name in ("source", *row)}


def _shown(value: object) -> object:
    if isinstance(value, str):
        return value[:_MOST_CHARACTERS]
    return value if value is None or isinstance(value, int | float) else str(value)
