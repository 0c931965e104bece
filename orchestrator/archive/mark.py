"""The mark in a job's record that says in which archive it is being written, before anything is."""

from dataclasses import dataclass
from datetime import UTC, datetime, timedelta

from queues.documents import timestamp

# An owner that is coming back is back by then; for one that is gone, nobody waits for longer.
STALE_AFTER = timedelta(days=1)


@dataclass(frozen=True, slots=True)
class Mark:
    """Only `owner` knows whether the job stands in its archive; if so, behind `position`."""

    owner: str
    since: str  # ISO 8601, UTC, by the clock of the owner's host
    position: str
    taken_over_from: str = ""  # the owner before, which was not heard of for a day

    @classmethod
    def now(cls, owner: str, position: str, taken_over_from: str = "") -> "Mark":
        """A mark of this moment."""
        return cls(owner, timestamp(), position, taken_over_from)

    @classmethod
    def parse(cls, text: str | None) -> "Mark | None":
        """The mark in this text; None where there is none, or none that can be read."""
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
        """Whether its owner has had its time."""
        made = self._made()
        return made is None or datetime.now(UTC) - made > STALE_AFTER

    def _made(self) -> datetime | None:
        try:
            made = datetime.fromisoformat(self.since)
        except ValueError:
            return None
        return made if made.tzinfo is not None else None
