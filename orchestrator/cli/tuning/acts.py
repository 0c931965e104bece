"""The commands of `orchestrator tuning` that change what operators have set for a name."""

from enum import StrEnum
from typing import Annotated

import typer

from orchestrator.cli.acting import confirm
from orchestrator.cli.connect import connected
from orchestrator.cli.options import Quiet, Verbose
from orchestrator.cli.output import stderr_console
from orchestrator.model.errors import InvalidTuning
from orchestrator.model.tuning import TuningMode
from orchestrator.tuning.record import TuningRecord

Name = Annotated[str, typer.Argument(metavar="NAME", help="The name in the definition.")]
Amounts = Annotated[
    list[str] | None, typer.Argument(metavar="RESOURCE=AMOUNT", help="For example executor.memory=2g.")
]
Removed = Annotated[
    list[str] | None, typer.Option("--remove", metavar="RESOURCE", help="Remove it from those of the name.")
]


class ChosenMode(StrEnum):
    """The modes, and `definition` for none of an operator."""

    OFF = "off"
    SUGGEST = "suggest"
    APPLY = "apply"
    DEFINITION = "definition"


def mode(
    name: Name,
    chosen: Annotated[ChosenMode, typer.Argument(metavar="MODE", help="off, suggest, apply or definition.")],
    verbose: Verbose = 0,
    quiet: Quiet = False,
) -> None:
    """Set whether decisions about a name are made (off), shown (suggest), or given to its runs (apply).

    It wins over the mode of the definition and of the pool; `definition` removes it. It counts from the next
    attempt on.

    Example: orchestrator tuning mode flights apply
    """
    wanted = None if chosen is ChosenMode.DEFINITION else TuningMode(chosen.value)
    with connected(start_own=False) as (client, _):
        client.tunings.set_mode(name, wanted)
    _say(quiet, f"the mode of {name} is {'that of its definition or pool' if wanted is None else wanted}")


def pin(
    name: Name, amounts: Amounts = None, remove: Removed = None, verbose: Verbose = 0, quiet: Quiet = False
) -> None:
    """Fix resources of all runs of a name, whatever their definition and history say.

    It counts in modes suggest and apply, from the next attempt on. The limit of a container wins over it.

    Example: orchestrator tuning pin flights driver.memory=2g --remove driver.overhead
    """
    given = _given(amounts, remove)
    with connected(start_own=False) as (client, _):
        _show(client.tunings.pin(name, given, removed=remove or ()), quiet)


def cap(
    name: Name, amounts: Amounts = None, remove: Removed = None, verbose: Verbose = 0, quiet: Quiet = False
) -> None:
    """Limit resources of all runs of a name; also a definition that asks for more gets no more.

    Example: orchestrator tuning cap flights executor.memory=16g
    """
    given = _given(amounts, remove)
    with connected(start_own=False) as (client, _):
        _show(client.tunings.cap(name, given, removed=remove or ()), quiet)


def reset(
    name: Name,
    all_: Annotated[bool, typer.Option("--all", help="Remove pins, caps and the mode, too.")] = False,
    yes: Annotated[bool, typer.Option("--yes", "-y", help="Do not ask for confirmation.")] = False,
    verbose: Verbose = 0,
    quiet: Quiet = False,
) -> None:
    """Forget the runs of a name so far: the next one gets what its definition asks for.

    The history itself stays. With --all a damaged node is repaired, too.

    Example: orchestrator tuning reset flights --yes
    """
    confirm(f"Forget what is known about the resources of {name}?", yes=yes)
    with connected(start_own=False) as (client, _):
        client.tunings.reset(name, all_=all_)
    _say(quiet, f"{name} begins anew")


def _given(amounts: list[str] | None, removed: list[str] | None) -> dict[str, str]:
    found = dict[str, str]()
    for assignment in amounts or ():
        resource, equals, amount = assignment.partition("=")
        if not equals:
            raise InvalidTuning(f"{assignment!r} is not RESOURCE=AMOUNT, for example executor.memory=2g")
        if resource in found:
            raise InvalidTuning(f"{resource} is given twice")
        found[resource] = amount
    if not found and not removed:
        raise InvalidTuning("nothing to change: give RESOURCE=AMOUNT, or --remove RESOURCE")
    return found


def _show(record: TuningRecord, quiet: bool) -> None:
    for kind, amounts in (("pinned", record.pins), ("capped", record.caps)):
        words = ", ".join(f"{resource}={resource.written(value)}" for resource, value in amounts.items())
        _say(quiet, f"{record.name}: {kind}: {words or 'nothing'}")


def _say(quiet: bool, words: str) -> None:
    if not quiet:
        stderr_console().print(words, markup=False)
