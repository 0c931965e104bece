"""Checks statements on tables of Spark catalogs, and adds them to a plan."""

from collections.abc import Iterable
from dataclasses import dataclass, field

from spark_runner.protocol.text import did_you_mean
from spark_runner.sql.compiler.modes import check_bounded
from spark_runner.sql.compiler.names import Reads
from spark_runner.sql.compiler.own_options import OwnTables
from spark_runner.sql.compiler.scope import Scope, refuse_session
from spark_runner.sql.compiler.statement_set import StatementSets
from spark_runner.sql.compiler.steps import Steps
from spark_runner.sql.compiler.streams import Streams
from spark_runner.sql.grammar.catalog import table_format
from spark_runner.sql.grammar.references import FILE_FORMATS
from spark_runner.sql.grammar.statements import CATALOG_INSERTS, CatalogAction, CatalogStatement
from spark_runner.sql.text.full_name import FullName, may_be_same
from spark_runner.sql.text.passage import Passage

_WITHOUT_EFFECT = frozenset({CatalogAction.USE, CatalogAction.USE_CATALOG})
_NAMESPACES = _WITHOUT_EFFECT | {CatalogAction.CREATE_NAMESPACE}


@dataclass
class Catalogs:
    """Adds the statements of one script."""

    steps: Steps
    scope: Scope
    own_tables: OwnTables
    sets: StatementSets
    is_used: bool = field(default=False, init=False)  # a statement names a catalog, other than by a query
    _sources: dict[tuple[str, ...], FullName] = field(default_factory=dict, init=False)  # as `add_reads` says
    _replaced: set[tuple[str, ...]] = field(default_factory=set, init=False)

    def add(self, statement: CatalogStatement, streams: Streams | None) -> bool:
        """Check a statement and append its step; returns whether it writes, shows or checks anything.

        `streams` is None in mode batch.
        """
        self.is_used = True
        if statement.name is not None and statement.action not in _NAMESPACES:
            refuse_session(statement.name, statement.passage)
        text = self._text(statement, streams)
        self.steps.add(
            "catalog",
            statement.passage,
            action=statement.action.value,
            target=str(statement.name or ""),
            statement=text.to_json(self.steps.values),
        )
        return statement.action not in _WITHOUT_EFFECT

    def add_reads(self, reads: Reads) -> None:
        """Keep the tables from which a statement writes rows, for its next attempt needs the same rows.

        Each attempt makes those again that the script has replaced before.
        """
        new = {key: name for key, name in reads.catalogs.items() if key not in self._replaced}
        self._sources |= {key: name for key, name in new.items() if key not in self._sources}

    def _text(self, statement: CatalogStatement, streams: Streams | None) -> Passage:
        """The statement for Spark, whose names are checked."""
        passage, name = statement.passage, statement.name
        if statement.action is CatalogAction.USE_CATALOG and name is not None:
            return passage.rebuilt(["SET CATALOG ", passage.part(name.offset, len(passage.text))])
        if statement.action is CatalogAction.CREATE_TABLE:
            self.scope.formats |= {table_format(statement.tokens)} & {*FILE_FORMATS}
        if statement.body is None or name is None:
            self._check_earlier(statement)
            return passage
        if statement.source is not None:
            self._read_source(statement, statement.source)
        body = self.own_tables.query(statement.body)
        reads = self.scope.reads(body)
        if statement.action in CATALOG_INSERTS:
            _check_insert(statement, name, reads)
            if streams:
                streams.check_catalog_insert(body, name, reads, statement.passage)
            else:
                check_bounded(reads, body)
        if self.sets.open:
            self.sets.open.add_catalog(statement, name, reads)
            if streams:
                self.sets.open.read_stream(body, reads, streams.mode)
        self._check_earlier(statement)
        if statement.action is CatalogAction.INSERT_OVERWRITE:
            self._check_replaced(statement, name)
        self.add_reads(reads)
        return passage.rebuilt([passage.part(0, statement.body_offset), body])

    def _read_source(self, statement: CatalogStatement, source: FullName) -> None:
        """Count the read of the table behind USING; raises SqlError for a name that is not declared."""
        names = self.scope.names
        if len(source.parts) == 1 and source.parts[0].lower() not in names:
            hint = did_you_mean(source.parts[0], [known.name for known in names.values()])
            message = f"unknown table or view '{source.parts[0]}'"
            raise statement.passage.error(f"{message}{hint or '; declare it before'}", source.offset)
        index = next(i for i, token in enumerate(statement.tokens) if token.start == source.offset)
        last = statement.tokens[index + 2 * (len(source.parts) - 1)]
        named = statement.passage.part(source.offset, last.end)
        self.add_reads(self.scope.reads(statement.passage.rebuilt(["TABLE ", named])))

    def _check_earlier(self, statement: CatalogStatement) -> None:
        """Raise SqlError for the removal of rows that the script has read: its next attempt needs them."""
        removes = statement.action is CatalogAction.DELETE or statement.replace
        if not removes or statement.name is None:
            return
        found = _same(statement.name, self.scope.read_catalogs.values())
        if found is not None:
            verb = "deletes rows of" if statement.action is CatalogAction.DELETE else "replaces"
            message = (
                f"refused: this statement {verb} '{statement.name}', and the script reads '{found}' up to"
                " here: a further attempt would not find the same rows; use two jobs"
            )
            raise statement.passage.error(message, statement.name.offset)

    def _check_replaced(self, statement: CatalogStatement, target: FullName) -> None:
        """Raise SqlError for an INSERT OVERWRITE of rows that an earlier statement has written elsewhere."""
        found = _same(target, self._sources.values())
        if found is not None:
            message = (
                f"refused: this INSERT replaces the rows of '{target}', and an earlier statement writes rows"
                f" that it reads from '{found}': a further attempt would not find the same rows; use two jobs"
            )
            raise statement.passage.error(message, target.offset)
        self._replaced.add(target.key)


def _check_insert(statement: CatalogStatement, target: FullName, reads: Reads) -> None:
    found = _same(target, reads.catalogs.values())
    if found is not None:
        message = f"refused: this INSERT reads '{found}', and writes to '{target}'"
        if found.key != target.key:
            message += ", which may be the same table; write both with all parts"
        raise statement.passage.error(message, target.offset)


def _same(name: FullName, others: Iterable[FullName]) -> FullName | None:
    return next((other for other in others if may_be_same(name.key, other.key)), None)
