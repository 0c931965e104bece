# ruff: noqa: S608 - the test builds the scripts; nothing in them comes from outside
"""Functions in Python of the job's files, in the queries of a script."""

import contextlib
import datetime as dt
import importlib
import io
import json
import re
import sys
import uuid
import zipfile
from collections.abc import Callable, Iterator
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest
from pyspark import SparkFiles
from pyspark.sql import SparkSession

from spark_runner.sql.compiler.compile import check_script
from spark_runner.sql.compiler.python_files import PythonFiles
from spark_runner.sql.compiler.spark_functions import SPARK_FUNCTIONS
from spark_runner.sql.execution.analysis import analyse_script
from spark_runner.sql.execution.execution import execute
from spark_runner.sql.execution.function_types import type_of
from spark_runner.sql.execution.preview import preview
from spark_runner.sql.grammar.calls import NO_FUNCTIONS, PLAIN_NAME
from spark_runner.sql.text.errors import SqlError

pytestmark = pytest.mark.spark

CODE = """
import datetime as dt
import sys
from decimal import Decimal
from typing import Annotated

import pyarrow as pa
import pyarrow.compute as pc

def slug(text: str | None) -> str | None:
    return None if text is None else text.strip().lower().replace(" ", "-")

def shout(text: str) -> str:
    return "nothing" if text is None else text.upper()

def gross(price: Decimal) -> Annotated[Decimal, "DECIMAL(10, 2)"]:
    return price * 2

def twice(numbers: pa.Array) -> Annotated[pa.Array, "BIGINT"]:
    return pc.multiply(numbers, 2)

def kinds(*values) -> str:
    return ",".join(type(value).__name__ for value in values)

def divide(number: int) -> int:
    return 10 // number

def as_text(number: int) -> int:
    return "twelve"

def words(text: str) -> list[str]:
    return text.split()

def later(day: dt.date) -> dt.date:
    return day + dt.timedelta(days=1)

def bare(text):
    return text

def odd(text: str) -> complex:
    return 1j

is_positive = lambda number: number > 0
NUMBER = 7

def pandas_loaded() -> bool:
    return "pandas" in sys.modules
"""
TABLES = """
CREATE TABLE orders (id INT, name STRING) USING inline
  OPTIONS (rows '[[1, " Ann B "], [2, null], [3, "Bob"]]');
"""
FOUND = "CREATE TABLE found USING csv OPTIONS (path 'found');\n"


def declared(module: str, *names: str, returns: str = "") -> str:
    return "".join(
        f"CREATE TEMPORARY FUNCTION {name} AS '{module}.{name}' LANGUAGE PYTHON {returns};\n"
        for name in names
    )


_FILES = dict[str, Path]()  # by application: further Python files would start further Python processes


