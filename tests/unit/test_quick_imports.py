import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

from spark_runner.driver.quick_imports import prefer_installed_pyspark
from spark_runner.runners.installation import installed_spark_home


def in_a_new_process(code: str) -> Any:
    start = "import json, sys\nfrom spark_runner.driver.quick_imports import defer_pandas\ndefer_pandas()\n"
    program = start + code
    done = subprocess.run(
        [sys.executable, "-W", "ignore", "-c", program], check=True, capture_output=True, env=os.environ
    )
    return json.loads(done.stdout)


def test_calls_into_the_jvm_load_no_pandas_and_still_know_arrays() -> None:
    code = """
from pyspark.sql.types import NumpyArrayConverter, NumpyScalarConverter
known = [NumpyArrayConverter().can_convert([1]), NumpyScalarConverter().can_convert(1)]
loaded = [name for name in ("pandas", "pyarrow") if name in sys.modules]
import numpy
known.append(NumpyArrayConverter().can_convert(numpy.array([1])))
known.append(NumpyScalarConverter().can_convert(numpy.int8(1)))
print(json.dumps([known, loaded]))
"""
    assert in_a_new_process(code) == [[False, False, True, True], []]


def test_an_installed_pyspark_goes_before_its_own_zip(tmp_path: Path) -> None:
    home = installed_spark_home()
    assert home is not None
    zips = [str(home / "python/lib/pyspark.zip"), str(home / "python/lib/py4j-0.10.9.9-src.zip")]
    path = ["/mine", *zips, str(tmp_path), str(home.parent)]
    prefer_installed_pyspark(path, str(home))
    assert path == ["/mine", str(tmp_path), str(home.parent)]


def test_the_zip_stays_where_no_such_pyspark_is_installed(tmp_path: Path) -> None:
    home = tmp_path / "spark"
    zips = [str(home / "python/lib/pyspark.zip"), str(home / "python/lib/py4j-0.10.9.9-src.zip")]
    another = installed_spark_home()
    assert another is not None
    for path in ([*zips, "/mine"], [*zips, str(another.parent)], ["/mine"]):
        before = list(path)
        prefer_installed_pyspark(path, str(home))
        prefer_installed_pyspark(path, "")
        assert path == before
