"""The format of change events of Debezium in the options of Kafka."""

import pytest

from spark_runner.sql.compiler.compile import check_script, compile_script
from spark_runner.sql.text.errors import SqlError

TABLE = "CREATE TABLE t ({}) WITH ('connector' = 'kafka', 'topic' = 'a', 'bootstrap_servers' = 'h:1', {});"
USE = "CREATE TABLE p USING print; INSERT INTO p SELECT * FROM t"


def table(columns: str, more: str) -> dict[str, object]:
    text = TABLE.format(columns, more) + USE
    found: dict[str, object] = compile_script(text, file="s.sql", base_dir="", variables={})["steps"][0]
    return found


def test_the_keys_of_flink_for_the_format_are_known() -> None:
    plain = table("id BIGINT", "'format' = 'debezium-json', 'ignore_parse_errors' = 'true'")
    assert plain["options"]["format"] == "debezium-json"  # type: ignore[index]  # of JSON
    ignoring = "debezium-json.ignore-parse-errors' = 'true'"
    for more in (
        f"'format' = 'debezium-json', '{ignoring}",
        f"'value.format' = 'debezium-json', 'value.{ignoring}, 'value.debezium-json.schema-include' = 'true'",
        f"'format' = 'debezium-json', 'debezium-json.schema-include' = 'true', '{ignoring}",
    ):
        assert table("id BIGINT", more)["options"] == plain["options"]


def test_an_event_has_all_columns_unless_the_table_says_otherwise() -> None:
    for more, strict in (
        ("'format' = 'json'", False),
        ("'format' = 'debezium-json'", True),
        ("'format' = 'debezium-json', 'debezium-json.fail-on-missing-field' = 'false'", False),
        ("'value.format' = 'debezium-json', 'value.debezium-json.fail-on-missing-field' = 'false'", False),
    ):
        assert table("id BIGINT", more)["options"]["fail_on_missing_field"] is strict  # type: ignore[index]  # of JSON


def test_its_metadata_are_known_to_this_format_alone() -> None:
    columns = "id BIGINT, deleted BOOLEAN METADATA, at TIMESTAMP METADATA FROM 'value.source.timestamp'"
    found = table(f"{columns}, o BIGINT METADATA FROM 'offset'", "'format' = 'debezium-json'")
    assert [each["field"] for each in found["metadata"]] == ["deleted", "source_timestamp", "offset"]  # type: ignore[attr-defined]  # of JSON
    with pytest.raises(SqlError, match="unknown metadata 'deleted' of connector 'kafka'"):
        table(columns, "'format' = 'json'")


@pytest.mark.parametrize(
    ("more", "words"),
    [
        ("'key.fields' = 'id'", "has no option 'key_fields': its events have all columns in the value"),
        ("'delete_column' = 'gone'", "declare a column `deleted BOOLEAN METADATA`"),
        ("'value.fields-include' = 'EXCEPT_KEY'", "has no option 'value_fields_include'"),
        ("'min_partitions' = '8'", "the changes of a row would lose their order"),
        (
            "'key.format' = 'debezium-json'",
            "option 'key_format' of connector 'kafka' cannot be 'debezium-json'",
        ),
    ],
)
def test_options_that_its_events_do_not_have_are_refused(more: str, words: str) -> None:
    with pytest.raises(SqlError) as caught:
        table("id BIGINT, gone BOOLEAN", f"'format' = 'debezium-json', {more}")
    assert words in str(caught.value)


def test_a_table_that_can_show_deletes_has_rows_of_tombstones() -> None:
    op, offset = "op STRING METADATA", "offset BIGINT METADATA"
    deleted = "gone BOOLEAN METADATA FROM 'value.deleted'"
    given = "'format' = 'debezium-json'"
    for column, more, expected in (
        (op, given, True),
        (deleted, given, True),
        (offset, given, False),
        (op, f"{given}, 'tombstones' = 'false'", False),
    ):
        assert table(f"id BIGINT, {column}", more)["options"]["tombstones"] is expected  # type: ignore[index]  # of JSON
    with pytest.raises(SqlError, match="option 'tombstones' needs 'format' = 'debezium-json'"):
        table("id BIGINT", "'tombstones' = 'true'")


READ = "CREATE TABLE p USING print; INSERT INTO p SELECT * FROM t"
DOUBT = "table 't': deletes are rows of it, too; declare `deleted BOOLEAN METADATA` to tell them from others"


@pytest.mark.parametrize(
    ("columns", "use", "expected"),
    [
        ("id BIGINT", READ, [(1, 14, DOUBT)]),
        ("id BIGINT, o BIGINT METADATA FROM 'offset'", READ, [(1, 14, DOUBT)]),
        ("id BIGINT", f"{READ} WITH ('group_id' = 'g')", [(1, 14, DOUBT)]),
        ("id BIGINT, op STRING METADATA", READ, []),
        ("id BIGINT, gone BOOLEAN METADATA FROM 'value.deleted'", READ, []),
        ("id BIGINT", "SELECT 1", [(1, 14, "table 't' is never used")]),
    ],
)
def test_a_table_whose_deletes_look_like_other_rows_has_a_warning_if_it_is_read(
    columns: str, use: str, expected: list[tuple[int, int, str]]
) -> None:
    text = TABLE.format(columns, "'format' = 'debezium-json'") + use
    found = check_script(text, file="s.sql", base_dir="", variables={})
    assert found.errors == ()
    assert [(each.line, each.column, each.message) for each in found.warnings] == expected


def test_an_insert_is_refused_when_the_script_is_checked() -> None:
    text = TABLE.format("id BIGINT", "'format' = 'debezium-json'") + "INSERT INTO t SELECT 1L AS id"
    words = "table 't' cannot be written: format 'debezium-json' is only read; write 'json'"
    with pytest.raises(SqlError, match=words):
        compile_script(text, file="s.sql", base_dir="", variables={})
