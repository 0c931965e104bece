"""What a driver has made below its attempt: `alive` shows life, and all of it goes with the job."""

from queues.bundle import commit_many
from queues.operations import Delete
from queues.session import Session
from queues.session.rights import MAX_ASKED

_MAX_LISTED = 10_000  # parents at a time: a program can make as many nodes as ZooKeeper holds
_ANY_VERSION = -1


def shows_life(session: Session, attempt: str) -> bool:
    """Whether the session of a driver keeps `alive` below the attempt at this path.

    Any other node says nothing: the code of a job can make them, and they outlive its driver.
    """
    found = session.exists(f"{attempt}/alive")
    return found is not None and found.owner != 0


def clear(session: Session, attempt: str) -> bool:
    """Remove what a driver has left below an attempt that has ended; whether nothing is left.

    A node stays that has others below it and is closed to this session. Raises what reads raise.
    """
    found, listed = [attempt], 0
    while listed < min(len(found), _MAX_LISTED):
        part = found[listed : listed + MAX_ASKED]
        for path, names in zip(part, session.access.children(part), strict=True):
            found += [f"{path}/{name}" for name in names]
        listed += len(part)
    commit_many(session, ((Delete(path, _ANY_VERSION),) for path in reversed(found[1:])))
    left = session.exists(attempt)
    return left is None or left.children == 0
