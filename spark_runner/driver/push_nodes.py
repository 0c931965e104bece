"""The nodes by which operators steer the pushes of an attempt, and by which others go on after them."""

import contextlib
import threading
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from spark_runner.protocol.adjustment_node import adjustment_path
from spark_runner.protocol.positions_node import MAX_BYTES, positions_path
from spark_runner.protocol.run_plan import RunPlan
from spark_runner.protocol.zookeeper import (
    AccessDenied,
    Conflict,
    Create,
    Delete,
    Operation,
    Session,
    Set,
    decode,
    encode,
)
from spark_runner.push.adjustment import Adjustment
from spark_runner.push.pushes import Pushes


class PushNodes:
    """The nodes of the pushes of one attempt."""

    def __init__(
        self, session: Session, plan: RunPlan, pushes: Pushes, commit: Callable[[Sequence[Operation]], None]
    ) -> None:
        self._session, self._pushes, self._commit = session, pushes, commit
        self._run_key = plan.run_key
        self._adjustment_path = adjustment_path(plan.attempt_path)
        self._positions_path = positions_path(plan.attempt_path)
        self._adjustment = b""  # the data that the pushes follow
        self._positions: bytes | None = None  # the data of the node
        self._is_done = False
        self._keeping = threading.Lock()  # the guard may be at it when the program ends
        pushes.follow(plan.delivered)

    def follow_adjustment(self, on_change: Callable[[], None]) -> None:
        """Give the pushes the limits that an operator has set for this job; raises ValueError."""
        try:
            found = self._session.get(self._adjustment_path, on_change)
        except AccessDenied:  # it is for the driver of another attempt: a worker has not passed it on yet
            return
        if found is None or found[0] == self._adjustment:
            return
        self._adjustment = found[0]
        try:
            document = decode(found[0])
            if document.get("run_key") == self._run_key:
                self._pushes.adjust(Adjustment.of(document))
        except ValueError as error:
            raise ValueError(f"{self._adjustment_path} cannot be followed: {error}") from error

    def keep_positions(self, *, is_done: bool = False) -> None:
        """Keep how far the pushes have delivered; a node that the program has changed stays as it is."""
        with self._keeping:
            self._is_done = self._is_done or is_done
            self._keep(self._pushes.positions(is_done=self._is_done))

    def _keep(self, found: Mapping[str, Any]) -> None:
        path, data = self._positions_path, encode(dict(found)) if found else None
        if data is not None and len(data) > MAX_BYTES:
            data = None
        if data == self._positions:
            return
        with contextlib.suppress(Conflict, AccessDenied):
            is_there = self._session.exists(path) is not None
            if data is not None:
                self._commit([Set(path, data, -1) if is_there else Create(path, data)])
            elif is_there:
                self._commit([Delete(path)])
            self._positions = data
