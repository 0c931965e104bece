"""Turns a definition into the program of a driver. The submitting process compiles it, once per job.

A worker only combines the stored parts. It parses no script and no program in its own process.
"""

import ast
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from orchestrator.logs.record.redaction import REDACTOR, secrets_in
from orchestrator.logs.visible import visible
from orchestrator.model.checkpoint import check_checkpoint
from orchestrator.model.definition import Definition
from orchestrator.model.errors import DefinitionError
from queues import decode, encode
from spark_runner.protocol.run_plan import JarProgram, Program, PythonProgram, SqlProgram
from spark_runner.references.reference import InvalidReference, Reference, from_json, references_in
from spark_runner.sql.compiler.compile import Check, check_script
from spark_runner.sql.compiler.connections import FindConnection
from spark_runner.sql.compiler.python_files import PythonFiles
from spark_runner.sql.compiler.steps import OLDEST_PLAN_VERSION, PLAN_VERSION
from spark_runner.sql.text.source import ScriptSource

Plan = Mapping[str, Any]
"""A compiled SQL script without its text, as JSON: its steps, with positions in that text."""

MAX_PLAN_BYTES = 256 * 1024  # it is part of the multi that enqueues the job, as is the definition
_NODE = "plan"
_PY_FILES = "spark.submit.pyFiles"
_IN_DEFINITION = ("file", "source", "directory")


def plan_path(record_path: str) -> str:
    """The compiled plan of a SQL script, created with the job; JSON of its steps, without the script."""
    return f"{record_path}/{_NODE}"


def compile_program(definition: Definition, connections: FindConnection | None = None) -> Plan | None:
    """The plan of a SQL script; None for a program, which is only checked. `connections` finds named ones.

    Raises SqlError or DefinitionError with the position of the error.
    """
    if definition.python:
        _check_python(definition)
    if not definition.script:
        check_checkpoint(definition, None)
        return None
    found = check_sql(definition, _file(definition), connections)
    if found.plan is None:
        raise found.error()
    check_checkpoint(definition, found.plan)
    return found.plan


def check_sql(
    definition: Definition,
    file: str,
    connections: FindConnection | None = None,
    *,
    only_declares: bool = False,
) -> Check:
    """Check the script of a definition; errors show the name `file`. The plan has no text of the script.

    `only_declares`: the script may have nothing to do.
    """
    text = definition.script
    found = check_script(
        text,
        file=file,
        base_dir=definition.directory,
        variables=definition.variables,
        only_declares=only_declares,
        connections=connections,
        python_files=_python_files(definition),
    )
    if found.plan is None:
        return found
    kept = {name: value for name, value in found.plan.items() if name not in _IN_DEFINITION}
    if (size := len(encode_plan(kept))) > MAX_PLAN_BYTES:
        message = (
            f"the compiled script is {size:,} bytes, the limit is {MAX_PLAN_BYTES:,}; "
            "split it into several jobs, or let it read long values from files"
        )
        return Check(None, (ScriptSource(file, text).error(message, 0),))
    return replace(found, plan=kept)


def _python_files(definition: Definition) -> PythonFiles:
    """The Python files of a definition; files that `conf` names are not looked into."""
    own = definition.spark
    return PythonFiles(() if _PY_FILES in own.conf else own.py_files, definition.directory)


def encode_plan(plan: Plan) -> bytes:
    """The contents of the node of a plan."""
    return encode(dict(plan))


def decode_plan(data: bytes) -> Plan:
    """The plan in these bytes, which another program may have written; raises DefinitionError."""
    if len(data) > MAX_PLAN_BYTES:
        raise DefinitionError(f"its plan is {len(data):,} bytes, the limit is {MAX_PLAN_BYTES:,}")
    try:
        plan = decode(data)
    except ValueError as error:
        raise DefinitionError(f"its plan cannot be read: {error}; submit the job again") from error
    _check_shape(plan)
    return plan


def program_of(definition: Definition, plan: Plan | None) -> Program:
    """The program for the driver; raises DefinitionError for a script without a plan of this version."""
    if definition.python:
        return PythonProgram(_file(definition), definition.python, tuple(definition.arguments))
    if definition.jar:
        return JarProgram(definition.main_class, tuple(definition.arguments))
    if plan is None:
        raise DefinitionError(
            "its script has no plan, because an older version submitted it; submit the job again"
        )
    _check_shape(plan)
    return SqlProgram(with_text(definition, plan))


def with_text(definition: Definition, plan: Plan, file: str = "") -> dict[str, Any]:
    """A plan with the text of its script; errors show the name `file`, or that of the definition."""
    text = {"file": file or _file(definition), "source": definition.script, "directory": definition.directory}
    return {**plan, **text}


