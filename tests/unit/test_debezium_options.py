"""The format of change events of Debezium in the options of Kafka."""

import pytest

from spark_runner.sql.compiler.compile import compile_script
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


def test_an_insert_is_refused_when_the_script_is_checked() -> None:
    text = TABLE.format("id BIGINT", "'format' = 'debezium-json'") + "INSERT INTO t SELECT 1L AS id"
    words = "table 't' cannot be written: format 'debezium-json' is only read; write 'json'"
    with pytest.raises(SqlError, match=words):
        compile_script(text, file="s.sql", base_dir="", variables={})
