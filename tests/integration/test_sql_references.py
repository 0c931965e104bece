"""References in the options of tables: the connector gets the values, and nothing else does."""

import io
import json
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession

from spark_runner.driver.analysis_main import answer_of
from spark_runner.protocol.redacted import redacted
from spark_runner.references.masks import MaskedStream, Masks
from spark_runner.references.resolver import Resolver
from spark_runner.references.sources import Sources
from spark_runner.sql.compiler.compile import compile_script
from spark_runner.sql.execution import folder
from spark_runner.sql.execution.execution import execute
from spark_runner.sql.text.errors import SqlError
from tests.failing_source import refused
from tests.vault_connector import Vault, vault

pytestmark = pytest.mark.spark

SECRET = "q7:R{2m}P4'x\\$ of-the-references"  # noqa: S105 - a secret of a test
SCRIPT = """\
CREATE TABLE src (n INT) USING vault OPTIONS (user 'me-${env:VAULT_USER}', password '${secret:crm/password}');
CREATE TABLE tgt USING vault OPTIONS (password "${secret:crm/password}");
EXPLAIN EXTENDED SELECT * FROM src;
INSERT INTO tgt SELECT * FROM src;
"""
Run = Callable[..., list[dict[str, Any]]]


@pytest.fixture
def connector() -> Iterator[type[Vault]]:
    with vault() as found:
        yield found


@pytest.fixture
def output() -> io.StringIO:
    return io.StringIO()


@pytest.fixture
def run(
    spark: SparkSession,
    tmp_path: Path,
    connector: type[Vault],
    output: io.StringIO,
    monkeypatch: pytest.MonkeyPatch,
) -> Iterator[Run]:
    assert connector
    folder = tmp_path / "crm"
    folder.mkdir()
    (folder / "password").write_text(f"{SECRET}\n", encoding="utf-8")
    log = _log_file(spark, tmp_path / "spark.log")

    def run_script(text: str = SCRIPT, **sources: Any) -> list[dict[str, Any]]:
        plan = compile_script(text, file="s.sql", base_dir=str(tmp_path), variables={})
        found = {"environment": ("VAULT_*",), "secrets": {"crm": {"folder": str(folder)}}, **sources}
        resolver = Resolver(Sources.of(json.loads(json.dumps(Sources(**found).to_json()))), Masks())
        monkeypatch.setattr(sys, "stdout", output)  # here, where pytest captures no more
        monkeypatch.setattr(sys, "stderr", io.StringIO())
        return execute(spark, json.loads(json.dumps(plan)), lambda _: None, resolver=resolver)

    yield run_script
    log.stop()


def _log_file(spark: SparkSession, path: Path) -> Any:
    """Add an appender for the log of Spark, with a layout of patterns, to the root logger."""
    jvm: Any = spark._jvm  # noqa: SLF001 - PySpark has no public access to the JVM
    core = jvm.org.apache.logging.log4j.core
    context = jvm.org.apache.logging.log4j.LogManager.getContext(False)
    layout = core.layout.PatternLayout.newBuilder().withPattern("%p %enc{%m}{JSON}%n").build()
    made = core.appender.FileAppender.newBuilder()
    made.withFileName(str(path))
    made.setName(str(path))  # log4j ignores a second one of the same name
    made.setLayout(layout)
    appender = made.build()
    appender.start()
    configuration = context.getConfiguration()
    configuration.addAppender(appender)
    configuration.getRootLogger().addAppender(appender, None, None)
    core.config.Configurator.setLevel("vault", jvm.org.apache.logging.log4j.Level.ERROR)
    context.updateLoggers()
    return appender


