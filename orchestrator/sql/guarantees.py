"""What the writes of a script promise if an attempt of its job runs again."""

from collections.abc import Mapping
from typing import Any

from spark_runner.connectors.options import options_of


def guarantee_of_table(table: Mapping[str, Any]) -> str:
    """What the sink of a table promises, whose step of a plan this is."""
    options = options_of(table["connector"]).model_validate(table["options"])
    return str(options.guarantee(has_primary_key=bool(table.get("primary_key"))))
