"""The definition of a job, as a user writes it; immutable once the job is enqueued."""

import re
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Self

from pydantic import AfterValidator, ConfigDict, Field, ValidationError, field_validator, model_validator

from orchestrator.model.definition_parts import Callback, CheckpointUse, Retry, Timeout
from orchestrator.model.errors import DefinitionError
from orchestrator.model.fields import DefinitionPart, explain, text, texts
from orchestrator.model.program_files import PROGRAMS, looks_like_file, with_texts
from orchestrator.model.requirements import checked_requirements
from orchestrator.model.schedule import Schedule
from orchestrator.model.spark import Spark
from orchestrator.model.tuning import Tuning
from queues import DEFAULT_POOL, LOW_LANE_SUFFIX, InvalidName, check_pool
from spark_runner.protocol.text import shortened

MAX_DEFINITION_BYTES = 384 * 1024  # part of the multi that enqueues the job, whose limit is 768 KiB
_NAME = re.compile(r"[A-Za-z0-9._-]{1,128}")


def _check_name(value: str) -> str:
    if not _NAME.fullmatch(value):
        raise ValueError("it is 1 to 128 characters out of A-Z, a-z, 0-9, '.', '_' and '-'")
    return value


class Definition(DefinitionPart):
    """A push job. `script` and `python` are text; a `Path` means the text of that file.

    The constructor raises DefinitionError where a field is refused or a file cannot be read.
    """

    model_config = ConfigDict(validate_by_name=True, validate_by_alias=True)

    if TYPE_CHECKING:

        def __init__(
            self,
            *,
            name: str,
            script: str | Path = "",
            python: str | Path = "",
            jar: str = "",
            main_class: str = "",
            file: str = "",
            directory: str = "",
            arguments: Sequence[str | float] = (),
            pool: str = DEFAULT_POOL,
            spark: Spark | Mapping[str, Any] = ...,
            tuning: Tuning | Mapping[str, Any] = ...,
            retry: Retry | Mapping[str, Any] = ...,
            timeout: Timeout | Mapping[str, Any] = ...,
            callback: Callback | Mapping[str, Any] = ...,
            concurrency: int = 0,
            schedule: Schedule | Mapping[str, Any] = ...,
            checkpoint: CheckpointUse | Mapping[str, Any] | None = None,
            variables: Mapping[str, str | float] = ...,
            requirements: Sequence[str] = (),
            labels: Mapping[str, str | float] = ...,
        ) -> None: ...

    else:

        def __init__(self, /, **fields: Any) -> None:
            """Relative paths in a text refer to the working directory, unless `directory` is given."""
            for field in PROGRAMS:
                _refuse_file_name(field, fields.get(field))
            super().__init__(**{"directory": str(Path.cwd())} | with_texts(fields))
            _refuse_unfit(self, "Definition")

        __init__.__pydantic_base_init__ = True  # see DefinitionPart

    name: Annotated[str, AfterValidator(_check_name)] = Field(
        description="name of the job, of its history and its tuning; A-Z, a-z, 0-9, '.', '_' and '-'"
    )
    script: str = Field(
        default="", description="the file of a SQL script, or `{text: ...}`; in Python a Path, or the text"
    )
    python: str = Field(
        default="",
        description="the file of a PySpark program, or `{text: ...}`; in Python a Path, or the text",
    )
    jar: str = Field(default="", description="a jar that the worker or the cluster can read")
    main_class: str = Field(
        default="", alias="class", description="the class in the jar whose main method runs"
    )
    file: str = Field(default="", description="the name of a program given as text, in errors and tracebacks")
    directory: str = Field(
        default="", description="the base of relative paths; an error if the driver does not have it"
    )
    arguments: tuple[str, ...] = Field(default=(), description="arguments of a program; not for SQL scripts")
    pool: str = Field(
        default=DEFAULT_POOL,
        description="the pool in which the job waits; the first job of a pool creates it",
    )
    spark: Spark = Spark.model_construct()
    tuning: Tuning = Tuning.model_construct()
    retry: Retry = Retry.model_construct()
    timeout: Timeout = Timeout.model_construct()
    callback: Callback = Callback.model_construct()
    concurrency: Annotated[int, Field(ge=0, le=10_000)] = Field(
        default=0, description="maximum number of running jobs with this name, in all pools; 0 = no limit"
    )
    schedule: Schedule = Schedule.model_construct()
    checkpoint: CheckpointUse | None = Field(
        default=None,
        description="how a script that reads streams uses its checkpoint; see docs/modes.md",
    )
    variables: dict[str, str] = Field(default_factory=dict, description="values of `${name}` in a SQL script")
    requirements: tuple[str, ...] = Field(
        default=(),
        description="Python packages: name==version, installed once per host; see docs/python-packages.md",
    )
    labels: dict[str, str] = Field(
        default_factory=dict, description="names and values of your own, to find jobs by"
    )

    @model_validator(mode="before")
    @classmethod
    def _with_texts(cls, document: object) -> object:
        return with_texts(document) if isinstance(document, dict) else document

    _are_packages = field_validator("requirements")(checked_requirements)

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
        return [text(item) for item in value] if isinstance(value, list | tuple) else value

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
        if self.jar and self.requirements:
            message = "'requirements' are Python packages; a jar takes 'spark.packages' and 'spark.jars'"
            raise ValueError(message)
        if self.script and self.arguments:
            message = "'arguments' are for programs; a SQL script takes 'variables'"
            raise ValueError(message)
        return self

    @model_validator(mode="after")
    def _after_others(self) -> Self:
        if self.name in self.schedule.after:
            message = f"'schedule.after' names {self.name!r} itself: it would run after its own success"
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
    _refuse_unfit(definition, source)
    return definition


def checked(definition: Definition) -> Definition:
    """The definition, validated again: copies with other values and changes in its mappings were not.

    Raises DefinitionError.
    """
    document = definition.model_dump(exclude_defaults=True, warnings=False)
    return build_definition(document, shortened(str(definition.name), 100))


def _refuse_file_name(field: str, value: object) -> None:
    if isinstance(value, str) and looks_like_file(value):
        shown = shortened(value, 100)
        raise DefinitionError(
            f"Definition: field {field!r} is the text of a program, and {shown!r} looks like the name of a"
            f" file; write {field}=Path({shown!r}), or load the file with load_definition"
        )


def _refuse_unfit(definition: Definition, source: str) -> None:
    """Raise DefinitionError for a definition that cannot be stored."""
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
