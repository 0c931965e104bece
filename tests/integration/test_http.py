"""Tables over HTTP in jobs: keys of requests over attempts, refused rows, streams, and reads."""

import itertools
import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession

from queues.embedded.ports import free_ports
from spark_runner.connectors.base import Writer
from spark_runner.connectors.errors import ConnectorError, Unreachable
from spark_runner.references.masks import Masks
from spark_runner.references.resolver import Resolver
from spark_runner.references.sources import Sources
from spark_runner.sql.execution.analysis import analyse_script
from spark_runner.sql.execution.execution import execute
from spark_runner.sql.execution.stream_control import StreamControl
from spark_runner.sql.text.errors import SqlError
from tests.servers.web import Received, Reply, WebServer, web_server
from tests.stream_driver import plan_of

GIVEN = """CREATE TABLE given (id BIGINT, name STRING) USING inline OPTIONS (rows
  '[[1, "a/b c"], [2, "two \\\\"2\\\\""], [3, null], [1, "a/b c"]]');
"""
INSERT = "INSERT INTO dst SELECT id, {} FROM given WHERE id < 3"
MANY = "INSERT INTO dst SELECT id FROM range(300)"
COPY = "INSERT INTO dst SELECT * FROM given;"
DOCS = Path(__file__).parents[2] / "docs" / "connectors"
TOKEN = "token-of-ada-77"  # noqa: S105 - of this test alone


def table(url: str, options: str = "", columns: str = "", name: str = "dst") -> str:
    return f"CREATE TABLE {name} {columns} USING http OPTIONS (url '{url}'{options and ', '}{options});\n"


def run(
    spark: SparkSession, text: str, folder: Path, key: str = "run", attempt: int = 1
) -> list[dict[str, Any]]:
    return execute(spark, plan_of(text, folder), lambda _: None, Writer(key, attempt))


def keys(received: Sequence[Received]) -> list[str]:
    return sorted(each.headers["idempotency-key"] for each in received)


def test_a_row_is_a_json_object_and_its_key_is_that_of_each_attempt(
    spark: SparkSession, tmp_path: Path
) -> None:
    with web_server() as server:
        text = GIVEN + table(f"{server.url}/items") + COPY
        (result,) = run(spark, text, tmp_path)
        assert result["rows"] == 4
        first = list(server.received)
        found = sorted((json.loads(each.body) for each in first), key=lambda row: row["id"])
        assert found == [
            {"id": 1, "name": "a/b c"},
            {"id": 1, "name": "a/b c"},
            {"id": 2, "name": 'two "2"'},
            {"id": 3, "name": None},
        ]
        assert len(set(keys(first))) == 4, "two equal rows are two rows"
        server.received.clear()
        run(spark, text, tmp_path, attempt=2)
        assert keys(server.received) == keys(first)
        server.received.clear()
        run(spark, text, tmp_path, key="another run")
        assert not set(keys(server.received)) & set(keys(first))


def test_equal_rows_of_two_inserts_and_of_two_tables_have_keys_of_their_own(
    spark: SparkSession, tmp_path: Path
) -> None:
    with web_server() as server:
        other = table(f"{server.url}/other", name="other")
        insert = "INSERT INTO {} SELECT 1 AS id, 'a' AS name;\n".format
        text = table(f"{server.url}/items") + other + insert("dst") + insert("dst") + insert("other")
        run(spark, text, tmp_path)
        first = keys(server.received)
        assert len(set(first)) == 3
        server.received.clear()
        run(spark, text, tmp_path, attempt=2)
        assert keys(server.received) == first


def test_batches_have_the_same_keys_in_each_attempt(spark: SparkSession, tmp_path: Path) -> None:
    with web_server() as server:
        options = "batch_size 10, parallelism 3, header.X-Tenant 'a'".replace(
            "header.X-Tenant", "`header.X-Tenant`"
        )
        written = "INSERT INTO dst SELECT {} id FROM range(0, 100, 1, {})"
        for hint, parts in (("", 2), ("/*+ REPARTITION(5) */", 7)):
            run(spark, table(server.url, options) + written.format(hint, parts), tmp_path)
        bodies = [each.body for each in server.received]
        half = len(bodies) // 2
        assert sorted(bodies[:half]) == sorted(bodies[half:])
        assert keys(server.received[:half]) == keys(server.received[half:])
        assert sorted(row["id"] for body in bodies[:half] for row in json.loads(body)) == list(range(100))
        assert server.received[0].headers["x-tenant"] == "a"


