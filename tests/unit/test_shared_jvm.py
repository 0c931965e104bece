"""The scripts that may run in a JVM that other jobs use too."""

from contextlib import nullcontext

import pytest

from spark_runner.sql.compiler.compile import compile_script
from spark_runner.sql.restrictions import check_plan
from spark_runner.sql.text.errors import SqlError

TABLE = "CREATE TABLE t WITH ('connector'='print'); "


def needs_own_jvm(script: str, **variables: str) -> bool:
    plan = compile_script(TABLE + script, file="a.sql", base_dir="/", variables=variables)
    needs: bool = plan["needs_own_jvm"]
    return needs


@pytest.mark.parametrize(
    "query",
    [
        "SELECT 1 AS n",
        "SELECT transform(array(1), x -> x + 1) AS n",
        "SELECT map('a', 1) AS n",
        "SELECT 'reflect' AS word",
        "SELECT 1 AS n -- reflect('java.lang.System', 'exit', 0)",
        "SELECT l.id FROM range(3) l JOIN range(3) r USING (id)",
    ],
)
def test_a_script_that_only_computes_may_share_a_jvm(query: str) -> None:
    assert not needs_own_jvm(f"INSERT INTO t {query}")


@pytest.mark.parametrize(
    "query",
    [
        "SELECT reflect('java.lang.System', 'exit', 0)",
        "SELECT Java_Method('java.lang.System', 'exit', 0)",
        "SELECT `TRY_REFLECT` /* ( */ ('java.lang.System', 'getenv', 'HOME')",
        "SELECT system.builtin.`reflect`\n-- why\n('java.lang.System', 'exit', 0)",
        "SELECT IDENTIFIER('re' || 'flect')('java.lang.System', 'exit', 0)",
        "SELECT 1 WHERE EXISTS (SELECT ${call}('java.lang.System', 'exit', 0))",
        "SELECT `${call}`('java.lang.System', 'exit', 0)",
        "SELECT \"reflect\"('java.lang.System', 'exit', 0)",
        "SELECT TRANSFORM(id) USING 'env' FROM range(1)",
        "SELECT TRAN\u017fFORM(id) U\u017fING 'env' FROM range(1)",
        "FROM range(1) MAP id USING 'env'",
        "FROM range(1) REDUCE id USING 'env'",
        "FROM range(1) MAP 1E+5USING 'env'",
        "FROM range(1) REDUCE 1e-3bdusing 'env'",
        "WITH w AS (SELECT transform(id) ROW FORMAT DELIMITED USING 'env' FROM range(1)) SELECT * FROM w",
    ],
)
def test_a_script_that_reaches_java_or_starts_a_program_gets_a_jvm_of_its_own(query: str) -> None:
    assert needs_own_jvm(f"INSERT INTO t {query}", call="reflect")
    assert needs_own_jvm(f"CREATE VIEW v AS {query}; INSERT INTO t SELECT 1", call="reflect")


@pytest.mark.parametrize(
    ("setting", "needs"),
    [
        ("spark.sql.shuffle.partitions = 4", False),
        ("spark.sql.session.timeZone = 'America/New_York'", False),
        ("spark.sql.adaptive.nonEmptyPartitionRatioForBroadcastJoin = 0.2", False),
        ("spark.sql.variable.substitute = true", True),
        ("spark.sql.catalog.x = org.example.Catalog", True),
        ("spark.sql.sources.commitProtocolClass = 'org.example.Protocol'", True),
        ("fs.file.impl = Own", True),
    ],
)
def test_a_setting_that_names_a_class_or_is_of_another_kind_needs_a_jvm_of_its_own(
    setting: str, needs: bool
) -> None:
    assert needs_own_jvm(f"SET {setting}; INSERT INTO t SELECT 1") is needs
    key = setting.partition(" = ")[0]
    names_a_class = needs and key.startswith(
        ("spark.sql.catalog", "spark.sql.sources")
    )  # only its value does
    assert needs_own_jvm(f"RESET {key}; INSERT INTO t SELECT 1") is (needs and not names_a_class)
    assert needs_own_jvm(f"SET {setting}; RESET; INSERT INTO t SELECT 1") is needs


def test_a_setting_in_another_case_is_refused_for_spark_would_ignore_it() -> None:
    with pytest.raises(SqlError, match="the names of settings are case-sensitive"):
        needs_own_jvm("SET SPARK.sql.Variable.Substitute = true; INSERT INTO t SELECT 1")


@pytest.mark.parametrize("options", ["", ", 's3.endpoint' = 'https://store.example.org'"])
def test_a_script_with_the_address_of_a_bucket_gets_a_jvm_of_its_own(options: str) -> None:
    bucket = f"CREATE TABLE b (n INT) WITH ('connector' = 'parquet', 'path' = 's3a://bucket/b'{options})"
    script = ";".join((TABLE.rstrip("; "), bucket, "INSERT INTO t SELECT * FROM b"))
    plan = compile_script(script, file="a.sql", base_dir="/", variables={})
    assert plan["needs_own_jvm"] is bool(options)
    with pytest.raises(SqlError, match="JVM") if options else nullcontext():
        check_plan(plan, shares_jvm=True)
