"""Functions in Python for the queries of a script; Spark hands them the rows in batches of Arrow.

A function gets the values of one row and returns one value. A function whose annotations are
`pyarrow.Array` gets the values of many rows as arrays, and returns an array. Neither needs pandas, which the
decorators of PySpark need for the first kind: so the functions are made without them.
"""

import importlib
import importlib.util
import sysconfig
import typing
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

import pyspark
from pyspark.sql import SparkSession
from pyspark.sql.types import DataType
from pyspark.sql.udf import UserDefinedFunction
from pyspark.util import PythonEvalType

from spark_runner.protocol.errors import SparkRunnerError
from spark_runner.sql.execution.function_types import is_arrow, type_of
from spark_runner.sql.python_modules import is_of_files, refused

_FOLDERS = [sysconfig.get_paths()[name] for name in ("stdlib", "platstdlib", "purelib", "platlib")]
_OF_MODULES = (Exception, SystemExit, KeyboardInterrupt)
"""What the code of a module may raise: it ends the loading of its function, and not the driver."""

_INSTALLED = tuple(Path(folder).resolve() for folder in (*_FOLDERS, str(Path(pyspark.__file__).parent)))
"""The folders of Python and of its packages: no Python file of a job is there."""


class FunctionError(SparkRunnerError):
    """A function cannot be loaded; the message names its module and what to do."""


class NoType(FunctionError):
    """A function declares no type for its result, or one that Spark does not have."""


def load_of_job(module: str, attribute: str, files: Iterable[str]) -> Callable[..., Any]:
    """The function in one of the Python files of the job, which have these names; raises FunctionError."""
    names = tuple(files)
    if why := refused(module):
        raise FunctionError(why)
    _check_origin(module.partition(".")[0], names)
    found = _imported(module)
    _check_origin(module, names)
    return _function(found, module, attribute)


def load_of_platform(target: str) -> Callable[..., Any]:
    """The function that the platform offers as "module:attribute"; raises FunctionError."""
    module, _, attribute = target.partition(":")
    return _function(_imported(module), module, attribute)


def register(
    session: SparkSession, name: str, function: Callable[..., Any], returns: DataType | None
) -> None:
    """Give a session the function, with the type of its annotations unless `returns` is another one.

    Raises FunctionError, and NoType without any type.
    """
    if importlib.util.find_spec("pyarrow") is None:
        raise FunctionError("functions need pyarrow in the Python of the driver and of the executors")
    hints = _hints(function)
    try:
        kind = returns or type_of(hints.get("return"))
    except TypeError as error:
        raise NoType(str(error)) from error
    takes_arrays = any(map(is_arrow, hints.values()))
    evaluation = PythonEvalType.SQL_SCALAR_ARROW_UDF if takes_arrays else PythonEvalType.SQL_ARROW_BATCHED_UDF
    # Other functions would stop most optimizations of Spark; docs/functions.md says what this one may do.
    made = UserDefinedFunction(function, kind, name, evalType=evaluation, deterministic=True)
    session.udf.register(name, made)


def _check_origin(module: str, names: Iterable[str]) -> None:
    """Raise FunctionError unless a module comes from one of these files."""
    try:
        found = importlib.util.find_spec(module)
    except (ImportError, ValueError):
        found = None
    if found is None:
        raise FunctionError(
            f"there is no module '{module}' in the Python files of the job; name its file in"
            " `spark.py_files` of the definition"
        )
    places = [found.origin] if found.origin else list(found.submodule_search_locations or ())
    for place in places:
        path = Path(place).resolve()
        if any(path.is_relative_to(folder) for folder in _INSTALLED) or not is_of_files(place, module, names):
            raise FunctionError(
                f"module '{module}' is not in a Python file of the job: Python finds it elsewhere; name its"
                " file in `spark.py_files` of the definition, or give it another name"
            )


def _imported(module: str) -> Any:
    try:
        return importlib.import_module(module)
    except _OF_MODULES as error:
        raise FunctionError(f"module '{module}' cannot be imported: {_described(error)}") from error


def _described(error: BaseException) -> str:
    trace, words = error.__traceback__, f"{type(error).__name__}: {error}"
    while trace is not None and trace.tb_next is not None:
        trace = trace.tb_next
    if trace is None or "importlib" in trace.tb_frame.f_code.co_filename:
        return words
    return f"{words} ({Path(trace.tb_frame.f_code.co_filename).name}, line {trace.tb_lineno})"


def _function(module: Any, name: str, attribute: str) -> Callable[..., Any]:
    found = getattr(module, attribute, None)
    if found is None:
        raise FunctionError(f"module '{name}' has no function '{attribute}'")
    if isinstance(found, type) or not callable(found):
        what = "a class" if isinstance(found, type) else f"a value of type {type(found).__name__}"
        raise FunctionError(f"'{attribute}' of module '{name}' is {what}, not a function")
    function: Callable[..., Any] = found
    return function


def _hints(function: Callable[..., Any]) -> dict[str, Any]:
    try:
        return typing.get_type_hints(function, include_extras=True)
    except TypeError:
        return {}  # no function of Python: it has no annotations
    except _OF_MODULES as error:  # any code may be in an annotation
        message = f"the annotations of the function cannot be read: {type(error).__name__}: {error}"
        raise FunctionError(message) from error
