"""Settings of scripts: passed to Spark, mapped to its own, accepted without effect, or refused."""

import re
import time
from pathlib import Path
from typing import Any
from zipfile import ZipFile

import pyspark
import pytest

from spark_runner.sql.compiler.compile import check_script, compile_script
from spark_runner.sql.compiler.spark_keys import MAX_COMPARED
from spark_runner.sql.compiler.spark_settings import SESSION_KEYS, STATIC
from spark_runner.sql.compiler.streaming_settings import JOB_MODE, JOB_TRIGGER, PREFIXES, STREAMING_SETTINGS
from tests.unit.test_sql_check import places

DOCS = Path(__file__).parents[2] / "docs"
SHOWN = "CREATE TABLE shown USING print; INSERT INTO shown SELECT 1"


STREAM = """CREATE TABLE ticks (value BIGINT) USING rate; CREATE TABLE shown USING print;
INSERT INTO shown SELECT value FROM ticks"""


def streaming_plan(script: str) -> dict[str, Any]:
    script = f"SET job.mode = streaming; {script}; {STREAM}"
    return compile_script(script, file="s.sql", base_dir="/base", variables={})


def settings(script: str) -> list[tuple[str, ...]]:
    """The steps for settings, each with its key and value."""
    plan = compile_script(f"{script}; {SHOWN}", file="s.sql", base_dir="/base", variables={})
    facts = ("kind", "key", "value")
    return [
        tuple(step[fact] for fact in facts if fact in step)
        for step in plan["steps"]
        if step["kind"] in {"set", "reset"}
    ]


def error(script: str) -> tuple[int, str]:
    """The column and message of the only error."""
    ((_, column, message),) = [
        (found.line, found.column, found.message)
        for found in check_script(f"{script}; {SHOWN}", file="s.sql", base_dir="/base", variables={}).errors
    ]
    return column, message


def needs_own_jvm(script: str) -> Any:
    plan = compile_script(f"{script}; {SHOWN}", file="s.sql", base_dir="/base", variables={})
    return plan["needs_own_jvm"]


@pytest.mark.parametrize(
    "key",
    [
        *(
            "spark.sql.shuffle.partitions",
            "spark.sql.iceberg.x",
            "spark.table.exec.x",
            "fs.s3a.endpoint",
            "hadoop.x",
        ),
        *("hive.exec.dynamic.partition", "parquet.compression", "orc.compress", "avro.x", "mapreduce.x"),
        *("dfs.replication", "hoodie.metadata.enable", "spark.databricks.delta.x", "io.file.buffer.size"),
    ],
)
def test_settings_of_spark_and_hadoop_pass_unchanged(key: str) -> None:
    for written in (key if key.isascii() else f"'{key}'", f"'{key}'", f"`{key}`"):
        assert settings(f"SET {written} = 1") == [("set", key, "1")]


@pytest.mark.parametrize(
    ("key", "hint"),
    [
        ("foo.bar", "settings of Spark start with 'spark.'"),
        ("s3.access-key", "settings of Spark start with 'spark.'"),
        *((key, "settings of Spark start") for key in ("tables.x", "parallelism-x", "a", "tablé.exec.x")),
        ("jobs.mode", "did you mean 'job.mode'?"),
        ("SPARK.Sql.x", "case-sensitive"),
        ("spark.executor.memory", "write it in `conf` of the definition"),
        ("spark.executor.unknown", "write it in `conf` of the definition"),
        ("spark.master", "write it in `conf` of the definition"),
        ("spark.sql.warehouse.dir", "write it in `conf` of the definition"),
    ],
)
def test_a_setting_without_effect_is_refused(key: str, hint: str) -> None:
    for statement in (f"SET '{key}' = 1", f"RESET `{key}`"):
        column, message = error(statement)
        assert (column, hint in message) == (statement.index(key), True), message


