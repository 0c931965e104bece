"""The options of rows in the script itself."""

import json
from collections.abc import Sequence
from typing import ClassVar

from pydantic import Field, field_validator

from spark_runner.connectors.errors import OptionError
from spark_runner.connectors.options import ConnectorOptions


class InlineOptions(ConnectorOptions):
    """Rows in the script itself."""

    is_constant: ClassVar[bool] = True
    rows: str = Field(description="a JSON list of lists, one for each row")

    @field_validator("rows")
    @classmethod
    def _rows_of_values(cls, value: str) -> str:
        try:
            rows = json.loads(value)
        except RecursionError as error:
            raise ValueError("not JSON that can be read: it is nested too deeply") from error
        except ValueError as error:  # also for a number of thousands of digits
            raise ValueError(f"not JSON: {error}") from error
        if not isinstance(rows, list) or not all(isinstance(row, list) for row in rows):
            raise ValueError('a list of rows is needed, like [[1, "a"], [2, "b"]]')
        return value

    def check_columns(self, columns: Sequence[str]) -> None:
        """Check that columns are declared, and that each row has one value per column."""
        if not columns:
            raise OptionError("a table of connector 'inline' needs declared columns")
        for number, row in enumerate(json.loads(self.rows), start=1):
            if len(row) != len(columns):
                message = f"row {number} has {len(row)} values for {len(columns)} columns"
                raise OptionError(message, option="rows", fault="value")
