import pickle

import pytest
from hypothesis import given
from hypothesis import strategies as st

from spark_runner.protocol.errors import SparkRunnerError
from spark_runner.sql.text.errors import SqlError
from spark_runner.sql.text.passage import Anchor, Passage
from spark_runner.sql.text.source import ScriptSource


def test_an_error_shows_the_line_with_a_caret_below_the_position() -> None:
    error = SqlError(
        "unknown option 'pth'", file="flights.sql", line=12, column=12, source_line="  OPTIONS (pth 'data/x')"
    )
    assert str(error) == (
        "flights.sql:12:12: unknown option 'pth'\n"
        "  12 |   OPTIONS (pth 'data/x')\n"
        "     |            ^"
    )  # fmt: skip


def test_tabs_stay_tabs_before_the_caret() -> None:
    error = ScriptSource("s.sql", "\ta b").error("no", 3)
    assert str(error).splitlines()[2] == "    | \t  ^"


def test_the_carriage_return_of_a_windows_file_is_not_shown() -> None:
    error = ScriptSource("s.sql", "a\r\nb\r\n").error("no", 3)
    assert (error.line, error.column, error.source_line) == (2, 1, "b")


@pytest.mark.parametrize(
    ("char", "escape"),
    [("\x1b", "\\x1b"), ("\x7f", "\\x7f"), ("\x85", "\\x85"), ("\u202e", "\\u202e"), ("\r", "\\x0d")],
)
def test_a_control_character_is_escaped_and_the_caret_is_below_its_character(char: str, escape: str) -> None:
    text = f"SELECT `a{char}b` , q"
    error = ScriptSource("s.sql", text).error(f"unknown 'a{char}b'", text.index("q"))
    assert str(error) == (
        f"s.sql:1:16: unknown 'a{escape}b'\n"
        f"  1 | SELECT `a{escape}b` , q\n"
        f"    |              {' ' * len(escape)} ^"
    )
    assert (error.message, error.source_line) == (f"unknown 'a{char}b'", text)


def test_combined_letters_take_one_cell() -> None:
    text = "SELECT `n\u0303` q"
    error = ScriptSource("s.sql", text).error("no", text.index("q"))
    assert str(error).splitlines()[1:] == [f"  1 | {text}", "    |            ^"]


def test_an_error_survives_pickling() -> None:
    error = ScriptSource("s.sql", "a b").error("no", 2)
    again = pickle.loads(pickle.dumps(error))  # noqa: S301 - made one line above
    assert isinstance(again, SparkRunnerError)
    assert str(again) == str(error)


@given(
    st.lists(st.tuples(st.text("ab\n", min_size=1, max_size=5), st.booleans()), min_size=1, max_size=6),
    st.data(),
)
def test_a_part_of_a_passage_maps_to_the_same_positions(
    pieces: list[tuple[str, bool]], data: st.DataObject
) -> None:
    # The file holds each piece, pasted ones as `$`, with a gap of one character in between.
    file, text, anchors = "", "", []
    for piece, verbatim in pieces:
        anchors.append(Anchor(len(text), len(file), verbatim))
        text += piece
        file += (piece if verbatim else "$") + " "
    passage = Passage(ScriptSource("s.sql", file), text, tuple(anchors))
    start = data.draw(st.integers(0, len(text) - 1))
    end = data.draw(st.integers(start + 1, len(text)))
    values: dict[str, int] = {}
    written = passage.part(start, end).to_json(values)
    part = Passage.from_json(passage.source, written, list(values))
    assert part.text == text[start:end]
    for offset in range(end - start):
        assert part.origin(offset) == passage.origin(start + offset)
        assert file[part.origin(offset)] in {part.text[offset], "$"}


def test_the_caret_is_below_its_character_after_wide_ones_and_a_long_line_is_shown_in_part() -> None:
    wide = SqlError("m", file="f", line=1, column=6, source_line="'日本' x")
    assert str(wide).splitlines()[1:] == ["  1 | '日本' x", "    |        ^"]
    long = SqlError("m", file="f", line=1, column=100_001, source_line="a" * 100_000 + "b" + "c" * 100_000)
    _, shown, caret = str(long).splitlines()
    assert len(shown) < 200
    assert shown[caret.index("^")] == "b"
