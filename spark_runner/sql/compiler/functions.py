"""The functions of a script: what CREATE TEMPORARY FUNCTION declares, and which others it calls."""

import keyword
import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

from spark_runner.sql.compiler.python_files import NotThere, PythonFiles
from spark_runner.sql.compiler.spark_functions import SPARK_FUNCTIONS
from spark_runner.sql.compiler.steps import Steps
from spark_runner.sql.grammar.calls import NO_FUNCTIONS, PLAIN_NAME, calls
from spark_runner.sql.grammar.statements import AnyStatement, BeginSet, CatalogStatement, CreateFunction
from spark_runner.sql.python_modules import refused
from spark_runner.sql.text.built_ins import has_mark
from spark_runner.sql.text.errors import SqlError

MAX_CALLED = 500  # names of functions that neither Spark nor the script has
_TARGET = re.compile(r"[A-Za-z_]\w{0,200}(?:\.[A-Za-z_]\w{0,200}){1,20}", re.ASCII)


@dataclass
class Function:
    """A declared function; `uses` counts statements that may call it."""

    statement: CreateFunction
    uses: int = 0


@dataclass
class Functions:
    """Declares functions, and finds the calls of them and of others."""

    files: PythonFiles | None = None  # without them, the existence of functions is not checked
    declared: list[Function] = field(default_factory=list)  # all, in order
    names: dict[str, Function] = field(default_factory=dict)  # lower case -> the current meaning
    called: dict[str, int] = field(
        default_factory=dict
    )  # functions that the platform may offer: line of a call, or 0 if it may be none

    def add(self, statement: CreateFunction, steps: Steps) -> None:
        """Declare a function, and add its step; raises SqlError at a wrong name or function."""
        self._check_name(statement)
        module, attribute = self._target(statement)
        facts: dict[str, Any] = {"name": statement.name, "module": module, "attribute": attribute}
        if statement.returns is not None:
            facts["returns"] = statement.returns.to_json(steps.values)
        steps.add("function", statement.passage, **facts)
        found = self.names[statement.name.lower()] = Function(statement)
        self.declared.append(found)

    def see(self, statement: AnyStatement) -> None:
        """Keep the names that a statement calls; raises SqlError beyond MAX_CALLED."""
        if isinstance(statement, CreateFunction):
            return
        used = set[str]()
        if isinstance(statement, BeginSet) and statement.first:
            statement = statement.first
        passage, tokens = statement.passage, statement.tokens
        if isinstance(statement, CatalogStatement):  # its head may have columns and clauses in parentheses
            passage = statement.body or passage
            tokens = statement.body.tokens if statement.body else ()
        for name, offset, is_certain in calls(tokens):
            if name in self.names:
                used.add(name)
            elif name not in SPARK_FUNCTIONS and not self.called.get(name):
                if name not in self.called and len(self.called) >= MAX_CALLED:
                    message = f"the script calls more than {MAX_CALLED} functions that Spark does not have"
                    raise passage.error(message, offset)
                self.called[name] = passage.position(offset)[0] if is_certain else 0
        for name in used:
            self.names[name].uses += 1

    def unused(self) -> Iterator[SqlError]:
        """A warning for each function that no statement calls."""
        for found in self.declared:
            if not found.uses:
                statement = found.statement
                message = f"function '{statement.name}' is never used"
                yield statement.passage.error(message, statement.name_offset)

    def to_plan(self) -> dict[str, Any]:
        """The part of the plan; empty if each call is one of Spark or of the script."""
        return {"calls": sorted(self.called)} if self.called else {}

    def _check_name(self, statement: CreateFunction) -> None:
        name, key = statement.name, statement.name.lower()
        message = ""
        if not PLAIN_NAME.fullmatch(name):
            message = "the name of a function has letters A to Z, digits and _ alone"
        elif key in SPARK_FUNCTIONS:
            message = f"Spark has a function '{name}', and would call that one; choose another name"
        elif name.upper() in NO_FUNCTIONS:
            message = f"'{name}' is a word of SQL; choose another name"
        elif key in self.names and not statement.replace:
            line = self.names[key].statement.passage.position()[0]
            message = f"function '{name}' is already declared in line {line}; write CREATE OR REPLACE"
        elif (line := self.called.get(key, 0)) and not statement.replace:
            message = (
                f"function '{name}' is called before its declaration, in line {line}; move the declaration"
                " up, or write CREATE OR REPLACE if the platform offers a function of this name, too"
            )
        if message:
            raise statement.passage.error(message, statement.name_offset)

    def _target(self, statement: CreateFunction) -> tuple[str, str]:
        """The module and the attribute of a function; raises SqlError if the job cannot have it."""
        written = statement.written(statement.target_offset, statement.target)
        module, _, attribute = statement.target.rpartition(".")
        if has_mark(statement.target) or not _TARGET.fullmatch(statement.target):
            message = f"'{written}' is no function of Python; write 'module.attribute'"
            raise statement.passage.error(message, statement.target_offset)
        if word := next(filter(keyword.iskeyword, statement.target.split(".")), None):
            message = f"'{word}' is a word of Python and no name; write 'module.attribute'"
            raise statement.passage.error(message, statement.target_offset)
        if why := refused(module):
            message = f"{why}; a function is in a Python file of the job (`spark.py_files` of the definition)"
            raise statement.passage.error(message, statement.target_offset)
        if self.files is not None:
            try:
                self.files.check(module, attribute, has_type=statement.returns is not None)
            except NotThere as error:
                raise statement.passage.error(str(error), statement.target_offset) from error
        return module, attribute