def test_a_primary_key_makes_the_key_and_columns_make_url_and_body(
    spark: SparkSession, tmp_path: Path
) -> None:
    with web_server() as server:
        columns = "(id BIGINT, name STRING, PRIMARY KEY (id) NOT ENFORCED)"
        options = "method 'put', idempotency_header 'X-Key', body '{{\"title\": \"{name}\"}}'"
        text = GIVEN + table(f"{server.url}/ä/{{id}}/{{name}}?n={{name}}", options, columns)
        for change in ("name", "name || now()"):
            run(spark, text + INSERT.format(change), tmp_path)
        for each in server.received:
            assert each.method == "PUT"
            assert json.loads(each.body)["title"].startswith(("a/b c", 'two "2"'))
        assert server.received[0].path.startswith("/%C3%A4/")
        assert {each.path for each in server.received} >= {
            "/%C3%A4/1/a%2Fb%20c?n=a%2Fb%20c",
            "/%C3%A4/2/two%20%222%22?n=two%20%222%22",
        }
        first, second = server.received[:3], server.received[3:]
        of_each = [sorted(each.headers["x-key"] for each in run) for run in (first, second)]
        assert of_each[0] == of_each[1]
        assert len({*of_each[0]}) == 3, "two rows with one key are two rows"


def test_refused_rows_are_set_aside_and_can_be_read_from_the_quarantine(
    spark: SparkSession, tmp_path: Path
) -> None:
    def picky(received: Received) -> Reply:
        return Reply(422, b"no") if json.loads(received.body)["id"] % 100 == 0 else Reply(201)

    settings = "SET job.error.limit.rows = 10; SET job.quarantine = bad;\n"
    bad = "CREATE TABLE bad WITH ('connector' = 'json', 'path' = 'bad');\n"
    with web_server(picky) as server:
        text = settings + bad + table(f"{server.url}/items") + MANY
        (result,) = run(spark, text, tmp_path)
        assert result["rows"] == 297
        assert len(server.received) == 300
    kept = spark.read.json(str(tmp_path / "bad")).collect()
    assert sorted(json.loads(each.record)["id"] for each in kept) == [0, 100, 200]
    assert {each.reason for each in kept} == {"HTTP 422 no"}


def test_a_stream_sends_the_rows_of_each_micro_batch_once(spark: SparkSession, tmp_path: Path) -> None:
    (tmp_path / "in").mkdir()
    source = "CREATE TABLE src (id BIGINT) USING json OPTIONS (path 'in', max_files_per_trigger 1);\n"
    with web_server() as server:
        text = "SET job.mode = 'available-now';\n" + source + table(f"{server.url}/items")
        text += "INSERT INTO dst SELECT id FROM src"
        for number in range(3):
            (tmp_path / "in" / f"{number}.json").write_text('{"id": 5}\n', "utf-8")
        assert sum(each["rows"] for each in run(spark, text, tmp_path)) == 3
        assert [json.loads(each.body)["id"] for each in server.received] == [5] * 3
        assert len(set(keys(server.received))) == 3, "equal rows of several micro-batches are several rows"
        assert sum(each["rows"] for each in run(spark, text, tmp_path)) == 0
        assert len(server.received) == 3


def items(received: Received) -> Reply:
    start = 2 * int(received.path.partition("page=")[2] or 0)
    found = [{"id": 1, "price": 1.10}, {"id": 2, "at": "2026-01-02T03:04:05Z"}, {"id": "x"}, 7, {"id": 3}]
    return Reply(body=json.dumps({"items": found[start : start + 2]}).encode())


def test_pages_are_typed_rows_and_records_that_do_not_fit_are_set_aside(
    spark: SparkSession, tmp_path: Path
) -> None:
    columns = "(id BIGINT, price DECIMAL(10, 2), at TIMESTAMP)"
    options = "records 'items', paging 'page', first_page 0"
    out = "CREATE TABLE out USING parquet OPTIONS (path 'out');\nINSERT INTO out SELECT * FROM src;"
    bad = "CREATE TABLE bad WITH ('connector' = 'json', 'path' = 'bad');\n"
    settings = "SET job.error.limit.rows = 5; SET job.quarantine = bad;\n"
    with web_server(items) as server:
        source = table(f"{server.url}/items", options, columns, "src")
        (result,) = run(spark, settings + bad + source + out, tmp_path)
        assert result["rows"] == 3
        rows = spark.read.parquet(str(tmp_path / "out")).orderBy("id").collect()
        assert [(row.id, str(row.price), row.at is None) for row in rows] == [
            *((1, "1.10", True), (2, "None", False), (3, "None", True)),
        ]
        records = [row.record for row in spark.read.json(str(tmp_path / "bad")).collect()]
        assert sorted(records) == ["7", '{"id":"x"}']
        with pytest.raises(SqlError, match="does not fit"):
            run(spark, source + out, tmp_path)


