"""The schedule in the definition of a periodic job."""

from datetime import datetime
from typing import Literal, Self

from pydantic import Field, field_validator, model_validator

from orchestrator.model.fields import DefinitionPart, Seconds
from queues import InvalidName, check_id
from spark_runner.protocol.text import nearest, shortened

_MAX_CRON_CHARACTERS = 1_000
_FIELDS = 5  # cronsim accepts a sixth, for seconds, which no other cron reads in the same way
_MAX_EVERY_SECONDS = 366 * 86_400.0
_HOW = "write five fields: minute, hour, day of month, month, day of week, for example '0 6 * * 1-5'"
_MAX_AFTER = 50
_UNITS = ((86_400, "d"), (3_600, "h"), (60, "m"), (1, "s"))


FIRE_TIME = "fire_time"
"""The label of each run, and the variable of a SQL script, that holds the fire time of the run."""


class Schedule(DefinitionPart):
    """When a periodic job runs; without a schedule, a job runs once, when it is submitted."""

    cron: str = Field(default="", description="five fields, as in crontab, in the local time of `timezone`")
    every: Seconds = Field(
        default=0.0, description="a period of whole seconds, at least 1s, counted from 1970 in UTC"
    )
    after: tuple[str, ...] = Field(
        default=(),
        description="names of jobs; a run follows when all of them have succeeded since the last run",
    )
    timezone: str = Field(default="UTC", description="time zone of `cron`, such as Europe/Berlin")
    overlap: Literal["skip", "queue"] = Field(
        default="skip",
        description="whether a run is skipped or queued while the last one has not ended; with `after`,"
        " `skip` lets it wait",
    )
    catch_up: bool = Field(
        default=False, description="whether fire times that were missed while no worker led get a run later"
    )

    @property
    def is_set(self) -> bool:
        """Whether the job is periodic."""
        return bool(self.cron or self.every or self.after)

    @property
    def when(self) -> str:
        """The rule in one line: the cron expression, `every 10m`, or `after load, clean`."""
        if self.cron:
            return self.cron
        if self.after:
            return f"after {', '.join(self.after)}"
        size, unit = next(entry for entry in _UNITS if self.every % entry[0] == 0)
        return f"every {self.every / size:.0f}{unit}"

    @field_validator("every", mode="before")
    @classmethod
    def _empty_is_none(cls, value: object) -> object:
        return 0.0 if value == "" else value

    @field_validator("every")
    @classmethod
    def _is_period(cls, value: float) -> float:
        if value == 0:
            return value
        # NaN fails the first comparison.
        if not (1 <= value <= _MAX_EVERY_SECONDS) or value % 1:
            message = f"{value:g} s is not a period: give whole seconds, from 1s to 366d"
            raise ValueError(message)
        return value

    @field_validator("after", mode="before")
    @classmethod
    def _one_is_a_list(cls, value: object) -> object:
        return (value,) if isinstance(value, str) and value else value or ()

    @field_validator("after")
    @classmethod
    def _are_names(cls, value: tuple[str, ...]) -> tuple[str, ...]:
        if len(value) > _MAX_AFTER:
            message = f"it has {len(value):,} names, the limit is {_MAX_AFTER}"
            raise ValueError(message)
        for name in value:
            try:
                check_id(name)  # the names of jobs are valid ids
            except InvalidName as error:
                message = f"{shortened(name, 100)!r} is not the name of a job"
                raise ValueError(message) from error
            if value.count(name) > 1:
                message = f"it names {name!r} more than once"
                raise ValueError(message)
        return value

    @field_validator("timezone")
    @classmethod
    def _is_timezone(cls, value: str) -> str:
        if value == "localtime":
            message = "'localtime' may differ between hosts: name a zone, for example Europe/Berlin"
            raise ValueError(message)
        from zoneinfo import ZoneInfo, available_timezones  # noqa: PLC0415 - lazy: few jobs are periodic

        try:
            ZoneInfo(value)
        except (KeyError, ValueError, OSError) as error:  # unknown, malformed, or a folder of zones
            near = nearest(value, available_timezones())
            hint = f"did you mean {near!r}?" if near else "write a name such as UTC or Europe/Berlin"
            message = f"{shortened(value, 100)!r} is not a time zone; {hint}"
            raise ValueError(message) from error
        return value

    @field_validator("cron")
    @classmethod
    def _is_cron(cls, value: str) -> str:
        if not value.strip():
            return ""
        if len(value) > _MAX_CRON_CHARACTERS:
            message = (
                f"{shortened(value, 100)!r} is not a cron expression: it has {len(value):,} characters,"
                f" the limit is {_MAX_CRON_CHARACTERS:,}"
            )
            raise ValueError(message)
        expression = " ".join(value.split())
        fields = len(expression.split())
        if fields != _FIELDS:
            message = (
                f"{value!r} is not a cron expression: it has {fields} field{'s' * (fields != 1)}; {_HOW}"
            )
            raise ValueError(message)
        from cronsim import CronSim, CronSimError  # noqa: PLC0415 - lazy: few jobs are periodic

        try:
            never = next(CronSim(expression, datetime(2000, 1, 1)), None) is None  # noqa: DTZ001 - any start will do
        except (CronSimError, ValueError) as error:  # ValueError: numbers of thousands of digits
            message = f"{value!r} is not a cron expression: {str(error).lower()}; {_HOW}"
            raise ValueError(message) from error
        if never:
            message = f"{value!r} never fires: no date matches"
            raise ValueError(message)
        return expression

    @model_validator(mode="after")
    def _one_rule(self) -> Self:
        if bool(self.cron) + bool(self.every) + bool(self.after) > 1:
            message = "give exactly one of 'cron', 'every' and 'after'"
            raise ValueError(message)
        if self.after and (self.timezone != "UTC" or self.catch_up):
            name = "catch_up" if self.catch_up else "timezone"
            message = f"{name!r} is for fire times, and 'after' has none"
            raise ValueError(message)
        if self.every and self.timezone != "UTC":
            message = "'timezone' applies to 'cron' only; 'every' counts from 1970 in UTC"
            raise ValueError(message)
        if not self.is_set and (self.timezone != "UTC" or self.overlap != "skip" or self.catch_up):
            message = "the schedule has no rule: give 'cron', 'every' or 'after'"
            raise ValueError(message)
        return self
