"""What hangs below the record of a job: its definition and its attempts."""

from dataclasses import dataclass

from orchestrator.errors import AttemptOpen, StateConflict
from orchestrator.handlers.driver_nodes import clear, shows_life
from orchestrator.states import Queue
from queues.operations import Delete
from queues.session import Session, Stat
from spark_runner.attempt import Attempt, attempt_number


@dataclass(frozen=True, slots=True)
class Belongings:
    """Read in two requests, however many attempts there are."""

    attempts: tuple[Attempt, ...]  # those that can be read, the oldest first
    in_use: str  # the node, for people, that a driver may still write; empty when there is none
    deletes: tuple[Delete, ...]  # what removes it all, the oldest attempt first and the definition last
    littered: tuple[str, ...]  # attempts below which a driver has left nodes, which have to go before

    @classmethod
    def read(cls, session: Session, record_path: str) -> "Belongings":
        """What there is now."""
        names = sorted(session.children(record_path) or (), key=_in_order)
        paths = [f"{record_path}/{name}" for name in names]
        attempts, in_use, deletes, littered = list[Attempt](), "", list[Delete](), list[str]()
        for name, path, found in zip(names, paths, session.get_many(paths), strict=True):
            if found is None:
                continue
            deletes.append(Delete(path, found[1].version))
            number = attempt_number(name)
            attempt = None if number is None else _attempt(path, *found)
            if attempt is not None:
                attempts.append(attempt)
            if found[1].children:
                littered.append(path)
            # One whose bytes are damaged has no state: then only its driver's `alive` tells.
            is_open = attempt is not None and attempt.state.is_open
            if is_open or (found[1].children and shows_life(session, path)):
                in_use = name if number is None else f"attempt {number}"
        return cls(tuple(attempts), in_use, tuple(deletes), tuple(littered))

    @property
    def last(self) -> Attempt | None:
        """The last attempt."""
        return self.attempts[-1] if self.attempts else None

    def clear(self, session: Session) -> None:
        """Remove what drivers have left below attempts, none of which is in use; raises StateConflict."""
        for path in self.littered:
            if not clear(session, path):
                raise StateConflict(f"{path} has nodes below it that this login cannot remove, or too many")

    def check_closed(self, job_id: str, queue: str) -> None:
        """Raise AttemptOpen while a driver may be running: it must never be left to itself."""
        if self.in_use:
            remedy = (
                f"bring it back first: `orchestrator queue replay {job_id}`, then `job kill {job_id}`"
                if queue == Queue.DEAD
                else f"stop it first: `orchestrator job kill {job_id}`, then `job wait {job_id}`"
            )
            raise AttemptOpen(job_id, self.in_use, remedy)


def _in_order(name: str) -> tuple[bool, int, str]:
    number = attempt_number(name)
    return number is None, number or 0, name


def _attempt(path: str, data: bytes, stat: Stat) -> Attempt | None:
    try:
        return Attempt.of(path, data, stat)
    except ValueError:
        return None
