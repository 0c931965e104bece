"""The interface of a duty of the leader."""

from collections.abc import Callable
from typing import Protocol

from queues import Operation

FenceOperations = tuple[Operation, ...]
"""Operations that make ZooKeeper refuse a multi once another worker was elected."""

Fence = Callable[[], FenceOperations]
"""Returns the fence of the current term; raises NotLeading. Called before the first read of a step."""


class Duty(Protocol):
    """Work that one worker at a time repeats for the whole cluster.

    For a moment two workers may run the same duty. A step therefore changes nothing except by claims, by
    compare-and-set of nodes whose versions distinguish the workers, or with the fence of the leader in its
    multi.
    """

    @property
    def name(self) -> str:
        """The name of the duty in the log."""
        ...

    def step(self) -> float:
        """Do what is due, a bounded amount at a time; returns the seconds until the next call.

        The caller logs an exception and calls the step again after a growing delay.
        """
        ...
