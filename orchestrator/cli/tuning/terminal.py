"""Draws a plot with characters, without colours."""

from collections.abc import Iterator

import plotext

from orchestrator.cli.tuning.panels import Panel, Plot, Series, Style

_MOST_WIDE_BARS = 16  # more of them would touch
_HEIGHTS = (20, 9)  # lines of the first panel, and of each other one, with title and axis
_MARKERS = {Style.STEPS: "braille", Style.CROSSES: "x", Style.DOTS: "o", Style.DASHES: "-", Style.BARS: "█"}
_ORDER = (Style.STEPS, Style.BARS, Style.DASHES, Style.CROSSES, Style.DOTS)  # the later ones cover the others
_SHOWN = {**_MARKERS, Style.STEPS: "⠤⠤"}


def lines_of(plot: Plot, width: int) -> Iterator[str]:
    """The lines of a plot of this width in characters."""
    for index, panel in enumerate(plot.panels):
        yield from _panel(panel, plot, width, _HEIGHTS[min(index, 1)])
        series = [f"{_SHOWN[each.style]} {each.label}" for each in panel.series]
        if len(series) > 1:
            yield "   ".join(series)
            yield from _wrapped([f"{sign} {meaning}" for sign, meaning in plot.legend], width)


def _panel(panel: Panel, plot: Plot, width: int, height: int) -> Iterator[str]:
    axis, runs = panel.axis, len(plot.labels)
    rows = height - 4 - len(panel.signs)  # of the data
    top = 1 + len(panel.signs) / rows
    plotext.clear_figure()
    plotext.theme("clear")
    plotext.plot_size(width, height)
    plotext.title(panel.title)
    for series in sorted(panel.series, key=lambda each: _ORDER.index(each.style)):
        _draw(series, [None if value is None else axis.place(value) for value in series.values])
    plotext.xlim(0.5, runs + 0.5)
    plotext.ylim(0, top)
    plotext.xticks([index + 1 for index in plot.tick_labels], list(plot.tick_labels.values()))
    margin = max(len(each) for other in plot.panels for each in other.axis.tick_labels)
    plotext.yticks(
        [axis.place(each) for each in axis.ticks], [each.rjust(margin) for each in axis.tick_labels]
    )
    for row, signs in enumerate(panel.signs):
        for run, sign in enumerate(signs, 1):
            if sign != " ":
                plotext.text(sign, run, top - (row + 0.5) / rows)
    yield from (line.rstrip() for line in plotext.uncolorize(plotext.build()).splitlines())


def _draw(series: Series, places: list[float | None]) -> None:
    known = [(run, place) for run, place in enumerate(places, 1) if place is not None]
    runs, heights = [run for run, _ in known], [place for _, place in known]
    match series.style:
        case Style.STEPS:
            x = [run + side for run in runs for side in (-0.5, 0.5)]
            plotext.plot(x, [place for place in heights for _ in (0, 1)], marker=_MARKERS[series.style])
        case Style.BARS if len(places) <= _MOST_WIDE_BARS:
            plotext.bar(runs, heights, width=0.4, marker=_MARKERS[series.style])
        case Style.BARS:
            plotext.scatter(runs, heights, marker=_MARKERS[series.style], fillx=True)
        case _:
            plotext.scatter(runs, heights, marker=_MARKERS[series.style])


def _wrapped(entries: list[str], width: int) -> Iterator[str]:
    line = ""
    for entry in entries:
        longer = f"{line}   {entry}" if line else entry
        if len(longer) > width and line:
            yield line
            longer = entry
        line = longer
    if line:
        yield line
