"""An item to put."""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

from queues.names import DEFAULT_POOL
from queues.operations import Operation


@dataclass(frozen=True, slots=True)
class NewItem:
    """An item to put; `id` None makes a UUID.

    It is due after `delay_ms`, or at `due_ms` of the ensemble's epoch time when that is given.
    """

    payload: Mapping[str, Any] = field(default_factory=dict)
    id: str | None = None
    pool: str = DEFAULT_POOL
    delay_ms: int = 0
    due_ms: int | None = None
    run_key: str = ""
    riders: Callable[[str], Iterable[Operation]] = lambda _record: ()
    """Gets the path of the record and returns operations for the same multi."""
