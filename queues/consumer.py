"""The loop that finds due items nobody holds: watches are the hint, the rescan is the truth."""

import logging
import math
import random
import threading
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

from queues.claim import Claim
from queues.errors import CorruptRecord, ItemNotFound, QueueError
from queues.names import DEFAULT_POOL, Token
from queues.queue import QueueSet
from queues.session import Session, SessionState

log = logging.getLogger(__name__)

RESCAN_SECONDS = 5.0  # how long a lost watch can hide an item; short against a job, long against a request
_RETRY_SECONDS = 1.0


@dataclass(slots=True)
class Folder:
    """The children of one node, listed again only when they have changed."""

    session: Session
    path: str
    wake: Callable[[], None]
    names: frozenset[str] = frozenset()
    _zxid: int = -1
    _changed: threading.Event = field(default_factory=threading.Event)

    def refresh(self) -> frozenset[str]:
        """The names now; one `exists` when nothing has moved."""
        stat = self.session.exists(self.path)
        if stat is None:
            self.names, self._zxid = frozenset(), -1
        elif stat.children_zxid != self._zxid or self._changed.is_set():
            self._changed.clear()
            self.names = frozenset(self.session.children(self.path, self._on_change) or ())
            self._zxid = stat.children_zxid
        return self.names

    def _on_change(self) -> None:
        self._changed.set()
        self.wake()


class Consumer:
    """Claims due items of the given queues, earlier queues first, and hands each to `hand_out`.

    `room(queue)` says how many more items of a queue may be taken now; `hand_out` must not block. An item
    that somebody asked to stop is taken from any queue, due or not, room or not.
    """

    def __init__(
        self,
        queue_set: QueueSet,
        queues: Sequence[str],
        *,
        hand_out: Callable[[Claim], None],
        room: Callable[[str], int],
        pools: Sequence[str] = (DEFAULT_POOL,),
        accepts: Callable[[str], bool] = lambda _id: True,
        rescan_seconds: float = RESCAN_SECONDS,
    ) -> None:
        self._set = queue_set
        self._queues = tuple(queues)
        self._pools = tuple(pools)
        self._hand_out = hand_out
        self._room = room
        self._accepts = accepts
        self._rescan_seconds = rescan_seconds
        self._wake = threading.Event()
        self._stopping = threading.Event()
        self._next_look_for_strays = 0.0
        self._reported: set[str] = set()
        self._folders: dict[str, Folder] = {}
        self._thread = threading.Thread(target=self._loop, name="consumer", daemon=True)

    def start(self) -> None:
        """Start the loop in its own thread."""
        self._set.session.on_change(self._wake.set)
        for pool in self._pools:
            self._set.ensure_pool(pool)
        self._thread.start()

    def stop(self) -> None:
        """Claim nothing more; returns when the loop has ended."""
        self._stopping.set()
        self._wake.set()
        self._thread.join()

    def look_again(self) -> None:
        """Scan now: room has become free."""
        self._wake.set()

    def _loop(self) -> None:
        while not self._stopping.is_set():
            self._wake.clear()
            pause = _RETRY_SECONDS
            try:
                if self._set.session.state is SessionState.CONNECTED:
                    pause = self._scan()
            except QueueError as error:
                log.warning("scan failed, trying again in %.0f s: %s", pause, error)
            except Exception:  # a bug in a scan must not silence the queue: said aloud, then tried again
                log.exception("scan failed, trying again in %.0f s", pause)
            self._wake.wait(pause)

    def _scan(self) -> float:
        """Hand out all that can be; returns the seconds until something may be due."""
        # Jitter, so that workers started together do not scan together for ever.
        rescan = self._rescan_seconds * random.uniform(0.8, 1.2)  # noqa: S311 - not for security
        # It asks about each lock of others, too: with the rescan, not with every watch that fires.
        look_for_strays = time.monotonic() >= self._next_look_for_strays
        if look_for_strays:
            self._next_look_for_strays = time.monotonic() + rescan
        return min([rescan, *(self._scan_pool(pool, look_for_strays) for pool in self._pools)])

    def _scan_pool(self, pool: str, look_for_strays: bool) -> float:
        now, next_due = self._set.clock.now_ms(), math.inf
        # Tokens before locks: an item that moves on between the two listings is then seen as held.
        listings = {queue: self._list(self._set.layout.queue(queue, pool)) for queue in self._queues}
        stops = self._list(self._set.layout.stops(pool))
        locked = self._list(self._set.layout.locks(pool))
        if look_for_strays:
            self._set.release_strays(pool, locked)
        for queue, names in listings.items():
            for token in self._tokens(queue, names):
                if self._stopping.is_set():
                    break
                if token.id in locked or self._set.holds(token.id) or not self._accepts(token.id):
                    continue
                if token.id not in stops:
                    if token.due > now:
                        next_due = min(next_due, (token.due - now) / 1000 + 0.001)
                        continue
                    if self._room(queue) <= 0:
                        continue
                if not self._take(queue, pool, token, stopped=token.id in stops):
                    next_due = min(next_due, _RETRY_SECONDS)
        return next_due

    def _list(self, path: str) -> frozenset[str]:
        folder = self._folders.get(path)
        if folder is None:
            folder = self._folders[path] = Folder(self._set.session, path, self._wake.set)
        return folder.refresh()

    def _tokens(self, queue: str, names: frozenset[str]) -> list[Token]:
        tokens = []
        for name in names:
            token = Token.parse(name)
            if token is not None:
                tokens.append(token)
            elif name not in self._reported:
                self._reported.add(name)
                log.warning("foreign node %r in queue %s is left alone", name, queue)
        return sorted(tokens)

    def _take(self, queue: str, pool: str, token: Token, *, stopped: bool) -> bool:
        """Claim an item and hand it out; False when that failed and shall be tried again."""
        try:
            claim = self._set.claim(queue, pool, token, stopped=stopped)
        except (CorruptRecord, ItemNotFound) as error:
            if self._set.bury(queue, pool, token, error):
                log.warning("%s moved from %s to %s: %s", token.id, queue, self._set.root.dead, error)
            return True
        except QueueError:
            raise  # ZooKeeper does not answer: the next scan
        except Exception:  # one item must not hide those behind it
            log.exception("%s in %s cannot be claimed", token.id, queue)
            return False
        if claim is not None:
            self._hand_out(claim)
        return True
