"""The drawing of a tuning: what a stranger reads in a terminal of 80 columns, and the SVG."""

from dataclasses import replace
from pathlib import Path
from xml.etree import ElementTree as ET

import pytest
from hypothesis import given
from hypothesis import strategies as st

from orchestrator.cli.picture import save_picture
from orchestrator.cli.tuning.drawing import drawn
from orchestrator.cli.tuning.panels import Axis, Plot, plot_of
from orchestrator.cli.tuning.terminal import lines_of
from orchestrator.model.errors import DefinitionError
from orchestrator.tuning.plot_data import Mark, PlotData, Point
from orchestrator.tuning.resources import Resource

SVG = "{http://www.w3.org/2000/svg}"


def point(number: int, **facts: object) -> Point:
    usual = Point(f"key-{number}", "2026-11-01", 4096.0, 1000.0, 800.0, 1100.0, 0.0, 60.0)
    return replace(usual, **facts)  # type: ignore[arg-type]  # the fields are named by each test


def plot(*points: Point, following: Point | None = None, name: str = "flights") -> Plot:
    return plot_of(PlotData(name, Resource.EXECUTOR_MEMORY, points, next=following))


def text_of(found: Plot, width: int = 80) -> str:
    return "\n".join(lines_of(found, width))


def test_the_terminal_shows_axes_with_units_and_explains_each_shape() -> None:
    text = text_of(plot(point(1), point(2, allocated=2048.0, marks=(Mark.LOWERED,))))
    assert "executor.memory in MiB, logarithmic" in text
    assert "⠤⠤ allocated   x peak of the heap   o demand   - target" in text
    assert "v lowered" in text
    assert "run time in s" in text
    for tick in ("4,096┤", "1,024┤"):
        assert tick in text


@pytest.mark.parametrize("runs", [1, 2, 12, 50])
@pytest.mark.parametrize("width", [60, 80, 120])
def test_no_line_is_wider_than_the_terminal_and_none_has_colours(runs: int, width: int) -> None:
    shown = [point(number, spilled=float(number)) for number in range(runs)]
    lines = list(lines_of(plot(*shown, following=Point("next", allocated=512.0)), width))
    assert max(map(len, lines)) <= width
    assert "\x1b" not in "".join(lines)
    assert lines[-1].rstrip().endswith("next")


def test_a_mark_is_above_its_run() -> None:
    marked = [point(number, marks=(Mark.SHORT,) if number == 7 else ()) for number in range(1, 11)]
    lines = text_of(plot(*marked)).splitlines()
    sign = next(line for line in lines if "!" in line)
    numbers = next(line for line in lines if line.split() == [str(each) for each in range(1, 11)])
    assert abs(sign.index("!") - numbers.index("7")) <= 1


def test_spill_is_shown_only_where_runs_spilled() -> None:
    assert "spill" not in text_of(plot(point(1)))
    assert "spill to disk in MiB" in text_of(plot(point(1), point(2, spilled=5.0)))


def test_the_svg_has_each_run_with_its_facts_beside_the_pointer() -> None:
    picture = drawn(plot(point(1), following=Point("next", allocated=512.0, why="it falls")))
    svg = ET.fromstring(picture)  # noqa: S314 - our own
    first, following = (each.text for each in svg.iter(f"{SVG}title"))
    assert first == (
        "run 1: key-1, 2026-11-01; allocated 4,096, peak 1,000, demand 800, target 1,100, run time in s 60,"
        " spill in MiB 0"
    )
    assert following == "next run; allocated 512; it falls"


def test_text_in_the_svg_is_escaped() -> None:
    evil = "</title><script>alert(1)</script>&"
    svg = drawn(plot(point(1, run=evil, why=evil), name=evil))
    assert "<script" not in svg
    assert evil in "".join(ET.fromstring(svg).itertext())  # noqa: S314 - our own


def test_the_picture_of_fifty_runs_is_small() -> None:
    shown = [point(number, spilled=3.0, why="w" * 400) for number in range(50)]
    assert len(drawn(plot(*shown)).encode()) < 60 * 1024


@given(st.lists(st.floats(1e-9, 1e15), min_size=1, max_size=9), st.booleans())
def test_an_axis_has_room_for_all_values_and_few_ticks(values: list[float], by_doublings: bool) -> None:
    axis = Axis.of(values, by_doublings=by_doublings)
    assert all(0 <= axis.place(value) <= 1 + 1e-9 for value in values)
    assert axis.place(max(values)) > 0.1
    assert 2 <= len(axis.ticks) <= 7
    assert len(set(axis.tick_labels)) == len(axis.ticks)


def test_a_picture_replaces_a_link_and_not_what_it_points_to(tmp_path: Path) -> None:
    other = tmp_path / "other"
    other.write_text("mine")
    (tmp_path / "plot.svg").symlink_to(other)
    save_picture(drawn(plot(point(1))), tmp_path / "plot.svg")
    assert other.read_text() == "mine"
    assert (tmp_path / "plot.svg").read_text().startswith("<svg")


def test_a_picture_that_cannot_be_written_is_an_error_with_the_file(tmp_path: Path) -> None:
    with pytest.raises(DefinitionError, match=r"no-folder/plot\.svg: cannot be written: No such file"):
        save_picture("<svg/>", tmp_path / "no-folder" / "plot.svg")