@pytest.mark.parametrize("options", ["lane 'l'", "body '{l}', `header.Content-Type` 'text/plain'"])
def test_a_text_that_is_no_utf_8_is_sent_with_a_replacement_character(
    spark: SparkSession, tmp_path: Path, options: str
) -> None:
    with web_server() as server:
        query = "SELECT CAST(unhex('ff41') AS STRING) AS l"
        (result,) = run(spark, table(server.url, options) + f"INSERT INTO dst {query};", tmp_path)
        assert result["rows"] == 1
        (sent,) = server.received
        assert "\ufffdA" in sent.body.decode()


def test_order_by_without_an_order_is_an_error(spark: SparkSession, tmp_path: Path) -> None:
    with web_server() as server:
        with pytest.raises(SqlError, match="option 'order_by' needs a PRIMARY KEY, or order 'strict'"):
            run(spark, table(server.url, "order_by 'id'") + "INSERT INTO dst SELECT 1 AS id;", tmp_path)
        assert not server.received


def test_a_server_that_is_away_or_refuses_is_named(spark: SparkSession, tmp_path: Path) -> None:
    (port,) = free_ports("127.0.0.1", 1)
    with pytest.raises(SqlError, match=f"http://127.0.0.1:{port} does not answer") as found:
        run(spark, GIVEN + table(f"http://127.0.0.1:{port}/items") + COPY, tmp_path)
    assert isinstance(found.value.__cause__, Unreachable)
    with web_server(lambda _: Reply(401, b"")) as server:
        with pytest.raises(SqlError, match=f"{server.url} refused: 401; check the login") as found:
            run(spark, GIVEN + table(f"{server.url}/items") + COPY, tmp_path)
        assert isinstance(found.value.__cause__, ConnectorError)
        source = table(f"{server.url}/items", "", "(id BIGINT)", "src")
        out = "CREATE TABLE out USING parquet OPTIONS (path 'out');\nINSERT INTO out SELECT * FROM src;"
        with pytest.raises(SqlError, match=f"{server.url} refused: 401; check the login"):
            run(spark, source + out, tmp_path)


def test_a_token_by_reference_is_in_no_plan_and_no_error(spark: SparkSession, tmp_path: Path) -> None:
    (tmp_path / "secrets").mkdir()
    (tmp_path / "secrets" / "token").write_text(f"{TOKEN}\n", "utf-8")
    resolver = Resolver(Sources(secrets={"shop": {"folder": str(tmp_path / "secrets")}}), Masks())

    def checked(received: Received) -> Reply:
        given = received.headers["authorization"], received.headers["x-key"]
        return Reply(200 if given == (f"Bearer {TOKEN}", TOKEN) else 500)

    reference = "${secret:shop/token}"
    with web_server(checked) as server:
        options = f"token '{reference}', `header.X-Key` '{reference}', retry_timeout 0.5"
        text = GIVEN + table(f"{server.url}/items", options) + COPY
        plan = plan_of(text, tmp_path)
        assert TOKEN not in str(plan)
        (result,) = execute(spark, plan, lambda _: None, resolver=resolver)
        assert result["rows"] == 4
        explained = analyse_script(spark, plan, connect=True, with_plan=True, resolver=resolver)
        assert [each["ok"] for each in explained["probes"] if each["table"] == "dst"] == [True]
        assert TOKEN not in str(explained)
        assert len(server.received) == 4, "a probe sends no request"
        server.reply = lambda received: Reply(401, received.headers["authorization"].encode())
        with pytest.raises(SqlError) as caught:
            execute(spark, plan, lambda _: None, resolver=resolver)
        assert "refused: 401 Bearer ***; check the login" in str(caught.value)
        assert TOKEN not in str(caught.value)


