"""Parameters of the checker for the system under test."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Rules:
    """`transitions` are the allowed (queue, to_queue); a step that stays in its queue is always allowed.

    `ensemble_offset_ms` is the ensemble's time minus an event's `t`, in milliseconds. The controller measures
    it, so that a wrong clock of an actor cannot hide an early start. Without it the checker uses `wall_ms`.

    `gone_is_removed`: an actor acknowledges a removal of unknown outcome when the item is gone, whoever has
    removed it. Then only the removal with the highest fence counts.
    """

    transitions: frozenset[tuple[str, str]]
    max_attempts: int
    early_ms: int = 50
    ensemble_offset_ms: int | None = None
    gone_is_removed: bool = False
