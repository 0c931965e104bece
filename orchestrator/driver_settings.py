"""The environment and the users of the drivers of this host."""

from typing import Annotated, Any

from pydantic import BaseModel, ConfigDict, Field, field_validator

_Name = Annotated[str, Field(pattern=r"^[A-Za-z_][A-Za-z0-9_]*$")]
_User = Annotated[str, Field(pattern=r"^[a-z_][a-z0-9_-]{0,31}\$?$")]


class DriverSettings(BaseModel):
    """The table `drivers` of the settings; a driver inherits nothing else from its worker."""

    model_config = ConfigDict(extra="forbid", frozen=True, defer_build=True)

    environment: tuple[_Name, ...] = Field(
        (), description="variables of the worker that drivers get besides PATH, JAVA_HOME and similar ones"
    )
    run_as: dict[str, _User] = Field(
        default_factory=dict, description="by pool, * = all: the user of the drivers of this host; needs root"
    )

    @field_validator("environment", mode="before")
    @classmethod
    def _as_list(cls, value: Any) -> Any:
        """The names, which a variable of the environment separates by commas."""
        names = value.split(",") if isinstance(value, str) else ()
        return [name.strip() for name in names if name.strip()] if names else value