@pytest.mark.parametrize(
    ("key", "meant"),
    [
        ("spark.sql.shufle.partitions", "spark.sql.shuffle.partitions"),
        ("spark.sql.shuffle.partition", "spark.sql.shuffle.partitions"),
        ("spark.sql.shuffle.partitoins", "spark.sql.shuffle.partitions"),
        ("spark.sql.Shuffle.Partitions", "spark.sql.shuffle.partitions"),
        ("spark.sql.session.timezone", "spark.sql.session.timeZone"),
        ("spark.sql.autoBroadcastJoinTreshhold", "spark.sql.autoBroadcastJoinThreshold"),
        ("spark.sql.cbo.enabld", "spark.sql.cbo.enabled"),
    ],
)
def test_a_slip_in_a_setting_of_spark_is_an_error(key: str, meant: str) -> None:
    for statement in (f"SET {key} = 1", f"RESET {key}"):
        assert error(statement) == (
            statement.index(key) + 1,
            f"Spark has no setting '{key}'; did you mean '{meant}'?",
        )


def test_settings_of_extensions_and_hidden_ones_of_spark_are_no_slips() -> None:
    keys = ("foo.bar", "legacy.timeParserPolicy", "catalog.a", "iceberg.planning.mode", "abc.enabled")
    for key in keys:
        assert settings(f"SET spark.sql.{key} = 1") == [("set", f"spark.sql.{key}", "1")]


def test_a_setting_that_is_much_like_one_of_spark_is_a_warning() -> None:
    key = "spark.sql.streaming.stateStore.formatValidation.enabled"
    found = check_script(f"SET {key} = true; {SHOWN}", file="s.sql", base_dir="/base", variables={})
    (warning,) = found.warnings
    assert warning.column == 5
    assert warning.message == (
        f"Spark documents no setting '{key}'; did you mean '{key.replace('format', 'commit')}'?"
    )


_TEXT = re.compile(
    rb"\x01(..)(spark\.sql\.[\w.]+)", re.DOTALL
)  # of the constants of a class: length and text


def test_no_setting_that_spark_has_hidden_is_taken_for_a_slip() -> None:
    """The classes of the installed Spark hold the names of all its settings."""
    names = set[str]()
    for jar in Path(str(pyspark.__file__)).parent.glob("jars/spark-*.jar"):
        with ZipFile(jar) as classes:
            for name in classes.namelist():
                if name.endswith("SQLConf$.class"):
                    found = _TEXT.findall(classes.read(name))
                    names |= {text[: int.from_bytes(length)].decode() for length, text in found}
    assert len(names) > 600
    for name in names - SESSION_KEYS - STATIC:
        if not name.endswith("."):
            assert settings(f"SET {name} = 1") == [("set", name, "1")]


def test_a_script_with_thousands_of_unknown_settings_is_checked_at_once() -> None:
    script = ";".join(f"SET spark.sql.shuffle.partition{number} = 1" for number in range(3_000))
    started = time.process_time()
    found = check_script(f"{script}; {SHOWN}", file="s.sql", base_dir="/base", variables={})
    assert (len(found.errors) <= MAX_COMPARED, time.process_time() - started < 5) == (True, True)


# The mode of a job


@pytest.mark.parametrize(
    "setting",
    [
        *("job.mode = batch", "JOB.Mode = BATCH", "'job.mode' = 'batch'", "`job.mode` = Batch"),
        *("execution.runtime-mode = batch", "'execution.runtime-mode' = 'BATCH'", "execution.type=batch"),
    ],
)
def test_the_mode_of_a_batch_is_accepted_and_is_no_setting_of_spark(setting: str) -> None:
    assert settings(f"SET {setting}") == []
    assert not needs_own_jvm(f"SET {setting}")


@pytest.mark.parametrize("key", ["job.mode", "'execution.runtime-mode'", "execution.type"])
@pytest.mark.parametrize("mode", ["streaming", "'STREAMING'"])
def test_the_mode_streaming_needs_a_table_that_streams(key: str, mode: str) -> None:
    assert places(f"SET {key} = {mode};\n{SHOWN}") == [
        (2, 45, "this INSERT reads no table that streams, which mode 'streaming' needs")
    ]


