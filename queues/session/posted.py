"""A multi under way, and what its results mean."""

from typing import Any

from kazoo.exceptions import (
    AuthFailedError,
    ConnectionClosedError,
    ConnectionLoss,
    InvalidACLError,
    KazooException,
    NoAuthError,
    OperationTimeoutError,
    RolledBackError,
    RuntimeInconsistency,
    SessionExpiredError,
    SessionMovedError,
)
from kazoo.handlers.threading import KazooTimeoutError

REPLY_LOST = (
    ConnectionLoss,
    OperationTimeoutError,
    SessionExpiredError,
    SessionMovedError,
    ConnectionClosedError,
    AuthFailedError,
    KazooTimeoutError,
)
"""The reply did not arrive: the request may or may not have been carried out."""

NO_RIGHT = (NoAuthError, InvalidACLError)
"""The server knows who we are and does not let us."""

_OF_ANOTHER_SESSION = (SessionExpiredError, SessionMovedError)


class ReplyLost(Exception):
    """A request was sent and its reply did not arrive."""


class Posted:
    """A multi under way."""

    def __init__(self, reply: Any) -> None:
        self._reply = reply

    def results(self, timeout: float) -> list[Any]:
        """A result per operation, exceptions among them; raises ReplyLost when the outcome is unknown."""
        try:
            results = self._reply.get(timeout=timeout)
        except REPLY_LOST as error:
            raise ReplyLost(type(error).__name__) from error
        for result in results:
            if isinstance(result, _OF_ANOTHER_SESSION):
                # It arrived behind the end of its connection: nothing is wrong with what was asked.
                raise ReplyLost(type(result).__name__)
        return list(results)


def refusal(result: object) -> str | None:
    """Why ZooKeeper refused this operation; None for a success or for a bystander of another's refusal."""
    if isinstance(result, RolledBackError | RuntimeInconsistency):
        return None
    return type(result).__name__.removesuffix("Error") if isinstance(result, KazooException) else None
