"""The options of Kafka: the keys of Spark and of both generations of Flink, and the errors of wrong ones."""

from typing import Any

import pytest

from spark_runner.connectors.errors import ConnectorError, OptionError, Unreachable
from spark_runner.connectors.kafka.failures import explained_or_passing
from spark_runner.connectors.kafka.options import KafkaOptions
from spark_runner.connectors.kafka.positions import position, spark_options
from spark_runner.connectors.options import validate
from spark_runner.connectors.spark_modules import of_line
from spark_runner.sql.compiler.compile import check_script, compile_script
from spark_runner.sql.text.errors import SqlError

COLUMNS = "id BIGINT, name STRING"
USE = "; CREATE TABLE p USING print; INSERT INTO p SELECT * FROM t"
PARTITIONS = {"t": [0, 1]}


def options(text: str) -> dict[str, Any]:
    script = f"CREATE TABLE t ({COLUMNS}) {text}{USE}"
    plan = compile_script(script, file="s.sql", base_dir="", variables={})
    found: dict[str, Any] = plan["steps"][0]["options"]
    return found


SPARK = """USING kafka OPTIONS (subscribe 'clicks', 'kafka.bootstrap.servers' 'h:9092',
  startingOffsets 'latest',
  maxOffsetsPerTrigger 500, 'kafka.fetch.max.bytes' '9', ignore_parse_errors 'true')"""
FLINK = """WITH ('connector' = 'kafka', 'topic' = 'clicks', 'properties.bootstrap.servers' = 'h:9092',
  'scan.startup.mode' = 'latest-offset', 'format' = 'json', 'json.ignore-parse-errors' = 'true',
  'properties.fetch.max.bytes' = '9', 'max_offsets_per_trigger' = '500')"""
FIRST_FLINK = """WITH ('connector.type' = 'kafka', 'connector.version' = 'universal',
  'connector.topic' = 'clicks',
  'connector.properties.bootstrap.servers' = 'h:9092', 'connector.startup-mode' = 'latest-offset',
  'connector.properties.fetch.max.bytes' = '9', 'format.type' = 'json', 'format.derive-schema' = 'true',
  'format.ignore-parse-errors' = 'true', 'update-mode' = 'append', 'max_offsets_per_trigger' = '500')"""


def test_the_keys_of_spark_and_of_both_generations_of_flink_mean_the_same() -> None:
    found = options(SPARK)
    assert found == options(FLINK) == options(FIRST_FLINK)
    assert found["topic"] == ["clicks"]
    assert found["starting_offsets"] == "latest"
    assert found["properties.fetch.max.bytes"] == "9"
    assert found["ignore_parse_errors"]


@pytest.mark.parametrize(
    ("more", "words"),
    [
        ("'scan.startup.mod' = 'x'", "did you mean 'scan.startup.mode'?"),
        ("'scan.startup.mode' = 'newest'", "it is no position in a topic"),
        ("'subscribe' = 'u'", "option 'topic' is given twice, also as 'topic'"),
        ("'properties.key.deserializer' = 'x'", "'key.deserializer' cannot be set"),
        ("'key.fields' = 'nam'", "key_fields names 'nam', which is not a column; did you mean 'name'?"),
        ("'delete_column' = 'gone'", "delete_column names 'gone', which is not a column"),
        ("'scan.startup.mode' = 'timestamp'", "needs option 'starting_timestamp'"),
        ("'username' = 'ada'", "option 'username' needs option 'password'"),
        ("'format' = 'xml'", "option 'format' of connector 'kafka' cannot be 'xml'"),
        (
            "'mark' = 'a,b'",
            "option 'mark' of connector 'kafka' cannot be 'a,b': a mark is 1 to 128 characters",
        ),
        ("'mark' = '${run_id}'", "cannot be '${run_id}': a mark is 1 to 128 characters"),
        ("'skip_mark' = 'a b'", "option 'skip_mark' of connector 'kafka' cannot be 'a b'"),
        ("'skip_mark' = 'a,,b'", "at least 1 character"),
        ("'ssl_key' = 'x'", "'ssl_certificate' and 'ssl_key' are given together"),
        ("'avro_schema' = '{}'", "'avro_schema' and 'avro_schema_file' need 'format' = 'avro'"),
        ("'format' = 'avro', 'avro_schema_file' = 'c.avsc'", "'c.avsc' is relative, and the definition"),
    ],
)
def test_a_wrong_option_is_an_error_with_the_reason(more: str, words: str) -> None:
    with pytest.raises(SqlError) as caught:
        options(f"WITH ('connector' = 'kafka', 'topic' = 'clicks', 'bootstrap_servers' = 'h:1', {more})")
    assert words in str(caught.value)