@pytest.mark.parametrize(
    ("trigger", "milliseconds"),
    [
        ("job.trigger = '10 seconds'", 10_000),
        ("'job.trigger' = '1 s'", 1000),
        ("JOB.Trigger = 250ms", 250),
        ("job.trigger = 1 Minute", 60_000),
        ("job.trigger = 24 h", 86_400_000),
        ("table.exec.mini-batch.allow-latency = '5 s'", 5000),
        ("job.trigger = '1 s'; SET job.trigger = '2 s'", 2000),
        ("job.trigger = '1 s'; RESET job.trigger", 10_000),
        ("table.exec.mini-batch.allow-latency = 1s; RESET table.exec.mini-batch.allow-latency", 10_000),
        ("job.trigger = '1 s'; RESET table.exec.mini-batch.allow-latency", 1000),
        ("table.exec.mini-batch.enabled = true", 10_000),
    ],
)
def test_a_trigger_is_a_time_in_mode_streaming(trigger: str, milliseconds: int) -> None:
    assert streaming_plan(f"SET {trigger}")["trigger_ms"] == milliseconds


@pytest.mark.parametrize(
    ("value", "message"),
    [
        ("'10'", "it is a number and a unit, such as '10 seconds'"),
        ("'10 parsecs'", "it is a number and a unit"),
        ("'-1 s'", "it is a number and a unit"),
        ("'1.5 s'", "it is a number and a unit"),
        ("'0 s'", "it is from 100 ms to 24 hours"),
        ("'25 hours'", "it is from 100 ms to 24 hours"),
        ("'999999999999999999999 h'", "it is a number and a unit"),
        ("''", "it is a number and a unit"),
    ],
)
def test_other_triggers_are_refused_at_the_value(value: str, message: str) -> None:
    column, found = error(f"SET job.trigger = {value}")
    assert column == len("SET job.trigger = ") + 1
    assert message in found


@pytest.mark.parametrize("key", ["job.trigger", "table.exec.mini-batch.allow-latency"])
@pytest.mark.parametrize("mode", ["batch", "available-now"])
def test_a_trigger_has_no_meaning_in_other_modes(mode: str, key: str) -> None:
    found = places(f"SET job.mode = '{mode}';\nSET {key} = '1 s';\n{STREAM}")
    assert found[0][:2] == (2, 5)
    assert found[0][2] == f"'{key}' needs job.mode 'streaming', and this script has mode '{mode}'"


def test_two_settings_of_the_trigger_are_refused() -> None:
    key = "table.exec.mini-batch.allow-latency"
    assert places(f"SET job.mode = streaming; SET job.trigger = 1s;\nSET {key} = 2s; {STREAM}") == [
        (2, 5, f"'{key}' and 'job.trigger' are both 'job.trigger'")
    ]


@pytest.mark.parametrize(
    ("setting", "column", "message"),
    [
        ("job.mode = bacth", 16, "job.mode cannot be 'bacth'; did you mean 'batch'?"),
        ("job.mode = ''", 16, "job.mode cannot be ''; this version has batch, available-now, streaming"),
        (
            "execution.runtime-mode = automatic",
            30,
            "execution.runtime-mode cannot be 'automatic'; this version has batch, available-now, streaming",
        ),
        ("job.mod = batch", 5, "unknown setting 'job.mod'; did you mean 'job.mode'?"),
        (
            "'job.error.limit' = 1",
            5,
            "unknown setting 'job.error.limit'; did you mean 'job.error.limit.rows'?",
        ),
    ],
)
def test_other_modes_and_settings_of_the_job_are_refused_with_the_known_ones(
    setting: str, column: int, message: str
) -> None:
    assert error(f"SET {setting}") == (column, message)


# Settings of streaming SQL engines


