"""Draws a plot as SVG, for light and dark pages; shapes differ as well as colours."""

from collections.abc import Iterator
from html import escape

from orchestrator.cli.tuning.panels import Panel, Plot, Series, Style

_WIDTH, _LEFT, _RIGHT = 900, 76, 16
_HEIGHTS = (260, 90)  # of the first panel, and of each other one, without title and axis
_TITLE, _AXIS, _SIGN_ROW, _LINE = 30, 24, 16, 20
_MOST_HEADING, _MOST_NOTE = 90, 500  # characters
_CHARACTER = 7.2  # its usual width

_STYLE = """
  .page { fill: #ffffff; } .frame { fill: none; stroke: #8c959f; } .grid { stroke: #d8dee4; }
  text { fill: #1f2328; font: 12px sans-serif; } .heading { font: 600 15px sans-serif; }
  .sign { font: 600 13px monospace; text-anchor: middle; }
  .y { text-anchor: end; } .x { text-anchor: middle; }
  .steps { fill: none; stroke: #0550ae; stroke-width: 2.5; }
  .crosses { fill: none; stroke: #bc4c00; stroke-width: 1.6; }
  .dots { fill: #1a7f37; } .dashes { fill: none; stroke: #8250df; stroke-width: 2; } .bars { fill: #8c959f; }
  .run { fill: transparent; } .run:hover { fill: #0969da22; }
  @media (prefers-color-scheme: dark) {
    .page { fill: #0d1117; } .grid { stroke: #30363d; } text { fill: #f0f6fc; } .steps { stroke: #58a6ff; }
    .crosses { stroke: #f0883e; } .dots { fill: #3fb950; } .dashes { stroke: #bc8cff; }
  }
"""


def drawn(plot: Plot) -> str:
    """The SVG of a plot."""
    parts, y = list[str](), 28.0
    heading = escape(_cut(plot.heading, _MOST_HEADING))
    parts.append(f'<text class="heading" x="{_LEFT}" y="{y:g}">{heading}</text>\n')
    y += 8
    top = y
    for index, panel in enumerate(plot.panels):
        if len(panel.series) > 1:
            y += _LINE
            parts.append(_key(panel, y))
        y += _TITLE
        height = _HEIGHTS[min(index, 1)] + _SIGN_ROW * len(panel.signs)
        parts.append("".join(_panel(panel, plot, y, height)))
        y += height + _AXIS
    y += _LINE
    for line in _legend(plot):
        parts.append(f'<text x="{_LEFT}" y="{y:g}">{escape(line)}</text>\n')
        y += _LINE
    parts.append("".join(_notes(plot, top, y - top)))
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{_WIDTH}" height="{y:g}"'
        f' viewBox="0 0 {_WIDTH} {y:g}" role="img" aria-label="{heading}">\n'
        f'<style>{_STYLE}</style>\n<rect class="page" width="{_WIDTH}" height="{y:g}"/>\n'
        f"{''.join(parts)}</svg>\n"
    )


def _key(panel: Panel, y: float) -> str:
    """The series of a panel in one line, each with its shape."""
    found, x = list[str](), float(_LEFT)
    for series in panel.series:
        found.append(_marks(series.style, [(x + 8, y - 4)], half=8))
        found.append(f'<text x="{x + 22:g}" y="{y:g}">{escape(series.label)}</text>\n')
        x += 44 + _CHARACTER * len(series.label)
    return "".join(found)


