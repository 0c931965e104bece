"""A batch of records, and what happens to it."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from enum import IntEnum, StrEnum
from operator import itemgetter
from typing import Any, NamedTuple


class Priority(IntEnum):
    """Which records are served first."""

    HIGH = 0
    MEDIUM = 1
    LOW = 2


class State(StrEnum):
    """What last happened to a batch."""

    NEW = "new"  # it waits for its first request
    STARTED = "started"  # a request of it is in flight
    ERROR = "error"  # its last request failed
    TIMEOUT = "timeout"  # its last request had no answer in time, or it waited beyond its time limit
    COMPLETED = "completed"  # each of its records is delivered or a dead letter


class Record(NamedTuple):
    """A record to deliver.

    `size` is its bytes. The records of a `lane` share limits. In a push with an order by key, those with an
    equal `key` keep their order. A push in order does not use the `priority`: nothing may overtake. A record
    of many rows counts as `rows`; a request has at least one record as a whole.
    """

    value: Any
    size: int
    lane: str = ""
    key: Any = None
    priority: Priority = Priority.MEDIUM
    rows: int = 1


RECORD_BYTES = 600
"""What the objects of a record take in the buffer beside its value, with its key and lane, about."""


def buffer_size(records: Sequence[Record]) -> int:
    """The bytes of records in the buffer."""
    return total_size(records) + RECORD_BYTES * len(records)


def total_size(records: Iterable[Record]) -> int:
    """The bytes of records together."""
    return sum(map(_SIZE, records))


def total_rows(records: Iterable[Record]) -> int:
    """The rows of records together."""
    return sum(map(_ROWS, records))


# In C, for they run for each record several times.
_SIZE, _ROWS = (itemgetter(Record._fields.index(name)) for name in ("size", "rows"))
_AS_THEY_ARE: Mapping[int, Record] = {}


class Destination(NamedTuple):
    """Where a record belongs: a lane, and within it a priority and an order group."""

    lane: str
    priority: Priority
    group: object


@dataclass(frozen=True, slots=True)
class DeadLetter:
    """A record that is not delivered any more, with the error of each attempt.

    Of a record of many rows, it may be only some: the target `rejected` them.
    """

    record: Record
    number: int
    errors: tuple[str, ...]
    rejected: Sequence[Any] | None = None

    @property
    def rows(self) -> int:
        """The rows that are not delivered."""
        return self.record.rows if self.rejected is None else len(self.rejected)

    @property
    def reason(self) -> str:
        """The error, or those of all attempts."""
        *before, last = self.errors
        return f"{len(self.errors)} attempts: {'; '.join(self.errors)}" if before else last


@dataclass(slots=True, eq=False)
class Portion:
    """Records that were read together, `count` of them, and the `position` of the source after them.

    `left` of them are neither delivered nor dead letters. All before `delivered` are delivered, once none is
    left; None: not all. If it `has_dead`, a dead letter comes after that. With `is_delivered`, an earlier
    attempt has delivered them all. The open portions are a list, linked both ways.
    """

    count: int
    left: int
    position: Any
    delivered: Any = None
    has_dead: bool = False
    is_delivered: bool = False
    previous: "Portion | None" = None
    next: "Portion | None" = None

    def join(self, after: "Portion") -> None:
        """Take the records of the next portion, all of which are settled."""
        self.count += after.count
        self.position = after.position
        if not self.has_dead:
            self.delivered = self.delivered if after.delivered is None else after.delivered
            self.has_dead = after.has_dead


@dataclass(slots=True, eq=False)
class Batch:
    """Records that are sent in one request, in the order of the source.

    `numbers` are those of the records in the source, and `parts` how many of them are of each portion.
    `tries` counts its requests. `errors` has those of records that count as attempts, by their numbers, and
    `busy` how many did not, although the target took other requests. `dead` are its dead letters. A closed
    batch takes no further records: a retry sends the same ones. With `is_repeated`, the target may have taken
    it: a rollback discarded the result of a request. `created` and `started` are times.
    """

    lane: str
    priority: Priority
    created: float
    records: list[Record] = field(default_factory=list)
    numbers: list[int] = field(default_factory=list)
    parts: list[tuple[Portion, int]] = field(default_factory=list)
    size: int = 0
    rows: int = 0
    errors: dict[int, tuple[str, ...]] = field(default_factory=dict)
    busy: dict[int, int] = field(default_factory=dict)
    dead: Sequence[DeadLetter] = ()
    tries: int = 0
    state: State = State.NEW
    version: int = 0
    is_closed: bool = False
    is_repeated: bool = False
    started: float = 0.0

    def __len__(self) -> int:
        """The number of records."""
        return len(self.records)

    @property
    def is_delivered(self) -> bool:
        """Whether an earlier attempt has delivered all its records: it needs no request."""
        return all(portion.is_delivered for portion, _ in self.parts)

    def extend(self, records: Sequence[Record], numbers: Sequence[int], portion: Portion) -> None:
        """Add records of one portion."""
        self.records += records
        self.numbers += numbers
        self.parts.append((portion, len(records)))
        self.size += total_size(records)
        self.rows += total_rows(records)

    def part(
        self,
        indices: Sequence[int],
        state: State | None = None,
        left: Mapping[int, Record] = _AS_THEY_ARE,
    ) -> "Batch":
        """Some of its records as a closed batch; of those in `left`, by their index, what is left."""
        made = Batch(self.lane, self.priority, self.created, state=state or self.state, is_closed=True)
        made.tries, made.is_repeated = self.tries, self.is_repeated
        portions = [portion for portion, count in self.parts for _ in range(count)]
        for index in indices:
            number = self.numbers[index]
            made.extend([left.get(index, self.records[index])], [number], portions[index])
            if number in self.errors:
                made.errors[number] = self.errors[number]
            if number in self.busy:
                made.busy[number] = self.busy[number]
        return made

    def without(self, batches: Sequence["Batch"]) -> "Batch":
        """The records that none of these batches has, and the rows that these lack of others."""
        kept = {number for batch in batches for number in batch.numbers}
        made = self.part([index for index, number in enumerate(self.numbers) if number not in kept])
        made.size = self.size - sum(batch.size for batch in batches)
        made.rows = self.rows - sum(batch.rows for batch in batches)
        return made