@pytest.mark.parametrize(
    ("streaming", "spark"),
    [
        ("'table.local-time-zone' = 'Asia/Tokyo'", "spark.sql.session.timeZone = Asia/Tokyo"),
        ("table.local-time-zone = GMT-08:00", "spark.sql.session.timeZone = 'GMT-08:00'"),
        ("'parallelism.default' = '4'", "spark.sql.shuffle.partitions = 4"),
        ("TABLE.exec.resource.Default-Parallelism = 12", "spark.sql.shuffle.partitions = 12"),
        ("execution.parallelism=3", "spark.sql.shuffle.partitions = 3"),
        ("table.optimizer.join.broadcast-threshold = -1", "spark.sql.autoBroadcastJoinThreshold = -1"),
    ],
)
def test_a_mapped_setting_gives_the_plan_of_sparks_own(streaming: str, spark: str) -> None:
    assert settings(f"SET {streaming}") == settings(f"SET {spark}") != []
    assert needs_own_jvm(f"SET {streaming}") == needs_own_jvm(f"SET {spark}")
    key = streaming.partition("=")[0]
    assert settings(f"SET {streaming}; RESET {key}")[1] == ("reset", spark.partition(" ")[0])


@pytest.mark.parametrize(
    "setting",
    [
        "table.exec.mini-batch.enabled = true",
        "'table.optimizer.agg-phase-strategy' = 'TWO_PHASE'",
        "table.optimizer.agg-phase-strategy = auto",
        "table.optimizer.distinct-agg.split.enabled = TRUE",
        "'table.exec.source.idle-timeout' = '0  ms'",
        "table.exec.state.ttl = 0",
        "table.dml-sync = true",
        "table.sql-dialect = default",
    ],
)
def test_a_setting_for_what_spark_always_does_is_accepted_without_a_step(setting: str) -> None:
    assert settings(f"SET {setting}") == []
    assert not needs_own_jvm(f"SET {setting}")


@pytest.mark.parametrize(
    ("setting", "instead"),
    [
        ("table.exec.mini-batch.enabled = false", "Spark always processes batches"),
        ("table.exec.mini-batch.size = 0", "max_files_per_trigger"),
        ("table.optimizer.agg-phase-strategy = ONE_PHASE", "aggregates before and after the shuffle"),
        ("table.optimizer.distinct-agg.split.enabled = false", "aggregates by distinct values first"),
        ("table.exec.source.idle-timeout = '5 s'", "spark.sql.streaming.multipleWatermarkPolicy"),
        ("table.exec.state.ttl = '1 h'", "how long Spark keeps state"),
        ("parallelism.default = 0", "a whole number from 1"),
        ("parallelism.default = -1", "a whole number from 1"),
        ("parallelism.default = 1000000000", "a whole number from 1"),
        ("table.local-time-zone = default", "the name of a time zone"),
        ("table.local-time-zone = ''", "the name of a time zone"),
        ("execution.checkpointing.interval = 10s", "job.trigger is the time"),
        ("'state.backend.type' = 'rocksdb'", "keeps no state"),
        ("restart-strategy = fixed-delay", "`retry` of the definition"),
        ("restart-strategy.fixed-delay.attempts = 3", "`retry` of the definition"),
        ("pipeline.name = my-job", "`name` of the definition"),
        ("'pipeline.jars' = 'a.jar'", "`jars` or `packages` of `spark`"),
        ("sql-client.execution.result-mode = tableau", "USING print"),
        ("table.dml-sync = false", "always waits for its INSERTs"),
        ("table.sql-dialect = hive", "in Spark SQL"),
    ],
)
def test_other_known_settings_are_refused_with_what_to_use_instead(setting: str, instead: str) -> None:
    column, message = error(f"SET {setting}")
    key, _, value = setting.partition(" = ")
    assert instead in message
    assert key.strip("'") in message
    assert column in {5, len(f"SET {key} = ") + 1}
    assert f"'{value.strip(chr(39))}'" in message or column == 5


