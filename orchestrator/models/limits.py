"""Limits that hold for all workers and can change while they run."""

from typing import Annotated

from pydantic import BaseModel, ConfigDict, Field, ValidationInfo, field_validator

from orchestrator.models.fields import Seconds
from queues.pool_folders import MAX_POOLS


class Limits(BaseModel):
    """What may be set in ZooKeeper for all workers; the values here hold where nobody sets one."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    retention: Annotated[Seconds, Field(ge=60, allow_inf_nan=False)] = Field(
        7 * 86_400.0, description="how long finish keeps jobs; who waits for one has to see its end"
    )
    retention_count: Annotated[int, Field(ge=0)] = Field(
        10_000, description="finished jobs kept per pool, at most"
    )
    warn_after: Annotated[int, Field(ge=1)] = Field(
        3, description="answers of a backend in a row that tell nothing; then a job is RUNNING_WARN"
    )
    handler_errors: Annotated[int, Field(ge=1, le=100)] = Field(
        5, description="errors of a job's handlers; then it goes to dead"
    )
    cpu_pressure_limit: Annotated[float, Field(ge=0, le=100)] = Field(
        0.0,
        description="percent of time in which work waits for a processor; above, no job is taken; 0 = off",
    )
    memory_pressure_limit: Annotated[float, Field(ge=0, le=100)] = Field(
        20.0, description="percent of time in which work waits for memory; above, no job is taken; 0 = off"
    )
    max_pools: Annotated[int, Field(ge=1, le=10_000)] = Field(
        MAX_POOLS, description="pools that jobs may make, low lanes among them; beyond, a new one is refused"
    )
    memory_guard: bool = Field(True, description="take no job whose driver declares more than what is free")

    @field_validator("*", mode="before")
    @classmethod
    def _is_no_truth(cls, value: object, info: ValidationInfo) -> object:
        # Python counts True as 1: `retention_count: true` would keep one job.
        if isinstance(value, bool) and info.field_name != "memory_guard":
            message = "a number is needed, not true or false"
            raise ValueError(message)
        return value
