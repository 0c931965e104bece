"""A real local Spark session in this process; one JVM for all tests that ask for it."""

import sys
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from tests.class_archive import session_environment
from tests.jar_support import make_jar
from tests.jobs_support import ENVIRONMENT_MARK

if TYPE_CHECKING:  # a test run without Spark does not load it
    from pyspark.sql import SparkSession

_CONF = {
    "spark.master": "local[2]",
    "spark.ui.enabled": "false",
    "spark.ui.showConsoleProgress": "false",
    "spark.driver.bindAddress": "127.0.0.1",
    "spark.driver.host": "127.0.0.1",
    "spark.log.level": "OFF",  # many tests are about errors, and look at what becomes of them
    "spark.sql.shuffle.partitions": "2",
    "spark.sql.session.timeZone": "Asia/Kathmandu",  # the zone of a machine must not matter
    "spark.executor.processTreeMetrics.enabled": "true",  # it is asked for once per JVM
}


class LocalSpark:
    """A JVM with a Spark in it; where a test stops that, the next one has another.

    What runs there with relative paths finds them below `folder`.
    """

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        # What the command line of a JVM says, as jars, counts for its first session alone.
        jar = make_jar("Program", folder)
        self._conf = _CONF | {"spark.sql.warehouse.dir": str(folder / "warehouse"), "spark.jars": str(jar)}

        self._session: SparkSession | None = None

    def session(self) -> "SparkSession":
        """The session with nothing but these settings."""
        from pyspark.sql import SparkSession  # noqa: PLC0415 - as above

        if self._session is None or SparkSession.getActiveSession() is None:
            self._session = self._start(SparkSession.builder, {})
        return self._session

    def other(self, conf: Mapping[str, str]) -> "SparkSession":
        """The session of another Spark, with these settings, too; the first one ends here."""
        from pyspark.sql import SparkSession  # noqa: PLC0415 - as above

        self.session().stop()
        self._session = None
        return self._start(SparkSession.builder, conf)

    def close(self) -> None:
        """End the JVM."""
        from pyspark import SparkContext  # noqa: PLC0415 - as above

        self.session().stop()
        gateway: Any = SparkContext._gateway  # noqa: SLF001 - PySpark keeps it, and has no public way to let go
        gateway.shutdown()
        gateway.proc.stdin.close()
        gateway.proc.wait(30)
        SparkContext._gateway = SparkContext._jvm = None  # noqa: SLF001 - likewise

    def _start(self, builder: "SparkSession.Builder", conf: Mapping[str, str]) -> "SparkSession":
        for key, value in {**self._conf, **conf}.items():
            builder = builder.config(key, value)
        with pytest.MonkeyPatch.context() as patch:
            patch.chdir(self.folder)
            patch.delenv(ENVIRONMENT_MARK, raising=False)  # it is not of the test that asks for it first
            patch.setenv("PYSPARK_PYTHON", sys.executable)  # what it imports is there for this interpreter
            for name, value in session_environment().items():
                patch.setenv(name, value)
            return builder.getOrCreate()


@pytest.fixture(scope="session")
def local_spark(tmp_path_factory: pytest.TempPathFactory) -> Iterator[LocalSpark]:
    """One JVM for all tests."""
    made = LocalSpark(tmp_path_factory.mktemp("spark"))
    made.session()
    yield made
    made.close()


@pytest.fixture
def spark(local_spark: LocalSpark) -> "SparkSession":
    """Its session; what a test sets or names there stays, so that it does so in a new one."""
    return local_spark.session()
