# ruff: noqa: E501, ISC004 - scripts that are too long for a line
"""`orchestrator sql fmt`: the canonical form, which means the same and stays as it is."""

import io
import re
import sys
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from orchestrator.cli.app import run_app
from orchestrator.sql.format.dialects import Dialect, rewritten
from orchestrator.sql.format.script import format_script
from spark_runner.sql.compiler.compile import check_script
from spark_runner.sql.text.errors import SqlError
from spark_runner.sql.text.passage import Passage
from spark_runner.sql.text.source import ScriptSource
from spark_runner.sql.text.tokens import TokenKind, meaningful, tokenize
from tests import bounded
from tests.corpus.reading import right_scripts, wrong_scripts
from tests.unit.test_sql_limits import COMPILED

POSITIONS = {"line", "column", "path_at"}
ROOT = Path(__file__).parents[2]
PAGES = [
    re.findall(r"^```sql\n(.*?)^```$", page.read_text(), re.MULTILINE | re.DOTALL)
    for page in ROOT.glob("docs/*.md")
]
# Every text of the tests that compiles as a script.
LITERALS = [
    text
    for file in sorted(ROOT.glob("tests/**/test_sql_*.py"))
    for text in re.findall(
        r'"((?:CREATE|INSERT|SELECT|WITH|SET|ASSERT|EXPLAIN|EXECUTE|BEGIN)[^"\\{]+)"', file.read_text()
    )
]
CATALOG_SCRIPTS = [
    "merge into a.b using c.d on true when matched then delete",
    "merge into a.b set using c.d using on set.id = using.id when matched then update set using = 1",
    "merge into a.b using c.d on x = case when y then 1 end when not matched and z then insert (a) values (case when 1 then 2 end)",
    "merge into a.${b} t using ${s} s on t.id = s.id when matched then update set *",
    "merge into a.b using c.d on true when matched -- why\n then delete",
    "delete from a.b where where = 1 and x in (select y from z.w)",
    "delete from a.b `as` where true",
    "use table; use `catalog`; use catalog.x; use ${c}.d",
    "show tables from from like 'x'; show namespaces; show columns in a.b from c",
    "describe a.table; desc table table.b; refresh table table.table; analyze table a.b compute statistics",
    "create database if not exists if.not; create namespace if not exists `a b`.c location 'x'",
]
SCRIPTS = [
    *CATALOG_SCRIPTS,
    *right_scripts(),
    *(each.tables + each.text for each in wrong_scripts()),
    *(script for page in PAGES for script in page),
    *(path.read_text() for path in sorted(ROOT.glob("examples/*.sql"))),
    *dict.fromkeys(LITERALS),
]
UGLY = """\
-- Sales per city
set spark.sql.shuffle.partitions   = 4;
create table orders (id int, price decimal(8, 2),
   gross as price*1.19, CONSTRAINT ok EXPECT (price>0) ON VIOLATION FAIL, `select` array<struct<a:int>>) using csv options(path 'in', header   true);   -- from the shop


create table p using print; create view sales as select o.id, c.name, upper( o.city ) as city, o.price*1.19 as gross, case when o.price between 1 and 2 and true then 'x' else 'y' end as kind
from orders o left join customers c on o.customer=c.id and c.city in('Paris','Rome') where o.price>-1 and (c.city is not null or o.day >= date'2026-01-01') group by all;
execute statement set begin insert into p select id,name from sales where city='${city:-Paris}' and n = ${n}; insert overwrite table p by name
 select /*+ broadcast(c) */ * from (select id, name, row_number() over(partition by id order by name desc) as n, count(*) as `from` from sales) where n = 1;
end;
select a, -- why
  b from x
; /* one */ -- two
assert (select count(*) from p)>0, 'm' -- end
"""
CANONICAL = """\
-- Sales per city
SET spark.sql.shuffle.partitions   = 4;
CREATE TABLE orders (
  id int,
  price decimal(8, 2),
  gross as price*1.19,
  CONSTRAINT ok EXPECT (price>0) ON VIOLATION FAIL,
  `select` array<struct<a:int>>
) USING csv OPTIONS (path 'in', header true); -- from the shop

CREATE TABLE p USING print;
CREATE VIEW sales AS
SELECT
  o.id,
  c.name,
  upper(o.city) AS city,
  o.price*1.19 AS gross,
  CASE WHEN o.price BETWEEN 1 AND 2 AND TRUE THEN 'x' ELSE 'y' END AS kind
FROM orders o
LEFT JOIN customers c ON o.customer = c.id AND c.city IN ('Paris', 'Rome')
WHERE o.price>-1 AND (c.city IS NOT NULL OR o.day >= date'2026-01-01')
GROUP BY ALL;
EXECUTE STATEMENT SET BEGIN
  INSERT INTO p SELECT id, name FROM sales WHERE city = '${city:-Paris}' AND n = ${n};
  INSERT OVERWRITE TABLE p BY NAME
  SELECT /*+ broadcast(c) */ * FROM (
    SELECT id, name, row_number() OVER (PARTITION BY id ORDER BY name DESC) AS n, count(*) AS `from`
    FROM sales
  )
  WHERE n = 1;
END;
select a, -- why
  b from x; /* one */ -- two
ASSERT (SELECT count(*) FROM p)>0, 'm'; -- end
"""