@pytest.mark.parametrize("length", [20, 172, 1_000])
def test_a_record_in_an_error_has_no_part_of_a_secret(
    spark: SparkSession, tmp_path: Path, length: int
) -> None:
    (tmp_path / "token").write_text(TOKEN, "utf-8")
    resolver = Resolver(Sources(secrets={"shop": {"folder": str(tmp_path)}}), Masks())
    source = table("{url}/items", "token '${secret:shop/token}'", "(id BIGINT)", "src")
    out = "CREATE TABLE out USING parquet OPTIONS (path 'out');\nINSERT INTO out SELECT * FROM src;"
    record = {"id": length * "x", "login": TOKEN}
    with web_server(lambda _: Reply(body=json.dumps(record).encode())) as server:
        plan = plan_of(source.replace("{url}", server.url) + out, tmp_path)
        with pytest.raises(SqlError, match=r"a record does not fit the declared columns: .*xxx") as caught:
            execute(spark, plan, lambda _: None, resolver=resolver)
    assert TOKEN[:6] not in str(caught.value)


def test_a_lost_answer_and_a_restart_of_the_job_repeat_the_same_keys(
    spark: SparkSession, tmp_path: Path
) -> None:
    turns = itertools.count()

    def flaky(_: Received) -> Reply:
        turn = next(turns)
        return Reply(drop=turn % 3 == 0, status=503 if turn > 20 else 200)

    text = "INSERT INTO dst SELECT id FROM range(40)"
    with web_server(flaky) as server:
        script = table(server.url, "retry_timeout 0.5") + text
        with pytest.raises(SqlError, match=r"answers 503|does not answer") as found:
            run(spark, script, tmp_path)
        assert isinstance(found.value.__cause__, Unreachable)
        server.reply = lambda _: Reply()
        (result,) = run(spark, script, tmp_path, attempt=2)
        assert result["rows"] == 40
        assert_once_by_key(server, 40)


def assert_once_by_key(server: WebServer, rows: int) -> None:
    """A receiver that honours the keys has each row once."""
    by_key = {each.headers["idempotency-key"]: each.body for each in server.received}
    assert len(server.received) > rows
    assert sorted(json.loads(body)["id"] for body in by_key.values()) == list(range(rows))


def test_the_script_of_the_documentation_copies_from_one_service_to_another(
    spark: SparkSession, tmp_path: Path
) -> None:
    texts = {"token": TOKEN, "password": "of-billing"}
    for name, text in texts.items():
        (tmp_path / name).write_text(text, "utf-8")
    folder = {"folder": str(tmp_path)}
    resolver = Resolver(Sources(secrets={"shop": folder, "billing": folder}), Masks())

    def orders(received: Received) -> Reply:
        assert received.headers["authorization"] == f"Bearer {TOKEN}"
        start = int(received.path.partition("after=")[2] or 0)
        found = [{"id": start + n, "customer": "ada", "amount": (start + n) / 4} for n in range(3)]
        return Reply(
            body=json.dumps({"data": {"items": found, "next": start + 3 if start < 6 else None}}).encode()
        )

    shown = (DOCS / "http.md").read_text("utf-8").partition("```sql\n")[2].partition("```")[0]
    with web_server(orders) as shop, web_server() as billing:
        text = shown.replace("https://shop.example.org", shop.url)
        text = text.replace("https://billing.example.org", billing.url)
        (result,) = execute(spark, plan_of(text, tmp_path), lambda _: None, resolver=resolver)
    assert result["rows"] == 8
    assert {each.path: each.body for each in billing.received}["/invoices/7"] == (
        b'{"id":7,"customer":"ada","amount":1.75}'
    )
    assert billing.received[0].headers["authorization"].startswith("Basic ")
    assert len(shop.received) == 3


def test_a_further_attempt_goes_on_after_the_rows_that_are_delivered(
    spark: SparkSession, tmp_path: Path
) -> None:
    rows, limit = 3000, 1700

    def fails(_: Received) -> Reply:
        return Reply(503 if len(server.received) > limit else 200)

    options = "retry_timeout 0.3, parallelism 1, concurrency 4"
    insert = "INSERT INTO dst SELECT id FROM range({})".format
    with web_server(fails) as server:
        script = table(server.url, options) + insert(rows)
        first = StreamControl()
        with pytest.raises(SqlError, match="answers 503"):
            execute(spark, plan_of(script, tmp_path), lambda _: None, Writer("run", 1), control=first)
        kept = first.pushes.positions()
        assert list(kept["attempt"]) == ["dst#0"]
        taken = len(server.received)
        server.reply = lambda _: Reply()
        second = StreamControl()
        second.pushes.follow(json.loads(json.dumps(kept)))
        (result,) = execute(
            spark, plan_of(script, tmp_path), lambda _: None, Writer("run", 2), control=second
        )
        assert result["rows"] == rows
        assert len(server.received) - taken < rows - 1000, "it does not begin anew"
        assert {json.loads(each.body)["id"] for each in server.received} == set(range(rows))
        # Other rows than those that were delivered are all sent.
        server.received.clear()
        third = StreamControl()
        third.pushes.follow(kept)
        script = table(server.url, options) + insert(f"1, {rows}")
        (result,) = execute(spark, plan_of(script, tmp_path), lambda _: None, Writer("run", 3), control=third)
        assert result["rows"] == rows - 1
        assert {json.loads(each.body)["id"] for each in server.received} == set(range(1, rows))


