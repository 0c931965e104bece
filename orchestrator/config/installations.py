"""The Spark of each pool, which only the settings of a worker name: two lines can run side by side."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from orchestrator.config.tables import ALL_POOLS
from orchestrator.model.errors import SettingsError
from spark_runner.runners.installation import (
    SparkInstallation,
    SparkUnusable,
    find_installation,
    own_installation,
)

SPARK_HOME = "spark_home"
"""The field of a pool's table that names its Spark: for operators alone, a definition has no such field."""


@dataclass(frozen=True, slots=True)
class Installations:
    """The Sparks of pools; None = that of the worker, which pools without one use too."""

    by_pool: Mapping[str, SparkInstallation | None] = field(default_factory=dict)

    def of(self, pool: str) -> SparkInstallation | None:
        """The Spark of a pool: its own setting wins over that of all pools."""
        return self.by_pool.get(pool, self.by_pool.get(ALL_POOLS))

    def versions(self) -> dict[str, str]:
        """The version of Spark by pool, as a worker announces it; * = all other pools, empty = unknown."""
        own = own_installation()
        used = {pool: found or own for pool, found in {ALL_POOLS: None, **self.by_pool}.items()}
        return {pool: "" if found is None else found.version for pool, found in used.items()}


def pool_installations(tables: Mapping[str, Mapping[str, Any]]) -> Installations:
    """The Sparks that the settings of pools name; raises SettingsError for one that cannot be used."""
    named = {pool: table[SPARK_HOME] for pool, table in tables.items() if SPARK_HOME in table}
    return Installations({pool: _installation(pool, home) for pool, home in named.items()})


def is_spark_home(setting: str) -> bool:
    """Whether a setting such as `spark.etl.spark_home` names the Spark of a pool."""
    return setting.startswith("spark.") and setting.endswith(f".{SPARK_HOME}")


def described(home: object) -> str:
    """The version of a Spark for people, or the reason why it cannot be used."""
    try:
        found = _found(home)
    except SettingsError as error:
        return f"cannot be used: {error}"
    return "that of the worker" if found is None else f"Spark {found.version}"


def _installation(pool: str, home: object) -> SparkInstallation | None:
    try:
        return _found(home)
    except SettingsError as error:
        raise SettingsError(f"setting {SPARK_HOME} of pool {pool!r}: {error}") from error


def _found(home: object) -> SparkInstallation | None:
    if not isinstance(home, str):
        raise SettingsError(f"{home!r} is not a path")
    try:
        return find_installation(Path(home).expanduser()) if home else None
    except (SparkUnusable, RuntimeError) as error:  # RuntimeError: `~user` of an unknown user
        raise SettingsError(str(error)) from error
