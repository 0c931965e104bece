"""`orchestrator tuning simulate`."""

from typing import Annotated, Any

import typer
from pydantic import ValidationError

from orchestrator.cli.connect import connected
from orchestrator.cli.options import Output, OutputFormat, Quiet, Verbose
from orchestrator.cli.output import show_rows, stderr_console
from orchestrator.cli.tuning.acts import Name
from orchestrator.config.tuning import Gains
from orchestrator.model.errors import InvalidTuning
from orchestrator.model.fields import explain
from orchestrator.model.tuning import ResourceName
from orchestrator.tuning.replay import ReplayedRun, replay
from orchestrator.tuning.resources import Resource
from orchestrator.tuning.samples import last_key, samples_of

_COLUMNS = {
    "run": "run",
    "had": "had",
    "needed": "needed",
    "given": "would get",
    "failures": "out of memory",
    "rule": "rule",
}


def simulate(
    name: Name,
    resource: Annotated[ResourceName, typer.Option(help="The resource.")] = "driver.memory",
    start: Annotated[str, typer.Option(help="What the first run gets; by default what it had.")] = "",
    gain: Annotated[
        list[str] | None, typer.Option(metavar="NAME=VALUE", help="A gain other than that of the settings.")
    ] = None,
    output: Output = OutputFormat.TABLE,
    verbose: Verbose = 0,
    quiet: Quiet = False,
) -> None:
    """Replay the runs of a name that ran the same code as the last one: what each would have got.

    Try other gains, or another start, before you set them. Nothing is changed.

    Example: orchestrator tuning simulate flights --resource driver.memory --start 8g --gain spread=4
    """
    which, gains = Resource(resource), _gains(gain or [])
    with connected() as (client, _):
        runs = client.history(name)
    measured = samples_of(runs, last_key(runs)).of(which)
    if not measured:
        raise InvalidTuning(f"no run of {name} has measured {which}: choose another one with --resource")
    first = which.parsed(start) if start else measured[0][1].allocated
    if first is None:
        raise InvalidTuning(f"--start {start}: write an amount such as {'2g' if which.is_memory else '4'}")
    bounds = which.bounds(4 * max(first, *(use.allocated for _, use in measured)))
    found = replay([use for _, use in measured], bounds, which.gains(gains), start=first)
    rows = [_row(which, sample.run, each, output) for (sample, _), each in zip(measured, found, strict=True)]
    show_rows(rows, _COLUMNS, output)
    if not quiet and output is OutputFormat.TABLE:
        had, given = sum(each.had for each in found), sum(each.given for each in found)
        failures = sum(each.failures for each in found)
        words = f"{name}: {given / had:.0%} of the {which} that its runs had, {failures} times out of memory"
        stderr_console().print(words, markup=False)


def _row(resource: Resource, run: str, each: ReplayedRun, output: OutputFormat) -> dict[str, Any]:
    write = resource.written if output is OutputFormat.TABLE else float
    return {
        "run": run,
        "had": write(each.had),
        "needed": write(each.used),
        "given": write(each.given),
        "failures": each.failures,
        "rule": "" if each.step is None else each.step.rule.value,
    }


def _gains(given: list[str]) -> Gains:
    values = dict[str, Any]()
    for assignment in given:
        name, equals, value = assignment.partition("=")
        if not equals:
            raise InvalidTuning(f"{assignment!r} is not NAME=VALUE, for example spread=4")
        values[name] = value
    try:
        return Gains(**values)
    except ValidationError as error:
        raise InvalidTuning(explain(error, Gains, "--gain")) from error
