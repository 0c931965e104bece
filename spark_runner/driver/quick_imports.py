"""Avoids imports of PySpark that few drivers need: they cost a second of processor time at each start."""

import os
import sys
from collections.abc import Callable, MutableSequence
from pathlib import Path
from typing import Any


def prepare_imports() -> None:
    """Apply both measures to a program that Spark has just started."""
    prefer_installed_pyspark(sys.path, os.environ.get("SPARK_HOME", ""))
    defer_pandas()


def prefer_installed_pyspark(path: MutableSequence[str], spark_home: str) -> None:
    """Import PySpark from its installation instead of the zip that Spark puts before it.

    Both hold the same package, but Python compiles modules of a zip in each process again. Without such an
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
        # py4j beside that PySpark was installed for it.
        if found is not None and found.with_name("pyspark").resolve() == home:
            path.remove(entry)


def defer_pandas() -> None:
    """Keep PySpark from importing pandas to recognise NumPy values in a driver that has none.

    PySpark checks each argument of a call into the JVM, with a module that loads pandas, PyArrow and more.
    Values of classes that have no base of NumPy are none of its values.
    """
    from pyspark.sql import types  # noqa: PLC0415 - its path is chosen after the import of this module

    for name in ("NumpyScalarConverter", "NumpyArrayConverter"):
        converter = getattr(types, name, None)
        if converter is not None:
            converter.can_convert = _if_of_numpy(converter.can_convert)


def _if_of_numpy(can_convert: Callable[[Any, Any], bool]) -> Callable[[Any, Any], bool]:
    def asked(converter: Any, value: Any) -> bool:
        return any(_is_of_numpy(each) for each in type(value).__mro__) and can_convert(converter, value)

    return asked


def _is_of_numpy(kind: type) -> bool:
    return kind.__module__.partition(".")[0] == "numpy"