def test_a_table_without_topic_or_columns_is_refused() -> None:
    with pytest.raises(SqlError, match="needs option 'topic' or 'topic_pattern'"):
        options("USING kafka OPTIONS (bootstrap_servers 'h:1')")
    with pytest.raises(SqlError, match="needs declared columns"):
        compile_script(
            "CREATE TABLE t USING kafka OPTIONS (topic 'a', bootstrap_servers 'h:1')",
            file="s.sql",
            base_dir="",
            variables={},
        )


def test_a_password_stays_a_reference_in_the_plan_also_in_a_setting_of_the_client() -> None:
    script = f"""CREATE TABLE t ({COLUMNS}) USING kafka OPTIONS (topic 'a', bootstrap_servers 'h:1',
      username 'ada',
      password '${{secret:kafka/password}}', 'kafka.ssl.key.password' '${{secret:kafka/key}}')"""
    plan = compile_script(script + USE, file="s.sql", base_dir="", variables={})
    assert plan["steps"][0]["references"].keys() == {"password", "properties.ssl.key.password"}


def test_a_script_that_reads_a_topic_drains_it_and_may_also_read_it_as_a_batch() -> None:
    script = f"CREATE TABLE t ({COLUMNS}) {SPARK}{USE}"
    assert compile_script(script, file="s.sql", base_dir="", variables={})["mode"] == "available-now"
    batch = f"SET job.mode = 'batch'; {script}"
    assert "mode" not in compile_script(batch, file="s.sql", base_dir="", variables={})


def test_one_topic_at_one_cluster_is_one_place() -> None:
    one = KafkaOptions(topic=("a", "b"), bootstrap_servers="x:1, y:1")
    other = KafkaOptions(topic=("b", "a"), bootstrap_servers="y:1,x:1")
    assert one.place() == other.place() == "kafka://x:1,y:1/a,b"


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("earliest-offset", {"startingOffsets": "earliest"}),
        ("2026-11-01T00:00:00.5Z", {"startingTimestamp": "1793491200500"}),
        ("partition:1,offset:42", {"startingOffsets": '{"t": {"0": -2, "1": 42}}'}),
        ("partition:0,offset:latest;partition:1,offset:7;", {"startingOffsets": '{"t": {"0": -1, "1": 7}}'}),
        ('{"t": {"0": 5}}', {"startingOffsets": '{"t": {"0": 5, "1": -2}}'}),
    ],
)
def test_a_position_becomes_options_of_spark(text: str, expected: dict[str, str]) -> None:
    assert spark_options(position(text), "starting", PARTITIONS).items() >= expected.items()


@pytest.mark.parametrize(
    "text", ["", "yesterday", "2026-11-01", "partition:0", "partition:a,offset:1", '{"t": 5}']
)
def test_a_text_that_is_no_position_is_refused(text: str) -> None:
    with pytest.raises(ConnectorError):
        position(text)
    with pytest.raises(OptionError):
        KafkaOptions.check_position(text)


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("partition:2,offset:1", "topic 't' has no partition 2; it has 2"),
        ('{"u": {"0": 1}}', "name topic 'u'"),
    ],
)
def test_offsets_of_another_topic_or_partition_are_refused(text: str, words: str) -> None:
    with pytest.raises(ConnectorError, match=words):
        spark_options(position(text), "starting", PARTITIONS)


def test_a_module_of_spark_has_the_version_of_the_line_and_a_line_without_one_is_named() -> None:
    assert (
        of_line("org.apache.spark:spark-avro_2.13:{spark}", "4.1.4")
        == "org.apache.spark:spark-avro_2.13:4.1.1"
    )
    assert of_line("a:b:1", "4.3.0") == "a:b:1"
    with pytest.raises(ConnectorError, match=r"'spark-avro_2\.13' has no version for Spark 4\.3\.0"):
        of_line("org.apache.spark:spark-avro_2.13:{spark}", "4.3.0")


