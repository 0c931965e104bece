"""The controllers of the simulation in `benchmarks/tuning.py`: ours and its peers; sizes in MiB."""

from dataclasses import dataclass, field

from tuning_workloads import BOUNDS, START

from orchestrator.config.tuning import Gains
from orchestrator.tuning.demand import Use
from orchestrator.tuning.law import grown, next_step


@dataclass
class Fixed:
    """What the user gave, for ever."""

    allocated: float = START

    def allocate(self, _: float, /) -> float:
        """The memory of the next run."""
        return self.allocated

    def retry(self, allocated: float) -> float:
        """Twice as much, as a user would."""
        self.allocated = 2 * allocated
        return self.allocated

    def saw(self, use: Use) -> None:
        """Nothing is learned."""


@dataclass
class DrElephant:
    """The rule of Dr. Elephant for used memory: the peak and a fifth, beyond its first threshold."""

    allocated: float = START

    def allocate(self, _: float, /) -> float:
        """The memory of the next run."""
        return self.allocated

    def retry(self, allocated: float) -> float:
        """Dr. Elephant has no rule for it: half as much again."""
        self.allocated = 1.5 * allocated
        return self.allocated

    def saw(self, use: Use) -> None:
        """Follow the recommendation, also where it is more than the run had."""
        if use.is_short:
            return
        if use.allocated >= 1.25 * (use.peak + 300) or use.peak * 1.2 > use.allocated:
            self.allocated = max(1.2 * use.peak, BOUNDS.least)


@dataclass
class VpaLike:
    """The recommender of Kubernetes' VPA, by runs instead of hours: a decaying p90 and 15 %."""

    half_life: float = 14.0  # runs
    peaks: list[float] = field(default_factory=list)

    def allocate(self, _: float, /) -> float:
        """The memory of the next run."""
        if not self.peaks:
            return START
        newest = len(self.peaks)
        weights = sorted(
            (peak, 0.5 ** ((newest - index) / self.half_life)) for index, peak in enumerate(self.peaks)
        )
        left = 0.9 * sum(weight for _, weight in weights)
        for peak, weight in weights:
            left -= weight
            if left <= 0:
                return 1.15 * peak
        return 1.15 * weights[-1][0]

    def retry(self, allocated: float) -> float:
        """A fifth more, and 100 MiB at least."""
        return max(1.2 * allocated, allocated + 100)

    def saw(self, use: Use) -> None:
        """Add a peak; that of a run out of memory is what its retry gets."""
        self.peaks.append(self.retry(use.allocated) if use.is_short else use.peak)


@dataclass
class NaivePid:
    """A PID controller of the memory itself, towards a share of use."""

    proportional: float = 0.6
    integral: float = 0.2
    derivative: float = 0.1
    use: float = 0.8
    allocated: float = START
    sum: float = 0.0
    last: float = 0.0

    def allocate(self, _: float, /) -> float:
        """The memory of the next run."""
        return self.allocated

    def retry(self, allocated: float) -> float:
        """Half as much again."""
        self.allocated = 1.5 * allocated
        return self.allocated

    def saw(self, use: Use) -> None:
        """Move by the error of this run, the sum of all errors and their change."""
        error = use.peak / self.use - use.allocated
        self.sum += error
        change = self.proportional * error + self.integral * self.sum
        change += self.derivative * (error - self.last)
        self.allocated = min(max(use.allocated + change, BOUNDS.least), BOUNDS.largest)
        self.last = error


@dataclass
class Ours:
    """The law of `orchestrator.tuning`; `knows_input`: the size of the next input is known before the run."""

    gains: Gains = field(default_factory=Gains)
    knows_input: bool = True
    uses: list[Use] = field(default_factory=list)

    def allocate(self, known_input: float, /) -> float:
        """The memory of the next run."""
        if not self.uses:
            return START
        following = known_input if self.knows_input else None
        return next_step(self.uses, BOUNDS, self.gains, next_input=following).after

    def retry(self, allocated: float) -> float:
        """What the law gives in the same job."""
        return BOUNDS.clamped(grown(allocated, BOUNDS, self.gains))

    def saw(self, use: Use) -> None:
        """Add a run to the history."""
        self.uses.append(use)
