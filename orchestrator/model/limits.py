"""Limits that apply to all workers and can change while they run."""

from typing import Annotated

from pydantic import BaseModel, ConfigDict, Field, ValidationInfo, field_validator

from orchestrator.model.fields import Seconds
from queues import MAX_POOLS


class Limits(BaseModel):
    """The limits that can be set in ZooKeeper for all workers; these defaults apply where none is set."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    retention: Annotated[Seconds, Field(ge=60, allow_inf_nan=False)] = Field(
        7 * 86_400.0, description="how long finish keeps jobs; `job wait` must see the end within this time"
    )
    retention_count: Annotated[int, Field(ge=0)] = Field(
        10_000, description="maximum number of finished jobs kept per pool"
    )
    warn_after: Annotated[int, Field(ge=1)] = Field(
        3, description="consecutive unknown answers of a backend; then a job is RUNNING_WARN"
    )
    handler_errors: Annotated[int, Field(ge=1, le=100)] = Field(
        5, description="consecutive errors of handlers; then the job moves to dead"
    )
    cpu_pressure_limit: Annotated[float, Field(ge=0, le=100)] = Field(
        0.0,
        description="percentage of time that work waits for a CPU; above it, no job is claimed; 0 = off",
    )
    memory_pressure_limit: Annotated[float, Field(ge=0, le=100)] = Field(
        20.0,
        description="percentage of time that work waits for memory; above it, no job is claimed; 0 = off",
    )
    max_pools: Annotated[int, Field(ge=1, le=10_000)] = Field(
        MAX_POOLS,
        description="maximum number of pools that jobs may create, low lanes included; more are refused",
    )
    memory_guard: bool = Field(
        True, description="claim no job whose driver declares more memory than is free"
    )

    @field_validator("*", mode="before")
    @classmethod
    def _is_no_boolean(cls, value: object, info: ValidationInfo) -> object:
        # Python counts True as 1: `retention_count: true` would keep one job.
        if isinstance(value, bool) and info.field_name != "memory_guard":
            message = "a number is needed, not true or false"
            raise ValueError(message)
        return value
