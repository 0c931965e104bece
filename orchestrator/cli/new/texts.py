"""The texts of a new job: its script, its definition and sample data."""

import re
from dataclasses import dataclass
from typing import Any

import yaml

from orchestrator.cli.new.places import PRINT, Source, Target
from orchestrator.model.schedule import Schedule
from spark_runner.sql.compiler.modes import BATCH, STREAMING
from spark_runner.sql.text.literals import escape_into, quote_name

SAMPLE = """\
order_id,customer,amount,ordered_on
1,Ada,120.00,2026-01-05
2,Grace,80.50,2026-01-05
3,Ada,19.50,2026-01-06
4,Edsger,7.25,2026-01-07
5,Grace,60.00,2026-01-07
"""
_PLAIN = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
# Words that a parser may take for something else than a name.
_WORD = re.compile(
    "ALL|AND|ANTI|ANY|ARRAY|AS|BETWEEN|BOTH|BY|CASE|CAST|CHECK|COLLATE|COLUMN|CONSTRAINT|CREATE|CROSS"
    "|CURRENT_(DATE|TIME|TIMESTAMP|USER)|DISTINCT|ELSE|END|ESCAPE|EXCEPT|EXISTS|FALSE|FETCH|FILTER|FOR"
    "|FOREIGN|FROM|FULL|GRANT|GROUP|HAVING|IN|INNER|INSERT|INTERSECT|INTERVAL|INTO|IS|JOIN|LATERAL"
    "|LEADING|LEFT|LIKE|MAP|MINUS|NATURAL|NOT|NULL|OFFSET|ON|ONLY|OR|ORDER|OUTER|OVERLAPS|PRIMARY"
    "|REFERENCES|RIGHT|SELECT|SEMI|SET|SOME|STRUCT|TABLE|THEN|TO|TRAILING|TRUE|UNION|UNIQUE|USING"
    "|VALUES|VIEW|WATERMARK|WHEN|WHERE|WITH",
    re.IGNORECASE,
)


@dataclass(frozen=True, slots=True)
class Answers:
    """What the user wants; `is_sample`: the source is the sample data."""

    name: str
    source: Source
    target: Target
    mode: str
    schedule: Schedule
    is_sample: bool

    @property
    def sample_file(self) -> str:
        """The path of the sample data."""
        return self.source.path if self.mode == BATCH else f"{self.source.path}/orders.csv"

    @property
    def source_table(self) -> str:
        """The name of the source in the script."""
        return "orders" if self.is_sample else _table_name(self.source.path.rstrip("/").rpartition("/")[2])

    @property
    def target_table(self) -> str:
        """The name of the target in the script."""
        name = _table_name(self.name)
        return f"{name}_result" if name == self.source_table else name


def script_text(answers: Answers) -> str:
    """The SQL script."""
    source, target = answers.source, answers.target
    return "\n".join(
        [
            f"-- {answers.name}: one source, one target.",
            "--",
            f"--   orchestrator run {answers.name}.yaml",
            "--",
            "-- Statements end with ';'. Relative paths refer to the folder of this file.",
            "",
            f"SET job.mode = {answers.mode};",
            "",
            *_source_lines(answers.source_table, source),
            "",
            "-- The target. A table is a name for external data: nothing is created before an INSERT.",
            f"CREATE TABLE {answers.target_table} USING {target.connector}{_path(target.path)};",
            "",
            *_insert_lines(answers),
        ]
    )


def definition_text(answers: Answers) -> str:
    """The definition of the job, in YAML."""
    document: dict[str, Any] = {
        "name": answers.name,
        "script": f"{answers.name}.sql",
        "retry": {"attempts": 3, "delay": "30s"},
    }
    if answers.mode != STREAMING:
        document["timeout"] = {"run": "2h"}
    if answers.schedule.is_set:
        document["schedule"] = _schedule(answers.schedule)
    body = yaml.safe_dump(document, sort_keys=False, allow_unicode=True, default_flow_style=None)
    return f"# Check it with Spark: orchestrator sql explain {answers.name}.yaml\n{body}"


def _schedule(schedule: Schedule) -> dict[str, str]:
    return (
        {"cron": schedule.cron, "timezone": schedule.timezone}
        if schedule.cron
        else {"every": schedule.when[6:]}
    )


def _source_lines(name: str, source: Source) -> list[str]:
    if source.columns is None:
        return [
            "-- The source. Its columns are those of the files.",
            f"CREATE TABLE {name} USING {source.file_format}{_path(source.path)};",
        ]
    delimiter = source.columns.delimiter
    more = "" if delimiter == "," else f", delimiter '{delimiter}'"
    columns = ",\n".join(f"  {_column(column)} {kind}" for column, kind in source.columns.columns)
    about = (
        "The types are those of its first rows; a value that does not fit fails the job,\n"
        "-- unless SET job.error.limit.rows = 100 keeps up to 100 such rows aside."
    )
    return [
        f"-- The source. {'A row is a line.' if source.file_format == 'text' else about}",
        f"CREATE TABLE {name} (\n{columns}\n) USING {source.file_format}{_path(source.path, more)};",
    ]


def _insert_lines(answers: Answers) -> list[str]:
    if answers.mode != BATCH:
        head = ["-- The query. It adds the rows of new files.", f"INSERT INTO {answers.target_table}"]
    elif answers.target.connector == PRINT:
        head = ["-- The query.", f"INSERT INTO {answers.target_table}"]
    else:
        head = [
            "-- The query. OVERWRITE replaces all rows.",
            f"INSERT OVERWRITE {answers.target_table}",
        ]
    if answers.is_sample and answers.mode == BATCH:  # a stream needs a watermark for its groups
        return [
            *head,
            "SELECT customer, count(*) AS orders, sum(amount) AS total, max(ordered_on) AS last_order",
            f"FROM {answers.source_table}",
            "GROUP BY customer;",
            "",
        ]
    columns = answers.source.columns
    if columns is None:
        return [*head, "SELECT *", f"FROM {answers.source_table};", ""]
    names = ",\n".join(f"  {_column(name)}" for name, _ in columns.columns)
    return [*head, f"SELECT\n{names}", f"FROM {answers.source_table};", ""]


def _path(path: str, more: str = "") -> str:
    escaped = escape_into("'", path)
    return f" OPTIONS (path '{escaped}'{more})" if path else ""


def _column(name: str) -> str:
    # Quoted where the name is no word; Spark knows few words that need quotes, and none hurts.
    return name if _PLAIN.fullmatch(name) and not _WORD.fullmatch(name) else quote_name(name)


def _table_name(text: str) -> str:
    """A plain name for a table made of a file name or a job name."""
    name = re.sub(r"[^A-Za-z0-9]+", "_", text.partition(".")[0]).strip("_").lower() or "rows"
    return f"t_{name}" if name[0].isdigit() or _WORD.fullmatch(name) else name
