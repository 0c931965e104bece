"""The zip for the nodes of a cluster: a driver needs nothing else of this package."""

import importlib.util
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest

from spark_runner.protocol.errors import SubmissionError
from spark_runner.runners.driver_zip import driver_zip, zip_bytes

_MAX_BYTES = 768 * 1024  # a secret of Kubernetes holds 1 MiB, also the program that starts the driver


def test_the_driver_imports_from_the_zip_and_pyspark_alone(tmp_path: Path) -> None:
    made = driver_zip(tmp_path / "cache")
    pyspark = importlib.util.find_spec("pyspark")
    assert pyspark is not None
    assert pyspark.origin is not None
    home = Path(pyspark.origin).parent
    py4j = next(home.glob("python/lib/py4j-*.zip"))
    (tmp_path / "only").mkdir()
    (tmp_path / "only" / "pyspark").symlink_to(home)
    program = f"""
import sys
sys.path[:] = [{str(made)!r}, {str(tmp_path / "only")!r}, {str(py4j)!r}] + sys.path
import spark_runner.driver.driver, spark_runner.driver.driver_main, queues.session, puresasl
assert spark_runner.driver.driver.__file__.startswith({str(made)!r}), spark_runner.driver.driver.__file__
assert "orchestrator.logs.record" not in sys.modules, "masking is loaded when it is needed"
from spark_runner.protocol.redacted import add_secrets, redacted
add_secrets(["hunter22"])
assert redacted({{"a": "it is hunter22, password=x"}}) == {{"a": "it is ***, password=***"}}
assert sys.modules["orchestrator"].__file__.startswith({str(made)!r}), sys.modules["orchestrator"].__file__
strangers = sorted(
    name for name, module in sys.modules.items()
    if "site-packages" in (getattr(module, "__file__", None) or "") and not name.startswith("py4j")
)
assert not strangers, strangers
"""
    # -I -S: neither this checkout nor the installed packages are on the path.
    ran = subprocess.run(
        [sys.executable, "-I", "-S", "-c", program], capture_output=True, text=True, check=False
    )
    assert ran.returncode == 0, ran.stderr


def test_elasticsearch_runs_from_the_zip_with_urllib3_alone(tmp_path: Path) -> None:
    made = driver_zip(tmp_path / "cache", ("urllib3",))
    program = f"""
import sys
sys.path[:] = [{str(made)!r}] + sys.path
import spark_runner.connectors.elasticsearch.bulk, urllib3
assert urllib3.__file__.startswith({str(made)!r}), urllib3.__file__
"""
    ran = subprocess.run(
        [sys.executable, "-I", "-S", "-c", program], capture_output=True, text=True, check=False
    )
    assert ran.returncode == 0, ran.stderr


def test_it_is_small_and_has_nothing_that_only_workers_need() -> None:
    assert len(zip_bytes()) < _MAX_BYTES


def test_the_zip_is_made_once_and_its_name_depends_on_its_content(tmp_path: Path) -> None:
    made = driver_zip(tmp_path / "cache")
    before = made.stat()
    driver_zip.cache_clear()
    assert driver_zip(tmp_path / "cache") == made
    assert made.stat() == before
    assert [path.name for path in made.parent.iterdir()] == [made.name]
    with zipfile.ZipFile(made) as archive:
        assert archive.testzip() is None
        assert {Path(name).suffix for name in archive.namelist()} == {".py"}
        assert not [
            name for name in archive.namelist() if name.startswith(("spark_runner/runners/", "kazoo/tests/"))
        ]


def test_a_folder_that_cannot_be_written_is_named(tmp_path: Path) -> None:
    (tmp_path / "cache").write_text("a file")
    with pytest.raises(SubmissionError, match="cache"):
        driver_zip(tmp_path / "cache")
