"""Tables that fit the terminal: whole columns are left out, or long values are cut; no line is folded."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from rich.cells import cell_len, set_cell_size
from rich.console import Console, ConsoleOptions
from rich.segment import Segment
from rich.style import Style

_GAP = 3  # blanks between two columns
_WHOLE = 23  # characters: values up to a time in UTC, and statuses, are worth nothing when they are cut
_WHOLE_KEY = 40  # likewise of the first column: a UUID can be copied
_NARROW = 4  # characters that a cut column keeps on the narrowest terminal
_LONGEST_RULE = 100  # characters, in a pipe: a long error must not make the line below the headings as long
_HEADING = "bold"


@dataclass(slots=True)
class Cell:
    """A text without control characters, its style, and how many cells it takes on a terminal."""

    text: str
    style: str = ""
    width: int = field(init=False)

    def __post_init__(self) -> None:
        self.width = width(self.text)


class Grid:
    """A renderable table of one line per row: as wide as its values in a pipe, no wider than a terminal."""

    def __init__(
        self,
        headings: Sequence[str],
        rows: Sequence[Sequence[Cell]],
        *,
        right: Sequence[bool],
        drop: Sequence[int],
    ) -> None:
        """`right`: whether a column is aligned to the right; `drop`: those to leave out, first one first."""
        self._headings, self._rows, self._right = headings, rows, right
        values = [max((row[index].width for row in rows), default=0) for index in range(len(headings))]
        self._natural = [max(width(head), value) for head, value in zip(headings, values, strict=True)]
        self._drop = drop
        self._empty = [index for index in drop if not values[index]]

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> Iterator[Segment]:
        space = options.max_width if console.file.isatty() else None
        widths = fit(self._natural, self._drop, space, empty=self._empty)
        line = "-" if options.ascii_only else "─"
        total = _total(widths) if space else min(_total(widths), _LONGEST_RULE)
        yield from self._line([Cell(head, _HEADING) for head in self._headings], widths)
        yield Segment(line * total + "\n")
        for row in self._rows:
            yield from self._line(row, widths)

    def _line(self, cells: Sequence[Cell], widths: dict[int, int]) -> Iterator[Segment]:
        """A row; neighbours without a style are one segment, and no blanks stay at the end of the line."""
        plain, blanks = "", 0
        for index, room in widths.items():
            cell = cells[index]
            text, style, left = cell.text, cell.style, room - cell.width
            if left < 0:
                text = cut(text, room)
                left = room - width(text)
            if not text:
                blanks += left + _GAP
                continue
            before = left if self._right[index] else 0
            plain += " " * (blanks + before)
            blanks = left - before + _GAP
            if style:
                yield Segment(plain)
                yield Segment(text, Style.parse(style))
                plain = ""
            else:
                plain += text
        yield Segment(plain + "\n")


def fit(
    natural: Sequence[int], drop: Sequence[int], space: int | None, *, empty: Sequence[int] = ()
) -> dict[int, int]:
    """The width of each column that is shown, by its index, for a terminal of `space` characters.

    The columns without values are left out first. Others are left out in the order of `drop` until the rest
    fits with long values cut, and the most important ones that fit nevertheless come back. Then the longest
    values are cut.
    """
    widths = dict(enumerate(natural))
    if space is None or _total(widths) <= space:
        return widths
    floors = {index: min(size, _WHOLE if index else _WHOLE_KEY, space) for index, size in widths.items()}
    kept, left_out = {index: floors[index] for index in floors if index not in empty}, list[int]()
    for index in drop:
        if index in kept and _total(kept) > space:
            left_out.append(index)
            del kept[index]
    for index in reversed(left_out):
        if _total(kept) + _GAP + floors[index] <= space:
            kept[index] = floors[index]
    shown = {index: min(size, space) for index, size in widths.items() if index in kept}
    _shorten(shown, floors, space)
    _shorten(shown, {index: min(_NARROW, floor) for index, floor in floors.items()}, space)
    while len(shown) > 1 and _total(shown) > space:
        del shown[max(shown)]
    return shown


def _shorten(shown: dict[int, int], floors: Mapping[int, int], space: int) -> None:
    """Make the widest columns narrower until all fit, none narrower than its floor."""
    while _total(shown) > space:
        longer = [index for index in shown if shown[index] > floors[index]]
        if not longer:
            return
        shown[max(longer, key=shown.__getitem__)] -= 1


def _total(shown: dict[int, int]) -> int:
    return sum(shown.values()) + _GAP * (len(shown) - 1)


def cut(text: str, room: int) -> str:
    """The text, its end replaced by an ellipsis if it is wider than `room` cells."""
    return text if width(text) <= room else set_cell_size(text, max(0, room - 1)).rstrip() + "…"


def width(text: str) -> int:
    """The number of cells that a text takes on a terminal."""
    return len(text) if text.isascii() else cell_len(text)
