"""How the resources of runs are tuned in a pool: the mode, the limits of containers, and the gains."""

from collections.abc import Mapping
from typing import Annotated

from pydantic import BaseModel, ConfigDict, Field, field_validator

from orchestrator.config.tables import of_pool
from orchestrator.model.fields import checked_memory
from orchestrator.model.tuning import TuningMode
from spark_runner.protocol.sizing import LEAST_HEAP, LEAST_OVERHEAD, memory_bytes

_MIB = 1 << 20


class Gains(BaseModel):
    """How fast and how far an allocation follows the demand; margins and steps are in natural logarithms.

    The defaults were chosen by `benchmarks/tuning.py --search`. A step of 0.69 doubles or halves, one of 0.29
    lowers to three quarters.
    """

    model_config = ConfigDict(frozen=True, extra="forbid")

    spread: Annotated[float, Field(ge=0, le=10)] = Field(
        2.8, description="distance of the target above the mean demand, in standard deviations"
    )
    least_margin: Annotated[float, Field(ge=0, le=1)] = Field(
        0.08, description="margin of the target above the largest demand if past runs are alike"
    )
    most_margin: Annotated[float, Field(ge=0, le=1)] = Field(
        0.25, description="margin of the target above the largest demand, however much past runs differ"
    )
    cold_margin: Annotated[float, Field(ge=0, le=1)] = Field(
        0.05, description="margin that is added while fewer than five runs are known"
    )
    up: Annotated[float, Field(gt=0, le=1)] = Field(1.0, description="gain of a step up")
    down: Annotated[float, Field(gt=0, le=1)] = Field(0.7, description="gain of a step down")
    dead_band: Annotated[float, Field(ge=0, le=1)] = Field(
        0.06, description="error below which nothing changes"
    )
    rise: Annotated[float, Field(gt=0, le=3)] = Field(0.69, description="the largest step up")
    fall: Annotated[float, Field(gt=0, le=3)] = Field(0.29, description="the largest step down")
    idle_fall: Annotated[float, Field(gt=0, le=3)] = Field(
        0.69, description="the largest step down from an allocation that is mostly unused"
    )
    idle_use: Annotated[float, Field(gt=0, le=1)] = Field(
        0.5, description="share of use below which an allocation counts as mostly unused"
    )
    window: Annotated[int, Field(ge=3, le=50)] = Field(50, description="number of past runs that count")
    still: Annotated[int, Field(ge=1, le=50)] = Field(
        4, description="number of runs without any step down after one that was out of memory"
    )
    hold: Annotated[int, Field(ge=1, le=50)] = Field(
        10,
        description="number of runs, after one out of memory or pressed, without a step down to what it had",
    )
    rare: Annotated[float, Field(ge=1, le=20)] = Field(
        3.5,
        description="distance above the usual demand beyond which a demand is rare, in standard deviations",
    )
    rare_runs: Annotated[int, Field(ge=1, le=50)] = Field(
        3, description="number of runs for which a rare demand counts; 50 = it counts like any other"
    )
    prior_spread: Annotated[float, Field(gt=0, le=1)] = Field(
        0.1, description="standard deviation that is assumed before any runs are known"
    )
    prior_runs: Annotated[float, Field(gt=0, le=50)] = Field(2.0, description="weight of that assumption")
    garbage: Annotated[float, Field(ge=0, le=0.5)] = Field(
        0.05,
        description="share of a larger heap that holds garbage, which a smaller heap collects earlier",
    )
    shortage_factor: Annotated[float, Field(gt=1, le=4)] = Field(
        1.5, description="factor of growth after a run that was out of memory"
    )


class PoolTuning(BaseModel):
    """How the resources of the runs of a pool are tuned, unless their definitions decide it."""

    model_config = ConfigDict(frozen=True, extra="forbid", defer_build=True)

    mode: TuningMode = Field(
        TuningMode.SUGGEST, description="off, suggest = decisions are shown, apply = runs get them"
    )
    driver_container: str = Field("", description="largest sum of heap and overhead of a driver")
    executor_container: str = Field("", description="largest sum of heap and overhead of an executor")
    gains: Gains = Field(default_factory=Gains.model_construct, description="gains of the controller")

    @field_validator("driver_container", "executor_container")
    @classmethod
    def _is_large_enough(cls, value: str) -> str:
        least = (LEAST_HEAP + LEAST_OVERHEAD) // _MIB
        if checked_memory(value) and (memory_bytes(value) or 0) < least * _MIB:
            message = f"{value} is too small for a JVM of Spark with its overhead: write at least {least}m"
            raise ValueError(message)
        return value

    @property
    def containers(self) -> dict[str, float]:
        """The limits that are set, in MiB, by process."""
        given = {"driver": self.driver_container, "executor": self.executor_container}
        return {name: (memory_bytes(text) or 0) / _MIB for name, text in given.items() if text}


def pool_tuning(tables: Mapping[str, PoolTuning], pool: str) -> PoolTuning:
    """The settings of a pool, the defaults without any."""
    return of_pool(tables, pool) or PoolTuning()