CATALOGS = """\
merge into cat.db.t as t using src as s on t.id=s.id and (s.x is not null or case when s.y then 1 else 0 end = 1)
 when matched and s.kind in('a','b') then delete when matched then update set name=s.name, price = case when s.price is null then t.price else s.price end, other_column_with_a_long_name = s.other_column_with_a_long_name
 when not matched by target then insert (id,name) values(s.id,coalesce(s.name,'x')) when not matched by source then delete;
merge into t.u using (select id, name, row_number() over(partition by id order by name desc) as n, count(*) as many_rows_of_this from sales where x is null group by id) as s on t.id = s.id when not matched then insert *;
delete from cat.db.t where id in(select id from gone);
delete from cat.db.t as x where x.a is null and x.name like 'a long text that does not fit%' or x.d between 3 and 4 and x.e = 5;
use catalog mem; use mem.db; use namespace mem.db; use catalog; use database.x; show tables in mem.db like '*'; show catalogs; show columns from t in in.y;
describe table a.b; desc a.b; analyze table a.b compute statistics for columns id, all; refresh table a.b;
create namespace if not exists a.b comment 'x' with properties(a='b'); create schema if not exists database;
"""
CANONICAL_CATALOGS = """\
MERGE INTO cat.db.t AS t
USING src AS s
ON t.id = s.id AND (s.x IS NOT NULL OR CASE WHEN s.y THEN 1 ELSE 0 END = 1)
WHEN MATCHED AND s.kind IN ('a', 'b') THEN DELETE
WHEN MATCHED THEN UPDATE SET
  name = s.name,
  price = CASE WHEN s.price IS NULL THEN t.price ELSE s.price END,
  other_column_with_a_long_name = s.other_column_with_a_long_name
WHEN NOT MATCHED BY TARGET THEN INSERT (id, name) VALUES (s.id, coalesce(s.name, 'x'))
WHEN NOT MATCHED BY SOURCE THEN DELETE;
MERGE INTO t.u
USING (
  SELECT
    id,
    name,
    row_number() OVER (PARTITION BY id ORDER BY name DESC) AS n,
    count(*) AS many_rows_of_this
  FROM sales
  WHERE x IS NULL
  GROUP BY id
) AS s
ON t.id = s.id
WHEN NOT MATCHED THEN INSERT *;
DELETE FROM cat.db.t WHERE id IN (SELECT id FROM gone);
DELETE FROM cat.db.t AS x
WHERE x.a IS NULL
  AND x.name LIKE 'a long text that does not fit%'
  OR x.d BETWEEN 3 AND 4
  AND x.e = 5;
USE CATALOG mem;
USE mem.db;
USE NAMESPACE mem.db;
USE catalog;
USE database.x;
SHOW TABLES IN mem.db LIKE '*';
SHOW CATALOGS;
SHOW COLUMNS FROM t IN in.y;
DESCRIBE TABLE a.b;
DESC a.b;
ANALYZE TABLE a.b COMPUTE STATISTICS FOR COLUMNS id, all;
REFRESH TABLE a.b;
CREATE NAMESPACE IF NOT EXISTS a.b COMMENT 'x' WITH PROPERTIES (a = 'b');
CREATE SCHEMA IF NOT EXISTS database;
"""


def form(text: str, dialect: Dialect | None = None) -> str:
    source = ScriptSource("s.sql", text)
    return format_script(source) if dialect is None else format_script(source, partial(rewritten, dialect))


def words(text: str, *, comments: bool = False) -> list[str]:
    """The tokens, words in upper case."""
    return [
        token.text.upper() if token.kind is TokenKind.WORD else token.text
        for token in tokenize(ScriptSource("s.sql", text))
        if token.kind is not TokenKind.END
        and (meaningful(token) or (comments and token.kind is TokenKind.COMMENT))
    ]