def test_batches_of_an_attempt_that_failed_have_the_same_keys_and_come_again_if_they_must(
    spark: SparkSession, tmp_path: Path
) -> None:
    rows, effects = 3000, dict[str, list[int]]()

    def takes_each_key_once(received: Received) -> Reply:
        if is_down and len(effects) == 4:
            return Reply(503)
        effects.setdefault(
            received.headers["idempotency-key"], [row["id"] for row in json.loads(received.body)]
        )
        return Reply()

    is_down = True
    with web_server(takes_each_key_once) as server:
        options = "batch_size 400, retry_timeout 0.3, parallelism 1, concurrency 1"
        script = table(server.url, options) + MANY.replace("300", str(rows))
        first, second = StreamControl(), StreamControl()
        with pytest.raises(SqlError, match="answers 503"):
            execute(spark, plan_of(script, tmp_path), lambda _: None, Writer("run", 1), control=first)
        is_down = False
        second.pushes.follow(first.pushes.positions())
        taken, before = [*effects], len(server.received)
        execute(spark, plan_of(script, tmp_path), lambda _: None, Writer("run", 2), control=second)
        again = [each.headers["idempotency-key"] for each in server.received[before:]]
    assert sorted(each for ids in effects.values() for each in ids) == list(range(rows))
    assert [key for key in again if key in taken] == taken[
        3:
    ]  # only its first 300 rows are before the position


def test_a_row_that_has_changed_meanwhile_is_sent_although_its_key_was_delivered(
    spark: SparkSession, tmp_path: Path
) -> None:
    def fails(_: Received) -> Reply:
        return Reply(503 if len(server.received) > 1700 else 200)

    columns = "(id BIGINT, v STRING, PRIMARY KEY (id) NOT ENFORCED)"
    insert = "INSERT INTO dst SELECT id, if(id < 5, '{}', 'same') AS v FROM range(3000)".format
    with web_server(fails) as server:
        made = table(server.url, "retry_timeout 0.3, parallelism 1, concurrency 4", columns)
        first, second = StreamControl(), StreamControl()
        with pytest.raises(SqlError, match="answers 503"):
            execute(
                spark,
                plan_of(made + insert("old"), tmp_path),
                lambda _: None,
                Writer("run", 1),
                control=first,
            )
        server.reply = lambda _: Reply()
        server.received.clear()
        second.pushes.follow(first.pushes.positions())
        script = plan_of(made + insert("new"), tmp_path)
        execute(spark, script, lambda _: None, Writer("run", 2), control=second)
        sent = [json.loads(each.body) for each in server.received]
    assert {row["id"] for row in sent if row["v"] == "new"} == set(range(5))


def test_refused_rows_come_again_in_a_further_attempt(spark: SparkSession, tmp_path: Path) -> None:
    def reply(received: Received) -> Reply:
        is_late = len(server.received) > 2500
        return Reply(422 if b'"id":77}' in received.body else 503 if is_late else 200)

    settings = "SET job.error.limit.rows = 10; SET job.quarantine = bad;\n"
    bad = "CREATE TABLE bad WITH ('connector' = 'json', 'path' = 'bad');\n"
    options = "retry_timeout 0.3, parallelism 1, concurrency 4"
    with web_server(reply) as server:
        script = settings + bad + table(server.url, options) + MANY.replace("300", "3000")
        first = StreamControl()
        with pytest.raises(SqlError, match="answers 503"):
            execute(spark, plan_of(script, tmp_path), lambda _: None, Writer("run", 1), control=first)
        server.reply = lambda received: Reply(422 if b'"id":77}' in received.body else 200)
        second = StreamControl()
        second.pushes.follow(first.pushes.positions())
        (result,) = execute(
            spark, plan_of(script, tmp_path), lambda _: None, Writer("run", 2), control=second
        )
    assert result["rows"] == 2999
    (kept,) = spark.read.json(str(tmp_path / "bad")).collect()
    assert json.loads(kept.record) == {"id": 77}
