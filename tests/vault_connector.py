"""A connector with a password, for tests: it puts the password where Spark shows, logs and reports things."""

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any, ClassVar
from unittest.mock import patch

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as sql
from pyspark.sql.types import StructType

from spark_runner.connectors.base import Writer, WriteRequest, Written
from spark_runner.connectors.errors import ConnectorError
from spark_runner.connectors.options import ConnectorOptions
from spark_runner.connectors.registry import BUILT_IN, Connector


class VaultOptions(ConnectorOptions):
    """`fails`: with the password in the message."""

    user: str = ""
    password: str
    fails: bool = False


class Vault:
    """Reads one row; records the options that it gets."""

    seen: ClassVar[list[Mapping[str, Any]]] = []

    def read(self, session: SparkSession, options: Mapping[str, Any], schema: StructType | None) -> DataFrame:  # noqa: ARG002 - of Source
        self.seen.append(options)
        password = str(options["password"])
        print(f"the password is {password}")  # noqa: T201 - what a careless connector does
        log = session._jvm.org.apache.logging.log4j.LogManager.getLogger("vault")  # type: ignore[union-attr]  # noqa: SLF001 - likewise
        log.error("connected with " + password)  # noqa: G003 - likewise
        if options["fails"]:
            raise ConnectorError(f"the server refuses {password}")
        return (
            session.range(1)
            .select(sql.col("id").cast("int").alias("n"))
            .where(sql.lit(password) != sql.col("n").cast("string"))
        )

    def recover(self, session: SparkSession, options: Mapping[str, Any], writer: Writer) -> None:  # noqa: ARG002 - of Sink
        self.seen.append(options)

    def write(
        self,
        frame: DataFrame,
        options: Mapping[str, Any],
        request: WriteRequest,  # noqa: ARG002 - of Sink
    ) -> Written:
        self.seen.append(options)
        return Written(frame.count(), [[str(options["password"])]])


@contextmanager
def vault() -> Iterator[type[Vault]]:
    """The connector under the name `vault`."""
    Vault.seen.clear()
    parts = Connector(f"{__name__}:VaultOptions", f"{__name__}:Vault", f"{__name__}:Vault")
    with patch.dict(BUILT_IN, vault=parts):
        yield Vault
