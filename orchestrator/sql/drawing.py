"""Draws what flows where as SVG: sources on the left, targets on the right; for light and dark pages."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from html import escape

from orchestrator.sql.flow import Flow

_BOX_WIDTH, _BOX_HEIGHT = 230, 46
_GAP_X, _GAP_Y = 90, 18
_MARGIN = 20
_NAME_CHARACTERS, _DETAIL_CHARACTERS = 27, 34  # that fit into a box
MAX_BOXES = 1_000

_STYLE = """
  .box { fill: #f4f6f8; stroke: #57606a; } .view { fill: #ffffff; stroke-dasharray: 4 3; }
  .target { fill: #ddf4e4; stroke: #1a7f37; }
  .name { fill: #1f2328; font: 600 13px sans-serif; } .detail { fill: #57606a; font: 11px sans-serif; }
  .edge { fill: none; stroke: #8c959f; stroke-width: 1.5; } .tip { fill: #8c959f; }
  .page { fill: #ffffff; }
  @media (prefers-color-scheme: dark) {
    .page { fill: #0d1117; } .box { fill: #21262d; stroke: #9198a1; } .view { fill: #0d1117; }
    .target { fill: #12361f; stroke: #3fb950; } .name { fill: #f0f6fc; } .detail { fill: #9198a1; }
    .edge { stroke: #6e7681; } .tip { fill: #6e7681; }
  }
"""


@dataclass(eq=False)
class _Box:
    name: str
    detail: str
    kind: str  # a class of the style
    note: str = ""  # shown with the whole name
    level: int = 0
    row: int = 0
    reads: list["_Box"] = field(default_factory=list)

    @property
    def x(self) -> int:
        return _MARGIN + self.level * (_BOX_WIDTH + _GAP_X)

    @property
    def y(self) -> int:
        return _MARGIN + self.row * (_BOX_HEIGHT + _GAP_Y)


def drawn(flows: Sequence[Flow]) -> str:
    """The SVG of these statements; raises ValueError if they are too many to see anything."""
    boxes = _boxes(flows)
    if len(boxes) > MAX_BOXES:
        message = (
            f"{len(boxes):,} tables, views and writes are too many for a picture, the limit is {MAX_BOXES:,}"
        )
        raise ValueError(message)
    rows: dict[int, int] = {}
    for box in boxes:
        box.row = rows.get(box.level, 0)
        rows[box.level] = box.row + 1
    width = 2 * _MARGIN + (max(rows, default=0) + 1) * (_BOX_WIDTH + _GAP_X) - _GAP_X
    height = 2 * _MARGIN + max(rows.values(), default=1) * (_BOX_HEIGHT + _GAP_Y) - _GAP_Y
    edges = "".join(_edge(source, box) for box in boxes for source in box.reads)
    shapes = "".join(map(_shape, boxes))
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{width}" height="{height}"'
        f' viewBox="0 0 {width} {height}" role="img" aria-label="What the script reads and writes">\n'
        f'<style>{_STYLE}</style>\n<rect class="page" width="{width}" height="{height}"/>\n'
        f"{edges}{shapes}</svg>\n"
    )


def _boxes(flows: Sequence[Flow]) -> list[_Box]:
    """One box for each table that is read, each view, and each target; a target is right of what it reads."""
    known: dict[str, _Box] = {}
    details = {flow.declares.lower(): _detail(flow) for flow in flows if flow.statement == "CREATE TABLE"}
    boxes = list[_Box]()

    def read(names: Sequence[str]) -> list[_Box]:
        found = list[_Box]()
        for name in names:
            box = known.get(name.lower())
            if box is None:
                box = known[name.lower()] = _Box(name, details.get(name.lower(), "files"), "source")
                boxes.append(box)
            found.append(box)
        return found

    for flow in flows:
        if flow.statement == "CREATE TABLE":
            known.pop(flow.declares.lower(), None)
            continue
        if flow.statement == "CREATE FUNCTION":
            continue
        name = flow.writes or flow.declares or f"{flow.statement} in line {flow.line}"
        sources = read(flow.reads)
        level = max((box.level for box in sources), default=-1) + 1
        if flow.writes:
            box = known.get(name.lower())
            if box is None or box.kind != "target" or box.level < level:
                note = "; ".join(filter(None, (str(flow.mode or ""), flow.guarantee)))
                box = _Box(name, _detail(flow), "target", note, level)
                boxes.append(box)
            box.reads += [source for source in sources if source not in box.reads]
        else:
            detail = f"view, line {flow.line}" if flow.declares else ""
            box = _Box(name, detail, "view", level=level, reads=sources)
            boxes.append(box)
        if flow.writes or flow.declares:
            known[name.lower()] = box
    return boxes


def _detail(flow: Flow) -> str:
    return " ".join(part for part in (flow.connector, flow.location) if part)


def _shape(box: _Box) -> str:
    style = "box" if box.kind == "source" else f"box {box.kind}"
    whole = f"{box.name}: {box.detail}" if box.detail else box.name
    title = escape(f"{whole}; {box.note}" if box.note else whole)
    middle = box.y + (20 if box.detail else 28)
    lines = (
        f'<text class="name" x="{box.x + 12}" y="{middle}">{escape(_end(box.name, _NAME_CHARACTERS))}</text>'
    )
    if box.detail:
        shown = escape(_begin_lost(box.detail, _DETAIL_CHARACTERS))
        lines += f'<text class="detail" x="{box.x + 12}" y="{box.y + 36}">{shown}</text>'
    return (
        f'<g><title>{title}</title><rect class="{style}" x="{box.x}" y="{box.y}" rx="6"'
        f' width="{_BOX_WIDTH}" height="{_BOX_HEIGHT}"/>{lines}</g>\n'
    )


def _edge(source: _Box, box: _Box) -> str:
    x1, y1 = source.x + _BOX_WIDTH, source.y + _BOX_HEIGHT // 2
    x2, y2 = box.x - 7, box.y + _BOX_HEIGHT // 2
    bend = _GAP_X // 2
    path = f"M{x1},{y1} C{x1 + bend},{y1} {x2 - bend},{y2} {x2},{y2}"
    tip = f"{x2 + 7},{y2} {x2},{y2 - 4} {x2},{y2 + 4}"
    return f'<path class="edge" d="{path}"/><polygon class="tip" points="{tip}"/>\n'


def _end(text: str, limit: int) -> str:
    return text if len(text) <= limit else f"{text[: limit - 1]}…"


def _begin_lost(text: str, limit: int) -> str:
    """The connector and the end of the location, which tells more than its begin."""
    if len(text) <= limit:
        return text
    first, _, rest = text.partition(" ")
    left = limit - len(first) - 2
    return f"{first} …{rest[-left:]}" if left > 0 else _end(text, limit)
