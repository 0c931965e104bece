"""Delivers one batch: again and again, in parts, until every record of it is settled."""

from collections.abc import Sequence

from orchestrator.logs.errors import (
    DeadLettersFull,
    RequestMalformed,
    RequestTooLarge,
    TargetBusy,
    TargetRefuses,
    TargetUnreachable,
)
from orchestrator.logs.shipping.counts import Counts
from orchestrator.logs.shipping.dead_letters import DeadLetters
from orchestrator.logs.shipping.pace import Pace
from orchestrator.logs.shipping.target import BatchResult, DeadLetter, LogTarget


class Sender:
    """Sends for several threads at the pace that they share."""

    def __init__(self, target: LogTarget, pace: Pace, counts: Counts, dead_letters: DeadLetters) -> None:
        self._target, self._pace, self._counts, self._dead = target, pace, counts, dead_letters

    def prepare(self) -> bool:
        """Make the target ready, however long that takes; False when the pace was stopped before."""
        while self._pace.enter():
            try:
                self._target.prepare()
            except TargetRefuses as error:
                self._pace.paused(str(error))
            except TargetUnreachable as error:
                self._pace.failed(str(error), error.delay)
            except Exception as error:  # noqa: BLE001 - a fault of a target: its thread goes on, and says so
                self._pace.paused(_fault(error))
            else:
                self._pace.succeeded()
                return True
        return False

    def deliver(self, records: Sequence[bytes]) -> bool:
        """Settle each record; False when the pace was stopped before, and some may not be."""
        parts = [list(records)]
        while parts:
            part = parts.pop()
            if not part:
                continue
            if not self._pace.enter():
                return False
            parts.extend(self._send(part))
        return True

    def _send(self, part: list[bytes]) -> list[list[bytes]]:
        """What of it has to be sent again, in parts."""
        try:
            reply = self._target.send(part)
            self._put_aside(reply)
        except (RequestTooLarge, RequestMalformed) as error:
            return self._split(part, error)
        except TargetRefuses as error:
            self._pace.paused(str(error))
        except TargetBusy as error:
            self._pace.slowed(str(error), error.delay)
        except TargetUnreachable as error:
            self._pace.failed(str(error), error.delay)
        except DeadLettersFull as error:
            self._pace.paused(str(error))
        except OSError as error:  # no dead letter can be written: nothing of this is settled
            self._pace.failed(f"refused log records cannot be put aside: {error.strerror or error}")
        except Exception as error:  # noqa: BLE001 - likewise: nothing of this is settled
            self._pace.paused(_fault(error))
        else:
            self._counts.add(reply)
            if not reply.retry:
                self._pace.succeeded()
                return []
            self._pace.slowed("the target took a part of what it was sent")
            return [list(reply.retry)]
        return [part]

    def _split(self, part: list[bytes], error: RequestTooLarge | RequestMalformed) -> list[list[bytes]]:
        if len(part) > 1:
            self._pace.succeeded()
            half = len(part) // 2
            return [part[half:], part[:half]]
        status = 413 if isinstance(error, RequestTooLarge) else 400
        reply = BatchResult(dead=[DeadLetter(part[0], status, str(error))])
        try:
            self._put_aside(reply)
        except (DeadLettersFull, OSError) as failure:
            self._pace.paused(str(failure))
            return [part]
        self._counts.add(reply)
        self._pace.succeeded()
        return []

    def _put_aside(self, reply: BatchResult) -> None:
        if reply.dead:
            self._dead.write(reply.dead)


def _fault(error: Exception) -> str:
    return f"a fault of the program: {type(error).__name__}: {error}"
