"""Checks a plan in the driver: another program than the compiler may have written it to ZooKeeper."""

from collections.abc import Iterator, Mapping
from typing import Any

from spark_runner.sql.cursor import Cursor
from spark_runner.sql.queries import query
from spark_runner.sql.references import formats_named, names_files_of
from spark_runner.sql.shared_jvm import setting_may_share, tokens_may_share
from spark_runner.sql.source import Passage, ScriptSource

_OWN_JVM = "this statement may not run in a JVM that other jobs use; submit the script again"


_SETTING = "this setting is refused where the policy of the pool lists connectors"
_RUN_ON_FILES = "spark.sql.runSQLOnFiles"
"""Spark's own switch for queries that name files, as in csv.`/data/orders.csv`."""


def check_plan(plan: Mapping[str, Any], *, shares_jvm: bool) -> None:
    """Raise SqlError for commands, files of a denied format, and statements that need their own JVM.

    The worker sets `denied_formats` of the plan from the operator's policy.
    """
    denied = plan.get("denied_formats") or ()
    if not (denied or shares_jvm):
        return
    source = ScriptSource(plan["file"], plan["source"])
    names_files = bool(denied) and _names_files(plan, source)
    for step in plan["steps"]:
        if step["kind"] == "set":
            place = source.offset(step["line"], step["column"])
            if shares_jvm and not setting_may_share(step["key"], step["value"]):
                raise source.error(_OWN_JVM, place)
            if denied and step["key"].strip().lower() == _RUN_ON_FILES.lower():
                raise source.error(_SETTING, place)
    for part, passage in _parts(plan, source):
        cursor = Cursor(passage)
        tokens = cursor.tokens
        if part == "query":
            query(cursor)
        if names_files and (found := names_files_of(tokens, denied)):
            raise passage.error(f"files of the format '{found}' are refused by the policy of the pool")
        if shares_jvm and not tokens_may_share(tokens):
            raise passage.error(_OWN_JVM)


def session_settings(plan: Mapping[str, Any]) -> dict[str, str]:
    """The settings of each session of a plan.

    Queries that name files are off where formats are denied, unless a query that `check_plan` accepted names
    files of an allowed format.
    """
    # The compiler has replaced variables; Spark's own `${...}` would read the environment of the driver.
    settings = {"spark.sql.variable.substitute": "false"}
    if plan.get("denied_formats"):
        source = ScriptSource(plan["file"], plan["source"])
        settings[_RUN_ON_FILES] = str(_names_files(plan, source)).lower()
    return settings


def _names_files(plan: Mapping[str, Any], source: ScriptSource) -> bool:
    return any(formats_named(Cursor(passage).tokens) for _, passage in _parts(plan, source))


def _parts(plan: Mapping[str, Any], source: ScriptSource) -> Iterator[tuple[str, Passage]]:
    for step in plan["steps"]:
        for part in ("query", "columns"):
            if step.get(part) is not None:
                yield part, Passage.from_json(source, step[part], plan["values"])
