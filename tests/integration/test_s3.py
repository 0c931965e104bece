# ruff: noqa: S608 - the test builds the scripts; nothing in them comes from outside
"""Tables in an object store: Hadoop's own client, and a store that speaks the protocol of S3."""

import json
import uuid
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession

from spark_runner.connectors.base import Writer
from spark_runner.connectors.errors import ConnectorError
from spark_runner.connectors.files.s3 import use_bucket
from spark_runner.references.masks import Masks
from spark_runner.references.resolver import Resolver
from spark_runner.references.sources import Sources
from spark_runner.sql.execution.execution import execute
from tests.dying_files import Died, arm
from tests.sampling import sample
from tests.servers.s3 import S3Store, add_s3, local_s3
from tests.stream_driver import plan_of

pytestmark = [pytest.mark.spark, pytest.mark.timeout(600)]

Run = Callable[..., list[dict[str, Any]]]
SECRET = "secret-of-the-test-store"  # noqa: S105 - moto accepts every one
OPTIONS = """'path' = 's3a://{bucket}/{folder}', 's3.endpoint' = '{url}', 's3.region' = 'us-east-1',
  's3.path.style.access' = 'true', 's3.access-key' = 'tests', 's3.secret-key' = '${{env:S3_SECRET}}'"""


@pytest.fixture(scope="module")
def store() -> Iterator[S3Store]:
    with local_s3() as found:
        yield found


@pytest.fixture
def bucket(store: S3Store, spark: SparkSession) -> str:
    add_s3(spark)
    name = f"tests-{uuid.uuid4().hex[:12]}"
    store.create(name)
    return name


@pytest.fixture
def run(
    spark: SparkSession, store: S3Store, bucket: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> Run:
    """Runs scripts where `<folder>` stands for the options of a folder in the bucket."""
    monkeypatch.setenv("S3_SECRET", SECRET)

    def run_script(text: str, attempt: int = 1) -> list[dict[str, Any]]:
        for folder in ("in", "out"):
            text = text.replace(f"<{folder}>", OPTIONS.format(bucket=bucket, folder=folder, url=store.url))
        plan = plan_of(text, tmp_path)
        assert SECRET not in json.dumps(plan)
        resolver = Resolver(Sources(environment=("S3_SECRET",)), Masks())
        return execute(spark, plan, lambda _: None, Writer("run", attempt), resolver=resolver)

    return run_script


T = "CREATE TABLE t (id BIGINT, a BIGINT) WITH ('connector' = 'parquet', <out>, 'partition_by' = 'a');\n"
READ = f"{T} CREATE TABLE p USING print; INSERT INTO p SELECT count(*), sum(id) FROM t"
OVERWRITE = T + "INSERT OVERWRITE t SELECT id, id % 2 AS a FROM range({}, {}, 1, 2)"
OLD, NEW = [["10", "45"]], [["20", "2190"]]


def test_rows_are_added_replaced_and_read(run: Run, store: S3Store, bucket: str) -> None:
    run(OVERWRITE.format(0, 4))
    run(OVERWRITE.format(0, 9))
    run(T + "INSERT INTO t SELECT 9, 1", attempt=1)
    assert run(READ)[-1]["preview"] == OLD
    keys = store.keys(bucket)
    assert {key.rpartition("/")[0] for key in keys} == {"out", "out/a=0", "out/a=1"}
    assert [key for key in keys if "part-run" in key] == [keys[-1]]


@pytest.mark.parametrize("changes", sample([1, 3, 6, 9], 1, "deaths in an object store"))
def test_a_death_while_objects_are_replaced_leaves_the_old_or_the_new_rows(
    run: Run, store: S3Store, bucket: str, changes: int
) -> None:
    run(OVERWRITE.format(0, 10))
    with pytest.MonkeyPatch.context() as patch:
        arm(patch, "", changes)
        with pytest.raises(Died):
            run(OVERWRITE.format(100, 120))
    assert run(READ)[-1]["preview"] in (OLD, NEW)
    run(OVERWRITE.format(100, 120), attempt=2)
    assert run(READ)[-1]["preview"] == NEW
    assert all(key.startswith("out/") for key in store.keys(bucket))


def test_a_stream_reads_and_writes_objects_once(run: Run) -> None:
    table = "CREATE TABLE src (line STRING) WITH ('connector' = 'text', <in>);\n"
    stream = f"""SET job.mode = 'available-now'; {table}
    CREATE TABLE dst (line STRING) WITH ('connector' = 'orc', <out>); INSERT INTO dst SELECT * FROM src"""
    for number in range(2):
        run(f"{table} INSERT INTO src SELECT 'line {number}'")
        assert run(stream)[0]["rows"] == 1
    assert run(stream)[0]["rows"] == 0


def test_spark_masks_the_keys_of_a_bucket_and_a_bucket_has_one_login(spark: SparkSession) -> None:
    session = spark.newSession()
    options = {"path": "s3a://b.example/x", "s3_access_key": "key-of-the-test", "s3_secret_key": SECRET}
    use_bucket(session, options)
    assert session.conf.get("fs.s3a.bucket.b.example.secret.key") == SECRET
    shown = str(session.sql("SET").collect())
    assert "fs.s3a.bucket.b.example.secret.key" in shown
    assert SECRET not in shown
    assert "key-of-the-test" not in shown
    with pytest.raises(ConnectorError, match=r"has another 'access.key' for bucket 'b.example'"):
        use_bucket(session, {**options, "s3_access_key": "other"})
