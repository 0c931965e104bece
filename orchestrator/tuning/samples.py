"""The runs that a decision may follow from: those of the same code and parameters."""

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta

from orchestrator.history.key import Key
from orchestrator.tuning.demand import Use
from orchestrator.tuning.resources import Resource
from orchestrator.tuning.signals import Run, Sample
from spark_runner.protocol.sizing import RESOURCES

_CLOCK_TOLERANCE = timedelta(minutes=5)


@dataclass(frozen=True, slots=True)
class Samples:
    """Runs of one key, newest last; `left_out` says in words which others are not among them."""

    all: tuple[Sample, ...]
    asked: Mapping[str, object] | None = None  # by definition and pool of the last run; None = unknown
    left_out: str = ""

    def of(self, resource: Resource) -> list[tuple[Sample, Use]]:
        """Those that measured a resource, with their use of it."""
        return [(each, use) for each in self.all if (use := each.use(resource)) is not None]

    def asked_last(self, resource: Resource) -> float | None:
        """What definition and pool asked for, for the last run; None if that is unknown."""
        if self.asked is None:
            return None
        others = {name: text for name, text in self.all[-1].conf.items() if name not in RESOURCES}
        return resource.value_in({**others, **self.asked})  # defaults depend on the master, too


def samples_of(runs: Sequence[Run], key: Key, *, forgotten: str = "", now: str = "") -> Samples:
    """The samples among entries of the history; `forgotten` is the run after which they begin."""
    last = max((index for index, run in enumerate(runs) if run.get("run") == forgotten), default=-1)
    runs = runs[last + 1 :]
    kept, left_out = list[Run](), Counter[str]()
    for run in runs:
        if reason := _unfit(run, key, now):
            left_out[reason] += 1
        else:
            kept.append(run)
    asked = kept[-1].get("asked") if kept else None
    return Samples(
        tuple(Sample.of(run) for run in kept), asked if isinstance(asked, Mapping) else None, _words(left_out)
    )


def _unfit(run: Run, key: Key, now: str) -> str:
    """Why a run is no sample, in words; empty if it is one."""
    metrics, code, parameters = run.get("metrics"), run.get("code"), run.get("parameters")
    ended, present = _time(run.get("ended")), _time(now)
    reasons = {
        "ran in a JVM that jobs share": isinstance(metrics, Mapping) and bool(metrics.get("shared")),
        "came from a version that did not record its code": not isinstance(code, str) or parameters is None,
        "ran other code": code != key.code,
        "had parameters of another class": parameters != key.parameters,
        "never started": run.get("state") == "closed",
        "has no valid time": ended is None,
        "ended in the future, by the clock of its host": bool(
            ended and present and ended > present + _CLOCK_TOLERANCE
        ),
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