def _panel(panel: Panel, plot: Plot, y: float, height: float) -> Iterator[str]:
    axis, right = panel.axis, _WIDTH - _RIGHT
    data_top, bottom = y + _SIGN_ROW * len(panel.signs), y + height
    yield f'<text x="{_LEFT}" y="{y - 8:g}">{escape(panel.title)}</text>\n'
    for tick, text in zip(axis.ticks, axis.tick_labels, strict=True):
        at = bottom - axis.place(tick) * (bottom - data_top)
        yield f'<path class="grid" d="M{_LEFT} {at:.1f}H{right}"/>'
        yield f'<text class="y" x="{_LEFT - 8}" y="{at + 4:.1f}">{text}</text>\n'
    for index, label in plot.tick_labels.items():
        yield f'<text class="x" x="{_x(plot, index):.1f}" y="{bottom + 16:.1f}">{escape(label)}</text>\n'
    for row, signs in enumerate(panel.signs):
        for index, sign in enumerate(signs):
            if sign != " ":
                at = y + _SIGN_ROW * (row + 0.8)
                yield f'<text class="sign" x="{_x(plot, index):.1f}" y="{at:.1f}">{escape(sign)}</text>\n'
    for series in panel.series:
        yield _series(series, panel, plot, data_top, bottom)
    yield f'<rect class="frame" x="{_LEFT}" y="{y:g}" width="{right - _LEFT}" height="{height:g}"/>\n'


def _series(series: Series, panel: Panel, plot: Plot, top: float, bottom: float) -> str:
    axis, half = panel.axis, (_x(plot, 1) - _x(plot, 0)) / 2
    points = [
        (_x(plot, index), bottom - axis.place(value) * (bottom - top))
        for index, value in enumerate(series.values)
        if value is not None
    ]
    if series.style is Style.BARS:
        wide = min(half, 20) * 0.7
        shape = "".join(f"M{x - wide:.1f} {bottom:g}V{y:.1f}h{2 * wide:.1f}V{bottom:g}z" for x, y in points)
        return f'<path class="bars" d="{shape}"/>\n'
    return _marks(series.style, points, half)


def _marks(style: Style, points: list[tuple[float, float]], half: float) -> str:
    """The shapes of a series; `half` of the distance of two runs."""
    small = min(max(half, 1.5), 4)
    match style:
        case Style.STEPS:
            starts = ["M"] + ["L"] * len(points)
            line = "".join(
                f"{start}{x - half:.1f} {y:.1f}h{2 * half:.1f}"
                for start, (x, y) in zip(starts, points, strict=False)
            )
        case Style.DASHES:
            line = "".join(f"M{x - small:.1f} {y:.1f}h{2 * small:.1f}" for x, y in points)
        case Style.CROSSES:
            line = "".join(
                f"M{x - small:.1f} {y - small:.1f}l{2 * small:.1f} {2 * small:.1f}m0 {-2 * small:.1f}"
                f"l{-2 * small:.1f} {2 * small:.1f}"
                for x, y in points
            )
        case _:
            radius = 0.8 * small
            line = "".join(
                f"M{x - radius:.1f} {y:.1f}a{radius:.1f} {radius:.1f} 0 1 0 {2 * radius:.1f} 0"
                f"a{radius:.1f} {radius:.1f} 0 1 0 {-2 * radius:.1f} 0"
                for x, y in points
            )
    return f'<path class="{style}" d="{line}"/>\n'


def _notes(plot: Plot, y: float, height: float) -> Iterator[str]:
    """What a browser shows beside the pointer, of each run."""
    width = (_WIDTH - _LEFT - _RIGHT) / max(len(plot.labels), 1)
    for index, note in enumerate(plot.notes):
        x = _x(plot, index) - width / 2
        yield (
            f'<rect class="run" x="{x:.1f}" y="{y:g}" width="{width:.1f}" height="{height:g}">'
            f"<title>{escape(_cut(note, _MOST_NOTE))}</title></rect>\n"
        )


def _legend(plot: Plot) -> Iterator[str]:
    texts = [f"{sign}\u2002{meaning}" for sign, meaning in plot.legend]
    every = 6
    for start in range(0, len(texts), every):
        yield "\u2003\u2003".join(texts[start : start + every])


def _x(plot: Plot, index: int) -> float:
    return _LEFT + (index + 0.5) * (_WIDTH - _LEFT - _RIGHT) / max(len(plot.labels), 1)


def _cut(text: str, limit: int) -> str:
    return text if len(text) <= limit else f"{text[: limit - 1]}…"
