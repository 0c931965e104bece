"""The options of rows made at a given rate."""

from collections.abc import Sequence
from typing import ClassVar

from pydantic import Field

from spark_runner.connectors.errors import OptionError
from spark_runner.connectors.options import ConnectorOptions
from spark_runner.protocol.text import did_you_mean

COLUMNS = ("timestamp", "value")


class RateOptions(ConnectorOptions):
    """Rows made at a given rate, to try a stream.

    The columns are `timestamp TIMESTAMP`, and `value BIGINT`, which counts from 0.
    """

    streams: ClassVar[bool] = True
    unbounded: ClassVar[bool] = True
    rows_per_second: int = Field(1, ge=1, le=1_000_000, description="rows per second")
    ramp_up_seconds: int = Field(
        0, ge=0, le=86_400, description="seconds from the start until the rate is reached"
    )
    partitions: int = Field(
        1, ge=1, le=1000, description="parallel parts in which the rows of a micro-batch are made"
    )

    def check_columns(self, columns: Sequence[str]) -> None:
        """Check that columns are declared, each of which the rows have."""
        if not columns:
            raise OptionError(
                "a table of connector 'rate' needs declared columns: timestamp TIMESTAMP, value BIGINT"
            )
        for name in columns:
            if name.lower() not in COLUMNS:
                hint = did_you_mean(name, COLUMNS)
                raise OptionError(f"connector 'rate' has the columns timestamp and value, not '{name}'{hint}")
