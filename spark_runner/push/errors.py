"""The errors of a push."""

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from spark_runner.push.batch import Record


class PushError(Exception):
    """A push cannot go on."""


class TargetDown(PushError):
    """The target took no record for longer than the retry timeout."""


class PushEnded(PushError):
    """The push was drained or aborted: it takes no further records."""


class SettingError(PushError, ValueError):
    """A setting of a push has a wrong value."""


class DeliveryError(Exception):
    """The target did not take a batch; raised by a pusher, and followed by a retry or a dead letter."""


class Retryable(DeliveryError):
    """The target cannot take the batch now; `retry_after` are the seconds that it asks to wait."""

    def __init__(self, words: str, retry_after: float = 0.0) -> None:
        super().__init__(words)
        self.retry_after = retry_after


class Overloaded(Retryable):
    """The target takes fewer requests than it gets; no request of the lane starts before `retry_after`."""


class TimedOut(Retryable):
    """The target did not answer in time."""


class Refused(Retryable):
    """The target accepts no connection, or breaks it."""


class Permanent(DeliveryError):
    """The target will never take the record; a batch of several records is divided to find it."""


class Partial(DeliveryError):
    """The target settled some rows of a record of many.

    The `rejected` ones are its dead letters. What is `left` of the record comes again: after a pause because
    of an `error`, or else at once. So many rows of it were not in the request: they are `unsent`.
    """

    def __init__(
        self,
        rejected: Sequence[Any] = (),
        left: "Record | None" = None,
        error: Retryable | None = None,
        *,
        unsent: int = 0,
    ) -> None:
        super().__init__(str(error) if error else "rows of it are rejected")
        self.rejected, self.left, self.error, self.unsent = rejected, left, error, unsent
