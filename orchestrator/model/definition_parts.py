"""Parts of a definition: retries, time limits, the callback, and the use of a checkpoint."""

import re
from typing import Annotated, Literal, Self

from pydantic import Field, field_validator, model_validator

from orchestrator.model.backoff import growing
from orchestrator.model.fields import DefinitionPart, Seconds, texts

_URL = re.compile(r"https?://[^\s/]+(/\S*)?|\$\{env:[A-Za-z0-9_]+\}\S*")

ErrorClass = Literal[
    "user",
    "memory",
    "lost",
    "no_outcome",  # the driver ended with exit code 0 and reported no outcome
    "killed",  # the application was ended on its cluster
    "submission",
    "timeout",
    "infrastructure",
    "callback",
]


CallbackEvent = Literal["running", "warn", "end"]


class Retry(DefinitionPart):
    """How often, how soon and after which errors a failed job runs again."""

    attempts: Annotated[int, Field(ge=1, le=100)] = Field(default=3, description="maximum number of attempts")
    delay: Annotated[Seconds, Field(ge=0)] = Field(
        default=30.0, description="delay before the second attempt"
    )
    factor: Annotated[float, Field(ge=1, le=10)] = Field(
        default=2.0, description="factor by which the delay grows with each further attempt"
    )
    max_delay: Annotated[Seconds, Field(ge=0)] = Field(default=600.0, description="the longest delay")
    on: tuple[ErrorClass, ...] = Field(
        default=("lost", "submission", "infrastructure", "memory", "user"),
        description="classes of errors after which the job runs again; see docs/life-of-a-job.md",
    )
    submissions: Annotated[int, Field(ge=1, le=100)] = Field(
        default=5,
        description="maximum number of tries to submit one attempt; failed tries do not count as attempts",
    )
    reset_after: Annotated[Seconds, Field(ge=0)] | None = Field(
        default=None,
        description="an attempt that ran for this long clears the failures before it; 0 = never; "
        "by default 1h in mode streaming, otherwise never",
    )

    def delay_after(self, failures: int) -> float:
        """The seconds to wait after this many failures in a row (1 = the first), before jitter."""
        return growing(self.delay, self.max_delay, failures, factor=self.factor)


class Timeout(DefinitionPart):
    """Time limits; 0 = no limit, where that is allowed."""

    queued: Annotated[Seconds, Field(ge=0)] = Field(
        default=86_400.0, description="longest time in accept after the job is due; then it fails"
    )
    submit: Annotated[Seconds, Field(ge=1)] = Field(
        default=300.0, description="longest time from the submission until the driver has started the attempt"
    )
    run: Annotated[Seconds, Field(ge=0)] | None = Field(
        default=None,
        description="longest time of one attempt, from the start of its driver; then it is killed; "
        "by default 2h, without limit in mode streaming",
    )
    on_run: Literal["fail", "retry", "demote"] = Field(
        default="fail",
        description="after `run`: fail = the job ends, retry = another attempt, demote = one in the low lane",
    )
    stall: Annotated[Seconds, Field(ge=0)] = Field(
        default=600.0,
        description="longest time without progress; then the job is RUNNING_WARN until there is some",
    )
    lease: Annotated[Seconds, Field(ge=5)] = Field(
        default=900.0,
        description="a driver without contact to ZooKeeper for this long stops itself and counts as lost",
    )


class Callback(DefinitionPart):
    """The receiver of a job's events, and which events it gets."""

    url: str = Field(
        default="", description="http or https; the worker fills in ${env:NAME}; empty = no callback"
    )
    on: Annotated[tuple[CallbackEvent, ...], Field(min_length=1)] = Field(
        default=("end",),
        description="events to send: a driver runs, the job becomes RUNNING_WARN, the job has ended",
    )
    ignore_errors: bool = Field(default=False, description="drop an event if its first delivery fails")
    attempts: Annotated[int, Field(ge=1, le=100)] = Field(
        default=5, description="maximum number of deliveries of one event"
    )
    timeout: Annotated[Seconds, Field(gt=0, le=300)] = Field(
        default=10.0, description="time limit of one delivery"
    )

    @field_validator("url")
    @classmethod
    def _is_url(cls, value: str) -> str:
        if value and not (_URL.fullmatch(value) and value.isprintable()):
            message = f"{value!r} is not an http or https address"
            raise ValueError(message)
        return value


class CheckpointUse(DefinitionPart):
    """How a script that reads streams begins if earlier runs have left a checkpoint."""

    start: Literal["continue", "resume", "fresh"] = Field(
        default="continue",
        description="`continue` refuses the checkpoint of a changed script, `resume` accepts it, `fresh`"
        " sets it aside and reads all data again",
    )
    positions: dict[str, str] = Field(
        default_factory=dict,
        description="by table, `*` = all: where reading begins; for files a time, such as"
        " 2026-11-01T00:00:00Z; needs `start: fresh`",
    )

    @field_validator("positions", mode="before")
    @classmethod
    def _as_text(cls, value: object) -> object:
        return texts(value)

    @model_validator(mode="after")
    def _begins_anew(self) -> Self:
        if self.positions and self.start != "fresh":
            message = f"'positions' need 'start: fresh', not '{self.start}'"
            raise ValueError(message)
        return self
