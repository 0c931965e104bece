"""The definition of a job, as a user writes it; immutable once the job is enqueued."""

import re
from collections.abc import Iterable
from pathlib import Path
from typing import Annotated, Any, Literal, Self

from pydantic import AfterValidator, ConfigDict, Field, ValidationError, field_validator, model_validator

from orchestrator.model.backoff import growing
from orchestrator.model.errors import DefinitionError
from orchestrator.model.fields import DefinitionPart, Seconds, explain, text, texts
from orchestrator.model.schedule import Schedule
from orchestrator.model.spark import Spark
from orchestrator.model.tuning import Tuning
from queues import DEFAULT_POOL, LOW_LANE_SUFFIX, InvalidName, check_pool
from spark_runner.protocol.text import shortened

MAX_DEFINITION_BYTES = 384 * 1024  # part of the multi that enqueues the job, whose limit is 768 KiB
_NAME = re.compile(r"[A-Za-z0-9._-]{1,128}")
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

    attempts: Annotated[int, Field(ge=1, le=100)] = 3
    delay: Annotated[Seconds, Field(ge=0)] = 30.0
    factor: Annotated[float, Field(ge=1, le=10)] = 2.0
    max_delay: Annotated[Seconds, Field(ge=0)] = 600.0
    on: tuple[ErrorClass, ...] = ("lost", "submission", "infrastructure", "memory", "user")
    submissions: Annotated[int, Field(ge=1, le=100)] = Field(
        5,
        description="tries to submit one attempt after transient failures; not counted as attempts",
    )
    reset_after: Annotated[Seconds, Field(ge=0)] | None = Field(
        None,
        description="an attempt that ran for this time clears the failures before it; 0 = never; "
        "by default 1h in mode streaming, else never",
    )

    def delay_after(self, failures: int) -> float:
        """The seconds to wait after this many failures in a row (1 = the first), before jitter."""
        return growing(self.delay, self.max_delay, failures, factor=self.factor)


class Timeout(DefinitionPart):
    """Time limits; 0 = no limit, where that is allowed."""

    queued: Annotated[Seconds, Field(ge=0)] = Field(
        86_400.0, description="in accept after the job is due; then it fails"
    )
    submit: Annotated[Seconds, Field(ge=1)] = Field(
        300.0, description="from the intent until the driver has started the attempt"
    )
    run: Annotated[Seconds, Field(ge=0)] | None = Field(
        None,
        description="of one attempt, from the start of its driver; then it is killed; "
        "by default 2h, and no limit in mode streaming",
    )
    on_run: Literal["fail", "retry", "demote"] = Field(
        "fail", description="after `run`: the job ends, gets another attempt, or one in the low lane"
    )
    stall: Annotated[Seconds, Field(ge=0)] = Field(
        600.0, description="without progress; then the job is RUNNING_WARN until there is progress"
    )
    lease: Annotated[Seconds, Field(ge=5)] = Field(
        900.0,
        description="a driver without contact to ZooKeeper for this time ends itself and counts as lost",
    )


class Callback(DefinitionPart):
    """The receiver of a job's events, and the events that it gets."""

    url: str = Field("", description="http or https; the worker fills in ${env:NAME}; empty = no callback")
    on: Annotated[tuple[CallbackEvent, ...], Field(min_length=1)] = Field(
        ("end",), description="events to send: a driver runs, the job is RUNNING_WARN, the job has ended"
    )
    ignore_errors: bool = Field(False, description="drop an event whose first delivery fails")
    attempts: Annotated[int, Field(ge=1, le=100)] = 5
    timeout: Annotated[Seconds, Field(gt=0, le=300)] = 10.0

    @field_validator("url")
    @classmethod
    def _is_url(cls, value: str) -> str:
        if value and not (_URL.fullmatch(value) and value.isprintable()):
            message = f"{value!r} is not an http or https address"
            raise ValueError(message)
        return value


