"""What PySpark loads in every driver and few need: a second of processor time before a job begins."""

import os
import sys
from collections.abc import Callable, MutableSequence
from pathlib import Path
from typing import Any


def prepare_imports() -> None:
    """Do both, in a program that Spark has just started."""
    prefer_installed_pyspark(sys.path, os.environ.get("SPARK_HOME", ""))
    put_off_pandas()


def prefer_installed_pyspark(path: MutableSequence[str], spark_home: str) -> None:
    """Take PySpark from where it is installed, not from the zip that Spark puts before it.

    Both are of the same package, but what comes from a zip is compiled anew in each process. Without such an
    installation, as on the nodes of most clusters, the zip stays.
    """
    if not spark_home:
        return
    home = Path(spark_home).resolve()
    zips = [entry for entry in path if Path(entry).parent == Path(spark_home, "python", "lib")]
    roots = [Path(entry) for entry in path if entry and entry not in zips]
    for entry in zips:
        package = "pyspark" if Path(entry).name == "pyspark.zip" else "py4j"
        found = next((root / package for root in roots if (root / package / "__init__.py").is_file()), None)
        # py4j beside that very PySpark was installed for it.
        if found is not None and found.with_name("pyspark").resolve() == home:
            path.remove(entry)


def put_off_pandas() -> None:
    """Spare a driver that has nothing of NumPy all that PySpark imports to recognise it.

    PySpark asks at each call into the JVM, and the module that it asks loads pandas, PyArrow and more. As
    long as nobody has loaded NumPy, nothing can be of NumPy.
    """
    from pyspark.sql import types  # noqa: PLC0415 - this module is imported before it is known from where

    for name in ("NumpyScalarConverter", "NumpyArrayConverter"):
        converter = getattr(types, name, None)
        if converter is not None:
            converter.can_convert = _if_numpy_is_loaded(converter.can_convert)


def _if_numpy_is_loaded(can_convert: Callable[[Any, Any], bool]) -> Callable[[Any, Any], bool]:
    def asked(converter: Any, value: Any) -> bool:
        return "numpy" in sys.modules and can_convert(converter, value)

    return asked
