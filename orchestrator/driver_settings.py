"""What the drivers of this host get of their worker, and as whom they run."""

from typing import Annotated, Any

from pydantic import BaseModel, ConfigDict, Field, field_validator

_Name = Annotated[str, Field(pattern=r"^[A-Za-z_][A-Za-z0-9_]*$")]
_User = Annotated[str, Field(pattern=r"^[a-z_][a-z0-9_-]{0,31}\$?$")]


class DriverSettings(BaseModel):
    """All of it; a driver inherits nothing else."""

    model_config = ConfigDict(extra="forbid", frozen=True, defer_build=True)

    environment: tuple[_Name, ...] = Field(
        (), description="variables of the worker that drivers get beside PATH, JAVA_HOME and their like"
    )
    run_as: dict[str, _User] = Field(
        default_factory=dict, description="by pool, * = all: the user of the drivers of this host; needs root"
    )

    @field_validator("environment", mode="before")
    @classmethod
    def _as_list(cls, value: Any) -> Any:
        """The names as a variable of the environment gives them: with commas."""
        names = value.split(",") if isinstance(value, str) else ()
        return [name.strip() for name in names if name.strip()] if names else value
