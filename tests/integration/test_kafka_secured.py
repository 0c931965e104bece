"""Logins, TLS and rights on a real Kafka; the password is a reference, and nowhere to be seen."""

import subprocess
from collections.abc import Callable, Mapping
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
from tests.servers.kafka import ADA, BOB, SCRAM, Topics
from tests.servers.zookeeper import unavailable
from tests.stream_driver import plan_of

KEY_PASSWORD = "the-password-of-a-key"  # noqa: S105 - of this test alone
GIVEN = "CREATE TABLE given (id BIGINT) USING inline OPTIONS (rows '[[1], [2]]');\n"
WRITE = "INSERT INTO dst SELECT * FROM given"
COPY = "INSERT INTO dst SELECT * FROM src"
Table = Callable[..., str]


@pytest.fixture
def secrets(spark: SparkSession, topics: Topics, tmp_path: Path) -> Resolver:
    add_kafka(spark)
    if not topics.kafka.secured:
        unavailable("the broker of KAFKA_BOOTSTRAP_SERVERS was not started by the tests")
    folder = tmp_path / "secrets"
    folder.mkdir()
    texts = {"ada": ADA[1], "bob": BOB[1], "wrong": "not-the-password", "key_password": KEY_PASSWORD, **SCRAM}
    assert topics.kafka.certificates is not None
    tls, driver = topics.kafka.certificates.tls, topics.kafka.certificates.driver_tls
    files = {"ca": topics.kafka.ca, "other_ca": topics.kafka.other_ca}
    files |= {"client": tls.certificate_file, "client_key": tls.key_file}
    files |= {"driver": driver.certificate_file, "driver_key": driver.key_file}
    for name, file in files.items():
        texts[name] = Path(file).read_text("utf-8")
    texts["encrypted_key"] = encrypted(tls.key_file, "-v1", "PBE-SHA1-3DES")
    texts["unread_key"] = encrypted(tls.key_file, "-v2", "aes-256-cbc")
    for name, text in texts.items():
        (folder / name).write_text(text, "utf-8")
    return Resolver(Sources(secrets={"kafka": {"folder": str(folder)}}), Masks())


def encrypted(key: str, *how: str) -> str:
    """A private key with a password."""
    command = ["openssl", "pkcs8", "-topk8", *how, "-passout", f"pass:{KEY_PASSWORD}", "-in", key]
    return subprocess.run(command, check=True, capture_output=True, text=True).stdout


def table(
    name: str,
    topics: Topics,
    topic: str,
    *,
    user: str = "ada",
    key: str = "",
    ca: str = "ca",
    how: str = "sasl_mechanism 'PLAIN',",
) -> str:
    return f"""CREATE TABLE {name} (id BIGINT) USING kafka OPTIONS (topic '{topic}',
      bootstrap_servers '{topics.kafka.secured}', {how} username '{user}',
      password '${{secret:kafka/{key or user}}}', ssl_ca '${{secret:kafka/{ca}}}');\n"""


def table_with_certificate(name: str, topics: Topics, topic: str, options: Mapping[str, str]) -> str:
    given = {"ssl_ca": "ca", "ssl_certificate": "client", "ssl_key": "client_key", **options}
    listed = ", ".join(f"{option} '${{secret:kafka/{key}}}'" for option, key in given.items() if key)
    return f"""CREATE TABLE {name} (id BIGINT) USING kafka OPTIONS (topic '{topic}',
      bootstrap_servers '{topics.kafka.mutual}', {listed});\n"""


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


@pytest.mark.parametrize(
    ("how", "key"),
    [("", "SCRAM-SHA-512"), ("sasl_mechanism 'SCRAM-SHA-256',", "SCRAM-SHA-256")],
    ids=["SCRAM-SHA-512, the default", "SCRAM-SHA-256"],
)
def test_a_login_by_scram_writes_and_reads(  # noqa: PLR0917 - fixtures
    spark: SparkSession, topics: Topics, secrets: Resolver, tmp_path: Path, how: str, key: str
) -> None:
    one, other = topics.new("one"), topics.new("other")
    script = GIVEN + table("dst", topics, one, how=how, key=key) + WRITE
    _run(spark, script, tmp_path, secrets)
    copy = table("src", topics, one, how=how, key=key) + table("dst", topics, other, how=how, key=key)
    (result,) = _run(spark, copy + COPY, tmp_path, secrets)
    assert result["rows"] == 2
    assert sorted(each.value or b"" for each in topics.kafka.records(other)) == [b'{"id":1}', b'{"id":2}']
    wrong = GIVEN + table("dst", topics, one, how=how, key="ada") + WRITE
    with pytest.raises(SqlError, match="refuse the login; check username, password and sasl_mechanism"):
        _run(spark, wrong, tmp_path, secrets)


@pytest.mark.parametrize("key", [{}, {"ssl_key": "encrypted_key", "ssl_key_password": "key_password"}])
def test_a_certificate_of_the_client_by_reference_writes_and_reads(
    spark: SparkSession, topics: Topics, secrets: Resolver, tmp_path: Path, key: dict[str, str]
) -> None:
    one, other = topics.new("one"), topics.new("other")
    _run(spark, GIVEN + table_with_certificate("dst", topics, one, key) + WRITE, tmp_path, secrets)
    copy = table_with_certificate("src", topics, one, key) + table_with_certificate("dst", topics, other, key)
    copy += "INSERT INTO dst SELECT id + 10 FROM src"
    (result,) = _run(spark, copy, tmp_path, secrets)
    assert result["rows"] == 2
    assert sorted(each.value or b"" for each in topics.kafka.records(other)) == [b'{"id":11}', b'{"id":12}']
    plan = plan_of("SET job.mode = 'batch';\n" + copy, tmp_path)
    report = analyse_script(spark, plan, connect=True, with_plan=True, resolver=secrets)
    assert report["errors"] == []
    assert "PRIVATE KEY" not in f"{plan}{report}"


@pytest.mark.parametrize(
    ("given", "words"),
    [
        ({"ssl_certificate": "", "ssl_key": ""}, "fails: "),
        ({"ssl_certificate": "driver", "ssl_key": "driver_key"}, "this user has no permission for topic"),
        ({"ssl_ca": "other_ca"}, "fails: "),
        ({"ssl_key": "ca"}, "ssl_key"),
        ({"ssl_key": "encrypted_key", "ssl_key_password": "wrong"}, "ssl_key_password"),
        ({"ssl_key": "unread_key", "ssl_key_password": "key_password"}, "-v1 PBE-SHA1-3DES"),
    ],
)
def test_a_refused_certificate_is_named(  # noqa: PLR0917 - fixtures
    spark: SparkSession,
    topics: Topics,
    secrets: Resolver,
    tmp_path: Path,
    given: dict[str, str],
    words: str,
) -> None:
    script = GIVEN + table_with_certificate("dst", topics, topics.new(), given) + WRITE
    with pytest.raises(SqlError) as caught:
        _run(spark, script, tmp_path, secrets)
    assert words in str(caught.value)
    assert topics.kafka.mutual in str(caught.value)
    for name in {"client_key", *given.values()} & {"client_key", "driver_key", "unread_key"}:
        lines = (tmp_path / "secrets" / name).read_text("utf-8").splitlines()
        assert lines[1] not in str(caught.value)


def _run(spark: SparkSession, script: str, folder: Path, secrets: Resolver) -> list[dict[str, Any]]:
    return execute(
        spark, plan_of(f"SET job.mode = 'batch';\n{script}", folder), lambda _: None, resolver=secrets
    )
