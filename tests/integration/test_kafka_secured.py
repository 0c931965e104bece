"""Logins, TLS and rights on a real Kafka; the password is a reference, and nowhere to be seen."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession

from spark_runner.references.masks import Masks
from spark_runner.references.resolver import Resolver
from spark_runner.references.sources import Sources
from spark_runner.sql.execution.analysis import analyse_script
from spark_runner.sql.execution.execution import execute
from spark_runner.sql.text.errors import SqlError
from tests.kafka_support import add_kafka
from tests.servers.kafka import ADA, BOB, Topics
from tests.servers.zookeeper import unavailable
from tests.stream_driver import plan_of

GIVEN = "CREATE TABLE given (id BIGINT) USING inline OPTIONS (rows '[[1], [2]]');\n"
WRITE = "INSERT INTO dst SELECT * FROM given"
Table = Callable[..., str]


@pytest.fixture
def secrets(spark: SparkSession, topics: Topics, tmp_path: Path) -> Resolver:
    add_kafka(spark)
    if not topics.kafka.secured:
        unavailable("the broker of KAFKA_BOOTSTRAP_SERVERS was not started by the tests")
    folder = tmp_path / "secrets"
    folder.mkdir()
    texts = {"ada": ADA[1], "bob": BOB[1], "wrong": "not-the-password"}
    for name, file in (("ca", topics.kafka.ca), ("other_ca", topics.kafka.other_ca)):
        texts[name] = Path(file).read_text("utf-8")
    for name, text in texts.items():
        (folder / name).write_text(text, "utf-8")
    return Resolver(Sources(secrets={"kafka": {"folder": str(folder)}}), Masks())


def table(name: str, topics: Topics, topic: str, *, user: str = "ada", key: str = "", ca: str = "ca") -> str:
    return f"""CREATE TABLE {name} (id BIGINT) USING kafka OPTIONS (topic '{topic}',
      bootstrap_servers '{topics.kafka.secured}', sasl_mechanism 'PLAIN', username '{user}',
      password '${{secret:kafka/{key or user}}}', ssl_ca '${{secret:kafka/{ca}}}');\n"""


def test_a_login_by_reference_writes_and_reads_and_no_plan_shows_it(
    spark: SparkSession, topics: Topics, secrets: Resolver, tmp_path: Path
) -> None:
    topic, other = topics.new("one"), topics.new("other")

    def run(script: str) -> list[dict[str, Any]]:
        plan = plan_of(script, tmp_path)
        assert ADA[1] not in str(plan)
        return execute(spark, plan, lambda _: None, resolver=secrets)

    batch = "SET job.mode = 'batch';\n"
    (result,) = run(batch + GIVEN + table("dst", topics, topic) + WRITE)
    assert result["rows"] == 2
    both = table("src", topics, topic) + table("dst", topics, other)
    add = "INSERT INTO dst SELECT id + 10 FROM src"
    (result,) = run("SET job.mode = 'available-now';\n" + both + add)
    assert result["rows"] == 2
    assert sorted(each.value or b"" for each in topics.kafka.records(other)) == [b'{"id":11}', b'{"id":12}']
    explained = "SET job.mode = 'batch';\n" + both + add
    report = analyse_script(
        spark, plan_of(explained, tmp_path), connect=True, with_plan=True, resolver=secrets
    )
    assert report["errors"] == []
    assert ADA[1] not in str(report)


@pytest.mark.parametrize(
    ("given", "words"),
    [
        ({"key": "wrong"}, "refuse the login; check username, password"),
        ({"user": "bob"}, "this user has no permission for topic"),
        ({"ca": "other_ca"}, "fails: "),
    ],
)
@pytest.mark.parametrize("verb", ["read", "write"])
def test_a_refusal_says_what_is_wrong(  # noqa: PLR0917 - fixtures
    spark: SparkSession,
    topics: Topics,
    secrets: Resolver,
    tmp_path: Path,
    given: dict[str, str],
    words: str,
    verb: str,
) -> None:
    topic = topics.new()
    script = "SET job.mode = 'batch';\n"
    if verb == "write":
        script += GIVEN + table("dst", topics, topic, **given) + WRITE
    else:
        out = f"CREATE TABLE dst (id BIGINT) USING parquet OPTIONS (path '{tmp_path}/out');\n"
        script += table("given", topics, topic, **given) + out + WRITE
    with pytest.raises(SqlError) as caught:
        execute(spark, plan_of(script, tmp_path), lambda _: None, resolver=secrets)
    assert words in str(caught.value)
    assert topics.kafka.secured in str(caught.value)
    for secret in (ADA[1], BOB[1], "not-the-password"):
        assert secret not in str(caught.value)
