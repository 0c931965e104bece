"""What a driver refuses of a plan: another program than our compiler may have written it to ZooKeeper."""

from collections.abc import Collection, Mapping
from typing import Any

from spark_runner.sql.cursor import Cursor
from spark_runner.sql.references import formats_named
from spark_runner.sql.shared_jvm import setting_may_share, tokens_may_share
from spark_runner.sql.source import Passage, Source

_OWN_JVM = "this statement may not run in a JVM that other jobs use; submit the script again"


def check_plan(plan: Mapping[str, Any], *, shares_jvm: bool) -> None:
    """Raise SqlError for files of a denied format, and for what a JVM of other jobs may not run.

    `denied_formats` of the plan come from the operator's policy, by the worker.
    """
    denied = plan.get("denied_formats") or ()
    if not (denied or shares_jvm):
        return
    source = Source(plan["file"], plan["source"])
    for step in plan["steps"]:
        if shares_jvm and step["kind"] == "set" and not setting_may_share(step["key"], step["value"]):
            raise source.error(_OWN_JVM, source.offset(step["line"], step["column"]))
        for part in ("query", "columns"):
            if step.get(part) is not None:
                _check(Passage.from_json(source, step[part], plan["values"]), denied, shares_jvm=shares_jvm)


def _check(passage: Passage, denied: Collection[str], *, shares_jvm: bool) -> None:
    tokens = Cursor(passage).tokens
    if found := sorted(formats_named(tokens).intersection(denied)):
        raise passage.error(f"files of the format '{found[0]}' are refused by the policy of the pool")
    if shares_jvm and not tokens_may_share(tokens):
        raise passage.error(_OWN_JVM)
