"""`orchestrator tuning plot`."""

import shutil
import sys
from dataclasses import asdict
from pathlib import Path
from typing import Annotated, Any

import typer

from orchestrator.cli.connect import connected
from orchestrator.cli.documents import print_json
from orchestrator.cli.options import Output, OutputFormat, Quiet, Verbose
from orchestrator.cli.output import stderr_console, stdout_console
from orchestrator.cli.picture import save_picture
from orchestrator.cli.tuning.acts import Name
from orchestrator.cli.tuning.drawing import drawn
from orchestrator.cli.tuning.panels import plot_of
from orchestrator.model.errors import InvalidTuning
from orchestrator.model.tuning import ResourceName
from orchestrator.tuning.plot_data import PlotData, measured_resources, plot_data
from orchestrator.tuning.resources import Resource

_WIDTHS = (60, 120)  # characters; a wider plot shows no more
_PLAIN_WIDTH = 80  # a pipe has no width


def plot(
    name: Name,
    resource: Annotated[
        ResourceName | None, typer.Option(help="The resource; by default the first that runs have measured.")
    ] = None,
    svg: Annotated[
        Path | None, typer.Option("--svg", metavar="FILE", help="Draw into this file instead.")
    ] = None,
    output: Output = OutputFormat.TABLE,
    verbose: Verbose = 0,
    quiet: Quiet = False,
) -> None:
    """Draw what each run of a name had and used of a resource, its run time, its spill, and what changed.

    The oldest run is on the left. It shows the runs of the same code and parameters as the last one; `next`
    is what the last suggestion gives to the next run. `demand` is what the law takes a run to have needed,
    `target` what the law, with the default gains, aimed at before that run. An existing file of --svg is
    replaced. With -o json the numbers are printed: amounts of memory in MiB, times in seconds.

    Example: orchestrator tuning plot flights --resource driver.memory --svg flights.svg
    """
    with connected() as (client, _):
        record, runs = client.tunings.get(name), client.history(name)
    known = measured_resources(runs)
    which = Resource(resource) if resource else next(iter(known), Resource.DRIVER_MEMORY)
    data = plot_data(record, runs, which)
    if all(point.allocated is None for point in data.points):
        others = f": choose one of {', '.join(known)} with --resource" if known else ""
        raise InvalidTuning(f"no run of {name} shows how much {which} it had{others}")
    if output is not OutputFormat.TABLE:
        print_json(_document(data), output)
    if svg is not None:
        save_picture(drawn(plot_of(data)), svg)
    elif output is OutputFormat.TABLE:
        _show(data)
    if data.left_out and not quiet:
        stderr_console().print(f"not shown: {data.left_out}", markup=False)


def _show(data: PlotData) -> None:
    from orchestrator.cli.tuning.terminal import lines_of  # noqa: PLC0415 - plotext takes 30 ms to load

    columns = shutil.get_terminal_size().columns if sys.stdout.isatty() else _PLAIN_WIDTH
    found = plot_of(data)
    console = stdout_console()
    for line in (found.heading, *lines_of(found, min(max(columns, _WIDTHS[0]), _WIDTHS[1]))):
        console.print(line, markup=False)


def _document(data: PlotData) -> dict[str, Any]:
    return {
        "name": data.name,
        "resource": data.resource,
        "left_out": data.left_out,
        "runs": [asdict(each) for each in data.points],
        "next": None if data.next is None else asdict(data.next),
    }
