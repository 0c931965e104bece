"""Functions of streaming SQL engines, rewritten to those of Spark."""

import pytest

from spark_runner.sql.grammar.windows import with_spark_functions
from spark_runner.sql.text.errors import SqlError
from spark_runner.sql.text.passage import Anchor, Passage
from spark_runner.sql.text.source import ScriptSource


def passage(text: str) -> Passage:
    return Passage(ScriptSource("s.sql", text), text, (Anchor(0, 0, verbatim=True),))


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("TUMBLE(ts, INTERVAL '1' MINUTE)", "window(ts, '1 minute')"),
        ("tumble_start( a.ts , interval 90 seconds )", "window( a.ts , '90 seconds').start"),
        ('TUMBLE_END(f(a, b), INTERVAL "2" DAY)', "window(f(a, b), '2 day').end"),
        ("TUMBLE_ROWTIME(ts, INTERVAL '1' HOUR)", "(window(ts, '1 hour').end - INTERVAL '0.001' SECOND)"),
        ("HOP(ts, INTERVAL '1' MINUTE, INTERVAL '1' HOUR)", "window(ts, '1 hour', '1 minute')"),
        ("HOP(ts, INTERVAL 60 SECONDS, INTERVAL '1' MINUTE)", "window(ts, '1 minute', '60 seconds')"),
        ("SESSION_END(ts, INTERVAL '30' SECOND)", "session_window(ts, '30 second').end"),
        ("SELECT proctime() AS p, PROCTIME ( )", "SELECT current_timestamp() AS p, current_timestamp()"),
        ("PROCTIME()", "current_timestamp()"),
        ("SELECT 1 -- TUMBLE(ts)\n, 'HOP(ts)', tumble, session.x, a.hop(1)", None),
        ("SELECT `TUMBLE`(ts, 1), hop AS session", None),
        ("session_window(ts, '1 day'), session_user(), hop_count(x)", None),
        ("WITH session(a) AS (SELECT 1), x AS (VALUES (1)) SELECT * FROM VALUES (1) AS hop(a)", None),
        ("window(ts, '1 minute')", None),
    ],
)
def test_windows_become_those_of_spark(text: str, expected: str | None) -> None:
    assert with_spark_functions(passage(text)).text == (text if expected is None else expected)


def test_the_places_of_the_rest_stay_those_of_the_file() -> None:
    text = "SELECT a, TUMBLE_START(ts, INTERVAL '1' MINUTE) AS w, b FROM t"
    found = with_spark_functions(passage(text))
    assert found.text == "SELECT a, window(ts, '1 minute').start AS w, b FROM t"
    for word in ("a,", "ts", "AS w", "b FROM"):
        assert found.origin(found.text.index(word)) == text.index(word)


@pytest.mark.parametrize(
    ("text", "offset", "message"),
    [
        ("SELECT TUMBLE(ts)", 7, "write TUMBLE(column, size)"),
        ("HOP_START(ts, INTERVAL '1' MINUTE)", 0, "write HOP_START(column, slide, size)"),
        ("SESSION()", 0, "write SESSION(column, gap)"),
        ("TUMBLE(ts, 60)", 11, "the length of a window is an interval with one unit"),
        ("TUMBLE(ts, INTERVAL '1' MONTH)", 11, "the length of a window is an interval with one unit"),
        ("TUMBLE(ts, INTERVAL '1:30' MINUTE TO SECOND)", 11, "like INTERVAL '90' SECOND"),
        ("TUMBLE(ts, INTERVAL '1''' MINUTE)", 11, "the length of a window is an interval with one unit"),
        ("TUMBLE_PROCTIME(ts, INTERVAL '1' DAY)", 0, "Spark has no TUMBLE_PROCTIME; use current_timestamp()"),
        ("FROM TABLE(TUMBLE(TABLE t, DESCRIPTOR(ts), INTERVAL '1' DAY))", 11, "write GROUP BY TUMBLE("),
        ("HOP(ts, INTERVAL '2' MINUTE, INTERVAL '60' SECOND)", 0, "the slide of HOP is longer than its size"),
        ("TUMBLE(ts, INTERVAL '0' SECOND)", 11, "the length of a window must be more than 0"),
        ("HOP(ts, INTERVAL 0.0 SECOND, INTERVAL 1 DAY)", 8, "the length of a window must be more than 0"),
        ("TUMBLE(ts, INTERVAL '1111111111111111111' DAY)", 11, "the length of a window is an interval"),
        ("SELECT PROCTIME(3)", 7, "PROCTIME() has no arguments"),
        ("TUMBLE(ts, INTERVAL '1' DAY", 6, "this parenthesis is never closed"),
    ],
)
def test_a_window_that_spark_does_not_have_is_shown_at_its_place(
    text: str, offset: int, message: str
) -> None:
    with pytest.raises(SqlError) as caught:
        with_spark_functions(passage(text))
    assert message in caught.value.message
    assert caught.value.column - 1 == offset
