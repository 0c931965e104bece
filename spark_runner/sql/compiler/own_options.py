"""Options of a table for one use of it, as in SELECT ... FROM t WITH ('header' = 'false')."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from spark_runner.connectors.errors import OptionError
from spark_runner.connectors.options import ConnectorOptions, folded, options_of, to_plan, validate
from spark_runner.protocol.text import did_you_mean
from spark_runner.sql.compiler.names import Invalid, Name, Table
from spark_runner.sql.compiler.option_keys import current_keys
from spark_runner.sql.compiler.option_messages import option_error
from spark_runner.sql.compiler.scope import Scope
from spark_runner.sql.compiler.steps import Steps
from spark_runner.sql.grammar.options import OptionsUse, option_uses
from spark_runner.sql.grammar.statements import CreateTable, Option, Statement
from spark_runner.sql.text.errors import SqlError
from spark_runner.sql.text.literals import quote_name
from spark_runner.sql.text.passage import Passage

MAX_USES = 100  # of options in queries of a script: each adds a table to the plan
_IDENTITY = ("connector", "format", "path", "rows", "streaming")  # which rows the table has, and where
_OF_WRITES = ("mode", "partitionby", "compression", "targetfilesize")
_FILES = {"parquet", "csv", "json", "orc", "text"}


def own_options(table: Table, given: Sequence[Option], passage: Passage, *, reads: bool) -> dict[str, Any]:
    """The options of a declared table with those that a statement gives; raises SqlError at a wrong one."""
    statement = CreateTable(passage, passage.tokens, table.name, 0, False, None, "", 0, tuple(given))
    options = current_keys(statement)
    try:
        model = options_of(table.spec.connector)
        for key, option in options.items():
            _check_use(table, model, key, option, passage, reads=reads)
        own = {model.option_named(key) for key in options}
        kept = {name: value for name, value in table.spec.options.items() if name not in own}
        checked = validate(
            table.spec.connector,
            {**{key: option.value for key, option in options.items()}, **kept},
            table.stored,
        )
    except OptionError as error:
        raise _located(error, options, given, passage) from error
    if (place := checked.place()) and place != table.spec.location:
        message = f"these options name '{place}', and table '{table.name}' is '{table.spec.location}'"
        raise passage.error(f"{message}; declare another table with them", given[0].key_offset)
    return to_plan(checked)


def _check_use(
    table: Table, model: type[ConnectorOptions], key: str, option: Option, passage: Passage, *, reads: bool
) -> None:
    meant = model.option_named(key) or key  # users also write other names of it
    if folded(meant) in _IDENTITY or meant in model.deciding:
        message = f"option '{option.key}' decides what table '{table.name}' is; declare another table with it"
        raise passage.error(message, option.key_offset)
    if reads and folded(meant) in _OF_WRITES and table.spec.connector in _FILES:
        message = f"option '{option.key}' has no effect on a query; it belongs to CREATE TABLE or INSERT"
        raise passage.error(message, option.key_offset)


def _located(
    error: OptionError, options: Mapping[str, Option], given: Sequence[Option], passage: Passage
) -> SqlError:
    at = options.get(error.option, given[0])
    located = option_error(Statement(passage, passage.tokens), at, error)
    located.others = tuple(_located(other, options, given, passage) for other in error.others)
    return located


@dataclass
class OwnTables:
    """Adds a table to the plan for each use with options, which is the declared one with these options."""

    steps: Steps
    scope: Scope
    added: list[tuple[dict[str, Any], Table]] = field(default_factory=list)  # with the declared table

    def query(self, query: Passage) -> Passage:
        """The query with the names of the added tables; raises SqlError at a name that takes no options."""
        pieces, done = list[Passage | str](), 0
        for use in option_uses(query):
            table = _table(use, self.scope.names, query)
            if table is None:
                continue
            alias = f" AS {quote_name(table.name)}" if use.takes_alias else ""
            if use.start > done:
                pieces.append(query.part(done, use.start))
            pieces += (_name(query, use), f"{quote_name(self._add(query, table, use))}{alias}")
            done = use.end
        if not pieces:
            return query
        if done < len(query.text):
            pieces.append(query.part(done, len(query.text)))
        return query.rebuilt(pieces)

    def finish(self) -> None:
        """Complete the steps: whether any statement writes the declared tables."""
        for step, table in self.added:
            step["written"] = table.step["written"]
            if not (table.step["read"] or self.scope.computes_names):
                table.step["only_with_options"] = True  # others may not decode it

    def _add(self, query: Passage, table: Table, use: OptionsUse) -> str:
        if len(self.added) >= MAX_USES:
            message = f"the queries of the script give options to tables {MAX_USES} times, which is the limit"
            raise query.error(message, use.start)
        options = own_options(table, use.options, query, reads=True)
        name = f"{table.name} (options {len(self.added) + 1})"
        facts = {key: value for key, value in table.step.items() if key not in {"kind", "line", "column"}}
        facts |= {"name": name, "declared": table.name, "options": options}
        if "references" in facts:
            declared = table.spec.options
            facts["references"] = {
                key: each for key, each in facts["references"].items() if options.get(key) == declared[key]
            }
        step = self.steps.add("table", query.part(use.start, use.end), **facts)
        table.uses += 1
        own = replace(table, step=step, spec=replace(table.spec, options=options), number=self.steps.last)
        self.scope.declare_own(name, own)
        self.added.append((step, table))
        return name


def _name(query: Passage, use: OptionsUse) -> Passage:
    """An empty text at the name, so that an error of Spark about the table points there."""
    found = query.part(use.start, use.end)
    return replace(found, text="", anchors=found.anchors[:1], cut=None)


def _table(use: OptionsUse, names: Mapping[str, Name], query: Passage) -> Table | None:
    known = names.get(use.name.lower())
    if isinstance(known, Invalid):
        return None
    if isinstance(known, Table):
        return known
    if known is not None:
        message = f"'{use.name}' is a view; options belong to the tables that it reads"
    else:
        hint = did_you_mean(use.name, [name.name for name in names.values() if isinstance(name, Table)])
        hint = (
            hint or "; options need a table that the script declares, or a full name as in catalog.db.table"
        )
        message = f"unknown table '{use.name}'{hint}"
    raise query.error(message, use.start)