def test_an_error_of_a_setting_of_the_client_does_not_show_the_others() -> None:
    given = {"topic": "t", "bootstrap_servers": "b:1", "properties.sasl.jaas.config": 'x password="hunter2";'}
    with pytest.raises(OptionError) as found:
        validate("kafka", {**given, "properties.key.deserializer": "x"}, ("a",))
    errors = [found.value, *found.value.others]
    assert any("key.deserializer" in str(each) for each in errors)
    assert not any("hunter2" in f"{each} {each.quoted}" for each in errors)


@pytest.mark.parametrize("name", ["properties.auto.offset.reset", "properties.enable.auto.commit"])
def test_settings_of_the_client_that_change_nothing_are_left_out(name: str) -> None:
    given = {"topic": "t", "bootstrap_servers": "b:1", name: "x"}
    assert validate("kafka", given, ("a",)).model_dump()["properties"] == {}


@pytest.mark.parametrize(
    ("words", "passes"),
    [
        ("org.apache.kafka.common.errors.TimeoutException: no answer", True),
        ("No resolvable bootstrap urls given in bootstrap.servers", True),
        ("org.apache.kafka.common.errors.KafkaStorageException: disk", True),
        ("org.apache.kafka.common.errors.SaslAuthenticationException: no", False),
        ("org.apache.kafka.common.errors.TopicAuthorizationException: no", False),
    ],
)
def test_a_further_attempt_may_succeed_unless_the_brokers_refuse(words: str, passes: bool) -> None:
    found = explained_or_passing(RuntimeError(words), "b:1", "t")
    assert isinstance(found, Unreachable) is passes


@pytest.mark.parametrize("end", ["earliest", "group-offsets", "timestamp", "specific-offsets"])
def test_a_read_cannot_end_where_there_is_no_end(end: str) -> None:
    options = {"topic": "t", "bootstrap_servers": "h:1", "ending_offsets": end}
    with pytest.raises(OptionError, match="a read ends at latest, a time with its zone, or offsets"):
        validate("kafka", options, ("id",))


UPSERT = """CREATE TABLE t (id BIGINT, name STRING{key}) WITH ('connector' = 'upsert-kafka',
  'topic' = 'a', 'bootstrap_servers' = 'h:1'{more});
INSERT INTO t SELECT 1 AS id, 'x' AS name"""
KEY = ", PRIMARY KEY (id) NOT ENFORCED"


def errors(script: str) -> str:
    found = check_script(script, file="s.sql", base_dir="", variables={})
    return "\n".join(map(str, found.errors))


def test_the_name_of_flink_for_upserts_is_the_target_with_a_key() -> None:
    script = UPSERT.format(key=KEY, more="")
    other = script.replace("'upsert-kafka'", "'kafka', 'connector.version' = 'universal-upsert'")
    first, second = (
        compile_script(each, file="s.sql", base_dir="", variables={})["steps"][0] for each in (script, other)
    )
    assert first["connector"] == second["connector"] == "kafka"
    assert first["options"] == second["options"]
    assert first["options"]["version"] == "universal-upsert"


@pytest.mark.parametrize(
    ("script", "words"),
    [
        (UPSERT.format(key="", more=""), "'t' cannot be written: the records need a key"),
        (
            UPSERT.format(key=KEY, more=", 'version' = 'universal'"),
            "option 'version' of connector 'upsert-kafka' can only be 'universal-upsert'",
        ),
        (UPSERT.format(key=KEY, more="") + "; TABLE t", "'t' cannot be read: it is one of upserts"),
        (
            UPSERT.format(key=KEY, more="").replace("upsert-kafka", "upsert-kafk"),
            "did you mean 'upsert-kafka'?",
        ),
        (UPSERT.format(key=KEY, more="").replace("'a'", "'a;b'"), "it reads several topics"),
        (
            UPSERT.format(key=KEY, more="").replace("'topic'", "'topic-pattern'"),
            "'t' cannot be written: it reads the topics of a pattern; a table to write has one 'topic'",
        ),
    ],
)
def test_a_table_that_cannot_be_written_or_read_is_refused_at_submission(script: str, words: str) -> None:
    assert words in errors(script)


