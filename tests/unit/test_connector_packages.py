"""Connectors of other packages: their options, their parts in a plan, and what travels with a job."""

import json
import re
import sys
import zipfile
from pathlib import Path
from typing import Any

import pytest

from orchestrator.model.definition import build_definition
from orchestrator.model.errors import DefinitionError
from orchestrator.model.plan import compile_program
from spark_runner.connectors.errors import ConnectorError
from spark_runner.connectors.options import Guarantee, options_of
from spark_runner.connectors.parts import Parts
from spark_runner.connectors.registry import Connector, find, load, names
from spark_runner.protocol.errors import SubmissionError
from spark_runner.runners.base import SubmitRequest
from spark_runner.runners.driver_zip import driver_zip
from spark_runner.runners.installation import SparkInstallation
from spark_runner.sql.compiler.compile import check_script
from tests.connector_support import install_example
from tests.unit.test_submit_request import request_with_jars

SCRIPT = (
    "CREATE TABLE a (n INT) USING records OPTIONS (url 'http://127.0.0.1/a');"
    "CREATE TABLE b USING records OPTIONS (url 'http://127.0.0.1/b');"
    "INSERT INTO b SELECT n FROM a;"
)


@pytest.fixture
def site(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    folder = tmp_path / "site"
    folder.mkdir()
    install_example(folder, monkeypatch)
    return folder


def errors(script: str) -> list[str]:
    return [error.message for error in check_script(script, file="s.sql", base_dir="/b", variables={}).errors]


def submitted(folder: Path, jars: dict[str, tuple[str, ...]] | None = None) -> SubmitRequest:
    return request_with_jars(jars or {}, folder, {"packages": ["org.own:own:1"]}, script=SCRIPT)


@pytest.mark.usefixtures("site")
def test_the_compiler_checks_its_options_and_loads_neither_source_nor_sink() -> None:
    assert "records" in names()
    assert errors(SCRIPT) == []
    assert errors("CREATE TABLE a USING recods OPTIONS (url 'x'); TABLE a;") == [
        "unknown connector 'recods'; did you mean 'records'?"
    ]
    assert "did you mean 'url'?" in errors("CREATE TABLE a USING records OPTIONS (ur 'x'); TABLE a;")[0]
    assert "'ftp://x'" in errors("CREATE TABLE a USING records OPTIONS (url 'ftp://x'); TABLE a;")[0]
    assert errors(SCRIPT.replace("INSERT INTO", "INSERT OVERWRITE")) == [
        "connector 'records' can only add rows; write INSERT INTO"
    ]
    same = SCRIPT.replace("/b'", "/a'")
    assert "reads 'a' from the path it writes to" in errors(same)[0], "place() is compared"
    assert not {"http_rows.source", "http_rows.sink"} & sys.modules.keys()
    assert options_of("records").model_construct().guarantee(has_primary_key=False) is Guarantee.AT_LEAST_ONCE


@pytest.mark.usefixtures("site")
def test_a_worker_gives_the_driver_its_parts_and_its_packages(tmp_path: Path) -> None:
    made = submitted(tmp_path)
    given = made.plan["sql"]["connectors"]
    assert given == {"records": {"source": "http_rows.source:HttpSource", "sink": "http_rows.sink:HttpSink"}}
    assert made.python_packages == ("http_rows",)
    parts = Parts(json.loads(json.dumps(given)))
    assert callable(parts.source("records").read)
    assert callable(parts.sink("records").write)
    assert not parts.writes_files("records")


def test_the_worker_decides_what_a_connector_is_and_not_the_plan(tmp_path: Path, site: Path) -> None:
    assert site
    definition = build_definition({"name": "j", "script": SCRIPT, "directory": str(tmp_path)}, "test")
    plan: Any = compile_program(definition)
    evil = {**plan, "connectors": {"records": {"source": "os:system", "sink": "os:system"}}}
    made = request_with_jars({}, tmp_path, {}, script=SCRIPT, plan=evil)
    assert made.plan["sql"]["connectors"]["records"]["sink"] == "http_rows.sink:HttpSink"


def test_a_worker_without_the_package_fails_the_job_in_words(
    tmp_path: Path, site: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    definition = build_definition({"name": "j", "script": SCRIPT, "directory": str(tmp_path)}, "test")
    plan = compile_program(definition)
    monkeypatch.setattr(sys, "path", [entry for entry in sys.path if entry != str(site)])
    with pytest.raises(DefinitionError, match="connector 'records' is not installed here"):
        request_with_jars({}, tmp_path, {}, script=SCRIPT, plan=plan)


def test_its_packages_are_fetched_or_replaced_by_jars_of_the_operator(
    tmp_path: Path, site: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    own = Connector("http_rows.options:HttpOptions", "http_rows.source:HttpSource", packages=("org.x:y:1",))
    (site / "http_rows" / "__init__.py").write_text(
        f"from spark_runner.connectors.registry import Connector\nCONNECTOR = {own!r}\n", "utf-8"
    )
    monkeypatch.delitem(sys.modules, "http_rows", raising=False)
    script = "CREATE TABLE a (n INT) USING records OPTIONS (url 'http://127.0.0.1/a'); TABLE a;"
    made = request_with_jars({}, tmp_path, {"packages": ["org.own:own:1"]}, script=script)
    assert made.conf["spark.jars.packages"] == "org.own:own:1,org.x:y:1"
    assert not made.is_warm, "its jars are of one job"
    (tmp_path / "y.jar").touch()
    replaced = request_with_jars({"records": (str(tmp_path / "y.jar"),)}, tmp_path, {}, script=script)
    assert "spark.jars.packages" not in replaced.conf
    assert replaced.conf["spark.jars"] == str(tmp_path / "y.jar")


@pytest.mark.parametrize(("version", "module"), [("4.0.5", "4.0.0"), ("4.1.4", "4.1.1"), ("4.2.1", "4.2.0")])
def test_modules_of_spark_are_those_for_the_spark_of_the_pool(
    tmp_path: Path, version: str, module: str
) -> None:
    installation = SparkInstallation("/opt/spark", version)
    script = "CREATE TABLE a (n INT) USING kafka OPTIONS (topic 't', bootstrap_servers 'b:1'); TABLE a;"
    script = f"SET job.mode = 'batch'; {script}"
    made = request_with_jars({}, tmp_path, {}, script=script, installation=installation)
    kafka = "org.apache.spark:spark-sql-kafka-0-10_2.13"
    assert f"{kafka}:{module}" in made.conf["spark.jars.packages"].split(",")


def test_a_pool_with_a_spark_without_such_a_module_fails_the_job_in_words(tmp_path: Path) -> None:
    installation = SparkInstallation("/opt/spark", "4.3.0")
    script = "CREATE TABLE a (n INT) USING kafka OPTIONS (topic 't', bootstrap_servers 'b:1'); TABLE a;"
    with pytest.raises(DefinitionError, match=r"has no version for Spark 4\.3\.0; use Spark 4\.0,"):
        request_with_jars(
            {}, tmp_path, {}, script=f"SET job.mode = 'batch'; {script}", installation=installation
        )


def test_the_zip_of_the_driver_holds_its_files(tmp_path: Path, site: Path) -> None:
    (site / "http_rows" / "words.txt").write_text("x", "utf-8")
    (site / "one_module.py").write_text("x = 1", "utf-8")
    made = driver_zip(tmp_path / "zips", ("http_rows", "one_module", "spark_runner"))
    with zipfile.ZipFile(made) as archive:
        found = set(archive.namelist())
    assert {"http_rows/sink.py", "http_rows/words.txt", "one_module.py"} <= found
    assert "spark_runner/connectors/python_source.py" in found
    assert not [name for name in found if name.startswith("spark_runner/runners/")]
    assert made != driver_zip(tmp_path / "zips"), "a zip for each set of packages"


def test_a_package_that_cannot_travel_is_refused(tmp_path: Path, site: Path) -> None:
    with pytest.raises(SubmissionError, match="no_such_package of a connector or function is not installed"):
        driver_zip(tmp_path / "zips", ("no_such_package",))
    (site / "http_rows" / "fast.cpython-311-x86_64-linux-gnu.so").touch()
    with pytest.raises(SubmissionError, match=r"has compiled modules \(fast\.cpython"):
        driver_zip(tmp_path / "zips", ("http_rows",))
    (site / "http_rows" / "fast.cpython-311-x86_64-linux-gnu.so").unlink()
    large = site / "http_rows" / "large.bin"
    with large.open("wb") as file:
        file.truncate(65 * 1024 * 1024)
    with pytest.raises(SubmissionError, match="has more than 64 MiB"):
        driver_zip(tmp_path / "zips", ("http_rows",))
    large.unlink()
    (tmp_path / "password").write_text("x", "utf-8")
    (site / "http_rows" / "link.txt").symlink_to(tmp_path / "password")
    with pytest.raises(SubmissionError, match=r"link\.txt of .* is a link to a file elsewhere"):
        driver_zip(tmp_path / "zips", ("http_rows",))


def test_a_broken_package_is_an_error_of_its_table_alone(site: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (site / "http_rows" / "options.py").write_text("import no_such_module", "utf-8")
    said = errors("CREATE TABLE a USING records OPTIONS (url 'x'); CREATE TABLE b USING csvv; TABLE a;")
    assert "http_rows.options:HttpOptions cannot be loaded: ModuleNotFoundError" in said[0]
    assert "did you mean 'csv'" in said[1]
    (site / "http_rows" / "__init__.py").write_text("CONNECTOR = 1", "utf-8")
    monkeypatch.delitem(sys.modules, "http_rows", raising=False)
    with pytest.raises(ConnectorError, match="http_rows:CONNECTOR is a int, not a Connector"):
        find("records")


@pytest.mark.parametrize(
    ("module", "said"),
    [
        ("raise SystemExit(3)", "http_rows:CONNECTOR cannot be loaded: 3"),
        ("{made}('m:o', modules='acme')", "`modules` is not a tuple of texts"),
        ("{made}('m:o', packages='g:a:1')", "`packages` is not a tuple of texts"),
        ("{made}('m:o', source=print)", "`source` is not a text 'module:attribute'"),
    ],
)
def test_a_wrong_package_ends_no_process_and_names_what_is_wrong(
    site: Path, monkeypatch: pytest.MonkeyPatch, module: str, said: str
) -> None:
    made = module.replace("{made}", "import spark_runner.connectors.registry as r\nCONNECTOR = r.Connector")
    (site / "http_rows" / "__init__.py").write_text(made, "utf-8")
    monkeypatch.delitem(sys.modules, "http_rows", raising=False)
    with pytest.raises(ConnectorError, match=re.escape(said)):
        find("records")


def test_a_part_whose_module_ends_the_process_is_an_error(
    site: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (site / "http_rows" / "source.py").write_text("raise SystemExit(3)", "utf-8")
    monkeypatch.delitem(sys.modules, "http_rows.source", raising=False)
    with pytest.raises(ConnectorError, match=r"http_rows.source:HttpSource cannot be loaded: SystemExit: 3"):
        load("http_rows.source:HttpSource")


@pytest.mark.parametrize("package", ["sys", "../x", "no_such_package.inner", ".x"])
def test_what_is_no_package_of_files_is_refused_in_words(tmp_path: Path, package: str) -> None:
    with pytest.raises(SubmissionError, match="of a connector or function is not installed on this host"):
        driver_zip(tmp_path / "zips", (package,))


def test_a_package_does_not_replace_a_built_in_connector(site: Path) -> None:
    points = site / "http_rows-1.0.dist-info" / "entry_points.txt"
    points.write_text("[spark_job_orchestrator.connectors]\ncsv = http_rows:CONNECTOR\n", "utf-8")
    found = find("csv")
    assert found is not None
    assert found.source == "spark_runner.connectors.files.source:CsvSource"
