"""When a periodic job is run, as its definition says it."""

from datetime import datetime
from typing import Literal, Self

from pydantic import BaseModel, ConfigDict, Field, field_validator, model_validator

from orchestrator.models.fields import Seconds
from spark_runner.connectors.nearest import nearest
from spark_runner.shortened import shortened

_MAX_CRON_CHARACTERS = 1_000
_FIELDS = 5  # cronsim would take a sixth one, for seconds, which no other cron reads in the same way
_MAX_EVERY_SECONDS = 366 * 86_400.0
_HOW = "write five fields: minute, hour, day of month, month, day of week, for example '0 6 * * 1-5'"
_UNITS = ((86_400, "d"), (3_600, "h"), (60, "m"), (1, "s"))


FIRE_TIME = "fire_time"
"""The label of each run, and the variable of a SQL script, that says for which fire time it is."""


class Schedule(BaseModel):
    """When a job is run again and again; without `cron` and `every` it is run once, when it is submitted."""

    model_config = ConfigDict(frozen=True, extra="forbid", defer_build=True)

    cron: str = Field("", description="five fields, as in crontab; local time of `timezone`")
    every: Seconds = Field(0.0, description="whole seconds, 1s at least, counted from 1970 in UTC")
    timezone: str = Field("UTC", description="what `cron` means: a name such as Europe/Berlin")
    overlap: Literal["skip", "queue"] = Field(
        "skip", description="what becomes of a run whose predecessor has not ended"
    )
    catch_up: bool = Field(False, description="whether fire times that nobody saw are made up for")

    @property
    def is_set(self) -> bool:
        """Whether there is anything periodic about the job."""
        return bool(self.cron or self.every)

    @property
    def when(self) -> str:
        """The rule in one line: the cron expression, or `every 10m`."""
        if self.cron:
            return self.cron
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
        # Not a number fails the first comparison, what is too large the second.
        if not (1 <= value <= _MAX_EVERY_SECONDS) or value % 1:
            message = f"{value:g} s is no period: give whole seconds, from 1s to 366d"
            raise ValueError(message)
        return value

    @field_validator("timezone")
    @classmethod
    def _is_timezone(cls, value: str) -> str:
        if value == "localtime":
            message = "'localtime' is another zone on each host; name one, for example Europe/Berlin"
            raise ValueError(message)
        from zoneinfo import ZoneInfo, available_timezones  # noqa: PLC0415 - few jobs are periodic

        try:
            ZoneInfo(value)
        except (KeyError, ValueError, OSError) as error:  # unknown, no name at all, a folder of names
            near = nearest(value, available_timezones())
            hint = f"did you mean {near!r}?" if near else "write a name such as UTC or Europe/Berlin"
            message = f"{shortened(value, 100)!r} is no timezone; {hint}"
            raise ValueError(message) from error
        return value

    @field_validator("cron")
    @classmethod
    def _is_cron(cls, value: str) -> str:
        if not value.strip():
            return ""
        if len(value) > _MAX_CRON_CHARACTERS:
            message = (
                f"{shortened(value, 100)!r} is no cron expression: it has {len(value):,} characters,"
                f" {_MAX_CRON_CHARACTERS:,} are the most"
            )
            raise ValueError(message)
        expression = " ".join(value.split())
        fields = len(expression.split())
        if fields != _FIELDS:
            message = f"{value!r} is no cron expression: it has {fields} field{'s' * (fields != 1)}; {_HOW}"
            raise ValueError(message)
        from cronsim import CronSim, CronSimError  # noqa: PLC0415 - few jobs are periodic

        try:
            never = next(CronSim(expression, datetime(2000, 1, 1)), None) is None  # noqa: DTZ001 - any start will do
        except (CronSimError, ValueError) as error:  # the second for numbers of thousands of digits
            message = f"{value!r} is no cron expression: {str(error).lower()}; {_HOW}"
            raise ValueError(message) from error
        if never:
            message = f"{value!r} never comes: no date fits"
            raise ValueError(message)
        return expression

    @model_validator(mode="after")
    def _one_rule(self) -> Self:
        if self.cron and self.every:
            message = "give exactly one of 'cron' and 'every'"
            raise ValueError(message)
        if self.every and self.timezone != "UTC":
            message = "'timezone' is for 'cron'; 'every' counts from 1970 in UTC, whatever the zone"
            raise ValueError(message)
        if not self.is_set and (self.timezone != "UTC" or self.overlap != "skip" or self.catch_up):
            message = "nothing says when: give 'cron' or 'every'"
            raise ValueError(message)
        return self
