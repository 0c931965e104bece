"""Support for tests of claims: claim an item, collect handed-out claims, lose replies."""

from collections.abc import Callable, Mapping, Sequence
from typing import Any, Self

import pytest

from queues.claims.claim import Claim
from queues.consumer.consumer import Consumer
from queues.model.operations import Operation
from queues.queue_set import QueueSet
from queues.session import Posted, ReplyLost, Session
from tests.waiting import wait_until

NEVER = 3600.0  # no rescan: items are found by a watch
SOON = 0.3


def claim_of(queues: QueueSet, item_id: str, queue: str = "accept", pool: str = "default") -> Claim:
    """Claim an item that is not held."""
    (token,) = [token for token in queues.tokens(queue, pool) if token.id == item_id]
    claim = queues.claim(queue, pool, token)
    assert claim is not None, f"{item_id} could not be claimed"
    return claim


def locks(queues: QueueSet, pool: str = "default") -> list[str]:
    """The ids of the held items of a pool."""
    return sorted(queues.session.children(queues.layout.locks(pool)) or ())


class Collector:
    """Collects the claims that a consumer hands out, in order; holds them until the test releases them."""

    def __init__(
        self,
        queue_set: QueueSet,
        *queues: str,
        room: int = 1000,
        pools: Mapping[str, int] | Sequence[str] | None = ("default",),
        rescan_seconds: float = NEVER,
        then: Callable[[Claim], None] = lambda _claim: None,
    ) -> None:
        self.claims: list[Claim] = []
        self.room = room
        self._then = then
        self.consumer = Consumer(
            queue_set,
            queues or ("accept",),
            hand_out=self._take,
            capacity=lambda _queue: self.room - len(self.claims),
            pools=pools,
            rescan_seconds=rescan_seconds,
        )

    def _take(self, claim: Claim) -> None:
        self.claims.append(claim)
        self._then(claim)

    def ids(self) -> list[str]:
        return [claim.id for claim in self.claims]

    def wait_for(self, *ids: str, timeout: float = 10) -> None:
        """Wait until exactly these ids were handed out, in any order."""
        wait_until(lambda: sorted(self.ids()) == sorted(ids), timeout, f"{ids} are handed out")

    def wait_count(self, count: int, timeout: float = 10) -> None:
        wait_until(lambda: len(self.claims) >= count, timeout, f"{count} items are handed out")

    def __enter__(self) -> Self:
        self.consumer.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.consumer.stop()


class Lost(Posted):
    """A multi whose reply does not arrive."""

    def __init__(self) -> None:
        super().__init__(None)

    def results(self, timeout: float) -> list[Any]:
        raise ReplyLost(f"lost by the test, {timeout:.0f} s before its deadline")


def lose_reply(
    monkeypatch: pytest.MonkeyPatch,
    concerns: Callable[[Sequence[Operation]], bool],
    meanwhile: Callable[[], None] = lambda: None,
    *,
    arrives: bool = True,
) -> list[Sequence[Operation]]:
    """Lose the reply of the first multi for which `concerns` is true; returns the multis lost so far.

    The multi is applied and then `meanwhile` is called, or it never arrives.
    """
    post, lost = Session.post, list[Sequence[Operation]]()

    def lossy(session: Session, operations: Sequence[Operation]) -> Posted:
        if lost or not concerns(operations):
            return post(session, operations)
        lost.append(operations)
        if arrives:
            post(session, operations).results(10)
        meanwhile()
        return Lost()

    monkeypatch.setattr(Session, "post", lossy)
    return lost


def names_node(part: str) -> Callable[[Sequence[Operation]], bool]:
    """A condition: a multi has an operation on a node with `part` in its path."""
    return lambda operations: any(part in operation.path for operation in operations)
