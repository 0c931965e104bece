"""The water line: how full the buffers of a running job's pushes are, and what workers report of it.

A buffer that stays full means that the target takes rows more slowly than they are read.
"""

from collections.abc import Mapping
from itertools import islice
from typing import Annotated, Any, NamedTuple

from pydantic import BaseModel, ConfigDict, Field

from orchestrator.model.waiting import Reason, Waiting
from spark_runner.protocol.untrusted import number

FALLEN_SHARE = 0.75
"""Starts go on when the line is below this share of `high_water`: a full buffer is less full at times."""
_MAX_PUSHES = 1000  # of one document, which is at most a megabyte
_NAME_CHARACTERS = 60
_Text = Annotated[str, Field(max_length=200)]


class WaterLine(NamedTuple):
    """The fullest push of a job, and the share of its buffer that is in use: 0 to 1."""

    line: float
    push: str


EMPTY = WaterLine(0.0, "")


def water_line(progress: Mapping[str, Any]) -> WaterLine:
    """The water line in the progress that a driver reports, in which each value may have any type.

    A push counts while at least one of its tasks is in contact with the driver: the numbers of the others are
    their last ones.
    """
    pushes, most = progress.get("pushes"), EMPTY
    if not isinstance(pushes, dict):
        return most
    for name, push in islice(pushes.items(), _MAX_PUSHES):
        if not isinstance(push, dict):
            continue
        tasks, stale = number(push.get("tasks")), number(push.get("stale"))
        line = min(1.0, number(push.get("water_line")))  # a buffer that was made smaller holds more
        if stale < tasks and line > most.line:
            most = WaterLine(line, " ".join(str(name).split())[:_NAME_CHARACTERS])
    return most


class WaterReport(BaseModel):
    """The job of a worker that holds back starts in its pool; the document of a node."""

    model_config = ConfigDict(frozen=True, extra="ignore")

    worker: _Text
    job: _Text
    push: _Text
    line: Annotated[float, Field(ge=0, le=1, allow_inf_nan=False)]
    high_water: Annotated[
        float, Field(ge=0, le=1, allow_inf_nan=False)
    ]  # that of the pool, as the worker read it
    at: _Text = ""  # ISO 8601

    def waiting(self, pool: str) -> Waiting:
        """Why no job of the pool starts."""
        words = (
            f"{self.job} of pool {pool} has filled its buffer for {self.push} to {_share(self.line)}, and "
            f"high_water is {_share(self.high_water)}; the next job starts below "
            f"{_share(FALLEN_SHARE * self.high_water)}"
        )
        return Waiting(reason=Reason.HIGH_WATER, message=words, worker=self.worker, at=self.at)


def _share(value: float) -> str:
    return f"{100 * value:.4g} %"
