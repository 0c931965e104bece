"""How a push works, and its limits that can change while it runs."""

from collections.abc import Mapping
from dataclasses import dataclass, field, fields
from enum import StrEnum
from typing import Any

from spark_runner.push.errors import SettingError
from spark_runner.push.retry import RetryPolicy


class Order(StrEnum):
    """Which records are delivered in the order of their source."""

    NONE = "none"
    BY_KEY = "key"  # those with an equal key
    STRICT = "strict"  # those of a lane


@dataclass(frozen=True, slots=True)
class LaneLimits:
    """The limits of one lane: requests in flight and requests per second; 0: those of the push alone."""

    concurrency: int = 0
    rate: float = 0.0
    is_paused: bool = False


@dataclass(frozen=True, slots=True)
class Limits:
    """The limits of a push in one task, which can change while it runs.

    `concurrency` are requests in flight, `rate` requests per second (0: no limit); `buffer_records` and
    `buffer_bytes` bound what it has read and not delivered. Raises SettingError.
    """

    concurrency: int = 8
    rate: float = 0.0
    buffer_records: int = 10_000
    buffer_bytes: int = 16 * 1024 * 1024
    is_suspended: bool = False
    lanes: Mapping[str, LaneLimits] = field(default_factory=dict)

    def __post_init__(self) -> None:
        """Check the values."""
        for name in ("concurrency", "buffer_records", "buffer_bytes"):
            if getattr(self, name) < 1:
                raise SettingError(f"'{name}' is {getattr(self, name)}; it must be at least 1")
        for where, rate in (
            ("", self.rate),
            *((f" of lane '{name}'", each.rate) for name, each in self.lanes.items()),
        ):
            if not 0 <= rate < float("inf"):
                raise SettingError(f"'rate'{where} is {rate}; it must be at least 0")

    def document(self) -> dict[str, Any]:
        """The limits by their names; of lanes, those that are paused."""
        lanes = [name for name, lane in self.lanes.items() if lane.is_paused]
        return {
            "concurrency": self.concurrency,
            "rate": self.rate,
            "buffer": self.buffer_records,
            "buffer_bytes": self.buffer_bytes,
            "is_suspended": self.is_suspended,
            "paused": lanes,
        }

    def of(self, lane: str) -> LaneLimits:
        """The limits of a lane."""
        return self.lanes.get(lane, _NO_LIMITS)


_NO_LIMITS = LaneLimits()
NOT_YET = Limits(concurrency=1, buffer_records=1, buffer_bytes=1, is_suspended=True)
"""Those of a task before the first orders of its driver."""


@dataclass(frozen=True, slots=True)
class PushSettings:
    """How a push works, for its whole run; all times are seconds. Raises SettingError.

    A batch leaves when it has `batch_records` or `batch_bytes`, or is `batch_seconds` old. With
    `is_repeatable`, its age is no reason: the same records make the same batches in a further attempt,
    unless the buffer is full and nothing else can be sent. With an order by key, keys share `key_groups`
    order groups. `window` is the number of requests in flight of one order group; more than one needs a
    target that orders requests itself. Without an order, a batch that waits longer than `time_limit` gets the
    low priority, which has at least `low_share` of the requests. A target that takes no record for
    `retry_timeout` ends the push. A request takes at most `request_timeout`: near the end of the lease of its
    limits, none starts.

    The first `core_threads` start as soon as there is work, and more, up to `max_threads` (0: the
    concurrency), once more than `backlog` batches wait. A thread without work for `keep_alive` ends, but for
    the core ones unless `core_threads_end`.
    """

    order: Order = Order.NONE
    batch_records: int = 100
    batch_bytes: int = 1024 * 1024
    batch_seconds: float = 1.0
    is_repeatable: bool = False
    key_groups: int = 32
    window: int = 1
    time_limit: float = 0.0
    low_share: float = 0.1
    retry: RetryPolicy = field(default_factory=RetryPolicy)
    retry_timeout: float = 60.0
    request_timeout: float = 0.0
    is_adaptive: bool = True
    core_threads: int = 2
    max_threads: int = 0
    backlog: int = 0
    keep_alive: float = 60.0
    core_threads_end: bool = False
    acknowledgement_wait: float = 30.0

    def __post_init__(self) -> None:
        """Check the values."""
        for each in fields(self):
            value = getattr(self, each.name)
            is_number = isinstance(value, int | float) and not isinstance(value, bool)
            least = 1 if each.name in _AT_LEAST_ONE else 0
            if is_number and not least <= value < float("inf"):
                raise SettingError(f"'{each.name}' is {value}; it must be at least {least}")
        if self.low_share > 1:
            raise SettingError(f"'low_share' is {self.low_share}; it must be at most 1")


_AT_LEAST_ONE = frozenset({"batch_records", "batch_bytes", "key_groups", "window"})
