"""Whatever a caller gives to the library, it answers or raises an error of its own tree."""

import inspect
import traceback
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from datetime import UTC, datetime
from enum import Enum
from pathlib import Path
from types import NoneType, UnionType
from typing import Any, Literal, Union, get_args, get_origin, get_type_hints

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from orchestrator import Client, Definition, Error
from orchestrator.logs.reading.query import LogRecord
from orchestrator.model.limits import Limits
from spark_runner.protocol.text import shortened
from tests.operators_support import JOB, Stage

TEXTS = st.one_of(
    st.sampled_from(
        ["", ".", "..", "/", JOB, "test", "default", "a/b", "\0", "\ud800", "x" * 500, "a\nb", "é" * 300]
    ),
    st.text(max_size=20),
)
NUMBERS = st.one_of(st.integers(-5, 5), st.integers(), st.just(10**30))
FLOATS = st.one_of(st.floats(), st.floats(-10, 10))
TIMES = st.one_of(st.datetimes(), st.datetimes(timezones=st.just(UTC)), st.just(datetime(1, 1, 1)))  # noqa: DTZ001 - naive on purpose
AT_ONCE = st.sampled_from([0.0, -1.0, float("nan"), float("-inf"), 0.01, None])
DEFINITION = Definition(name="test", python="pass", directory="/")

EXAMPLES = 25

# Not for callers: they take the values of other calls, or the operations of a multi.
LEFT_OUT = {"enqueue", "rule_applied", "attempt", "progress", "progress_of", "monitor", "extra_operations"}
LEFT_OUT |= {"follow"}  # without end
LEFT_OUT |= {"config.on_change", "config.start", "config.stop", "doctor.fix", "tunings.add"}
LEFT_OUT |= {"connections.check", "connections.find"}  # of the compiler
LEFT_OUT |= {
    "schedules.read",
    "schedules.write",
    "schedules.unchanged",
    "schedules.note_manual",
    "schedules.still",
}  # of the leader


def values(kind: Any) -> st.SearchStrategy[Any]:
    """Values of an annotated type."""
    simple = {str: TEXTS, int: NUMBERS, float: FLOATS, bool: st.booleans(), NoneType: st.none()}
    simple |= {
        datetime: TIMES,
        Path: TEXTS.map(Path),
        Definition: st.just(DEFINITION),
        Any: st.one_of(TEXTS, NUMBERS, FLOATS),
    }
    arguments = get_args(kind)
    match get_origin(kind):
        case origin if origin in {Union, UnionType}:
            found = st.one_of(*map(values, arguments))
        case origin if origin is Literal:
            found = st.sampled_from(arguments)
        case origin if origin in {Collection, Sequence, Iterable, list, tuple}:
            found = st.lists(values(arguments[0]), max_size=3)
        case origin if origin in {Mapping, dict}:
            found = st.dictionaries(values(arguments[0]), values(arguments[1]), max_size=3)
        case origin if origin is Callable:
            found = st.just(lambda *_: None)
        case _ if isinstance(kind, type) and issubclass(kind, Enum):
            found = st.sampled_from(list(kind))
        case _:
            found = simple[kind]
    return found


def arguments_of(name: str, method: Callable[..., Any]) -> st.SearchStrategy[dict[str, Any]]:
    parameters = inspect.signature(method).parameters.values()
    hints = get_type_hints(method, localns={"LogRecord": LogRecord}) if parameters else {}
    given: dict[str, st.SearchStrategy[Any]] = {}
    optional: dict[str, st.SearchStrategy[Any]] = {}
    for parameter in parameters:
        if parameter.name in LEFT_OUT:
            continue
        if parameter.kind is parameter.VAR_KEYWORD:  # the limits of a pool, or of all workers
            known = {
                each: values(hints[parameter.name]) for each in [*Limits.model_fields, "weight", "cap", "x"]
            }
            optional |= known
            continue
        kind = AT_ONCE if parameter.name == "timeout" else values(hints[parameter.name])
        (given if parameter.default is parameter.empty else optional)[parameter.name] = kind
    if name in {"wait", "watch"}:  # not without end
        given["timeout"] = AT_ONCE.filter(lambda value: value is not None)
        optional.pop("timeout", None)
    return st.fixed_dictionaries(given, optional=optional)


def methods_of(client: Client) -> dict[str, Callable[..., Any]]:
    """The public methods of a client and of its parts."""
    found: dict[str, Callable[..., Any]] = {}
    for name in sorted({*vars(client), *vars(type(client))}):
        if name.startswith("_") or name in LEFT_OUT | {"connect", "close"}:
            continue
        value = getattr(client, name)
        parts = {f"{name}.{part}": method for part, method in inspect.getmembers(value, inspect.ismethod)}
        found |= {name: value} if inspect.ismethod(value) else parts
    return {
        name: method
        for name, method in found.items()
        if name not in LEFT_OUT and not name.rpartition(".")[2].startswith("_")
    }


def check(name: str, method: Callable[..., Any]) -> None:
    @settings(max_examples=EXAMPLES, deadline=None, database=None, suppress_health_check=list(HealthCheck))
    @given(arguments_of(name, method))
    def calls(arguments: dict[str, Any]) -> None:
        try:
            found = method(**arguments)
            if isinstance(found, Iterator):
                list(found)
        except Error:
            pass

    calls()


def test_no_call_raises_an_error_of_another_library(stage: Stage) -> None:
    methods = methods_of(stage.client)
    assert {"submit", "wait", "watch", "kill", "schedules.put", "config.change"} <= methods.keys()
    wrong = dict[str, str]()
    for name, method in methods.items():
        stage.put(job_id=f"job-{name}")
        try:
            check(name, method)
        except Exception as error:  # noqa: BLE001 - all are listed at the end
            at = traceback.extract_tb(error.__traceback__)[-1]
            notes = "; ".join(getattr(error, "__notes__", ()))
            wrong[name] = f"{type(error).__name__}: {error} in {at.filename}:{at.lineno}; {notes}"
    assert not wrong, "\n".join(f"{name}: {shortened(words, 600)}" for name, words in wrong.items())
