"""The defaults of Spark by pool, from the settings of a worker: for fields that a definition leaves empty."""

from collections.abc import Callable, Iterable, Mapping
from typing import Any

from pydantic import ValidationError

from orchestrator.config.installations import SPARK_HOME
from orchestrator.config.tables import ALL_POOLS
from orchestrator.model.errors import SettingsError
from orchestrator.model.fields import explain
from orchestrator.model.spark import Spark
from spark_runner.runners.installation import SparkInstallation
from spark_runner.runners.warm import WarmSpec


def pool_spark(tables: Mapping[str, Mapping[str, Any]]) -> Callable[[str, Spark], Spark]:
    """A function that fills in the `spark` of a definition for a pool; raises SettingsError.

    The table of the pool wins over that of all pools. The function raises ValueError where definition and
    defaults contradict each other.
    """
    known = {pool: _checked(pool, table) for pool, table in tables.items()}

    def filled(pool: str, own: Spark) -> Spark:
        for defaults in (known.get(pool), known.get(ALL_POOLS)):
            if defaults is not None:
                own = own.filled(defaults)
        return own

    return filled


def pool_confs(tables: Mapping[str, Mapping[str, Any]]) -> list[dict[str, str]]:
    """The Spark properties in the defaults of each pool; raises SettingsError."""
    return [_checked(pool, table).conf for pool, table in tables.items()]


def _checked(pool: str, table: Mapping[str, Any]) -> Spark:
    """The defaults of a pool for definitions, to which the place of its Spark does not belong."""
    try:
        return Spark.model_validate({name: value for name, value in table.items() if name != SPARK_HOME})
    except ValidationError as error:
        raise SettingsError(explain(error, Spark, f"setting spark of pool {pool!r}")) from error


def warm_specs(
    pools: Iterable[str],
    spark_of: Callable[[str, Spark], Spark],
    installation_of: Callable[[str], SparkInstallation | None] = lambda _pool: None,
) -> list[WarmSpec]:
    """The specs of warm servers for these pools, where jobs start warm; `spark_of` fills in defaults."""
    filled = [(pool, spark_of(pool, Spark())) for pool in pools]
    specs = [
        WarmSpec(spark.target.master, spark.properties, installation_of(pool))
        for pool, spark in filled
        if spark.start == "warm" and spark.target.backend == "local"
    ]
    return list({spec.key: spec for spec in specs}.values())