@pytest.mark.parametrize(
    ("key", "hint"),
    [
        ("table.exec.mini-batch.enable", "did you mean 'table.exec.mini-batch.enabled'?"),
        ("table.exec.resource.default-paralelism", "did you mean 'table.exec.resource.default-parallelism'?"),
        ("execution.checkpoint.interval", "did you mean 'execution.checkpointing.*'?"),
        ("pipeline.nam", "did you mean 'pipeline.name'?"),
        ("parallelism", "did you mean 'parallelism.default'?"),
        ("table", "settings of Spark start with 'spark.'"),
    ],
)
def test_unknown_settings_of_streaming_engines_are_refused_with_the_nearest(key: str, hint: str) -> None:
    for statement in (f"SET {key} = 1", f"SET '{key}' = 1", f"SET `{key}` = '1'"):
        assert error(statement) == (5, f"unknown setting '{key}'; {hint}")
    assert error(f"RESET {key}") == (7, f"unknown setting '{key}'; {hint}")


def test_two_keys_for_one_setting_of_spark_are_refused_until_one_is_reset() -> None:
    first, second = "SET parallelism.default = 4", "SET table.exec.resource.default-parallelism = 4"
    assert error(f"{first}; {second}")[1] == (
        "'table.exec.resource.default-parallelism' and 'parallelism.default' are both"
        " 'spark.sql.shuffle.partitions' in Spark; keep one of them"
    )
    for between in ("RESET", "RESET parallelism.default", "SET spark.sql.shuffle.partitions = 2"):
        assert settings(f"{first}; {between}; {second}")[-1][0] == "set"


def test_a_key_that_has_set_nothing_resets_nothing() -> None:
    spark = "SET spark.sql.shuffle.partitions = 4"
    for nothing in ("parallelism.default", "job.mode", "pipeline.name", "table.exec.mini-batch.enabled"):
        assert settings(f"{spark}; RESET {nothing}") == settings(spark)
    assert settings("SET parallelism.default = 4; RESET execution.parallelism") == settings(spark)


def test_a_script_with_several_wrong_settings_shows_all_of_them() -> None:
    script = (
        "SET job.mode = stream;\nSET 'pipeline.name' = '1';\nSET job.mod = batch;\n"
        f"SET parallelism.default = x;\nRESET table.exec.mini;\nRESET a b;\nSET spark.a = 1;\n{SHOWN}"
    )
    assert places(script) == [
        (
            1,
            16,
            "job.mode cannot be 'stream'",
        ),
        (2, 5, "'pipeline.name' would have no effect in Spark"),
        (3, 5, "unknown setting 'job.mod'"),
        (4, 27, "'parallelism.default' cannot be 'x'"),
        (5, 7, "unknown setting 'table.exec.mini'"),
        (6, 1, "write RESET, or RESET key"),
    ]


# RESET


def test_reset_is_a_step_with_its_key() -> None:
    assert settings("RESET spark.sql.ansi.enabled; RESET; RESET fs.x") == [
        *(("reset", "spark.sql.ansi.enabled"), ("reset", ""), ("reset", "fs.x")),
    ]


# The table


def test_the_document_names_each_prefix_of_settings() -> None:
    page = (DOCS / "sql-settings.md").read_text("utf-8")
    assert all(f"`{prefix}`" in page for prefix in PREFIXES)


def test_each_key_of_the_table_is_reached_under_one_prefix_and_says_what_to_use() -> None:
    keys = [setting.key for setting in STREAMING_SETTINGS]
    assert len(set(keys)) == len(keys)
    for setting in STREAMING_SETTINGS:
        assert setting.key == setting.key.lower()
        assert f"{setting.key}.".startswith(PREFIXES)
        key = setting.key.replace("*", "some.key")
        assert setting.instead in error(f"SET '{key}' = ''")[1] or setting.becomes in {JOB_MODE, JOB_TRIGGER}
        assert settings(f"RESET '{key}'") == []
