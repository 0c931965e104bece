"""Events about items, for listeners that count, log or trace them."""

import logging
from collections.abc import Callable
from dataclasses import dataclass
from enum import StrEnum

log = logging.getLogger(__name__)


class EventKind(StrEnum):
    """The kind of an event. Each is sent after ZooKeeper has accepted the change."""

    PUT = "put"
    CLAIM = "claim"
    COMMIT = "commit"  # payload changed, same queue and due time; or released without a change
    REQUEUE = "requeue"  # same queue, another due time
    MOVE = "move"  # another queue or pool
    REMOVE = "remove"
    DEAD = "dead"  # moved to the dead queue
    LOST = "lost"  # a claim was found to be lost
    SESSION = "session"  # the connection changed; `detail` is its state now


@dataclass(frozen=True, slots=True)
class Event:
    """One thing that happened; `seconds` is how long the request took, from the first send to the answer."""

    kind: EventKind
    id: str = ""
    queue: str = ""  # the queue before the event
    pool: str = ""
    to_queue: str = ""  # the queue after it
    to_pool: str = ""
    due: int = 0  # epoch milliseconds
    run_key: str = ""
    version: int = 0  # of the record, after the change: the fence
    nonce: str = ""  # in the record, after the change
    released: bool = False
    seconds: float = 0.0
    same_session: bool = True  # of a lost claim: True if its session exists, so the item was taken by force
    detail: str = ""


Listener = Callable[[Event], None]


class EventListeners:
    """Calls each listener with each event. A listener must be quick; one that raises breaks nothing."""

    def __init__(self) -> None:
        self._listeners: tuple[Listener, ...] = ()

    def add(self, listener: Listener) -> None:
        """Add a listener."""
        self._listeners = (*self._listeners, listener)

    def __bool__(self) -> bool:
        return bool(self._listeners)

    def notify(self, event: Event) -> None:
        """Call all listeners, on the thread that made the change."""
        for listener in self._listeners:
            try:
                listener(event)
            except Exception:  # a listener must not break a queue
                log.exception("a listener failed on %s", event)
