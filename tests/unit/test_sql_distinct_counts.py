"""COUNT(DISTINCT ...) in queries on streams."""

import json

import pytest

from spark_runner.sql.compiler.compile import compile_script
from spark_runner.sql.grammar.distinct_counts import with_collected_sets
from tests.unit.test_sql_windows import passage


def sized(values: str) -> str:
    return f"CAST(size(collect_set({values})) AS BIGINT)"


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("a, COUNT(DISTINCT a) AS n", f"a, {sized(' a')} AS n"),
        ("count ( distinct f(a, b) )", sized(" f(a, b) ")),
        (
            "COUNT(DISTINCT a, b) + 1",
            f"{sized('CASE WHEN ( a) IS NOT NULL AND ( b) IS NOT NULL THEN struct( a,  b) END')} + 1",
        ),
        (
            "COUNT(DISTINCT a) FILTER (WHERE (b > 1)), x",
            "CAST(size(collect_set( a)  FILTER (WHERE (b > 1))) AS BIGINT), x",
        ),
        ("SELECT COUNT(a), 'COUNT(DISTINCT a)', x.count(DISTINCT a) FROM t", None),
        ("SELECT DISTINCT count FROM t", None),
        ("COUNT(DISTINCT *), COUNT(DISTINCT)", None),
    ],
)
def test_the_size_of_a_set_replaces_a_distinct_count(text: str, expected: str | None) -> None:
    assert with_collected_sets(passage(text)).text == (text if expected is None else expected)


@pytest.mark.parametrize("mode", ["batch", "available-now"])
def test_a_batch_keeps_the_distinct_counts_of_spark(mode: str) -> None:
    script = """SET job.mode = '${mode}';
        CREATE TABLE src (a STRING, at TIMESTAMP, WATERMARK FOR at AS at) USING json OPTIONS (path 'in');
        CREATE TABLE dst USING json OPTIONS (path 'out');
        CREATE VIEW v AS SELECT TUMBLE(at, INTERVAL '1' HOUR) AS w, COUNT(DISTINCT a) AS n FROM src
            GROUP BY TUMBLE(at, INTERVAL '1' HOUR);
        INSERT INTO dst SELECT n FROM v;"""
    plan = compile_script(script, file="s.sql", base_dir="/d", variables={"mode": mode})
    assert ("collect_set" in json.dumps(plan)) is (mode != "batch")


def test_a_column_of_processing_time_is_a_watermark() -> None:
    script = """SET job.mode = 'streaming';
        CREATE TABLE src (a STRING, pt AS PROCTIME()) USING json OPTIONS (path 'in');
        CREATE TABLE dst USING json OPTIONS (path 'out');
        INSERT INTO dst SELECT count(*) AS n FROM src GROUP BY TUMBLE(pt, INTERVAL '1' HOUR);"""
    plan = compile_script(script, file="s.sql", base_dir="/d", variables={})
    assert plan["steps"][0]["watermark"] == {"column": "pt", "delay": "0 seconds"}
