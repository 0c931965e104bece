"""The push of one task of Spark, whose limits its driver sets while it runs."""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass, field, replace
from typing import Any, NamedTuple

from pyspark import TaskContext

from spark_runner.push.batch import Batch, DeadLetter, Record
from spark_runner.push.control.budget import TaskId
from spark_runner.push.control.client import ControlClient, Endpoint
from spark_runner.push.control.messages import Orders
from spark_runner.push.engine import Engine
from spark_runner.push.errors import SettingError
from spark_runner.push.retry import Results
from spark_runner.push.settings import NOT_YET, LaneLimits, Limits, PushSettings


class Portion(NamedTuple):
    """Records that were read together, and the position of the source after them.

    `available` is how many more records it has then; None: unknown. With `is_delivered`, an earlier attempt
    has delivered them all.
    """

    records: Sequence[Record]
    position: Any = None
    available: int | None = None
    is_delivered: bool = False


class News(NamedTuple):
    """What has become of records since the last news.

    `delivered` counts rows. Each record before the `position` is delivered, or among the dead letters.
    """

    delivered: int
    dead: list[DeadLetter]
    position: Any


@dataclass(frozen=True, slots=True)
class PushTask:
    """What a task needs to know of a push: it travels to the tasks. Raises SettingError."""

    settings: PushSettings
    endpoint: Endpoint
    reached: Mapping[int, Any] = field(default_factory=dict)
    """The position of each partition up to which earlier attempts of the job have delivered."""

    def __post_init__(self) -> None:
        """Check that a request can start within the lease."""
        if self.settings.request_timeout >= self.endpoint.lease:
            lease = f"the lease of {self.endpoint.lease:g} s"
            raise SettingError(
                f"'request_timeout' is {self.settings.request_timeout:g}; it must be below {lease}"
            )

    @property
    def position(self) -> Any:
        """That of the partition of this task of Spark; None without one."""
        return self.reached.get(this_task().partition)

    def run(
        self,
        deliver: Callable[[Batch], Results],
        portions: Iterable[Portion],
        task: TaskId | None = None,
    ) -> Iterator[News]:
        """Deliver all records; yields what becomes of them, once after each portion and at the end.

        `task` is by default the one of Spark in which it runs. Raises PushError, and any error of `deliver`
        that is no DeliveryError.
        """
        dead = list[DeadLetter]()
        engine = Engine(deliver, self.settings, NOT_YET, on_dead=dead.extend, position=self.position)
        engine.extend(0.0)  # nothing starts before the first orders
        follower = Follower(engine.adjust, engine.roll_back)
        delivered = 0

        def report() -> dict[str, Any]:
            engine.recover()
            return engine.report()

        def news() -> News:
            nonlocal delivered
            # First the position: what comes before it is among the counts and the dead letters that follow.
            position = engine.position
            before, delivered = delivered, engine.counts()["delivered"]
            count = len(dead)
            found, dead[:count] = dead[:count], []
            return News(delivered - before, found, position)

        channel = ControlClient(
            self.endpoint,
            task or this_task(),
            report=report,
            follow=follower.follow,
            extend=engine.extend,
            failed=engine.fail,
        )
        with closing(channel), engine:
            for portion in portions:
                engine.available = portion.available
                engine.put(portion.records, portion.position, is_delivered=portion.is_delivered)
                yield news()
        yield news()


class Follower:
    """Turns the orders of the driver into limits, and calls for rollbacks."""

    def __init__(self, adjust: Callable[[Limits], None], roll_back: Callable[[], None]) -> None:
        self._adjust, self._roll_back, self._limits = adjust, roll_back, NOT_YET
        self._rollbacks: int | None = None

    def follow(self, orders: Orders) -> None:
        """Follow the next orders; without a share, the last limits stay, and nothing starts."""
        lanes = {name: LaneLimits(is_paused=True) for name in orders.paused}
        if orders.concurrency:
            buffers = orders.buffer_records, orders.buffer_bytes
            self._limits = Limits(orders.concurrency, orders.rate, *buffers, lanes=lanes)
        else:
            self._limits = replace(self._limits, is_suspended=True, lanes=lanes)
        self._adjust(self._limits)
        if self._rollbacks is not None and orders.rollbacks > self._rollbacks:
            self._roll_back()
        self._rollbacks = orders.rollbacks


def this_task() -> TaskId:
    """The task of Spark in which this runs."""
    context = TaskContext.get()
    return TaskId(context.partitionId(), context.taskAttemptId()) if context else TaskId(0, 0)