def test_rows_that_name_their_topic_may_go_to_a_table_of_a_pattern() -> None:
    more = ", 'topic_column' = 'name'"
    assert not errors(UPSERT.format(key=KEY, more=more).replace("'topic'", "'topic-pattern'"))


@pytest.mark.parametrize(
    ("path", "found"),
    [
        ("schemas/../c.avsc", "file:/base/c.avsc"),
        ("/schemas/c.avsc", "/schemas/c.avsc"),
        ("s3a://schemas/c.avsc", "s3a://schemas/c.avsc"),
    ],
)
def test_the_file_of_a_schema_is_beside_the_script(path: str, found: str) -> None:
    script = f"""CREATE TABLE t ({COLUMNS}) USING kafka OPTIONS (topic 'a', bootstrap_servers 'h:1',
      format 'avro', avro_schema_file '{path}')"""
    plan = compile_script(script + USE, file="s.sql", base_dir="/base", variables={})
    assert plan["steps"][0]["options"]["avro_schema_file"] == found


def test_a_query_names_no_other_file_of_a_schema() -> None:
    script = """CREATE TABLE t (id INT) USING kafka OPTIONS (topic 'a', bootstrap_servers 'h:1',
      format 'avro'); SELECT * FROM t WITH ('avro_schema_file' = '/x')"""
    assert "option 'avro_schema_file' decides what table 't' is" in errors(script)


TWO_WAY = """SET job.mode = '{mode}';
CREATE TABLE a (id BIGINT) USING kafka OPTIONS (topic 't', bootstrap_servers 'h:1'{skip});
CREATE TABLE b (id BIGINT) USING kafka OPTIONS (topic 't', bootstrap_servers 'h:1'{mark});
CREATE TABLE o (id BIGINT) USING kafka OPTIONS (topic 'o', bootstrap_servers 'h:1');
CREATE TABLE p (id BIGINT) USING kafka OPTIONS (topic 'p', bootstrap_servers 'h:1');
"""
LOOPS = {
    "one INSERT": "INSERT INTO b SELECT id FROM a",
    "written first": "INSERT INTO b SELECT id FROM o; INSERT INTO p SELECT id FROM a",
    "read first": "INSERT INTO p SELECT id FROM a; INSERT INTO b SELECT id FROM o",
    "a set": "EXECUTE STATEMENT SET BEGIN"
    " INSERT INTO p SELECT id FROM a; INSERT INTO b SELECT id FROM a; END",
}


def refusals(mode: str, loop: str, mark: str, skip: str) -> list[str]:
    given = {"mark": f", mark '{mark}'" if mark else "", "skip": f", skip_mark '{skip}'" if skip else ""}
    text = TWO_WAY.format(mode=mode, **given) + LOOPS[loop]
    return [str(each) for each in check_script(text, file="s.sql", base_dir="", variables={}).errors]


@pytest.mark.parametrize("loop", LOOPS)
@pytest.mark.parametrize("mode", ["batch", "available-now", "streaming"])
def test_a_script_reads_a_topic_that_it_writes_only_where_it_passes_over_its_own_records(
    mode: str, loop: str
) -> None:
    # In mode batch an INSERT sees what an earlier one of the same script has written, if it asks for it.
    is_allowed = mode == "batch" and loop in {"written first", "read first"}
    for mark, skip in (("", ""), ("m", ""), ("", "m"), ("m", "M"), ("m", "n,mm")):
        assert bool(refusals(mode, loop, mark, skip)) is not is_allowed, (mark, skip)
    for skip in ("m", "n, m"):
        assert refusals(mode, loop, "m", skip) == []


@pytest.mark.parametrize("option", ["mark", "skip_mark"])
def test_one_use_of_a_table_cannot_have_another_mark(option: str) -> None:
    text = TWO_WAY.format(mode="batch", mark="", skip="")
    uses = {
        "mark": "INSERT INTO b WITH ('mark' = 'x') SELECT id FROM o",
        "skip_mark": "INSERT INTO b SELECT id FROM o WITH ('skip_mark' = 'x')",
    }
    found = check_script(text + uses[option], file="s.sql", base_dir="", variables={}).errors
    assert [f"option '{option}' decides what table" in str(each) for each in found] == [True]
