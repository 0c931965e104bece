"""Catalogs of Spark: one that supports MERGE, from the tests of Spark, and a database behind JDBC.

The tables of the first live in one session.
"""

import hashlib
import json
import os
import shutil
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any

from pyspark.sql import SparkSession

from spark_runner.sql.execution.execution import execute
from spark_runner.sql.execution.stream_control import StreamControl
from tests.servers.cache import cached
from tests.servers.zookeeper import unavailable
from tests.stream_driver import plan_of
from tests.waiting import wait_until

MERGING = "org.apache.spark.sql.connector.catalog.InMemoryRowLevelOperationTableCatalog"
JDBC = "org.apache.spark.sql.execution.datasources.v2.jdbc.JDBCTableCatalog"

# Spark publishes the classes of its tests, not for each release; those of a release run on all of its line.
_VERSION = "4.1.3"
_ARTIFACT = f"org.apache.spark:spark-catalyst_2.13:{_VERSION}:jar:tests"
_SHA256 = "9d2e7bc23456edcea1e886a1e139dc57cd6be8106a6f14c8c4039dae5413bef3"
_FETCH_TIMEOUT_S = 300


def add_merging_catalog(spark: SparkSession) -> None:
    """Make the class of the catalog known to the JVM of a session."""
    jvm: Any = spark._jvm  # noqa: SLF001 - PySpark has no public way to the class loader
    loader = jvm.java.lang.Thread.currentThread().getContextClassLoader()
    loader.addURL(jvm.java.io.File(str(_jar())).toURI().toURL())


STREAMING = "SET job.mode = 'streaming'; SET job.trigger = '200 ms';\n"
Run = Callable[..., list[dict[str, Any]]]


def scripts_in(spark: SparkSession, folder: Path) -> Run:
    """Runs scripts whose files and checkpoints are in a folder; returns their results."""

    def run_script(text: str, control: StreamControl | None = None) -> list[dict[str, Any]]:
        return execute(spark, plan_of(text, folder), lambda _: None, control=control)

    return run_script


def derby(folder: Path) -> str:
    """A catalog that is a database of this test, with the table that streams write."""
    return f"""SET spark.sql.catalog.shop = {JDBC};
SET spark.sql.catalog.shop.url = 'jdbc:derby:memory:{folder.name};create=true';
CREATE NAMESPACE IF NOT EXISTS shop.S1;
CREATE TABLE IF NOT EXISTS shop.S1.sold (id INT, name STRING);
"""


def source(folder: Path, *ids: int) -> str:
    (folder / "in").mkdir(exist_ok=True)
    file = folder / f"{ids[0]}.json"
    file.write_text("\n".join(json.dumps({"id": each}) for each in ids))
    os.utime(file, (1_700_000_000 + ids[0], 1_700_000_000 + ids[0]))  # Spark reads the oldest first
    file.rename(folder / "in" / file.name)
    return "CREATE TABLE src (id INT) USING json OPTIONS (path 'in', max_files_per_trigger 1);\n"


def ends(group: int) -> None:
    """Wait for the end of a group of processes: the JVM of a dead driver locks its database for a moment."""

    def has_ended() -> bool:
        try:
            os.killpg(group, 0)
        except ProcessLookupError:
            return True
        return False

    wait_until(has_ended, 60, "the JVM has ended")


def _jar() -> Path:
    """The jar, fetched once for all checkouts of this machine."""
    if shutil.which("mvn") is None:
        unavailable(f"no catalog with MERGE: {_ARTIFACT} needs mvn")
    (found,) = cached(f"spark-catalyst-tests-{_VERSION}", _fetch).glob("*.jar")
    return found


def _fetch(folder: Path) -> None:
    command = ["mvn", "-q", "-B", "dependency:copy", f"-Dartifact={_ARTIFACT}", f"-DoutputDirectory={folder}"]
    try:
        subprocess.run(
            command, check=True, cwd=folder, timeout=_FETCH_TIMEOUT_S, capture_output=True, text=True
        )
    except subprocess.TimeoutExpired:
        unavailable(f"no catalog with MERGE: {_ARTIFACT} was not fetched within {_FETCH_TIMEOUT_S} s")
    except subprocess.CalledProcessError as error:
        unavailable(f"no catalog with MERGE: {_ARTIFACT} was not fetched: {error.stdout[-2000:]}")
    (jar,) = folder.glob("*.jar")
    if (digest := hashlib.sha256(jar.read_bytes()).hexdigest()) != _SHA256:
        unavailable(f"no catalog with MERGE: {_ARTIFACT} has the SHA-256 {digest}, not {_SHA256}")
