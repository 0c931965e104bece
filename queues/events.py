"""What happened to items, told to whoever wants to count, log or trace it."""

import logging
from collections.abc import Callable
from dataclasses import dataclass
from enum import StrEnum

log = logging.getLogger(__name__)


class EventKind(StrEnum):
    """What an event tells. Each is sent after the change was accepted by ZooKeeper."""

    PUT = "put"
    CLAIM = "claim"
    COMMIT = "commit"  # payload changed, queue and due time kept; or let go without a change
    REQUEUE = "requeue"  # same queue, another due time
    MOVE = "move"  # another queue or pool
    REMOVE = "remove"
    DEAD = "dead"  # brought to the dead queue
    LOST = "lost"  # a claim was found to be lost
    SESSION = "session"  # the connection changed; `detail` is its state now


@dataclass(frozen=True, slots=True)
class Event:
    """One thing that happened; `seconds` is how long the request took, from the first send to the answer."""

    kind: EventKind
    id: str = ""
    queue: str = ""  # where the item stood before
    pool: str = ""
    to_queue: str = ""  # where it stands now
    to_pool: str = ""
    due: int = 0  # when it is due there
    run_key: str = ""
    version: int = 0  # of the record, after the change: the fence
    nonce: str = ""  # in the record, after the change
    released: bool = False
    seconds: float = 0.0
    same_session: bool = True  # of a lost claim: whether its session lives, so that it was taken by force
    detail: str = ""


Listener = Callable[[Event], None]


class EventListeners:
    """Calls each listener with each event. A listener must be quick; one that raises breaks nothing."""

    def __init__(self) -> None:
        self._listeners: tuple[Listener, ...] = ()

    def add(self, listener: Listener) -> None:
        """Call this one too, from now on."""
        self._listeners = (*self._listeners, listener)

    def __bool__(self) -> bool:
        return bool(self._listeners)

    def notify(self, event: Event) -> None:
        """Tell all; called on the thread that made the change."""
        for listener in self._listeners:
            try:
                listener(event)
            except Exception:  # whoever listens must not be able to break a queue
                log.exception("a listener failed on %s", event)
