"""Makes the picture and the table of docs/life-of-a-job.md from the transition table."""

import ast
import inspect
import math
from xml.sax.saxutils import escape

from docs.generated import Part, Picture, table
from orchestrator.model import states
from orchestrator.model.states import FINAL, TRANSITIONS, Status


def reasons() -> dict[tuple[Status, Status], str]:
    """The comment of each edge, as it stands behind it in the source; an edge without one says nothing."""
    source = inspect.getsource(states)
    lines = source.splitlines()
    transitions = next(
        node
        for node in ast.walk(ast.parse(source))
        if isinstance(node, ast.AnnAssign) and getattr(node.target, "id", "") == "TRANSITIONS"
    )
    found = {}
    assert isinstance(transitions.value, ast.Dict)  # noqa: S101 - the source is ours
    for key, value in zip(transitions.value.keys, transitions.value.values, strict=True):
        assert isinstance(key, ast.Attribute)  # noqa: S101 - likewise
        for node in ast.walk(value):
            if isinstance(node, ast.Attribute) and getattr(node.value, "id", "") == "Status":
                comment = lines[node.lineno - 1].partition("# ")[2].strip()
                found[Status[key.attr], Status[node.attr]] = comment
    return found


def made() -> str:
    """The table of the transitions."""
    why = reasons()
    rows = (
        (before, after, why[before, after])
        for before, afters in TRANSITIONS.items()
        for after in sorted(afters)
    )
    return table(("from", "to", "when"), rows)


def drawn() -> str:
    """The statuses as boxes, and an arrow for each transition but those to DEAD."""
    why = reasons()
    arrows = [
        _arrow(before, after, why[before, after])
        for before, afters in TRANSITIONS.items()
        for after in sorted(afters)
        if after is not Status.DEAD
    ]
    return "\n".join((_HEAD, *arrows, *map(_box, _PLACES), _NOTE, "</svg>", ""))


def _box(status: Status) -> str:
    x, y = _PLACES[status]
    left, top = x - _WIDTH / 2, y - _HEIGHT / 2
    colour = _COLOURS.get(status, _PLAIN)
    thick = 3 if status in FINAL else 1.5
    return (
        f'<rect x="{left:g}" y="{top:g}" width="{_WIDTH}" height="{_HEIGHT}" rx="6" fill="#fff" '
        f'stroke="{colour}" stroke-width="{thick}"/>'
        f'<text x="{x}" y="{y + 5}" text-anchor="middle">{status}</text>'
    )


def _arrow(before: Status, after: Status, words: str) -> str:
    """A curve that bends to the left of its direction, so that two ways between the same boxes stay apart."""
    (x, y), (to_x, to_y) = _PLACES[before], _PLACES[after]
    length = math.hypot(to_x - x, to_y - y)
    bend = _BENDS.get((before, after), _BEND)
    middle = (x + to_x) / 2 + bend * (to_y - y) / length, (y + to_y) / 2 - bend * (to_x - x) / length
    start, end = _edge((x, y), middle), _edge((to_x, to_y), middle)
    points = " ".join(f"{value:.0f}" for value in (*start, *middle, *end))
    colour = _COLOURS.get(after, _PLAIN)
    path = "M{} {} Q{} {} {} {}".format(*points.split())
    return (
        f'<path d="{path}" fill="none" stroke="{colour}" stroke-width="1.5" '
        f'marker-end="url(#{_marker(colour)})">'
        f"<title>{before} to {after}: {escape(words)}</title></path>"
    )


def _edge(box: tuple[float, float], towards: tuple[float, float]) -> tuple[float, float]:
    """The point where the line from the middle of a box leaves it."""
    right, down = towards[0] - box[0], towards[1] - box[1]
    share = min(
        (_WIDTH / 2 + _GAP) / abs(right) if right else math.inf,
        (_HEIGHT / 2 + _GAP) / abs(down) if down else math.inf,
    )
    return box[0] + share * right, box[1] + share * down


def _marker(colour: str) -> str:
    return f"to{colour.removeprefix('#')}"


_PLACES = {
    Status.ACCEPT: (80, 210),
    Status.RUNNING: (310, 100),
    Status.RUNNING_WARN: (310, 300),
    Status.SUCCESS: (590, 50),
    Status.ERROR_FAIL: (590, 165),
    Status.KILL: (590, 280),
    Status.CANCEL: (590, 395),
}
_COLOURS = {
    Status.SUCCESS: "#1a7f37",
    Status.ERROR_FAIL: "#cf222e",
    Status.KILL: "#9a6700",
    Status.CANCEL: "#9a6700",
}
_PLAIN = "#57606a"
_BEND = 14
_BENDS = {
    (Status.ACCEPT, Status.CANCEL): -110,
    (Status.ERROR_FAIL, Status.CANCEL): 180,
    (Status.KILL, Status.SUCCESS): -180,
}
_WIDTH, _HEIGHT, _GAP = 130, 38, 3
_HEAD = "\n".join(
    (
        '<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 740 470" width="740" role="img"',
        '     font-family="sans-serif" font-size="14" fill="#24292f">',
        "<title>The statuses of a job and the transitions between them</title>",
        '<rect width="740" height="470" rx="8" fill="#f6f8fa"/>',
        *(
            f'<marker id="{_marker(colour)}" viewBox="0 0 8 8" refX="7" refY="4" '
            f'markerWidth="8" markerHeight="8" orient="auto">'
            f'<path d="M0 0 L8 4 L0 8 z" fill="{colour}"/></marker>'
            for colour in sorted({_PLAIN, *_COLOURS.values()})
        ),
    )
)
_NOTE = (
    '<text x="20" y="448" font-size="12">A thick border: the job has ended. Not drawn: each status '
    "leads to DEAD if its handler fails too often.</text>"
)

PART = Part(__file__, "life-of-a-job.md", "orchestrator/model/states.py", made)
PICTURE = Picture(__file__, "life-of-a-job.svg", drawn)

if __name__ == "__main__":
    PART.write()
    PICTURE.write()
