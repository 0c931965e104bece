"""How the resources of runs are tuned: the part `tuning` of a definition, and the settings of a pool."""

from enum import StrEnum
from typing import Annotated, Literal

from pydantic import Field

from orchestrator.model.fields import DefinitionPart


class TuningMode(StrEnum):
    """What becomes of a decision."""

    OFF = "off"
    SUGGEST = "suggest"  # it is stored and shown
    APPLY = "apply"  # the next run gets it


ResourceName = Literal[
    "driver.memory",
    "driver.overhead",
    "driver.cores",
    "executor.memory",
    "executor.overhead",
    "executor.cores",
    "executor.instances",
]


class Tuning(DefinitionPart):
    """How the resources of the job are tuned; see docs/tuning.md."""

    mode: Literal["", "off", "suggest", "apply"] = Field(
        default="",
        description="suggest = decisions are shown, apply = runs get them; empty = that of the pool",
    )
    pinned: tuple[ResourceName, ...] = Field(
        default=(), description="resources that keep the values of the definition"
    )
    parameters: Annotated[str, Field(pattern=r"^$|^[A-Za-z0-9._-]{1,40}$")] = Field(
        default="",
        description="a name for runs with similar needs; empty = by variables and arguments, without digits",
    )
    input: Annotated[float, Field(ge=0, le=2**50)] = Field(
        default=0,
        description="size of what the run reads, in any unit that the other runs use too; 0 = unknown",
    )