def meaning(text: str) -> object:
    """The plan without places: its texts as tokens; for a script with errors their messages without lines."""
    check = check_script(text, file="s.sql", base_dir="/base", variables={"day": "x y", "a": "1", "n": "2"})
    plan = check.plan
    if plan is None:
        return sorted(re.sub(r"\bLINE \d+", "LINE", error.message.upper()) for error in check.errors)
    source = ScriptSource("s.sql", text)

    def plain(value: Any) -> Any:
        match value:
            case [[int(), *_], *_]:
                return words(Passage.from_json(source, value, plan["values"]).text)
            case dict():
                return {key: plain(each) for key, each in value.items() if key not in POSITIONS}
            case list():
                return [plain(each) for each in value]
        return value

    return plain({key: value for key, value in plan.items() if key not in {"source", "values"}})


def test_a_script_gets_its_canonical_form() -> None:
    assert form(UGLY) == CANONICAL


def test_statements_on_catalogs_get_their_canonical_form() -> None:
    assert form(CATALOGS) == CANONICAL_CATALOGS
    assert words(CANONICAL_CATALOGS) == words(CATALOGS)
    assert form(CANONICAL_CATALOGS) == CANONICAL_CATALOGS


def test_there_are_many_scripts() -> None:
    assert len(SCRIPTS) > 300


@pytest.mark.parametrize("number", range(len(SCRIPTS)))
def test_formatting_keeps_the_meaning_and_is_done_once(number: int) -> None:
    text = SCRIPTS[number]
    try:
        once = form(text)
    except SqlError:
        assert not check_script(text, file="s.sql", base_dir="/", variables={}).plan
        return
    assert words(once, comments=True) == words(text, comments=True)
    assert meaning(once) == meaning(text)
    assert form(once) == once


@pytest.mark.parametrize("dialect", Dialect)
@pytest.mark.parametrize("number", range(len(SCRIPTS)))
def test_the_other_dialect_has_the_same_plan(number: int, dialect: Dialect) -> None:
    text = SCRIPTS[number]
    before = meaning(text)
    if isinstance(before, list):
        return  # messages name the options as they are written
    once = form(text, dialect)
    assert meaning(once) == before
    assert form(once, dialect) == once
    assert meaning(form(once, next(each for each in Dialect if each is not dialect))) == before


SPACES = st.sampled_from(["", " ", "\n", "\n\n\n  ", "\t", " -- c\n", "/* c */", "\r\n"])


@given(st.data(), st.sampled_from(SCRIPTS))
def test_any_space_and_comments_keep_their_meaning(data: st.DataObject, text: str) -> None:
    try:
        tokens = list(tokenize(ScriptSource("s.sql", text)))
    except SqlError:
        return
    spaced = "".join(
        (data.draw(SPACES) or token.text) if token.kind is TokenKind.SPACE else token.text for token in tokens
    )
    once = form(spaced)
    assert words(once, comments=True) == words(spaced, comments=True)
    assert form(once) == once


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("select from from t", "select from from t;\n"),
        ("select a as order from t order by order", None),
        ("insert into table by name select 1 as a", "INSERT INTO table BY NAME SELECT 1 AS a;\n"),
        ("insert into table t select 1", "INSERT INTO TABLE t SELECT 1;\n"),
        ("insert into `t` table select", "INSERT INTO `t` table select;\n"),
        ("create table using using print", "CREATE TABLE using USING print;\n"),
        ("create table t using print options(limit 3)", "CREATE TABLE t USING print OPTIONS (limit 3);\n"),
        ("SELECT t_${day}, ${a}x, ( ${a} )", None),
        ("SELECT a<b, a <b, x->1, m:a.b, a::int, -1, - 1", None),
        ("SELECT 'a\n  b'   ,  1", "SELECT 'a\n  b'   ,  1;\n"),
        (";;\n;", ""),
        ("-- only\n\n\n\n/* comments */", "-- only\n\n/* comments */\n"),
        ("", ""),
        ("SELECT 1 -- x\n;", "SELECT 1 -- x\n;\n"),
    ],
)
def test_names_variables_and_texts_stay(text: str, expected: str | None) -> None:
    found = form(text)
    assert words(found) == words(text)
    assert set(re.findall(r"`[^`]*`|'[^']*'", text)) <= set(re.findall(r"`[^`]*`|'[^']*'", found))
    if expected is not None:
        assert found == expected
    assert form(found) == found


