"""Statements that a driver refuses: in a JVM that other jobs use, and in a plan of another program.

A statement that reaches Java, a program or the settings of the JVM can end it, or read data of other jobs.
Cached rows, and values of references, would stay there if the driver is killed. A script with such a
statement gets its own JVM.
"""

import re
from collections.abc import Collection, Iterable, Iterator, Mapping
from typing import Any

from spark_runner.connectors.files.format import names_bucket
from spark_runner.sql.grammar.catalog import table_format
from spark_runner.sql.grammar.parser import parse
from spark_runner.sql.grammar.query import query
from spark_runner.sql.grammar.references import catalog_names, formats_named, names_files_of
from spark_runner.sql.grammar.statements import (
    BeginSet,
    Cache,
    CatalogAction,
    CatalogStatement,
    CreateFunction,
    ResetStatement,
    SetStatement,
    Statement,
)
from spark_runner.sql.text.cursor import Cursor
from spark_runner.sql.text.literals import quote_name
from spark_runner.sql.text.passage import Passage
from spark_runner.sql.text.source import ScriptSource
from spark_runner.sql.text.tokens import SqlToken, TokenKind

JAVA_FUNCTIONS = ("reflect", "java_method", "try_reflect")
"""Functions of Spark that call any static method of Java."""

# IDENTIFIER('re' || 'flect')(...) calls a function by a name that is not visible here.
_JAVA = frozenset({*map(str.upper, JAVA_FUNCTIONS), "IDENTIFIER"})
_SCRIPTS = frozenset({"TRANSFORM", "MAP", "REDUCE"})  # with USING they start a program
# Spark's own `${env:NAME}` reads the environment of the JVM.
_SUBSTITUTES = "spark.sql.variable.substitute"
# With it, "a"."b" is the name of a table of a catalog, and the compiler takes it for two texts.
_QUOTES = "spark.sql.ansi.doublequotedidentifiers"
_PLAIN_VALUE = re.compile(r"[\w\s:/+-]*|-?\d+\.\d+")  # not the name of a class, which has dots


def may_share(statement: Statement) -> bool:
    """Whether a statement may run in a shared JVM; if that cannot be decided, it may not."""
    if isinstance(statement, SetStatement):
        return setting_may_share(statement.key, statement.value)
    if isinstance(statement, ResetStatement):
        return reset_may_share(statement.key)
    if isinstance(statement, Cache | BeginSet | CreateFunction | CatalogStatement):
        return False  # cached rows, Python processes and catalogs in memory outlive a driver that is killed
    return tokens_may_share(statement.tokens)


def setting_may_share(key: str, value: str) -> bool:
    """Whether a SET may run there."""
    key = key.lower()
    is_plain = _PLAIN_VALUE.fullmatch(value) is not None
    return key.startswith("spark.sql.") and key not in {_SUBSTITUTES, _QUOTES} and is_plain


def reset_may_share(key: str) -> bool:
    """Whether a RESET may run there; without a key it resets what the SETs of the same script changed."""
    return not key or setting_may_share(key, "")


def tokens_may_share(tokens: Iterable[SqlToken]) -> bool:
    """Whether a statement, or a part of one, may run there."""
    texts = {(token.kind, token.text) for token in tokens}  # most words occur many times
    found = {name for kind, text in texts for name in _names(SqlToken(kind, text, 0))}
    return not found & _JAVA and not ("USING" in found and found & _SCRIPTS)


def _names(token: SqlToken) -> Collection[str]:
    """The names that Spark may read in a token: its lexer uses upper case, its function lookup lower case.

    The two differ beyond ASCII: upper case turns a long s into an S, lower case a Kelvin sign into a k.
    """
    if token.kind is TokenKind.QUOTED or (token.kind is TokenKind.STRING and token.text[0] == '"'):
        text = token.text[1:-1]  # a setting of Spark turns strings in double quotes into names
    elif token.kind is TokenKind.WORD:
        text = token.text
    else:
        return ()
    return (text.upper(),) if text.isascii() else (text.upper(), text.lower().upper())


def sets_catalog(key: str) -> bool:
    """Whether a setting configures a catalog, or decides which one is meant."""
    key = key.strip().lower()
    return key.startswith("spark.sql.catalog.") or key == "spark.sql.defaultcatalog"


_CATALOGS = "tables of catalogs are refused: the policy of the pool does not list the connector 'catalog'"
_OWN_JVM = "this statement may not run in a JVM that other jobs use; submit the script again"


_SETTING = "this setting is refused where the policy of the pool lists connectors"
_RUN_ON_FILES = "spark.sql.runSQLOnFiles"
"""Spark's own switch for queries that name files, as in csv.`/data/orders.csv`."""


