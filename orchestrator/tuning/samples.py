"""The runs that a decision may follow from: those of the same code, parameters and kind of master."""

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from itertools import groupby

from orchestrator.history.key import Key
from orchestrator.tuning.demand import Use
from orchestrator.tuning.needs import use_of
from orchestrator.tuning.resources import Resource
from orchestrator.tuning.signals import STATED_INPUT, Run, Sample, is_local

Measured = Sequence[tuple[Sample, Use]]
"""Runs with their use of one resource, newest last."""

_CLOCK_TOLERANCE = timedelta(minutes=5)
_TURNS = 3  # times that an amount is asked for, with others between them: a single change is no habit


@dataclass(frozen=True, slots=True)
class Samples:
    """Runs of one key, newest last; `left_out` says in words which others are not among them.

    `has_stated_inputs`: their inputs are those that definitions state, and not what runs have counted.
    """

    all: tuple[Sample, ...]
    left_out: str = ""
    has_stated_inputs: bool = False

    def of(self, resource: Resource) -> list[tuple[Sample, Use]]:
        """Those that measured a resource, with their use of it."""
        return [(each, use) for each in self.all if (use := use_of(each, resource)) is not None]


def alternating(resource: Resource, measured: Measured, asked: float, tasks: float) -> Measured:
    """The runs that asked for this amount, where those of a name ask for different ones in turn; else none.

    Two definitions with one name do, and one in pools with other defaults. For so many tasks at a time an
    amount of memory is another one.
    """
    now = (asked, tasks if resource.is_memory else None)

    def its(sample: Sample) -> tuple[float | None, float | None]:
        return sample.asked_for(resource), sample.asked_tasks if resource.is_memory else None

    asks = [its(sample) for sample, _ in measured if sample.asked is not None]
    blocks = [each for each, _ in groupby([*asks, now])]
    if blocks.count(now) < _TURNS:
        return ()
    return [(sample, use) for sample, use in measured if its(sample) == now]


def samples_of(
    runs: Sequence[Run],
    key: Key,
    *,
    forgotten: str = "",
    now: str = "",
    conf: Mapping[str, object] | None = None,
) -> Samples:
    """The samples among entries of the history; `forgotten` is the run after which they begin.

    `conf`: the Spark properties of the next run, by default those of the last one. With a local master the
    driver is the executor, so runs with one say nothing about runs on a cluster.
    """
    last = max((index for index, run in enumerate(runs) if run.get("run") == forgotten), default=-1)
    runs = runs[last + 1 :]
    kept, left_out = list[Run](), Counter[str]()
    told = {str(run.get("run")): index for index, run in enumerate(runs) if _is_hour(run) or _succeeded(run)}
    for index, run in enumerate(runs):
        if _is_hour(run) and told[str(run.get("run"))] > index:
            left_out["covered an hour of a run that counts itself"] += 1
        elif reason := _unfit(run, key, now):
            left_out[reason] += 1
        else:
            kept.append(run)
    samples = [Sample.of(run) for run in kept]
    like = (is_local(samples[-1].conf) if conf is None else is_local(conf)) if samples else False
    others = sum(sample.is_local is not like for sample in samples)
    if others:
        left_out["ran on a cluster" if like else "ran with a local master"] = others
    samples = [sample for sample in samples if sample.is_local is like]
    unit = next(iter(samples[-1].inputs), "") if samples else ""  # others would compare rows with bytes
    compared = tuple(replace(sample, input=sample.inputs.get(unit)) for sample in samples)
    return Samples(compared, _words(left_out), unit == STATED_INPUT)


def _is_hour(run: Run) -> bool:
    """Whether it is an hour of a stream, with the measurements of its run so far."""
    return run.get("hour") is not None


def _succeeded(run: Run) -> bool:
    return run.get("state") == "succeeded"


def last_key(runs: Sequence[Run]) -> Key:
    """The key of the last run that recorded its code; one that no run has, without any."""
    last = next((run for run in reversed(runs) if isinstance(run.get("code"), str)), {})
    return Key(str(last.get("code")), str(last.get("parameters")))


def last_run(runs: Sequence[Run], now: str) -> str:
    """The run after which samples begin anew, empty without any.

    After one from the future, which stays the last one of the history, they would never begin.
    """
    present = _time(now)
    past = (run for run in reversed(runs) if not _is_future(_time(run.get("ended")), present))
    return str(next(past, {}).get("run", ""))


def _is_future(ended: datetime | None, present: datetime | None) -> bool:
    return bool(ended and present and ended > present + _CLOCK_TOLERANCE)


def _unfit(run: Run, key: Key, now: str) -> str:
    """Why a run is no sample, in words; empty if it is one."""
    metrics, code, parameters = run.get("metrics"), run.get("code"), run.get("parameters")
    settings = run.get("settings")
    ended, present = _time(run.get("ended")), _time(now)
    reasons = {
        "ran in a JVM that jobs share": isinstance(metrics, Mapping) and bool(metrics.get("shared")),
        "came from a version that did not record its code": not isinstance(code, str) or parameters is None,
        "ran other code": code != key.code,
        "had parameters of another class": parameters != key.parameters,
        "did not record its resources": not (isinstance(settings, Mapping) and settings.get("spark.master")),
        "never started": run.get("state") == "closed",
        "has no valid time": ended is None,
        "ended in the future, by the clock of its host": _is_future(ended, present),
    }
    return next((reason for reason, applies in reasons.items() if applies), "")


def _time(text: object) -> datetime | None:
    try:
        found = datetime.fromisoformat(text) if isinstance(text, str) else None
    except ValueError:
        return None
    return found if found is not None and found.tzinfo is not None else None


def _words(left_out: Mapping[str, int]) -> str:
    return "; ".join(
        f"{count} {'run' if count == 1 else 'runs'} {reason}" for reason, count in sorted(left_out.items())
    )
