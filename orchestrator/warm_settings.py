"""The lifetime of warm servers."""

from typing import Annotated

from pydantic import BaseModel, ConfigDict, Field, field_validator

from orchestrator.models.fields import Seconds
from orchestrator.models.memory import checked_memory
from spark_runner.driver_memory import memory_bytes


class WarmSettings(BaseModel):
    """The limits at which a new warm server replaces an old one; 0 and empty = no limit."""

    model_config = ConfigDict(extra="forbid", frozen=True, defer_build=True)

    age: Annotated[Seconds, Field(ge=0)] = 4 * 3600.0
    jobs: Annotated[int, Field(ge=0)] = Field(500, description="jobs that it has run")
    memory: str = Field("3g", description="resident memory of its JVM, in Spark's notation")

    _is_memory = field_validator("memory")(checked_memory)

    @property
    def recycling(self) -> dict[str, float]:
        """The limits in seconds, jobs and bytes."""
        return {"age": self.age, "jobs": self.jobs, "memory": memory_bytes(self.memory) or 0}
