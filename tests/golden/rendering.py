"""Renders what the splitter and the compiler make of a script: a line for each statement, step or message."""

import json
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from spark_runner.sql.compiler.compile import check_script
from spark_runner.sql.grammar.parser import parse
from spark_runner.sql.text.built_ins import readable
from spark_runner.sql.text.errors import SqlError
from spark_runner.sql.text.passage import Passage
from spark_runner.sql.text.source import ScriptSource
from spark_runner.sql.text.tokens import split
from spark_runner.sql.text.variables import expand
from tests.golden.cases import Case, shown

_PASSAGES = ("query", "condition", "columns", "expression", "type", "returns", "statement")
_USUAL = {  # of tables: left out, so that the lines stay short
    "mode": "append",
    "partition_by": [],
    "compression": "none",
    "header": True,
    "delimiter": ",",
    "null_value": "",
}


def statements(case: Case) -> Iterator[str]:
    """The position, the kind and the text of each statement that the splitter finds, or its error."""
    source = ScriptSource("s.sql", case.text)
    try:
        for tokens in split(source):
            yield _statement(source, Passage.verbatim(source, tokens), case, tokens)
    except SqlError as error:
        yield _message("error", error)


def _statement(source: ScriptSource, passage: Passage, case: Case, tokens: Sequence[Any]) -> str:
    try:
        kind = type(parse(expand(source, tokens, case.variables))).__name__
    except SqlError:
        kind = "invalid"  # the cases of the compiler show why
    line, column = passage.position()
    return f"{line}:{column} {kind} | {shown(passage.text)}"


def compiled(case: Case) -> Iterator[str]:
    """The plan and the warnings, or the errors."""
    check = check_script(case.text, file="s.sql", base_dir="/base", variables=case.variables)
    if check.plan is not None:
        yield _plan(check.plan)
        source = ScriptSource("s.sql", case.text)
        for step in check.plan["steps"]:
            yield _step(source, check.plan["values"], step)
    for error in check.errors:
        yield _message("error", error)
    for warning in check.warnings:
        yield _message("warning", warning)


def _message(what: str, error: SqlError) -> str:
    return f"{what} {error.line}:{error.column} {shown(error.message)}"


def _plan(plan: Mapping[str, Any]) -> str:
    flags = [name for name in ("names_files", "names_catalogs", "needs_own_jvm") if plan[name]]
    modes = [f"{name}={plan[name]}" for name in ("mode", "trigger_ms") if name in plan]
    calls = [f"calls={','.join(plan['calls'])}"] if "calls" in plan else []
    return " ".join([f"plan {plan['version']}", *modes, *flags, *plan["formats"], *calls])


def _step(source: ScriptSource, values: Sequence[str], step: Mapping[str, Any]) -> str:
    facts = {key: value for key, value in step.items() if key not in {"kind", "line", "column"}}
    texts = [_fact(source, values, key, value) for key, value in facts.items()]
    return " ".join([f"{step['line']}:{step['column']} {step['kind']}", *filter(None, texts)])


def _fact(source: ScriptSource, values: Sequence[str], key: str, value: Any) -> str:
    if value is None or value is False or value in ("", []):
        return ""
    if value is True:
        return key
    if key == "options" and "path" in value:
        return _fact(source, values, "with", {k: v for k, v in value.items() if v != _USUAL.get(k)})
    if key in {"location", "path_at"}:
        return ""  # the first is equal to the path in the options, where the second points to
    return f"{key}={_value(source, values, key, value)}"


def _value(source: ScriptSource, values: Sequence[str], key: str, value: Any) -> str:
    if key in _PASSAGES and isinstance(value, list):
        passage = Passage.from_json(source, value, values)
        line, column = passage.position()
        return f"{line}:{column}[{shown(readable(passage.text))}]"
    if isinstance(value, Mapping):
        parts = (
            f"{name}: {_value(source, values, name, each)}"
            for name, each in value.items()
            if each is not None
        )
        return "{" + ", ".join(parts) + "}"
    if isinstance(value, list) and value and isinstance(value[0], Mapping):
        return "; ".join(_value(source, values, key, each) for each in value)
    return shown(readable(value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)))


RENDERERS = {"splitter": statements, "compiler": compiled}
