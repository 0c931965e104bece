"""What the checker is told of the system under test."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Rules:
    """`transitions` are the allowed (queue, to_queue); a step that stays in its queue is always allowed.

    `ensemble_offset_ms` is what to add to an event's `t` in milliseconds to get the ensemble's time: measured
    by the controller, so that a wrong clock of an actor cannot hide an early start. Without it `wall_ms` is
    believed.

    `gone_is_removed`: a removal whose outcome was unknown is told as done when the item is gone, whoever has
    removed it. Then only the removal from the highest fence counts.
    """

    transitions: frozenset[tuple[str, str]]
    max_attempts: int
    early_ms: int = 50
    ensemble_offset_ms: int | None = None
    gone_is_removed: bool = False