@pytest.fixture
def module(spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The file of a module of its own name, which is a Python file of this application."""
    application = str(spark.sparkContext.applicationId)
    if application not in _FILES:
        file = tmp_path_factory.mktemp("py") / f"shop_{uuid.uuid4().hex}.py"
        file.write_text(CODE, "utf-8")
        spark.sparkContext.addPyFile(str(file))
        _FILES[application] = file
    return _FILES[application]


Run = Callable[..., list[dict[str, Any]]]


def plan_of(text: str, folder: Path, *files: Path) -> dict[str, Any]:
    given = PythonFiles([str(file) for file in files])
    found = check_script(
        text, file="s.sql", base_dir=str(folder), variables={}, only_declares=True, python_files=given
    )
    if found.plan is None:
        raise found.error()
    plan: dict[str, Any] = json.loads(json.dumps(found.plan))
    return plan | {"python_files": [file.name for file in files]}


@pytest.fixture
def run(spark: SparkSession, tmp_path: Path, module: Path) -> Run:
    def run_script(text: str, **parts: Any) -> list[dict[str, Any]]:
        return execute(spark, plan_of(text, tmp_path, module) | parts, lambda _phase: None)

    return run_script


def rows(folder: Path, name: str = "found") -> list[str]:
    lines = [line for file in (folder / name).glob("part-*") for line in file.read_text().splitlines()[1:]]
    return sorted(lines)


def test_spark_has_no_further_function_and_calls_its_own_in_place_of_another_one(spark: SparkSession) -> None:
    listed = {row[0] for row in spark.sql("SHOW SYSTEM FUNCTIONS").collect()}
    named = {name for name in listed if PLAIN_NAME.fullmatch(name)}
    assert named - SPARK_FUNCTIONS - {name.lower() for name in NO_FUNCTIONS} == set()


def test_values_of_all_kinds_reach_a_function_and_come_back_with_its_type(
    run: Run, tmp_path: Path, module: Path
) -> None:
    functions = declared(module.stem, "slug", "shout", "gross", "twice", "words", "later", "pandas_loaded")
    run(
        f"""{functions}{TABLES}{FOUND}
        INSERT OVERWRITE found SELECT id, slug(name) AS slug, shout(name) AS shout,
          gross(CAST(id AS DECIMAL(8, 2))) AS gross, twice(id) AS twice, size(words(name)) AS n,
          later(DATE '2026-01-31') AS day, pandas_loaded() AS pandas,
          typeof(gross(1)) AS type FROM orders WHERE name IS NOT NULL;
        """
    )
    assert rows(tmp_path) == [
        '1,ann-b, ANN B ,2.00,2,2,2026-02-01,false,"decimal(10,2)"',
        '3,bob,BOB,6.00,6,1,2026-02-01,false,"decimal(10,2)"',
    ]


def test_a_function_gets_null_as_none_and_the_types_of_the_documentation(
    run: Run, tmp_path: Path, module: Path
) -> None:
    run(
        f"""{declared(module.stem, "slug", "shout", "kinds")}{TABLES}{FOUND}
        INSERT OVERWRITE found SELECT slug(name) AS a, shout(name) AS b, kinds(true, 1, 1L, 1.5, 1D, 'a',
          X'00', DATE '2026-01-01', TIMESTAMP '2026-01-01 00:00:00', array(1), map('a', 1),
          named_struct('a', 1), NULL) AS kinds FROM orders WHERE id = 2;
        """
    )
    assert rows(tmp_path) == [
        ',nothing,"bool,int,int,Decimal,float,str,bytes,date,datetime,list,dict,Row,NoneType"'
    ]


def test_spark_evaluates_them_with_arrow(run: Run, module: Path, capsys: pytest.CaptureFixture[str]) -> None:
    shown = io.StringIO()
    with contextlib.redirect_stdout(shown):
        declaration = declared(module.stem, "slug", "twice")
        run(f"{declaration}{TABLES}EXPLAIN SELECT slug(name), twice(id) FROM orders;")
    found = shown.getvalue()
    assert capsys.readouterr()
    assert "ArrowEvalPython [slug(" in found
    assert "ArrowEvalPython [twice(" in found
    assert "BatchEvalPython" not in found


def test_the_type_of_the_script_wins_and_a_lambda_needs_it(run: Run, tmp_path: Path, module: Path) -> None:
    functions = declared(module.stem, "divide", returns="RETURNS STRING")
    functions += declared(module.stem, "is_positive", "bare", returns="RETURNS BOOLEAN")
    run(
        f"{functions}{TABLES}{FOUND}INSERT OVERWRITE found SELECT typeof(divide(id)) AS a,"
        " is_positive(id) AS b, bare(true) AS c FROM orders WHERE id = 1;"
    )
    assert rows(tmp_path) == ["string,true,true"]
    for name, words in (
        ("is_positive", "does not say what it returns; add RETURNS type"),
        ("odd", "complex"),
    ):
        with pytest.raises(SqlError, match=words):
            run(f"{declared(module.stem, name)} SELECT 1;")


@pytest.fixture
def shop(spark: SparkSession, tmp_path: Path) -> Iterator[Path]:
    """The file of a module `shop`, which later tests in this process cannot import."""
    assert spark
    yield tmp_path / "shop.py"
    sys.modules.pop("shop", None)
    # Spark's copy: its folder is on the path of this process as long as the session lives.
    Path(SparkFiles.getRootDirectory(), "shop.py").unlink(missing_ok=True)
    importlib.invalidate_caches()


def test_the_script_of_the_documentation_runs_with_its_file(
    spark: SparkSession, tmp_path: Path, shop: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    page = (Path(__file__).parents[2] / "docs" / "functions.md").read_text("utf-8")
    [code] = re.findall(r"^```python\n(.*?)^```$", page, re.MULTILINE | re.DOTALL)
    [script] = re.findall(r"^```sql\n(.*?)^```$", page, re.MULTILINE | re.DOTALL)
    shop.write_text(code, "utf-8")
    spark.sparkContext.addPyFile(str(shop))
    execute(spark, plan_of(script, tmp_path, shop), lambda _phase: None)
    shown = [[cell.strip() for cell in line.split("|")] for line in capsys.readouterr().out.splitlines()]
    assert ["ann-berg", "AB", "11.90", "4"] in shown
    annotations = re.findall(r"^\| `([^`]+)` \| `([^`]+)` \| `", page, re.MULTILINE)
    known = {name: eval(name, {"datetime": dt, "Decimal": Decimal}) for name, _ in annotations[:8]}  # noqa: S307 - of the page
    kinds = {name: type_of(annotation).simpleString().upper() for name, annotation in known.items()}
    assert kinds == {name: kind.replace(" ", "") for name, kind in annotations[:8]}


def test_an_error_in_a_function_is_reported_at_the_insert_with_its_line(
    run: Run, tmp_path: Path, module: Path
) -> None:
    line = CODE.splitlines().index("    return 10 // number") + 1
    declaration = declared(module.stem, "divide", "as_text", "gross")
    text = f"{declaration}{TABLES}{FOUND}INSERT OVERWRITE found SELECT divide(id - 1)\nFROM orders;"
    with pytest.raises(SqlError) as refused:
        run(text)
    expected = (
        f"ZeroDivisionError: integer division or modulo by zero ({module.name}, line {line}, in divide)"
    )
    assert expected in refused.value.message
    assert "Traceback" not in refused.value.message
    assert refused.value.line == text[: text.index("INSERT")].count("\n") + 1
    assert not (tmp_path / "found").exists(), "the target is unchanged"
    with pytest.raises(SqlError, match="'twelve' as a scalar of type int64"):
        run(text.replace("divide(id - 1)", "as_text(id)"))
    with pytest.raises(SqlError, match=r"AssertionError at `assert isinstance\(value, decimal.Decimal\)`"):
        run(text.replace("divide(id - 1)", "gross(id)"))


def test_unknown_functions_keep_the_error_of_spark_with_its_place(run: Run) -> None:
    with pytest.raises(SqlError, match="UNRESOLVED_ROUTINE") as refused:
        run(f"{TABLES} SELECT id,\n  slugg(name) FROM orders;")
    assert (refused.value.line, refused.value.column) == (5, 3)


def test_a_zip_is_a_python_file_with_packages(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sys, "path", sys.path.copy())  # PySpark adds the zip
    package = f"tools_{uuid.uuid4().hex}"
    archive = tmp_path / f"{package}.zip"
    with zipfile.ZipFile(archive, "w") as made:
        made.writestr(f"{package}/__init__.py", "")
        made.writestr(f"{package}/inner/__init__.py", "")
        made.writestr(f"{package}/inner/text.py", "def first(text: str) -> str:\n    return text[:1]\n")
    spark.sparkContext.addPyFile(str(archive))
    text = f"CREATE TEMPORARY FUNCTION initial AS '{package}.inner.text.first';{TABLES}{FOUND}"
    insert = "INSERT OVERWRITE found SELECT initial(name) AS a FROM orders WHERE id = 3;"
    execute(spark, plan_of(text + insert, tmp_path, archive), lambda _phase: None)
    assert rows(tmp_path) == ["B"]
    with pytest.raises(SqlError, match="has no function 'frist'; did you mean 'first'"):
        plan_of(text.replace(".first'", ".frist'"), tmp_path, archive)


def test_the_driver_takes_functions_from_the_files_of_the_job_alone(
    run: Run, module: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    declaration = declared(module.stem, "slug")
    with pytest.raises(SqlError, match="is not in a Python file of the job"):
        run(f"{declaration} SELECT 1;", python_files=[])
    with pytest.raises(SqlError, match="is not in a Python file of the job"):
        run(f"{declaration} SELECT 1;", python_files=["other.py", "other.zip"])
    (tmp_path / "elsewhere_only.py").write_text("def f() -> int:\n    raise SystemExit\n", "utf-8")
    monkeypatch.syspath_prepend(str(tmp_path))
    for step in (
        {"module": "os", "attribute": "system"},
        {"module": "builtins", "attribute": "eval"},
        {"module": "subprocess", "attribute": "getoutput"},
        {"module": "__main__", "attribute": "main"},
        {"module": "pyspark.util", "attribute": "fail_on_stopiteration"},
        {"module": "spark_runner.protocol.text", "attribute": "nearest"},
        {"module": "pytest", "attribute": "skip"},
        {"module": "elsewhere_only", "attribute": "f"},
        {"module": "no_such_module", "attribute": "f"},
    ):
        plan = plan_of(f"{declaration} SELECT 1;", tmp_path, module)
        plan["python_files"] += [f"{step['module'].partition('.')[0]}.zip"]
        plan["steps"][0] |= step
        with pytest.raises(SqlError, match="function 'slug': ") as refused:
            execute_with(run, plan)
        assert refused.value.line == 1
        if step["module"] in {"os", "builtins", "subprocess"}:
            assert "is a module of Python itself" in refused.value.message
    assert "elsewhere_only" not in sys.modules, "a refused module is not run"


def execute_with(run: Run, plan: dict[str, Any]) -> None:
    run("SELECT 1;", **plan)


def test_a_module_that_cannot_be_imported_is_an_error_at_its_statement(
    spark: SparkSession, tmp_path: Path
) -> None:
    file = tmp_path / f"broken_{uuid.uuid4().hex}.py"
    file.write_text("import sys\n\nprint(1 / 0)\n", "utf-8")
    spark.sparkContext.addPyFile(str(file))
    text = f"SELECT 1;\nCREATE TEMPORARY FUNCTION f AS '{file.stem}.f' RETURNS INT; SELECT f();"
    plan = plan_of(text.replace(".f'", ".sys'"), tmp_path, file)
    with pytest.raises(
        SqlError, match=rf"ZeroDivisionError: division by zero \({file.name}, line 3\)"
    ) as refused:
        execute(spark, plan, lambda _phase: None)
    assert (refused.value.line, refused.value.column) == (2, 1)


@pytest.mark.parametrize("ending", ["raise KeyboardInterrupt", "import sys\n\nsys.exit(3)", "exit()"])
def test_a_module_that_ends_the_program_is_an_error_at_its_statement(
    spark: SparkSession, tmp_path: Path, ending: str
) -> None:
    file = tmp_path / f"ending_{uuid.uuid4().hex}.py"
    file.write_text(f"def f() -> int:\n    return 1\n\n\n{ending}\n", "utf-8")
    spark.sparkContext.addPyFile(str(file))
    text = f"SELECT 1;\nCREATE TEMPORARY FUNCTION f AS '{file.stem}.f'; SELECT f();"
    with pytest.raises(SqlError, match=rf"module '{file.stem}' cannot be imported") as refused:
        execute(spark, plan_of(text, tmp_path, file), lambda _phase: None)
    assert (refused.value.line, refused.value.column) == (2, 1)


def test_views_computed_columns_and_statement_sets_call_them(run: Run, tmp_path: Path, module: Path) -> None:
    run(
        f"""{declared(module.stem, "slug", "twice")}
        CREATE TABLE orders (id INT, name STRING, slug AS slug(name),
          CONSTRAINT even EXPECT (twice(id) < 100) ON VIOLATION FAIL)
          USING inline OPTIONS (rows '[[1, " Ann B "], [2, "Bob"]]');
        CREATE VIEW doubled AS SELECT twice(id) AS n, slug FROM orders;
        CREATE TABLE found USING csv OPTIONS (path 'found');
        CREATE TABLE other USING csv OPTIONS (path 'other');
        EXECUTE STATEMENT SET BEGIN
          INSERT OVERWRITE found SELECT n, slug FROM doubled;
          INSERT OVERWRITE other SELECT slug(concat(slug, ' x')) AS a FROM doubled;
        END;
        ASSERT (SELECT max(twice(id)) FROM orders) = 4;
        """
    )
    assert rows(tmp_path) == ["2,ann-b", "4,bob"]
    assert rows(tmp_path, "other") == ["ann-b-x", "bob-x"]


def test_the_quarantine_counts_what_a_function_refuses(
    spark: SparkSession, tmp_path: Path, module: Path
) -> None:
    (tmp_path / "in").mkdir()
    lines = "".join(f"{number},x\n" for number in range(100))
    (tmp_path / "in" / "a.csv").write_text(f"id,name\n{lines}", "utf-8")
    text = f"""{declared(module.stem, "twice")}
        CREATE TABLE src (id BIGINT, name STRING,
          CONSTRAINT small EXPECT (twice(id) < 160) ON VIOLATION QUARANTINE)
          USING csv OPTIONS (path 'in');
        CREATE TABLE found USING csv OPTIONS (path 'found');
        INSERT OVERWRITE found SELECT id FROM src;
        """
    counted = list[dict[str, Any]]()
    plan = plan_of(text, tmp_path, module) | {"quarantine": f"file:{tmp_path}/quarantine"}
    execute(spark, plan, lambda _phase: None, bad_rows=counted)
    assert len(rows(tmp_path)) == 80
    assert [each["quarantined"] for each in counted] == [20]


def test_micro_batches_call_them(run: Run, tmp_path: Path, module: Path) -> None:
    (tmp_path / "in").mkdir()
    for number in range(2):
        (tmp_path / "in" / f"{number}.json").write_text(json.dumps({"id": number, "name": " A b "}), "utf-8")
    text = f"""SET job.mode = 'available-now';
        {declared(module.stem, "slug", "twice")}
        CREATE TABLE src (id BIGINT, name STRING) USING json OPTIONS (path 'in', max_files_per_trigger 1);
        CREATE TABLE found (n BIGINT, slug STRING) USING csv OPTIONS (path 'found');
        INSERT INTO found SELECT twice(id), slug(name) FROM src;
        """
    run(text, checkpoints=f"file:{tmp_path}/checkpoints")
    assert rows(tmp_path) == ["0,a-b", "2,a-b"]


def test_two_inserts_into_one_place_are_compared_with_their_types(
    run: Run, tmp_path: Path, module: Path
) -> None:
    insert = "INSERT INTO found SELECT {}(id) AS n FROM orders;"
    functions = declared(module.stem, "twice", "divide", "slug")
    run(f"{functions}{TABLES}{FOUND}{insert.format('twice')}{insert.format('divide')}")
    assert len(rows(tmp_path)) == 6


def test_explain_knows_their_types_and_calls_none(spark: SparkSession, tmp_path: Path, module: Path) -> None:
    insert = "INSERT OVERWRITE found SELECT divide(id - 1) AS n, slug(name) AS s FROM orders;"
    text = f"{declared(module.stem, 'divide', 'slug')}{TABLES}{FOUND}{insert}"
    report = analyse_script(spark, plan_of(text, tmp_path, module))
    assert report["errors"] == []
    [insert] = report["statements"]
    assert [(column["name"], column["type"]) for column in insert["columns"]] == [
        ("n", "BIGINT"),
        ("s", "STRING"),
    ]
    broken = plan_of(text, tmp_path, module)
    broken["steps"][1]["attribute"] = "nothing"
    report = analyse_script(spark, broken)
    assert [error["line"] for error in report["errors"]] == [2], "no error follows from the first"
    assert report["statements"][0]["skipped"] == "function 'slug' has an error"


def test_preview_loads_the_functions_that_a_name_needs(
    spark: SparkSession, tmp_path: Path, module: Path
) -> None:
    text = f"""{declared(module.stem, "slug", "twice")}{TABLES}
        CREATE VIEW a AS SELECT slug(name) AS s FROM orders WHERE id = 1;
        CREATE VIEW b AS SELECT concat(s, '!') AS t FROM a;
        CREATE VIEW c AS SELECT twice(id) AS n FROM orders;"""
    plan = plan_of(text, tmp_path, module)
    plan["steps"][1]["module"] = "no_such_module"
    assert preview(spark, plan, "b", 5, 40)["rows"] == [["ann-b!"]]
    with pytest.raises(SqlError, match="no module 'no_such_module'"):
        preview(spark, plan, "c", 5, 40)


def test_functions_of_the_platform_come_from_the_worker(run: Run, tmp_path: Path, module: Path) -> None:
    text = f"{TABLES}{FOUND}INSERT OVERWRITE found SELECT make_slug(name) AS a FROM orders WHERE id = 3;"
    with pytest.raises(SqlError, match="UNRESOLVED_ROUTINE"):
        run(text)
    run(text, functions={"make_slug": f"{module.stem}:slug"})
    assert rows(tmp_path) == ["bob"]
    with pytest.raises(
        SqlError, match=r"function 'make_slug' of the platform: module '\w+' has no function 'nix'"
    ):
        run(text, functions={"make_slug": f"{module.stem}:nix"})


def test_a_shared_jvm_gets_no_functions(spark: SparkSession, tmp_path: Path, module: Path) -> None:
    plan = plan_of(f"{declared(module.stem, 'slug')} SELECT slug('a');", tmp_path, module)
    assert plan["needs_own_jvm"]
    for each in (plan, plan_of("SELECT 1;", tmp_path) | {"functions": {"a": "b:c"}}):
        with pytest.raises(SqlError, match="may not run in a JVM that other jobs use"):
            execute(spark, each, lambda _phase: None, shares_jvm=True)
