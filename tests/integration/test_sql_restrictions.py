# ruff: noqa: S608 - the test builds the scripts; nothing in them comes from outside
"""Queries that hide their reads or programs, parsed by Spark itself."""

import contextlib
import json
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession

from spark_runner.sql.compiler.compile import compile_script
from spark_runner.sql.execution.execution import execute
from spark_runner.sql.execution.settings import ScriptSettings
from spark_runner.sql.grammar.references import FILE_FORMATS
from spark_runner.sql.text.errors import SqlError
from spark_runner.sql.text.source import ScriptSource
from spark_runner.sql.text.tokens import TokenKind, tokenize
from tests.sampling import chance, times

pytestmark = pytest.mark.spark

HIDDEN = [
    "`c\u017fv`.`{path}`",
    "`com.databricks.spark.csv`.`{path}`",
    "`org.apache.spark.sql.execution.datasources.text.TextFileFormat`.`{path}`",
    "IDENTIFIER('csv.`{path}`')",
    '"csv"."{path}"',
    "image.`{path}`",
]


def read(spark: SparkSession, query: str, denied: list[str]) -> object:
    script = f"""
        CREATE TABLE shown WITH ('connector'='print');
        SET spark.sql.ansi.enabled = true;
        SET spark.sql.ansi.doubleQuotedIdentifiers = true;
        INSERT INTO shown {query};
    """
    plan = compile_script(script, file="s.sql", base_dir="/", variables={})
    travelled = json.loads(json.dumps({**plan, "formats": [], "denied_formats": denied}))
    return execute(spark, travelled, lambda _phase: None)[-1]["rows"]


@pytest.mark.parametrize("hidden", HIDDEN)
def test_files_of_a_denied_format_are_read_by_no_other_name(
    spark: SparkSession, tmp_path: Path, hidden: str
) -> None:
    (tmp_path / "x.csv").write_text("secret\n", encoding="utf-8")
    (tmp_path / "x.json").write_text("{}\n", encoding="utf-8")
    relation = hidden.format(path=tmp_path / "x.csv")
    query, allowed = f"SELECT * FROM {relation}", f"json.`{tmp_path / 'x.json'}`"
    denied = [name for name in FILE_FORMATS if name != "json"]
    assert read(spark, query, [])  # without a list it is read under any name
    with pytest.raises(SqlError):
        read(spark, query, denied)
    with pytest.raises(SqlError, match="refused by the policy"):
        read(spark, f"{query}, {allowed}", denied)
    read(spark, f"SELECT count(*) FROM {allowed}", denied)


RESETS = [
    "RESET",
    "SET spark.sql.ansi.enabled = false; RESET; RESET",
    "RESET spark.sql.variable.substitute; RESET spark.sql.runSQLOnFiles",
    "SET spark.sql.variable.substitute = true; SET spark.sql.runSQLOnFiles = true; RESET",
]


def reads_environment(spark: SparkSession, resets: str) -> bool:
    text = f"CREATE TABLE p USING print; {resets}; INSERT INTO p SELECT '${{x}}' AS home"
    plan = compile_script(text, file="s.sql", base_dir="/", variables={"x": "${env:HOME}"})
    shown: list[list[str]] = execute(spark, plan, lambda _phase: None)[-1]["preview"]
    return shown != [["${env:HOME}"]]


def reads_files(monkeypatch: pytest.MonkeyPatch, spark: SparkSession, resets: str, path: Path) -> bool:
    text = f"CREATE TABLE p USING print; {resets}; INSERT INTO p SELECT * FROM {HIDDEN[1].format(path=path)}"
    plan = compile_script(text, file="s.sql", base_dir="/", variables={})
    with monkeypatch.context() as patch:  # else it refuses the names of the settings before Spark runs
        patch.setattr(
            "spark_runner.sql.execution.execution.check_plan", lambda _plan, *, shares_jvm: shares_jvm
        )
        try:
            execute(spark, {**plan, "denied_formats": ["csv"]}, lambda _phase: None)
        except SqlError:
            return False
    return True


@pytest.mark.parametrize("resets", RESETS)
def test_reset_does_not_undo_the_settings_of_the_driver(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, resets: str
) -> None:
    file = tmp_path / "x.csv"
    file.write_text("secret\n", encoding="utf-8")
    assert not reads_environment(spark, resets)
    assert not reads_files(monkeypatch, spark, resets, file)
    monkeypatch.setattr(ScriptSettings, "reset", reset_of_spark)
    assert reads_environment(spark, resets)
    assert reads_files(monkeypatch, spark, resets, file)


