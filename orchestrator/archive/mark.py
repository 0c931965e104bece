"""The mark in a job's record: set before the job is archived, it names the archive that stores it."""

from dataclasses import dataclass
from datetime import UTC, datetime, timedelta

from queues.documents import timestamp

# An owner that restarts is back by then. After that another archive takes over.
STALE_AFTER = timedelta(days=1)


@dataclass(frozen=True, slots=True)
class Mark:
    """Only the archive `owner` can determine whether it holds the job; if so, behind `position`."""

    owner: str
    since: str  # ISO 8601, UTC, by the clock of the owner's host
    position: str
    taken_over_from: str = ""  # the previous owner, which made no progress for a day

    @classmethod
    def now(cls, owner: str, position: str, taken_over_from: str = "") -> "Mark":
        """A new mark."""
        return cls(owner, timestamp(), position, taken_over_from)

    @classmethod
    def parse(cls, text: str | None) -> "Mark | None":
        """The mark in this text; None if there is none, or if it cannot be read."""
        words = (text or "").split(" ")
        match words:
            case [owner, since, position]:
                mark = cls(owner, since, position)
            case [owner, since, position, "from", before]:
                mark = cls(owner, since, position, before)
            case _:
                return None
        return mark if mark._made() is not None else None

    def __str__(self) -> str:
        text = f"{self.owner} {self.since} {self.position}"
        return f"{text} from {self.taken_over_from}" if self.taken_over_from else text

    def is_stale(self) -> bool:
        """Whether the time of its owner is over."""
        made = self._made()
        return made is None or datetime.now(UTC) - made > STALE_AFTER

    def _made(self) -> datetime | None:
        try:
            made = datetime.fromisoformat(self.since)
        except ValueError:
            return None
        return made if made.tzinfo is not None else None
