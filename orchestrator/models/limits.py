"""Limits that hold for all workers and can change while they run."""

from typing import Annotated

from pydantic import BaseModel, ConfigDict, Field

from orchestrator.models.fields import Seconds


class Limits(BaseModel):
    """What the node of the configuration may set; what it does not is as here."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    retention: Annotated[Seconds, Field(ge=60)] = 7 * 86_400.0
    retention_count: Annotated[int, Field(ge=0)] = 10_000
    warn_after: Annotated[int, Field(ge=1)] = 3
    handler_errors: Annotated[int, Field(ge=1, le=100)] = 5
    load_limit: Annotated[float, Field(ge=0)] = 1.5
    memory_guard: bool = True
