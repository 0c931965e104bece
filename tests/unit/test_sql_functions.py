"""CREATE TEMPORARY FUNCTION: what the compiler checks without running a line of Python, and the tools."""

import json
import os
import sys
import zipfile
from pathlib import Path
from typing import Any

import pytest

from orchestrator.model.definition import build_definition
from orchestrator.model.plan import check_sql
from orchestrator.sql.columns.check import column_errors
from orchestrator.sql.drawing import drawn
from orchestrator.sql.flow import flows
from orchestrator.sql.format.script import format_script
from spark_runner.sql.compiler.compile import Check, check_script
from spark_runner.sql.compiler.functions import MAX_CALLED
from spark_runner.sql.compiler.python_files import PythonFiles
from spark_runner.sql.compiler.steps import PLAN_VERSION
from spark_runner.sql.restrictions import check_plan
from spark_runner.sql.text.errors import SqlError
from spark_runner.sql.text.source import ScriptSource

SHOP = """
raise SystemExit("no test imports this")
import json as loader
from math import floor, ceil as up
def slug(text: str) -> str: ...
def bare(text): ...
def nothing(text) -> None: ...
class Shop: ...
async def wait() -> int: ...
@decorated
def wrapped(text): ...
if loader:
    def inner() -> int: ...
else:
    def other() -> int: ...
try:
    from fast import quick
except ImportError:
    def quick() -> int: ...
double = lambda number: number * 2
one, (two, three) = 1, (2, 3)
"""
QUERY = "SELECT slug('a');"


