"""Checks INSERTs, and adds them to a plan."""

from dataclasses import dataclass, replace

from spark_runner.sql.compiler.catalogs import Catalogs
from spark_runner.sql.compiler.inputs import check_input_survives
from spark_runner.sql.compiler.modes import check_bounded
from spark_runner.sql.compiler.names import Reads, Table
from spark_runner.sql.compiler.own_options import OwnTables, own_options
from spark_runner.sql.compiler.scope import Scope
from spark_runner.sql.compiler.statement_set import StatementSets
from spark_runner.sql.compiler.steps import Steps
from spark_runner.sql.compiler.streams import Streams
from spark_runner.sql.grammar.statements import Insert


@dataclass
class Inserts:
    """Adds the INSERTs of one script into tables that it declares."""

    steps: Steps
    scope: Scope
    own_tables: OwnTables
    sets: StatementSets
    catalogs: Catalogs

    def add(self, statement: Insert, streams: Streams | None) -> bool:
        """Check an INSERT and append its step; returns whether its target is declared without an error.

        `streams` is None in mode batch.
        """
        checked = self.check(statement, streams)
        if checked is None:
            return False
        target, reads, statement = checked
        options = None
        if statement.options:
            options = own_options(target, statement.options, statement.passage, reads=False)
        if self.sets.open:
            self.sets.open.add(statement, target, reads)
            if streams:
                self.sets.open.read_stream(statement.query, reads, streams.mode)
        target.step["written"] = True
        self.catalogs.add_reads(reads)
        step = self.steps.add(
            "insert",
            statement.passage,
            target=target.name,
            overwrite=statement.overwrite,
            by_name=statement.by_name,
            query=statement.query.to_json(self.steps.values),
        )
        if options is not None:
            step["options"] = options
            self.steps.need_new_driver()
        if self.scope.places_vary:
            step["reads"] = [table.number for table in reads.tables.values() if table.place]
        return True

    def check(self, statement: Insert, streams: Streams | None) -> tuple[Table, Reads, Insert] | None:
        """The target of an INSERT, what it reads, and the INSERT of declared names alone.

        None if the declaration of the target has an error.
        """
        statement = replace(statement, query=self.own_tables.query(statement.query))
        reads = self.scope.reads(statement.query)
        if streams is None:
            check_bounded(reads, statement.query)
        target = self.scope.target(statement)
        if target is None:
            return None
        if target.step.get("primary_key") and not target.spec.upserts:
            connector = target.spec.connector
            message = (
                f"connector '{connector}' cannot replace rows by the primary key of '{target.name}';"
                " remove the key, or write to a connector that can"
            )
            raise statement.passage.error(message, statement.target_offset)
        if statement.by_name and target.step["columns"] is None:
            message = f"BY NAME needs declared columns, and table '{target.name}' declares none"
            raise statement.passage.error(message, statement.target_offset)
        check_input_survives(statement, target, reads, self.scope.names.values())
        if streams:
            streams.check_insert(statement, target, reads)
        return target, reads, statement
