"""`orchestrator sql plan`: what a script reads and writes, and of which columns its targets are made."""

import json
from pathlib import Path
from typing import Any
from xml.etree import ElementTree as ET

import pytest

from orchestrator.cli.app import run_app

SCRIPT = """\
CREATE TABLE orders (id INT, customer INT, price DECIMAL(8, 2)) USING csv OPTIONS (path 'in/orders');
CREATE TABLE customers (id INT, city STRING) USING json OPTIONS (path 'in/customers');
CREATE TABLE raw USING json OPTIONS (path 'in/raw');
CREATE TABLE totals (city STRING, total INT, n INT) USING parquet OPTIONS (path 'out/totals');
CREATE TABLE shown USING print;
CREATE VIEW sales AS SELECT c.city, o.price * 2 AS gross FROM orders o JOIN customers c ON o.customer = c.id;
INSERT OVERWRITE totals SELECT city, sum(gross), count(*) FROM sales GROUP BY city;
INSERT INTO totals BY NAME SELECT 1 AS n, city, max(id) AS total FROM customers GROUP BY city;
INSERT INTO shown SELECT *, 1 AS one FROM raw;
INSERT INTO shown SELECT r.a AS a, o.id FROM raw r JOIN orders o ON r.id = o.id;
SELECT * FROM csv.`/data/x` JOIN totals;
"""


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "a.sql").write_text(SCRIPT)
    return tmp_path


def planned(capsys: pytest.CaptureFixture[str], *arguments: str) -> Any:
    assert run_app(["sql", "plan", *arguments]) == 0
    return capsys.readouterr().out


def test_each_statement_shows_what_it_reads_and_writes(capsys: pytest.CaptureFixture[str]) -> None:
    rows = [line.split() for line in planned(capsys, "a.sql").splitlines()[2:]]
    assert rows[0] == ["1", "CREATE", "TABLE", "orders", "csv", "in/orders"]
    assert rows[5] == ["6", "CREATE", "VIEW", "sales", "orders,", "customers"]
    assert rows[6] == [
        "7",
        "INSERT",
        "OVERWRITE",
        "sales",
        "totals",
        "parquet",
        "exactly",
        "once",
        "out/totals",
    ]
    assert rows[10] == ["11", "query", "totals,", "csv:/data/x"]


def test_each_column_of_a_target_shows_what_it_is_made_of(capsys: pytest.CaptureFixture[str]) -> None:
    found = [line.split(maxsplit=3) for line in planned(capsys, "a.sql", "--columns").splitlines()[2:]]
    assert [[cell.strip() for cell in row] for row in found] == [
        ["7", "totals", "city", "customers.city"],
        ["7", "totals", "total", "orders.price"],
        ["7", "totals", "n"],
        ["8", "totals", "city", "customers.city"],
        ["8", "totals", "total", "customers.id"],
        ["8", "totals", "n"],
        ["9", "shown", "unknown", "unknown"],
        ["10", "shown", "a", "unknown"],
        ["10", "shown", "id", "orders.id"],
    ]


