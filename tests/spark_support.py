"""A real local Spark session in this process; one JVM for all tests that use it."""

import functools
import sys
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

import pytest

from tests.class_archive import session_environment
from tests.jar_support import make_jar
from tests.jobs_support import ENVIRONMENT_MARK
from tests.sampling import is_whole
from tests.servers.databases import add_drivers

if TYPE_CHECKING:  # not loaded in a test run without Spark
    from pyspark.sql import SparkSession

_INTERPRETED = {"spark.sql.codegen.wholeStage": "false", "spark.sql.codegen.factoryMode": "NO_CODEGEN"}
_CONF = {
    "spark.master": "local[2]",
    "spark.ui.enabled": "false",
    "spark.ui.showConsoleProgress": "false",
    "spark.driver.bindAddress": "127.0.0.1",
    "spark.driver.host": "127.0.0.1",
    "spark.log.level": "OFF",  # many tests cause errors
    "spark.sql.shuffle.partitions": "2",
    "spark.sql.session.timeZone": "Asia/Kathmandu",  # tests must not depend on the zone of the machine
    "spark.executor.processTreeMetrics.enabled": "true",  # read once per JVM
    "spark.python.sql.dataFrameDebugging.enabled": "false",  # as in a job; PySpark reads it once per process
    # To compile the generated classes of each query takes a fifth of the processor time of these tests. The
    # tests with a driver of their own, and whole campaigns, run generated classes.
    **({} if is_whole() else _INTERPRETED),
}


class LocalSpark:
    """A JVM with a Spark context; a new context follows after a test has stopped it.

    Relative paths are resolved below `folder`.
    """

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        # Options of the JVM's command line, such as jars, apply to its first session only.
        jar = make_jar("Program", folder)
        self._conf = _CONF | {"spark.sql.warehouse.dir": str(folder / "warehouse"), "spark.jars": str(jar)}

        self._session: SparkSession | None = None

    def session(self) -> "SparkSession":
        """The shared session, with the default settings."""
        from pyspark.sql import SparkSession  # noqa: PLC0415 - as above

        _end_sockets_with_their_files()
        if self._session is None or SparkSession.getActiveSession() is None:
            self._session = self._start(SparkSession.builder, {})
        return self._session

    def other(self, conf: Mapping[str, str]) -> "SparkSession":
        """A session of a new Spark context with additional settings; the first context is stopped."""
        from pyspark.sql import SparkSession  # noqa: PLC0415 - as above

        self.session().stop()
        self._session = None
        return self._start(SparkSession.builder, conf)

    def close(self) -> None:
        """End the JVM."""
        from pyspark import SparkContext  # noqa: PLC0415 - as above

        self.session().stop()
        gateway: Any = SparkContext._gateway  # noqa: SLF001 - PySpark has no public way to close it
        gateway.shutdown()
        gateway.proc.stdin.close()
        gateway.proc.wait(30)
        SparkContext._gateway = SparkContext._jvm = None  # noqa: SLF001 - likewise

    def _start(self, builder: "SparkSession.Builder", conf: Mapping[str, str]) -> "SparkSession":
        for key, value in {**self._conf, **conf}.items():
            builder = builder.config(key, value)
        with pytest.MonkeyPatch.context() as patch:
            patch.chdir(self.folder)
            patch.delenv(ENVIRONMENT_MARK, raising=False)  # it outlives the test that uses it first
            patch.setenv("PYSPARK_PYTHON", sys.executable)  # this interpreter has the imports
            for name, value in session_environment().items():
                patch.setenv(name, value)
            return builder.getOrCreate()


def _end_sockets_with_their_files() -> None:
    """Let a socket that delivers rows end with its file, as in PySpark 4.2 and later.

    Before, the garbage collector ends the socket itself, which is a ResourceWarning and so an error in tests.
    """
    from pyspark import __version__, util  # noqa: PLC0415 - as above

    connect: Any = util.local_connect_and_auth
    if __version__ >= "4.2" or hasattr(connect, "__wrapped__"):
        return

    @functools.wraps(connect)
    def connected(*given: Any) -> Any:
        file, sock = connect(*given)
        sock.close()  # its file keeps it open
        return file, sock

    util.local_connect_and_auth = cast("Any", connected)


@pytest.fixture(scope="session")
def local_spark(tmp_path_factory: pytest.TempPathFactory) -> Iterator[LocalSpark]:
    """One JVM for all tests."""
    made = LocalSpark(tmp_path_factory.mktemp("spark"))
    made.session()
    yield made
    made.close()


@pytest.fixture
def spark(local_spark: LocalSpark) -> "SparkSession":
    """The shared session; a test that sets or names something in it must use a new session."""
    return local_spark.session()


@pytest.fixture
def jdbc_spark(spark: "SparkSession") -> "SparkSession":
    """The shared session, whose JVM has the JDBC drivers of the connector."""
    add_drivers(spark)
    return spark