def reset_of_spark(settings: ScriptSettings, key: str) -> None:
    """RESET as Spark has it: the values of the start of the session."""
    conf = settings._conf  # noqa: SLF001 - what the test replaces
    for each in [key] if key else [name for name in conf.getAll if conf.isModifiable(name)]:
        conf.unset(each)


PIECES = [
    *(
        "1E+5",
        "1e-3",
        "1.",
        "5",
        ".5",
        "E",
        "bd",
        "D",
        "F",
        "L",
        "x",
        "r",
        "USING",
        "u\u017fing",
        "\u0131",
        "_",
    ),
    *(
        "'",
        '"',
        "`",
        "/*",
        "*/",
        "/*+",
        "--",
        "\n",
        "\r",
        "\\",
        "(",
        ")",
        ",",
        " ",
        "\xa0",
        "\u3000",
        "\ufeff",
    ),
    *("\xe9", "\u0130", "\u0663", "\xb2", "\U0001d4b3", "e\u0301", "|>", "::", "->", "#", "@", "{", "}"),
]


@pytest.mark.parametrize("part", range(4))
def test_every_word_that_spark_reads_is_a_word_here(spark: SparkSession, part: int) -> None:
    """Spark must not find what these checks miss: USING in 1E+5USING starts a program."""
    choose = chance(f"words {part}")
    for _ in range(times(250, 10_000)):
        text = "".join(choose.choices(PIECES, k=choose.randint(1, 9)))
        with contextlib.suppress(SqlError):
            ours = {
                (token.start, token.text)
                for token in tokenize(ScriptSource("a", text))
                if token.kind is TokenKind.WORD
            }
            assert words_of_spark(spark, text) <= ours, repr(text)


def words_of_spark(spark: SparkSession, text: str) -> set[tuple[int, str]]:
    """Unquoted keywords and names with their positions; none if its parser refuses the text."""
    java: Any = spark._jvm  # noqa: SLF001 - as the rest of PySpark has it
    parser = java.org.apache.spark.sql.catalyst.parser
    stream = parser.UpperCaseCharStream(java.org.antlr.v4.runtime.CharStreams.fromString(text))
    lexer = parser.SqlBaseLexer(stream)
    lexer.removeErrorListeners()
    names = lexer.getVocabulary()
    found = [(names.getSymbolicName(each.getType()), each) for each in lexer.getAllTokens()]
    if any(name == "UNRECOGNIZED" for name, _ in found):
        return set()
    return {
        (each.getStartIndex(), each.getText())
        for name, each in found
        if each.getChannel() == 0 and (name == "IDENTIFIER" or each.getText()[0].isalpha())
        if each.getText()[0] not in "0123456789" and each.getText()[-1] not in "'\""
    }


@pytest.mark.parametrize(
    "using",
    [
        "USING csv",
        "USING `c\u017fv`",
        "USING com.databricks.spark.csv",
        "USING `org.apache.spark.sql.execution.datasources.csv.CSVFileFormat`",
        "",  # that of a setting
    ],
)
def test_a_table_of_a_catalog_has_files_of_a_denied_format_by_no_other_name(
    spark: SparkSession, tmp_path: Path, using: str
) -> None:
    (tmp_path / "x.csv").write_text("secret\n", encoding="utf-8")
    name = f"spark_catalog.default.t{abs(hash(using))}"
    script = f"""SET spark.sql.sources.default = csv;
        CREATE TABLE IF NOT EXISTS {name} (line STRING) {using} LOCATION '{tmp_path}';
        ASSERT (SELECT line FROM {name}) = 'secret'"""
    plan = compile_script(script, file="s.sql", base_dir="/", variables={})
    travelled = json.loads(json.dumps({**plan, "formats": []}))
    with pytest.raises(SqlError, match=r"by the policy|policy of the pool lists"):
        execute(spark, {**travelled, "denied_formats": ["csv"]}, lambda _phase: None)
    try:
        execute(spark, travelled, lambda _phase: None)  # without a list it is read under any name
    finally:
        spark.sql(f"DROP TABLE IF EXISTS {name}")