def test_a_column_through_views_sets_and_definitions_keeps_its_origins(
    folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (folder / "b.sql").write_text(
        """\
CREATE TABLE a (x INT, y INT) USING csv OPTIONS (path 'a');
CREATE TABLE b (x INT, z AS x + 1) USING csv OPTIONS (path 'b');
CREATE TABLE p USING print;
CREATE VIEW v AS WITH w AS (SELECT y AS k FROM a UNION ALL SELECT z FROM b)
  SELECT k, (SELECT max(x) FROM b) m FROM w;
INSERT INTO p SELECT CASE WHEN k > 1 THEN m END AS c, t.k, transform(array(k), e -> e + m) AS l FROM v t
"""
    )
    found = json.loads(planned(capsys, "b.sql", "-o", "json"))
    assert found[-1]["columns"] == [
        {"column": "c", "from": ["a.y", "b.x", "b.z"], "complete": True},
        {"column": "k", "from": ["a.y", "b.z"], "complete": True},
        {"column": "l", "from": ["a.y", "b.x", "b.z"], "complete": True},
    ]


@pytest.mark.parametrize(
    ("query", "expected"),
    [
        ("* FROM a JOIN", {"k": ["a.k", "b.k"], "j": ["a.j", "b.j"], "x": ["a.x"], "y": ["b.y"]}),
        ("* FROM a FULL JOIN", {"k": ["a.k", "b.k"], "j": ["a.j", "b.j"], "x": ["a.x"], "y": ["b.y"]}),
        ("* EXCEPT (j) FROM a JOIN", {"k": ["a.k", "b.k"], "x": ["a.x"], "y": ["b.y"]}),
        ("b.* FROM a JOIN", {"k": ["b.k"], "j": ["b.j"], "y": ["b.y"]}),
        ("* FROM a LEFT SEMI JOIN", {"k": ["a.k"], "j": ["a.j"], "x": ["a.x"]}),
    ],
)
def test_a_star_over_a_join_by_using_has_its_columns_once_and_first(
    query: str, expected: dict[str, list[str]], folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (folder / "b.sql").write_text(
        "CREATE TABLE a (x INT, j INT, k INT) USING json OPTIONS (path 'a');"
        "CREATE TABLE b (k INT, y INT, j INT) USING json OPTIONS (path 'b');"
        "CREATE TABLE t USING json OPTIONS (path 't');"
        f"INSERT INTO t SELECT {query} b USING (k, j)"
    )
    found = json.loads(planned(capsys, "b.sql", "-o", "json"))[-1]["columns"]
    assert [(each["column"], each["from"]) for each in found] == list(expected.items())


def test_a_plan_shows_the_mode_and_what_each_write_promises(
    folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run_app(["sql", "plan", "a.sql"]) == 0
    assert capsys.readouterr().err == "mode: batch\n"
    tables = (
        "CREATE TABLE o (id INT) USING json OPTIONS (path 'o'); CREATE TABLE p USING print;"
        " CREATE TABLE q (id INT) USING parquet OPTIONS (path 'q');"
    )
    inserts = "INSERT INTO p SELECT id FROM o; INSERT INTO q SELECT id FROM o"
    for mode, seconds, shown in (
        ("available-now", None, "available-now"),
        ("streaming", 1.5, "streaming, a trigger each 1.5 s"),
    ):
        trigger = "SET job.trigger = '1500 ms';" if seconds else ""
        (folder / "b.sql").write_text(f"SET job.mode = '{mode}';{trigger} {tables} {inserts}")
        found = json.loads(planned(capsys, "b.sql", "-o", "json", "--svg", "b.svg"))
        assert [
            (each["mode"], each["trigger_seconds"], each["guarantee"]) for each in found if each["writes"]
        ] == [
            (mode, seconds, "at least once"),
            (mode, seconds, "exactly once"),
        ]
        assert f"q: parquet {folder}/q; {shown}; exactly once" in (folder / "b.svg").read_text()
        assert run_app(["sql", "plan", "b.sql"]) == 0
        assert capsys.readouterr().err == f"mode: {shown}\n"
        assert run_app(["sql", "plan", "b.sql", "-q"]) == 0
        assert capsys.readouterr().err == ""
    (folder / "c.sql").write_text("MERGE INTO c.n.t USING c.n.s ON t.id = s.id WHEN MATCHED THEN DELETE")
    (write,) = json.loads(planned(capsys, "c.sql", "-o", "json"))
    assert write["guarantee"].startswith("a further attempt runs it again")


def test_json_has_one_document_per_statement(capsys: pytest.CaptureFixture[str]) -> None:
    whole = json.loads(planned(capsys, "a.sql", "-o", "json"))
    lines = [json.loads(line) for line in planned(capsys, "a.sql", "-o", "jsonl").splitlines()]
    assert whole == lines
    assert [each["line"] for each in whole] == list(range(1, 12))


def test_the_picture_is_valid_and_holds_each_table_view_and_target(
    folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    planned(capsys, "a.sql", "--svg", "a.svg")
    root = ET.fromstring((folder / "a.svg").read_text())  # noqa: S314 - our own picture
    space = "{http://www.w3.org/2000/svg}"
    titles = [title.text or "" for title in root.iter(f"{space}title")]
    assert [title.split(":")[0] for title in titles] == [
        *("orders", "customers", "sales", "totals", "raw", "shown", "csv", "query in line 11"),
    ]
    boxes = [(int(r.get("x", 0)), int(r.get("y", 0))) for r in root.iter(f"{space}rect")][1:]
    assert len(set(boxes)) == len(boxes)
    assert "prefers-color-scheme: dark" in (folder / "a.svg").read_text()


def test_names_in_a_picture_cannot_add_elements_to_it(
    folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (folder / "b.sql").write_text("CREATE VIEW `<script>&\x01` AS SELECT 1; SELECT * FROM `<script>&\x01`")
    planned(capsys, "b.sql", "--svg", "b.svg")
    root = ET.fromstring((folder / "b.svg").read_text())  # noqa: S314 - our own picture
    assert not [element for element in root.iter() if "script" in element.tag]


@pytest.mark.parametrize(
    ("text", "arguments", "message"),
    [
        ("SELEC 1", (), "a.sql:1:1: 'SELEC' is not supported here"),
        ("SELECT 1", ("--svg", "missing/a.svg"), "--svg missing/a.svg: cannot be written: No such file"),
    ],
)
def test_a_plan_that_cannot_be_made_is_a_usage_error(
    text: str, arguments: tuple[str, ...], message: str, folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (folder / "a.sql").write_text(text)
    assert run_app(["sql", "plan", "a.sql", *arguments]) == 2
    assert message in capsys.readouterr().err