class CheckpointUse(DefinitionPart):
    """How a script that reads streams begins, where earlier runs have left a checkpoint."""

    start: Literal["continue", "resume", "fresh"] = Field(
        "continue",
        description="`continue` refuses the checkpoint of a changed script, `resume` takes it over, `fresh`"
        " puts it away and reads all data anew",
    )
    positions: dict[str, str] = Field(
        default_factory=dict,
        description="by table, `*` = all: where it begins to read; for files a time, such as"
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


def _check_name(value: str) -> str:
    if not _NAME.fullmatch(value):
        raise ValueError("it is 1 to 128 characters out of A-Z, a-z, 0-9, '.', '_' and '-'")
    return value


class Definition(DefinitionPart):
    """A push job. `script` and `python` hold the text of the program itself."""

    model_config = ConfigDict(validate_by_name=True, validate_by_alias=True)

    name: Annotated[str, AfterValidator(_check_name)]
    script: str = Field("", description="the text of a SQL script")
    python: str = Field("", description="the text of a PySpark program")
    jar: str = Field("", description="a jar that the worker or the cluster can read")
    main_class: str = Field("", alias="class", description="the class of the jar whose main runs")
    file: str = Field("", description="the name of the text in errors and tracebacks")
    directory: str = Field(
        "", description="the base of relative paths; an error where a driver does not have it"
    )
    arguments: tuple[str, ...] = ()
    pool: str = DEFAULT_POOL
    spark: Spark = Spark.model_construct()
    tuning: Tuning = Tuning.model_construct()
    retry: Retry = Retry.model_construct()
    timeout: Timeout = Timeout.model_construct()
    callback: Callback = Callback.model_construct()
    concurrency: Annotated[int, Field(ge=0, le=10_000)] = Field(
        0, description="most running jobs of this name, in all pools; 0 = no limit"
    )
    schedule: Schedule = Schedule.model_construct()
    checkpoint: CheckpointUse | None = Field(
        None, description="of a script that reads streams: how it uses its checkpoint; see docs/modes.md"
    )
    variables: dict[str, str] = Field(default_factory=dict, description="${name} in the script")
    labels: dict[str, str] = Field(default_factory=dict)

    @field_validator("variables", "labels", mode="before")
    @classmethod
    def _as_text(cls, value: object) -> object:
        return texts(value)

    @field_validator("name")
    @classmethod
    def _is_name(cls, value: str) -> str:
        if value in {".", ".."}:
            message = f"{value!r} cannot name a job"
            raise ValueError(message)
        return value

    @field_validator("pool")
    @classmethod
    def _is_pool(cls, value: str) -> str:
        if value.endswith(LOW_LANE_SUFFIX):
            message = f"{value!r} is a low lane, which takes demoted jobs only: name the pool"
            raise ValueError(message)
        try:
            return check_pool(value)
        except InvalidName as error:
            raise ValueError(str(error)) from error

    @field_validator("directory")
    @classmethod
    def _is_absolute(cls, value: str) -> str:
        if value and not Path(value).is_absolute():
            message = f"{value!r} is a relative path: give an absolute one"
            raise ValueError(message)
        return value

    @field_validator("arguments", mode="before")
    @classmethod
    def _as_arguments(cls, value: object) -> object:
        return [text(item) for item in value] if isinstance(value, list) else value

    @model_validator(mode="after")
    def _one_program(self) -> Self:
        if sum(map(bool, (self.script, self.python, self.jar))) != 1:
            message = "give exactly one of 'script' (SQL), 'python' and 'jar'"
            raise ValueError(message)
        if bool(self.jar) != bool(self.main_class):
            message = "'jar' needs 'class', the name of its main class, and the other way round"
            raise ValueError(message)
        if not self.script and self.variables:
            message = "'variables' are for SQL scripts; a program takes 'arguments'"
            raise ValueError(message)
        if self.script and self.arguments:
            message = "'arguments' are for programs; a SQL script takes 'variables'"
            raise ValueError(message)
        return self

    @model_validator(mode="after")
    def _one_word_on_time_limits(self) -> Self:
        if "timeout" in self.retry.on and self.timeout.on_run != "retry":
            message = (
                "'retry.on' names 'timeout', and 'timeout.on_run' is "
                f"'{self.timeout.on_run}': set 'on_run: retry', or remove 'timeout' from 'retry.on'"
            )
            raise ValueError(message)
        return self


def build_definition(document: dict[str, Any], source: str) -> Definition:
    """The validated definition; raises DefinitionError with one line per error."""
    try:
        definition = Definition.model_validate(document)
    except ValidationError as error:
        raise DefinitionError(explain(error, Definition, source)) from error
    refuse_nul(definition.model_dump(), source)
    try:
        size = len(definition.model_dump_json().encode())
    except ValueError as error:  # half of a surrogate pair, or bytes of the command line that are not UTF-8
        raise DefinitionError(f"{source}: some of its text is not valid Unicode") from error
    if size > MAX_DEFINITION_BYTES:
        raise DefinitionError(
            f"{source}: the definition is {size:,} bytes, the limit is {MAX_DEFINITION_BYTES:,}; "
            "keep data out of it and let it name files"
        )
    return definition


def refuse_nul(document: dict[str, Any], source: str) -> None:
    """Raise DefinitionError if a text in the document contains the character NUL."""
    if (field := _with_nul(document)) is not None:
        raise DefinitionError(
            f"{source}: field {field!r} contains the character NUL, which no program accepts"
        )


def _with_nul(value: object) -> str | None:
    """The path of the first field with a NUL; None where there is none."""
    if isinstance(value, str):
        return "" if "\0" in value else None
    items: Iterable[tuple[object, object]] = ()
    if isinstance(value, dict):
        items = value.items()
    elif isinstance(value, list | tuple):
        items = enumerate(value)
    for name, item in items:
        if isinstance(name, str) and "\0" in name:
            return shortened(name, 100)
        if (below := _with_nul(item)) is not None:
            return ".".join(filter(None, (shortened(str(name), 100), below)))
    return None