def test_a_connector_gets_values_and_the_plan_has_none(
    run: Run, connector: type[Vault], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("VAULT_USER", "ada-of-the-vault")
    run()
    assert {options["password"] for options in connector.seen} == {SECRET}
    assert "me-ada-of-the-vault" in {options["user"] for options in connector.seen}


def test_no_output_shows_a_value(
    run: Run,
    spark: SparkSession,
    output: io.StringIO,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("VAULT_USER", "ada-of-the-vault")
    results = run()
    assert "Physical Plan" in output.getvalue()
    assert "the password is ***" in output.getvalue()
    log = (tmp_path / "spark.log").read_text()
    assert "connected with ***" in log
    store = spark._jsparkSession.sharedState().statusStore()  # noqa: SLF001 - what the UI shows
    shown = "\n".join(
        f"{each.physicalPlanDescription()} {each.modifiedConfigs()} {each.details()}"
        for each in (store.executionsList().apply(index) for index in range(store.executionsList().size()))
    )
    assert "spark.sql.redaction.string.regex" in shown
    texts = (output.getvalue(), log, shown, json.dumps(redacted(results)))
    for part in (SECRET, json.dumps(SECRET)[1:-1], "of-the-references", "of\\u002dthe", "ada-of-the"):
        assert not [text for text in texts if part in text], part


def test_an_error_of_a_connector_is_reported_without_the_value(run: Run) -> None:
    text = SCRIPT.replace("password '$", "fails true, password '$").replace("me-${env:VAULT_USER}", "me")
    with pytest.raises(SqlError) as caught:
        run(text)
    assert "the server refuses ***" in redacted(str(caught.value))
    assert isinstance(sys.stderr, MaskedStream)


@pytest.mark.parametrize(
    "insert", ["INSERT INTO good SELECT * FROM bad", "INSERT INTO bad SELECT * FROM good"]
)
def test_an_error_in_a_task_has_no_value_where_spark_shows_it(
    run: Run, spark: SparkSession, insert: str
) -> None:
    text = (
        "CREATE TABLE bad (n INT) USING refused OPTIONS (url 'http://me:${secret:crm/password}@host');"
        f"CREATE TABLE good (n INT) USING parquet OPTIONS (path 'good'); {insert};"
    )
    before = f"INSERT INTO good VALUES (1); {insert}"  # noqa: S608 - nothing comes from outside
    text = text.replace(insert, before) if insert.endswith("good") else text
    with refused(), pytest.raises(SqlError) as caught:
        run(text)
    assert "no connection to http://me:***@host" in caught.value.message
    context: Any = spark.sparkContext
    none = context._gateway.new_array(context._jvm.double, 0)  # noqa: SLF001 - PySpark has no public access to Java
    stages = context._jsc.sc().statusStore().stageList(None, False, False, none, None)  # noqa: SLF001 - what the UI shows
    reasons = [str(stages.apply(index).failureReason()) for index in range(stages.size())]
    assert any("http://me:***@host" in reason for reason in reasons)
    assert not [reason for reason in reasons if "of-the-references" in reason]


@pytest.mark.parametrize(
    ("sources", "words"),
    [
        ({"secrets": {}}, "option 'password': ${secret:crm/password} has no value: there is no scope 'crm'"),
        (
            {"secrets": {"crm": {"folder": "/nowhere"}}},
            "there is no folder /nowhere on the host of the driver",
        ),
        (
            {"secrets": {"crm": {"prefix": "CRM_"}}},
            "the environment of the driver has no variable CRM_password",
        ),
        ({"secrets": {"crm": {"provider": "none"}}}, "has the provider 'none'"),
        (
            {"environment": ()},
            "${env:VAULT_USER} has no value: the setting references.environment does not list",
        ),
    ],
)
def test_a_reference_without_a_value_is_named_with_its_table_and_option(
    run: Run, connector: type[Vault], sources: dict[str, Any], words: str
) -> None:
    with pytest.raises(SqlError) as caught:
        run(**sources)
    assert words in str(caught.value)
    assert "s.sql:2:1: table 'tgt': option 'password'" in str(caught.value) or "environment" in sources
    assert connector.seen == [] or "environment" in sources


@pytest.mark.parametrize(
    "request_",
    [
        {"kind": "preview", "table": "src", "rows": 5, "width": 200},
        {"kind": "explain", "connect": True, "with_plan": True},
    ],
)
@pytest.mark.parametrize("fails", ["", ", fails 'true'"])
@pytest.mark.usefixtures("spark", "connector")
def test_the_answer_about_a_script_shows_no_value(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, request_: dict[str, Any], fails: str
) -> None:
    (tmp_path / "crm").mkdir()
    (tmp_path / "crm" / "password").write_text(SECRET, encoding="utf-8")
    monkeypatch.setattr(folder, "set_working_directory", lambda *_: None)  # it is that of all tests
    monkeypatch.setattr(sys, "stdout", io.StringIO())  # the masks replace both
    monkeypatch.setattr(sys, "stderr", io.StringIO())
    text = (
        "CREATE TABLE src USING vault OPTIONS (password '${secret:crm/password}'",
        f"{fails}); CREATE TABLE out USING print; INSERT INTO out TABLE src;",
    )
    plan = compile_script("".join(text), file="s.sql", base_dir=str(tmp_path), variables={})
    sources = Sources(secrets={"crm": {"folder": str(tmp_path / "crm")}}).to_json()
    answer = answer_of({**request_, "plan": plan, "references": sources})
    assert not fails or "the server refuses ***" in json.dumps(answer)
    assert SECRET not in json.dumps(answer, ensure_ascii=False)
    assert json.dumps(SECRET)[1:-1] not in json.dumps(answer)
