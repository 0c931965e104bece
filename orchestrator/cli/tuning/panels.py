"""The panels of a plot, one above the other over the same runs; both the terminal and SVG draw them."""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum

from orchestrator.tuning.plot_data import Mark, PlotData, Point

_MOST_DOUBLINGS = 10  # that an axis shows; smaller values are at its end
_MOST_TICKS = 6  # of an axis by doublings
_MOST_STEPS = 4  # between the ticks of a low axis from 0
_MOST_LABELS = 12
_NEXT = "next"


class Style(StrEnum):
    """How a series is drawn."""

    STEPS = "steps"
    CROSSES = "crosses"
    DOTS = "dots"
    DASHES = "dashes"
    BARS = "bars"


@dataclass(frozen=True, slots=True)
class Series:
    """One value for each run; None where it is unknown."""

    label: str
    style: Style
    values: Sequence[float | None]


@dataclass(frozen=True, slots=True)
class Axis:
    """The vertical axis of a panel: from 0, or by doublings, which are what the law works with."""

    low: float
    high: float
    ticks: Sequence[float]
    is_by_doublings: bool = False

    @classmethod
    def of(cls, values: Sequence[float], *, by_doublings: bool) -> "Axis":
        """An axis for these values, all above 0."""
        largest = max(values, default=1.0)
        if by_doublings:
            top = math.ceil(math.log2(largest) - 1e-9)
            bottom = math.floor(math.log2(min(values, default=1.0)))
            bottom = max(min(bottom, top - 2), top - _MOST_DOUBLINGS)
            every = math.ceil((top - bottom) / _MOST_TICKS)
            ticks = [2.0**each for each in range(top, bottom - 1, -every)]
            return cls(2.0**bottom, 2.0**top, ticks[::-1], is_by_doublings=True)
        unit = 10.0 ** math.floor(math.log10(largest))
        steps = (unit * each for each in (0.5, 1, 2, 5))
        step = next(each for each in steps if largest / each <= _MOST_STEPS)
        count = math.ceil(largest / step - 1e-9)
        return cls(0.0, step * count, [step * each for each in range(count + 1)])

    @property
    def tick_labels(self) -> list[str]:
        """The ticks in words."""
        return [f"{each:,.7g}" for each in self.ticks]

    def place(self, value: float) -> float:
        """Where a value is, from 0 = bottom to 1 = top."""
        if self.is_by_doublings:
            value = max(value, self.low)
            return math.log2(value / self.low) / math.log2(self.high / self.low)
        return (value - self.low) / (self.high - self.low)


@dataclass(frozen=True, slots=True)
class Panel:
    """Series with one unit; each of `signs` is a row above them, one character for each run."""

    title: str
    series: Sequence[Series]
    signs: Sequence[str] = ()
    by_doublings: bool = False

    @property
    def axis(self) -> Axis:
        """The vertical axis."""
        values = [value for each in self.series for value in each.values if value]
        return Axis.of(values, by_doublings=self.by_doublings)


@dataclass(frozen=True, slots=True)
class Plot:
    """All panels of a plot, and the names of the runs below them; `legend`: the signs with their meanings."""

    heading: str
    panels: Sequence[Panel]
    labels: Sequence[str]
    legend: Sequence[tuple[str, str]] = ()
    notes: Sequence[str] = ()  # of each run, in words

    @property
    def tick_labels(self) -> dict[int, str]:
        """Some of the names, by index, so that they do not touch."""
        every = math.ceil(len(self.labels) / _MOST_LABELS)
        if every > 1:
            every = math.ceil(every / 5) * 5
        numbers = enumerate(self.labels)
        found = {index: text for index, text in numbers if index == 0 or (index + 1) % every == 0}
        last = len(self.labels) - 1
        if self.labels[last:] == [_NEXT]:
            room = 0 if every == 1 else 2
            found = {index: text for index, text in found.items() if index + room < last} | {last: _NEXT}
        return found


_SIGNS = (
    {Mark.RAISED: "^", Mark.LOWERED: "v"},
    {Mark.SHORT: "!", Mark.PRESSED: "p", Mark.FAILED: "f"},
    {Mark.PINNED: "P", Mark.LIMITED: "L", Mark.BY_HAND: "h"},
    {Mark.RESET: "R"},
)
"""The rows of signs; of one row a run has one at most."""


def plot_of(data: PlotData) -> Plot:
    """Allocation and use, run time, and spill where a run spilled."""
    points = [*data.points, *([data.next] if data.next else [])]
    amounts = [
        Series("allocated", Style.STEPS, [each.allocated for each in points]),
        Series("peak of the heap", Style.CROSSES, [each.peak for each in points]),
        Series("demand", Style.DOTS, [each.demand for each in points]),
        Series("target", Style.DASHES, [each.target for each in points]),
    ]
    unit = " in MiB" if data.resource.is_memory else ""
    rows = [[_sign(each, row) for each in points] for row in _SIGNS]
    signs = ["".join(row) for row in rows if any(sign != " " for sign in row)]
    times = Series("run time", Style.BARS, [each.seconds for each in points])
    spills = Series("spill", Style.BARS, [each.spilled for each in points])
    panels = [
        Panel(f"{data.resource}{unit}, logarithmic", _known(amounts), signs, by_doublings=True),
        Panel("run time in s", _known([times])),
        Panel("spill to disk in MiB", _known([spills])),
    ]
    used = {mark for each in points for mark in each.marks}
    labels = [str(number) for number, _ in enumerate(data.points, 1)] + ([_NEXT] if data.next else [])
    return Plot(
        f"{data.name}: {data.resource} of {len(data.points)} runs",
        [each for each in panels if each.series],
        labels,
        [(sign, mark.value) for row in _SIGNS for mark, sign in row.items() if mark in used],
        [_note(label, each) for label, each in zip(labels, points, strict=True)],
    )


def _sign(point: Point, row: dict[Mark, str]) -> str:
    return next((sign for mark, sign in row.items() if mark in point.marks), " ")


def _known(series: Sequence[Series]) -> list[Series]:
    return [each for each in series if any(each.values)]


def _note(label: str, point: Point) -> str:
    amounts = {
        "allocated": point.allocated,
        "peak": point.peak,
        "demand": point.demand,
        "target": point.target,
        "run time in s": point.seconds,
        "spill in MiB": point.spilled,
    }
    facts = [f"{name} {value:,.0f}" for name, value in amounts.items() if value is not None]
    head = "next run" if label == _NEXT else f"run {label}: {point.run}, {point.ended}"
    return "; ".join(filter(None, (head, ", ".join(facts), ", ".join(point.marks), point.why)))
