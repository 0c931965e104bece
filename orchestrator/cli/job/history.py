"""`orchestrator job history`."""

from collections.abc import Mapping
from typing import Annotated, Any

import typer

from orchestrator.cli.connect import connected
from orchestrator.cli.options import Output, OutputFormat, Quiet, Verbose, Watch
from orchestrator.cli.output import duration, show_rows
from orchestrator.cli.page import repeat
from orchestrator.model.times import local_time

_COLUMNS = {
    "job": "job",
    "attempt": "attempt",
    "started_here": "started",
    "took": "took",
    "ended_as": "ended as",
    "read": "read",
    "written": "written",
    "heap": "heap",
    "rss": "RSS",
    "spilled": "spilled",
    "gc": "GC",
    "skew": "skew",
}
_DROP = ("skew", "GC", "spilled", "RSS", "heap", "written", "read", "attempt", "started", "took")
_OF_STREAMS = {"rows": "rows", "batches": "batches"}
_UNITS = ("B", "KiB", "MiB", "GiB", "TiB")
_UNIT = 1024


def history(
    name: Annotated[str, typer.Argument(metavar="NAME", help="The name in the definition.")],
    limit: Annotated[int | None, typer.Option(min=1, help="Show only this many of the latest runs.")] = None,
    output: Output = OutputFormat.TABLE,
    watch: Watch = None,
    verbose: Verbose = 0,
    quiet: Quiet = False,
) -> None:
    """Show the duration and resources of the last 50 runs of a name, with the failed ones, latest last.

    A running stream has one entry for each full hour, with the rows and micro-batches of that hour; the entry
    of its run has those since the last full hour.

    Example: orchestrator job history flights -o jsonl
    """
    with connected() as (client, _):

        def show() -> None:
            runs = client.history(name)[-(limit or 0) :]
            is_stream = any(name in run for run in runs for name in _OF_STREAMS)
            columns = _COLUMNS | _OF_STREAMS if is_stream else _COLUMNS
            show_rows([_row(run, output) for run in runs], columns, output, _DROP)

        repeat(show, watch)


def _row(run: Mapping[str, Any], output: OutputFormat) -> dict[str, Any]:
    if output is not OutputFormat.TABLE:
        return dict(run)
    metrics = _part(run, "metrics")
    driver, executors = _part(metrics, "driver"), _part(metrics, "executors")
    gc, ratio = metrics.get("gc_share"), _part(metrics, "skew").get("ratio")
    return {
        "job": run.get("job"),
        "attempt": run.get("attempt"),
        "started_here": local_time(run.get("started")),
        "took": "" if run.get("seconds") is None else duration(run["seconds"]),
        "ended_as": _end(run),
        "read": _size(metrics.get("input_bytes")),
        "written": _size(metrics.get("output_bytes")),
        "heap": _size(_most(executors, driver, "heap_peak_bytes")),
        "rss": _size(_most(executors, driver, "rss_peak_bytes", "jvm_rss_peak_bytes")),
        "spilled": _size(metrics.get("spill_disk_bytes")),
        "gc": "" if gc is None else f"{gc:.1%}",
        "skew": "" if ratio is None else f"{ratio:g}",
        **{name: run.get(name, "") for name in _OF_STREAMS},
    }


def _end(run: Mapping[str, Any]) -> str:
    """How it ended; for an hour of a running stream, which one."""
    if "hour" in run:
        return f"running (hour {run['hour']})"
    return f"{run.get('state')}" + ("" if run.get("class") is None else f" ({run['class']})")


def _part(document: Mapping[str, Any], name: str) -> Mapping[str, Any]:
    part = document.get(name)
    return part if isinstance(part, Mapping) else {}


def _most(executors: Mapping[str, Any], driver: Mapping[str, Any], *names: str) -> int | None:
    """The maximum over executors and driver: with a local master they are one process."""
    return max((part[name] for part in (executors, driver) for name in names if name in part), default=None)


def _size(value: int | None) -> str:
    """A number of bytes with a binary unit."""
    if value is None:
        return ""
    size, unit = float(value), 0
    while size >= _UNIT and unit < len(_UNITS) - 1:
        size, unit = size / _UNIT, unit + 1
    return f"{size:.0f} {_UNITS[unit]}" if unit == 0 else f"{size:.1f} {_UNITS[unit]}"