@pytest.mark.parametrize(
    ("text", "dialect", "expected"),
    [
        (
            "CREATE TABLE t USING csv OPTIONS (path '${x}', delimiter ';', header false, null_value \"-\","
            " escape '|')",
            Dialect.FLINK,
            "CREATE TABLE t WITH (\n  'connector' = 'filesystem',\n  'format' = 'csv',\n  'path' = '${x}',\n"
            "  'csv.field-delimiter' = ';',\n  'header' = 'false',\n  'csv.null-literal' = \"-\",\n"
            "  'csv.escape-character' = '|'\n);\n",
        ),
        (
            "CREATE TABLE t WITH ('connector.type'='filesystem','format.type'='csv', 'update-mode'='append',"
            "'connector.path' = 'a', 'format.field-delimiter'=';', 'x-y' = 'z')",
            Dialect.SPARK,
            "CREATE TABLE t USING csv OPTIONS (path 'a', delimiter ';', 'x-y' 'z');\n",
        ),
        (
            "CREATE TABLE t WITH ('connector'='print', 'limit'=-1)",
            Dialect.SPARK,
            "CREATE TABLE t USING print OPTIONS (limit -1);\n",
        ),
        ("CREATE TABLE t USING print", Dialect.FLINK, "CREATE TABLE t WITH ('connector' = 'print');\n"),
        ("CREATE TABLE t USING ${c}", Dialect.FLINK, "CREATE TABLE t USING ${c};\n"),
        (
            "CREATE TABLE t USING csv OPTIONS (-- why\n path 'a')",
            Dialect.FLINK,
            "CREATE TABLE t USING csv OPTIONS (-- why\n path 'a');\n",
        ),
        (
            "CREATE TABLE t WITH ('connector'='print', 'update-mode'='upsert')",
            Dialect.SPARK,
            "CREATE TABLE t WITH ('connector' = 'print', 'update-mode' = 'upsert');\n",
        ),
    ],
)
def test_create_table_is_written_in_the_other_dialect(text: str, dialect: Dialect, expected: str) -> None:
    assert form(text, dialect) == expected


@pytest.mark.parametrize("weapon", COMPILED)
def test_a_hostile_script_is_formatted_in_little_time_and_memory(weapon: str) -> None:
    found = bounded.outcome(lambda: len(form(COMPILED[weapon][0])))
    assert isinstance(found, int)


# ---------------------------------------------------------------------- the command
@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    return tmp_path


def test_files_are_replaced_with_their_permissions_behind_links(folder: Path) -> None:
    (folder / "real.sql").write_text("select 1")
    (folder / "real.sql").chmod(0o640)
    (folder / "link.sql").symlink_to("real.sql")
    assert run_app(["sql", "fmt", "link.sql"]) == 0
    assert (folder / "link.sql").is_symlink()
    assert (folder / "real.sql").read_text() == "SELECT 1;\n"
    assert (folder / "real.sql").stat().st_mode & 0o777 == 0o640
    assert sorted(path.name for path in folder.iterdir()) == ["link.sql", "real.sql"]


def test_check_writes_nothing(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (folder / "a.sql").write_text("select 1")
    (folder / "b.sql").write_text("SELECT 1;\n")
    assert run_app(["sql", "fmt", "--check", "a.sql", "b.sql"]) == 1
    assert (folder / "a.sql").read_text() == "select 1"
    assert capsys.readouterr().err == "a.sql: would be formatted\n"
    assert run_app(["sql", "fmt", "--check", "b.sql"]) == 0


def test_standard_input_goes_to_standard_output(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(b"create table p using print"), "utf-8"))
    assert run_app(["sql", "fmt", "-", "--to", "flink"]) == 0
    assert capsys.readouterr().out == "CREATE TABLE p WITH ('connector' = 'print');\n"


@pytest.mark.parametrize(
    ("name", "text", "message"),
    [
        ("a.sql", "select 'x", "a.sql:1:8: this string has no closing quote"),
        ("a.yaml", "script: select 1", "only scripts (.sql) can be formatted"),
        ("missing.sql", None, "missing.sql: cannot be read: No such file or directory"),
    ],
)
def test_what_cannot_be_formatted_stays(
    name: str, text: str | None, message: str, folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    if text is not None:
        (folder / name).write_text(text)
    assert run_app(["sql", "fmt", name]) == 2
    assert message in capsys.readouterr().err
    assert text is None or (folder / name).read_text() == text


def test_the_line_ends_of_a_file_stay(folder: Path) -> None:
    (folder / "a.sql").write_bytes(b"-- a\r\nselect 1;\r\nselect 2")
    assert run_app(["sql", "fmt", "a.sql"]) == 0
    assert (folder / "a.sql").read_bytes() == b"-- a\r\nSELECT 1;\r\nSELECT 2;\r\n"