@pytest.fixture
def files(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> PythonFiles:
    monkeypatch.delitem(sys.modules, "shop", raising=False)  # of a test that runs one
    (tmp_path / "shop.py").write_text(SHOP, "utf-8")
    with zipfile.ZipFile(tmp_path / "tools.zip", "w") as archive:
        archive.writestr("tools/__init__.py", "def top() -> int: ...")
        archive.writestr("tools/text/cases.py", "def upper() -> str: ...")
        archive.writestr("tools/broken.py", "def (")
    return PythonFiles(["shop.py", "tools.zip"], str(tmp_path))


def check(text: str, files: PythonFiles | None = None, **variables: str) -> Check:
    return check_script(text, file="s.sql", base_dir="/base", variables=variables, python_files=files)


def errors(text: str, files: PythonFiles | None = None, **variables: str) -> list[str]:
    found = check(text, files, **variables)
    return [f"{error.line}:{error.column} {error.message}" for error in found.errors]


def plan(text: str, files: PythonFiles | None = None) -> dict[str, Any]:
    found = check(text, files)
    assert found.plan is not None, found.errors
    return found.plan


def declaration(target: str, behind: str = "") -> str:
    return f"CREATE TEMPORARY FUNCTION slug AS '{target}' {behind}; {QUERY}"


@pytest.mark.parametrize(
    ("behind", "returns"),
    [
        ("", None),
        ("LANGUAGE PYTHON", None),
        ("RETURNS DECIMAL(8, 2)", "DECIMAL(8, 2)"),
        ("LANGUAGE python RETURNS STRING", "STRING"),
        ("RETURNS ARRAY<STRUCT<a: INT>> LANGUAGE PYTHON", "ARRAY<STRUCT<a: INT>>"),
    ],
)
def test_a_function_is_a_step_of_the_plan(behind: str, returns: str | None) -> None:
    text = declaration("pkg.shop.slug", behind)
    made = plan(text)
    step = made["steps"][0]
    assert (step["kind"], step["name"], step["module"], step["attribute"]) == (
        *("function", "slug", "pkg.shop", "slug"),
    )
    if returns is None:
        assert "returns" not in step
    else:
        [[start, length]] = step["returns"]
        assert text[start : start + length] == returns
    assert made["version"] == PLAN_VERSION
    assert made["needs_own_jvm"]
    assert "calls" not in made
    with pytest.raises(SqlError, match="may not run in a JVM that other jobs use"):
        check_plan(made, shares_jvm=True)


@pytest.mark.parametrize(
    ("statement", "error"),
    [
        (
            "CREATE FUNCTION f AS 'a.b'",
            "1:8 write CREATE TEMPORARY FUNCTION: a function ends with the script",
        ),
        ("CREATE TEMP FUNCTION f 'a.b'", "1:24 expected AS 'module.attribute', a function in a Python file"),
        ("CREATE TEMPORARY FUNCTION f AS a.b", "1:32 expected 'module.attribute' in quotes, found 'a'"),
        (
            "CREATE TEMPORARY FUNCTION f(x INT) RETURNS INT RETURN x",
            "1:28 functions in SQL are not supported",
        ),
        ("CREATE TEMPORARY FUNCTION f AS 'a.B' USING JAR 'x.jar'", "1:38 functions of Java classes are not"),
        ("CREATE TEMPORARY FUNCTION f AS 'a.B' LANGUAGE JAVA", "1:47 functions of Java classes are not"),
        ("CREATE TEMPORARY FUNCTION f AS 'a.B' LANGUAGE RUST", "1:47 expected PYTHON, found 'RUST'"),
        ("CREATE TEMPORARY FUNCTION f AS 'a.b' RETURNS", "1:45 expected a type, found the end"),
        (
            "CREATE TEMPORARY FUNCTION f AS 'a.b' LANGUAGE PYTHON LANGUAGE PYTHON",
            "1:54 unexpected 'LANGUAGE'",
        ),
        (
            "CREATE TEMPORARY FUNCTION f AS 'a.b' TWICE",
            "1:38 unexpected 'TWICE'; LANGUAGE PYTHON and RETURNS",
        ),
        ("CREATE TEMPORARY FUNCTION a.f AS 'a.b'", "1:28 the name of a function of a script has one part"),
        (
            "CREATE TEMPORARY FUNCTION upper AS 'a.b'",
            "1:27 Spark has a function 'upper', and would call that",
        ),
        (
            "CREATE TEMPORARY FUNCTION Count AS 'a.b'",
            "1:27 Spark has a function 'Count', and would call that",
        ),
        ("CREATE TEMPORARY FUNCTION `from` AS 'a.b'", "1:27 'from' is a word of SQL; choose another name"),
        ("CREATE TEMPORARY FUNCTION tumble AS 'a.b'", "1:27 'tumble' is a word of SQL; choose another name"),
        (
            "CREATE TEMPORARY FUNCTION `my f` AS 'a.b'",
            "1:27 the name of a function has letters A to Z, digits",
        ),
        (
            "CREATE TEMPORARY FUNCTION größe AS 'a.b'",
            "1:27 the name of a function has letters A to Z, digits",
        ),
        (
            "CREATE TEMPORARY FUNCTION f AS 'slug'",
            "1:32 'slug' is no function of Python; write 'module.attribu",
        ),
        ("CREATE TEMPORARY FUNCTION f AS 'a:b'", "1:32 'a:b' is no function of Python"),
        ("CREATE TEMPORARY FUNCTION f AS '../a.b'", "1:32 '../a.b' is no function of Python"),
        ("CREATE TEMPORARY FUNCTION f AS 'a.b c'", "1:32 'a.b c' is no function of Python"),
        ("CREATE TEMPORARY FUNCTION f AS 'a.import.b'", "1:32 'import' is a word of Python and no name"),
        ("CREATE TEMPORARY FUNCTION f AS '${attempt}.b'", "1:32 '${attempt}.b' is no function of Python"),
        ("CREATE TEMPORARY FUNCTION f AS '${env:X}.b'", "1:33 the reference ${env:X} has no meaning here"),
        (
            "CREATE TEMPORARY FUNCTION f AS 'os.system'",
            "1:32 'os' is a module of Python itself; a function is",
        ),
        (
            "CREATE TEMPORARY FUNCTION f AS 'os.path.join'",
            "1:32 'os' is a module of Python itself; a function",
        ),
        ("CREATE TEMPORARY FUNCTION f AS 'builtins.eval'", "1:32 'builtins' is a module of Python itself"),
        ("CREATE TEMPORARY FUNCTION f AS 'subprocess.run'", "1:32 'subprocess' is a module of Python itself"),
        ("CREATE TEMPORARY FUNCTION f AS '__main__.f'", "1:32 '__main__' is a module of the platform"),
        ("CREATE TEMPORARY FUNCTION f AS 'pyspark.util.f'", "1:32 'pyspark' is a module of the platform"),
        (
            "CREATE TEMPORARY FUNCTION f AS 'spark_runner.f'",
            "1:32 'spark_runner' is a module of the platform",
        ),
    ],
)
def test_a_wrong_declaration_is_refused_at_its_place(statement: str, error: str) -> None:
    found = errors(f"{statement}; SELECT 1;")
    assert len(found) == 1
    assert found[0].startswith(error)


def test_a_name_is_declared_once_unless_it_is_replaced() -> None:
    first = "CREATE TEMPORARY FUNCTION slug AS 'a.b';\n"
    assert errors(f"{first}CREATE TEMPORARY FUNCTION SLUG AS 'a.c'; {QUERY}") == [
        "2:27 function 'SLUG' is already declared in line 1; write CREATE OR REPLACE"
    ]
    replaced = f"{first}{QUERY} CREATE OR REPLACE TEMPORARY FUNCTION SLUG AS 'a.c'; {QUERY}"
    assert [step["kind"] for step in plan(replaced)["steps"]] == ["function", "query", "function", "query"]


@pytest.mark.parametrize(
    "target",
    [
        *("shop.slug", "shop.wrapped", "shop.inner", "shop.other", "shop.quick", "shop.up", "shop.floor"),
        *("tools.top", "tools.text.cases.upper"),
    ],
)
def test_functions_are_found_in_the_files_of_the_job(target: str, files: PythonFiles) -> None:
    assert errors(declaration(target), files) == []
    assert "shop" not in sys.modules


@pytest.mark.parametrize(
    ("target", "behind", "words"),
    [
        ("shop.slog", "", "module 'shop' has no function 'slog'; did you mean 'slug'?"),
        ("shpo.slug", "", "there is no module 'shpo'; did you mean 'shop'?"),
        (
            "warehouse.slug",
            "",
            "there is no module 'warehouse'; the Python files of the job are shop.py, tools.zip",
        ),
        ("shop.Shop", "", "'Shop' of module 'shop' is a class, not a function"),
        ("shop.wait", "", "'wait' of module 'shop' is async, not a function"),
        ("shop.bare", "", "'bare' of module 'shop' does not say what it returns; add RETURNS type"),
        ("shop.nothing", "", "'nothing' of module 'shop' does not say what it returns; add RETURNS type"),
        ("tools.text.cases.uper", "", "no function 'uper'; did you mean 'upper'?"),
        ("tools.broken.f", "", "tools.zip/tools/broken.py, line 1: invalid syntax"),
        ("shop.slog", "RETURNS STRING", "did you mean 'slug'?"),
    ],
)
def test_a_function_that_is_not_there_is_an_error_with_the_nearest_name(
    target: str, behind: str, words: str, files: PythonFiles
) -> None:
    [found] = errors(declaration(target, behind), files)
    assert found.startswith("1:35 ")
    assert words in found


@pytest.mark.parametrize("name", ["bare", "double", "two"])
def test_a_type_in_the_script_makes_annotations_needless(name: str, files: PythonFiles) -> None:
    assert errors(declaration(f"shop.{name}", "RETURNS INT"), files) == []


@pytest.mark.parametrize(
    "others",
    [
        ["s3a://bucket/more.py"],
        ["pipe.zip"],
        ["pipe.py"],
        ["missing.py"],
        ["*.py"],
        ["more.txt"],
        ["a.zip"],
        ["bad.zip"],
    ],
)
def test_what_this_host_cannot_read_is_not_judged(
    others: list[str], tmp_path: Path, files: PythonFiles
) -> None:
    (tmp_path / "bad.zip").write_text("no archive", "utf-8")
    for name in ("pipe.zip", "pipe.py"):
        os.mkfifo(tmp_path / name)
    some = PythonFiles([*files.files, *others], files.directory)
    assert errors(declaration("warehouse.slug"), some) == []
    assert errors(declaration("shop.slog"), some) != []
    assert errors(declaration("warehouse.slug"), PythonFiles([], str(tmp_path))) == []


def test_modules_that_make_names_are_not_judged(tmp_path: Path) -> None:
    for number, text in enumerate(
        ("from x import *", "globals()['f'] = 1", "def __getattr__(name): ...", "exec('x')", "(" * 500)
    ):
        (tmp_path / f"m{number}.py").write_text(text, "utf-8")
        found = errors(declaration(f"m{number}.f"), PythonFiles([f"m{number}.py"], str(tmp_path)))
        assert found == [] or "line 1:" in found[0], text
    (tmp_path / "large.py").write_text("x = 1\n" * 1_000_000, "utf-8")
    assert errors(declaration("large.f"), PythonFiles(["large.py"], str(tmp_path))) == []


def test_the_files_are_those_of_the_definition(tmp_path: Path) -> None:
    (tmp_path / "shop.py").write_text(SHOP, "utf-8")
    document: dict[str, Any] = {
        "name": "j",
        "script": declaration("shop.slog"),
        "directory": str(tmp_path),
        "spark": {"py_files": ["shop.py"]},
    }
    [error] = check_sql(build_definition(document, "test"), "s.sql").errors
    assert "did you mean 'slug'" in error.message
    document["spark"] = {"conf": {"spark.submit.pyFiles": "other.zip"}, "py_files": ["shop.py"]}
    assert check_sql(build_definition(document, "test"), "s.sql").errors == ()


def test_calls_of_functions_that_spark_does_not_have_are_part_of_the_plan() -> None:
    made = plan(
        "CREATE TABLE t (a STRING, b AS Clean(a), CONSTRAINT c EXPECT (ok(a)) ON VIOLATION FAIL) USING inline"
        " OPTIONS (rows '[[\"a\"]]');"
        "CREATE TEMPORARY FUNCTION mine AS 'a.b';"
        "SELECT `slug`(upper(a)), mine(a), session.other(b), count(*) FROM t WHERE a IN ('x')"
        " AND NOT (b = 'y');"
        "ASSERT checked((SELECT max(a) FROM t));"
    )
    assert made["calls"] == ["checked", "clean", "ok", "other", "slug"]
    assert made["version"] == PLAN_VERSION
    assert "calls" not in plan(
        "SELECT upper('a'), CAST(1 AS DECIMAL(8, 2)), TUMBLE_START(a, INTERVAL 1 DAY);"
    )


def test_too_many_calls_are_refused_at_the_first_one_beyond_the_limit() -> None:
    names = ", ".join(f"f{number}(1)" for number in range(MAX_CALLED + 1))
    [found] = errors(f"SELECT {names};")
    assert f"the script calls more than {MAX_CALLED} functions" in found


def test_a_function_that_no_statement_calls_is_a_warning() -> None:
    found = check("CREATE TEMPORARY FUNCTION f AS 'a.b'; CREATE TABLE t USING print; SELECT 1;")
    assert [(each.column, each.message) for each in found.warnings] == [
        (27, "function 'f' is never used"),
        (52, "table 't' is never used"),
    ]
    assert check(declaration("a.b")).warnings == ()
    assert check("CREATE TEMPORARY FUNCTION f AS 'a.b'; SELECT IDENTIFIER('f')(1);").warnings == ()


def test_an_error_in_a_declaration_is_the_only_one() -> None:
    assert len(errors(f"CREATE TEMPORARY FUNCTION slug AS 'os.f'; {QUERY} {QUERY}")) == 1


def test_the_modes_of_streams_have_functions() -> None:
    text = (
        "SET job.mode = 'available-now'; CREATE TEMPORARY FUNCTION slug AS 'a.b';"
        "CREATE TABLE s (a STRING) USING json OPTIONS (path 'in');"
        "CREATE TABLE t (a STRING) USING json OPTIONS (path 'out'); INSERT INTO t SELECT slug(a) FROM s;"
    )
    assert errors(text) == []


def test_the_tools_know_functions() -> None:
    text = (
        "create temp function slug as 'a.b' language python returns decimal(8,2);"
        " create table t (a string, b int) using inline options (rows '[[\"a\", 1]]');"
        " create table p (x string) using csv options (path 'x'); insert into p select slug(a, 1) from t;"
    )
    lines = format_script(ScriptSource("s.sql", text)).splitlines()
    assert lines[0] == "CREATE TEMP FUNCTION slug AS 'a.b' LANGUAGE PYTHON RETURNS decimal(8, 2);"
    found = check(text)
    assert column_errors(found) == []
    shown = [flow.document for flow in flows(found)]
    assert (shown[0]["statement"], shown[0]["declares"], shown[0]["location"]) == (
        *("CREATE FUNCTION", "slug", "a.b"),
    )
    assert shown[-1]["columns"] == [{"column": "x", "from": ["t.a"], "complete": True}]
    assert "slug" not in drawn(flows(found))
    json.dumps(found.plan)
