"""Compiles a script into a plan, which is JSON, and makes all checks that need no Spark.

The plan travels to the driver, where `spark_runner.sql.execution` runs it.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

from spark_runner.sql.compiler.connections import FindConnection
from spark_runner.sql.compiler.functions import Functions
from spark_runner.sql.compiler.modes import default_mode
from spark_runner.sql.compiler.names import Invalid
from spark_runner.sql.compiler.planner import Planner
from spark_runner.sql.compiler.python_files import PythonFiles
from spark_runner.sql.grammar.missing_ends import statements_in
from spark_runner.sql.grammar.parser import parse
from spark_runner.sql.grammar.statements import AnyStatement
from spark_runner.sql.text.errors import SqlError
from spark_runner.sql.text.passage import Passage
from spark_runner.sql.text.source import (
    MAX_EXPANDED_CHARACTERS,
    MAX_SCRIPT_CHARACTERS,
    MAX_STATEMENTS,
    ScriptSource,
)
from spark_runner.sql.text.tokens import SqlToken, split
from spark_runner.sql.text.variables import ExpandedTooLong, expand

MAX_ERRORS = 20  # of one script; further ones are not looked for


@dataclass(frozen=True)
class Check:
    """The result of checking a script: a plan, or errors; in order of the script.

    It has neither where connections could not be checked, which the first warnings report.
    """

    plan: dict[str, Any] | None
    errors: tuple[SqlError, ...]
    warnings: tuple[SqlError, ...] = ()  # suspicious places; only looked for without errors
    statements: tuple[AnyStatement, ...] = ()  # those that could be parsed, in order
    invalid: frozenset[str] = frozenset()  # lower-case names whose declarations have errors

    def error(self) -> SqlError:
        """The first error, with the others; without any, the tables that keep the script from a plan."""
        first, *others = self.errors or self.warnings
        first.others = tuple(others)
        return first


@dataclass(frozen=True)
class _Read:
    """One statement as it was read, or its error; `unended` is that of a missing `;` behind it."""

    passage: Passage
    statement: AnyStatement | None = None
    error: SqlError | None = None
    unended: SqlError | None = None


def compile_script(
    text: str,
    *,
    file: str,
    base_dir: str,
    variables: Mapping[str, str],
    connections: FindConnection | None = None,
    python_files: PythonFiles | None = None,
) -> dict[str, Any]:
    """The plan of a script; raises SqlError with all errors that `check_script` finds."""
    found = check_script(
        text,
        file=file,
        base_dir=base_dir,
        variables=variables,
        connections=connections,
        python_files=python_files,
    )
    if found.plan is None:
        raise found.error()
    return found.plan


def check_script(
    text: str,
    *,
    file: str,
    base_dir: str,
    variables: Mapping[str, str],
    only_declares: bool = False,
    connections: FindConnection | None = None,
    python_files: PythonFiles | None = None,
) -> Check:
    """Check a script, and make its plan if it has no error.

    `file` is the name that errors show; relative paths are relative to `base_dir`. After an error the check
    continues with the next statement, except after a limit of `spark_runner.sql.text.source`. With
    `only_declares` a script may have nothing to do: an unfinished one whose tables are previewed. Without
    `connections`, a script that names one has warnings instead of a plan. `python_files` are those of the
    job, in which its functions are looked up.
    """
    source = ScriptSource(file, text)
    if len(text) > MAX_SCRIPT_CHARACTERS:
        message = f"the script has {len(text):,} characters, the limit is {MAX_SCRIPT_CHARACTERS:,}"
        return Check(None, (source.error(message, MAX_SCRIPT_CHARACTERS),))
    statements, unended, unclosed = _statements(source)
    if len(statements) > MAX_STATEMENTS:
        message = f"the script has {len(statements):,} statements, the limit is {MAX_STATEMENTS:,}"
        return Check(None, (source.error(message, statements[MAX_STATEMENTS][0].start),))
    read = _read(source, statements, unended, variables)
    found = default_mode((each.statement for each in read if each.statement), connections)
    planner = Planner(base_dir, connections, default=found, functions=Functions(python_files))
    parsed = list[AnyStatement]()
    errors = _plan(planner, read, parsed)
    if unclosed:
        errors.append(unclosed)
    elif len(errors) < MAX_ERRORS:
        errors = _finished(planner, errors)
    if not (errors or planner.effects or planner.unchecked or only_declares):
        errors = [source.error("nothing to do: the script has no INSERT, query, ASSERT or EXPLAIN", 0)]
    if errors:
        invalid = frozenset(
            known.name.lower() for known in planner.scope.declared if isinstance(known, Invalid)
        )
        return Check(None, tuple(errors[:MAX_ERRORS]), (), tuple(parsed), invalid)
    if planner.unchecked:
        return Check(None, (), (*planner.unchecked, *planner.warnings()), tuple(parsed))
    plan = {
        **planner.parts,
        "version": planner.steps.version,
        "file": file,
        "source": text,
        "directory": base_dir,
        "names_files": planner.scope.names_files,
        "names_catalogs": planner.names_catalogs,
        "needs_own_jvm": planner.steps.needs_own_jvm,
        "formats": sorted(planner.scope.formats),
        "values": list(planner.steps.values),
        "steps": planner.steps.made,
    }
    return Check(plan, (), tuple(planner.warnings()), tuple(parsed))


def _statements(
    source: ScriptSource,
) -> tuple[list[list[SqlToken]], dict[int, SqlError], SqlError | None]:
    """The statements of a script, and its errors of `;` and of a quote or comment that is never closed.

    Those of a missing `;` are by the index of the statement behind which it belongs.
    """
    statements, unended = list[list[SqlToken]](), dict[int, SqlError]()
    try:
        for tokens in split(source):
            parts = statements_in(tokens)
            for index, (before, behind) in enumerate(pairwise(parts), len(statements)):
                unended[index] = _unended(source, before[-1], behind[0])
            statements += parts
    except SqlError as error:
        return statements, unended, error
    return statements, unended, None


def _unended(source: ScriptSource, last: SqlToken, behind: SqlToken) -> SqlError:
    """The error at the end of a statement without `;`."""
    (line, _), (next_line, _) = source.position(last.end), source.position(behind.start)
    where = f" of line {next_line}" if next_line != line else ""
    return source.error(f"missing ';' before {behind.text.upper()}{where}", last.end)


def _finished(planner: Planner, errors: list[SqlError]) -> list[SqlError]:
    """The errors with that of the end of the script, in order."""
    try:
        planner.finish()
    except SqlError as error:
        return sorted([*errors, error], key=lambda error: (error.line, error.column))
    return errors


def _read(
    source: ScriptSource,
    statements: list[list[SqlToken]],
    unended: Mapping[int, SqlError],
    variables: Mapping[str, str],
) -> list[_Read]:
    """The statements, or their errors; the last one may be a limit, behind which nothing is read."""
    read, errors = list[_Read](), 0
    left = MAX_EXPANDED_CHARACTERS
    for index, tokens in enumerate(statements):
        passage, end = None, unended.get(index)
        try:
            passage = expand(source, tokens, variables, left)
            left -= len(passage.text)
            read.append(_Read(passage, parse(passage), unended=end))
        except SqlError as error:
            read.append(_Read(passage or Passage.verbatim(source, tokens), error=error, unended=end))
            errors += 1
            if isinstance(error, ExpandedTooLong) or errors >= MAX_ERRORS:
                break
    return read


def _plan(planner: Planner, read: list[_Read], parsed: list[AnyStatement]) -> list[SqlError]:
    """Add the statements to the plan, and to `parsed`; returns their errors."""
    errors = list[SqlError]()
    for each in read:
        if isinstance(each.error, ExpandedTooLong):
            return [*errors, each.error]
        try:
            if each.error:
                raise each.error
            if each.statement:
                parsed.append(each.statement)
                planner.add(each.statement)
        except SqlError as error:
            errors += (error, *error.others)
            planner.add_invalid(each.passage)
        if each.unended:
            errors.append(each.unended)
        if len(errors) >= MAX_ERRORS:
            break
    return errors