def check_plan(plan: Mapping[str, Any], *, shares_jvm: bool) -> None:
    """Raise SqlError for commands, what the policy denies, and statements that need their own JVM.

    The worker sets `denied_formats` and `denied_catalogs` of the plan from the operator's policy.
    """
    denied, denies_catalogs = plan.get("denied_formats") or (), bool(plan.get("denied_catalogs"))
    if not (denied or denies_catalogs or shares_jvm):
        return
    source = ScriptSource(plan["file"], plan["source"])
    if shares_jvm and (plan.get("bad_rows") or plan.get("functions")):
        raise source.error(_OWN_JVM, 0)
    names_files = bool(denied) and _names_files(plan, source)
    for step in plan["steps"]:
        _check_step(step, source, is_limited=bool(denied), shares_jvm=shares_jvm)
        configures = step["kind"] == "set" and sets_catalog(step["key"])
        if denies_catalogs and (step["kind"] == "catalog" or configures):
            raise source.error(_CATALOGS, source.offset(step["line"], step["column"]))
    for part, passage in _parts(plan, source):
        _check_command(part, passage, denied)
        if denies_catalogs or shares_jvm:
            _refuse_catalogs(passage, _CATALOGS if denies_catalogs else _OWN_JVM)
        if names_files and (found := names_files_of(passage.tokens, denied)):
            raise passage.error(f"files of the format '{found}' are refused by the policy of the pool")
        if shares_jvm and not tokens_may_share(passage.tokens):
            raise passage.error(_OWN_JVM)


def _refuse_catalogs(passage: Passage, message: str) -> None:
    plain = catalog_names(passage.tokens)
    for key, name in catalog_names([_as_name(token) for token in passage.tokens]).items():
        if message == _OWN_JVM and key not in plain:
            # The script does not set it: the compiler would have asked for a JVM of its own.
            message = (
                f"the double quotes make '{name}' a table of a catalog where the definition sets"
                " spark.sql.ansi.doubleQuotedIdentifiers, and no script in a JVM that other jobs use may"
                " name one; write the name in backticks, or SET that setting in the script"
            )
        raise passage.error(message, name.offset)


def _as_name(token: SqlToken) -> SqlToken:
    """The token as a name if a setting of Spark may make it one: a text in double quotes."""
    if token.kind is not TokenKind.STRING or not token.text.startswith('"'):
        return token
    name = quote_name(token.text[1:-1].replace('""', '"'))
    return token._replace(kind=TokenKind.QUOTED, text=name)


def _check_command(part: str, passage: Passage, denied: Collection[str]) -> None:
    """Raise SqlError for a command where the compiler allows none, and for tables of a denied format."""
    if part == "query":
        query(Cursor(passage))
    elif part == "statement":
        _check_statement(passage, denied)


def _check_statement(passage: Passage, denied: Collection[str]) -> None:
    """Raise SqlError for a statement that is none on a catalog, or creates a table of a denied format."""
    first, *others = passage.tokens
    if first.is_word("SET") and others and others[0].is_word("CATALOG"):
        return
    statement = parse(passage)
    if not isinstance(statement, CatalogStatement):
        raise passage.error("this statement is none on a catalog")
    if denied and statement.action is CatalogAction.CREATE_TABLE:
        _check_format(passage, denied)


def _check_format(passage: Passage, denied: Collection[str]) -> None:
    """Raise SqlError for a table of a denied format, of an unnamed one, and for the class of a format."""
    found = table_format(passage.tokens)
    if not found or "." in found:
        raise passage.error(
            "write USING and the short name of a format: the policy of the pool lists formats"
        )
    if found in denied:
        raise passage.error(f"files of the format '{found}' are refused by the policy of the pool")


def _check_step(step: Mapping[str, Any], source: ScriptSource, *, is_limited: bool, shares_jvm: bool) -> None:
    """Raise SqlError for settings that may not change, and what no JVM that others use may have."""
    keeps = step["kind"] in {"cache", "catalog"} or step.get("cached")
    keeps = keeps or (step["kind"] == "table" and names_bucket(step["options"]))
    keeps = keeps or any(each.get("action", "fail") != "fail" for each in step.get("expectations", ()))
    may_share = not (keeps or step.get("references") or step["kind"] == "function")
    if step["kind"] in {"set", "reset"}:
        key = step["key"]
        may_share = setting_may_share(key, step["value"]) if step["kind"] == "set" else reset_may_share(key)
        if is_limited and key.strip().lower() == _RUN_ON_FILES.lower():
            raise source.error(_SETTING, source.offset(step["line"], step["column"]))
    if shares_jvm and not may_share:
        raise source.error(_OWN_JVM, source.offset(step["line"], step["column"]))


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
    return any(formats_named(passage.tokens) for _, passage in _parts(plan, source))


def _parts(plan: Mapping[str, Any], source: ScriptSource) -> Iterator[tuple[str, Passage]]:
    """All texts of a plan that Spark parses, with what they are."""
    for step in plan["steps"]:
        pieces = [(part, step.get(part)) for part in ("query", "condition", "columns", "statement")]
        for column in (*step.get("computed", ()), *step.get("metadata", ())):
            pieces += [("expression", column.get("expression")), ("type", column["type"])]
        pieces += [("condition", each["condition"]) for each in step.get("expectations", ())]
        for part, text in pieces:
            if text is not None:
                yield part, Passage.from_json(source, text, plan["values"])
