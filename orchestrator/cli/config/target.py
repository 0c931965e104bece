"""What the NAME and VALUE of `config set` stand for."""

import contextlib
from dataclasses import dataclass
from typing import Any, get_type_hints

from pydantic import TypeAdapter, ValidationError

from orchestrator.client import Client
from orchestrator.cluster_config import check_limits
from orchestrator.errors import SettingsError
from orchestrator.models.limits import Limits
from orchestrator.origins import variables
from orchestrator.settings import Settings, config_file
from queues.names import check_pool
from queues.pools import LONGEST_ID_CHARACTERS, LS_LIMITS, PoolLimits, ls_limit
from spark_runner.connectors.nearest import nearest
from spark_runner.shortened import shortened

POOL_LIMITS: dict[str, Any] = get_type_hints(PoolLimits)  # name -> type


@dataclass(frozen=True, slots=True)
class Target:
    """What a NAME stands for: a limit of all workers, or one of a pool."""

    name: str
    pool: str
    limit: str

    @classmethod
    def parse(cls, name: str) -> "Target":
        """The target of a NAME; raises SettingsError with the nearest name, InvalidName."""
        if name in Limits.model_fields:
            return cls(name, "", name)
        pool, dot, limit = name.removeprefix("pool.").rpartition(".")
        if name.startswith("pool.") and dot:
            if limit not in POOL_LIMITS:
                raise _unknown(name, [f"pool.{pool}.{known}" for known in POOL_LIMITS])
            return cls(name, check_pool(pool), limit)
        if (own := name.partition(".")[0]) in Settings.model_fields:
            variable, file = variables([own])[0], config_file()
            raise SettingsError(f"{own} is a setting of each process: set {variable}, or {own} in {file}")
        raise _unknown(name, [*Limits.model_fields, *(f"pool.POOL.{known}" for known in POOL_LIMITS)])

    def value(self, text: str) -> Any:
        """The value that a text stands for; raises SettingsError, InvalidLimit for one that cannot be."""
        if not self.pool:
            check_limits({self.limit: text})
            return text
        value: Any = text
        with contextlib.suppress(ValidationError):  # the limits themselves say best what they need
            value = TypeAdapter(POOL_LIMITS[self.limit]).validate_python(text)
        PoolLimits(**{self.limit: value})
        return value

    def change(self, client: Client, value: Any) -> Any:
        """Set the value, None = take it back; returns what holds now."""
        if not self.pool:
            return getattr(client.config.change(**{self.limit: value}), self.limit)
        value = getattr(PoolLimits(), self.limit) if value is None else value
        return getattr(client.change_pool(self.pool, **{self.limit: value}), self.limit)

    def warning(self, value: Any) -> str:
        """What somebody who sets this should know; empty where there is nothing."""
        if self.limit == "bound" and value > ls_limit(LONGEST_ID_CHARACTERS):
            return f"a queue of {value:,} jobs may be too long to be listed by hand: {LS_LIMITS}"
        return ""


def _unknown(name: str, known: list[str]) -> SettingsError:
    near = nearest(name, known)
    hint = f"did you mean {near}?" if near else f"there are {', '.join(known)}"
    return SettingsError(f"there is no limit {shortened(name, 100)!r}; {hint}")