def mode_of(plan: Plan | None) -> str:
    """The mode of a script that reads streams; empty for other scripts, and for programs."""
    mode = None if plan is None else plan.get("mode")
    return mode if isinstance(mode, str) else ""


def trigger_seconds_of(plan: Plan | None) -> float:
    """The seconds between two micro-batches of a script of mode `streaming`; 0 for others."""
    interval = None if plan is None else plan.get("trigger_ms")
    return interval / 1000 if isinstance(interval, int) else 0.0


def plan_references(plan: Plan | None) -> list[Reference]:
    """The references in a plan, each once; raises DefinitionError where they are damaged."""
    found = dict[Reference, None]()
    for step in () if plan is None else plan["steps"]:
        referring = step.get("references") or {}
        try:
            pieces = [from_json(each) for each in referring.values()]
        except (InvalidReference, AttributeError) as error:
            raise DefinitionError(f"the references of its plan cannot be read: {error}") from error
        found |= dict.fromkeys(reference for each in pieces for reference in references_in(each))
    return list(found)


def called_functions(plan: Plan | None) -> list[str]:
    """The functions of a plan that Spark does not have; raises DefinitionError where they are damaged."""
    found = [] if plan is None else plan.get("calls", [])
    if not isinstance(found, list) or not all(isinstance(name, str) for name in found):
        raise DefinitionError("the `calls` of its plan cannot be read; submit the job again")
    return found


def _check_shape(plan: Plan) -> None:
    if plan.get("version") not in range(OLDEST_PLAN_VERSION, PLAN_VERSION + 1):
        raise DefinitionError(
            f"its plan has version {str(plan.get('version'))[:20]}, this worker runs versions "
            f"{OLDEST_PLAN_VERSION} to {PLAN_VERSION}; submit the job again, with the version of the workers"
        )
    shapes = (
        *(("names_files", bool), ("needs_own_jvm", bool)),
        *(("formats", list), ("values", list), ("steps", list)),
    )
    for name, shape in shapes:
        if not isinstance(plan.get(name), shape):
            raise DefinitionError(f"its plan has no {name!r}; submit the job again")
    if not all(isinstance(step, dict) for step in plan["steps"]):
        raise DefinitionError("its plan has a step that is not a JSON object; submit the job again")
    for step in plan["steps"]:
        if step.get("kind") == "table":
            for name, kind in (("name", str), ("connector", str), ("options", dict)):
                if not isinstance(step.get(name), kind):
                    raise DefinitionError(f"its plan has a table without {name!r}; submit the job again")


def _file(definition: Definition) -> str:
    return definition.file or f"{definition.name}.{'py' if definition.python else 'sql'}"


def _check_python(definition: Definition) -> None:
    file = _file(definition)
    try:
        ast.parse(definition.python, file)
    except SyntaxError as error:
        place = f"{file}:{error.lineno}:{error.offset}"
        raise DefinitionError(f"{place}: {error.msg}\n  {(error.text or '').rstrip()[:200]}") from error
    except ValueError as error:
        raise DefinitionError(f"{file}: {error}") from error
    except (RecursionError, MemoryError) as error:
        raise DefinitionError(f"{file}: nested too deeply for Python") from error


_MOST = 5


def literal_secrets(definition: Definition, plan: Plan | None) -> list[str]:
    """The names of the fields of a definition that contain secrets; `plan` is that of a SQL script."""
    settings = {"variables": definition.variables, "spark.conf": definition.spark.conf}
    found = [
        f"{field}.{name}"
        for field, named in settings.items()
        for name, value in named.items()
        if secrets_in({name: value})
    ]
    for step in () if plan is None else plan["steps"]:
        options = {name: str(value) for name, value in (step.get("options") or {}).items() if value}
        found += [f"{step['name']}.{name}" for name in options if secrets_in({name: options[name]})]
    # Texts of programs are left out: code that reads a secret looks like code that contains it.
    url = definition.callback.url
    found += ["callback.url"] if REDACTOR.mask(url) != url else []
    arguments = list(definition.arguments)
    found += ["arguments"] if REDACTOR.document(arguments) != arguments else []
    return found


def warning(names: list[str]) -> str:
    """The warning for the submitting user, who may not be the author."""
    shown = ", ".join(names[:_MOST]) + (f" and {len(names) - _MOST} more" if len(names) > _MOST else "")
    return (
        f"{visible(shown)} of the definition seems to hold a secret, which all readers of ZooKeeper can see; "
        "let the driver read it from its environment or from a file"
    )
