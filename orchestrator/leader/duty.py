"""What a duty of the leader is."""

from collections.abc import Callable
from typing import Protocol

from queues.operations import Operation


class Duty(Protocol):
    """Something to be done again and again, by one worker at a time.

    For a moment two workers may do it: a step changes nothing but by claims, by compare-and-set of nodes
    whose versions tell them apart, or with the fence of the leader in its multi.
    """

    @property
    def name(self) -> str:
        """What the log calls it."""
        ...

    def step(self) -> float:
        """Do what is to be done now, some at a time; returns the seconds until it wants to be called again.

        What it raises is logged, and it is called again after a growing delay.
        """
        ...


Fence = Callable[[], tuple[Operation, ...]]
"""What refuses a multi once another worker was elected; raises NotLeading. Asked before the first look."""
