"""Errors of logs. None of them reaches a log call."""


class LogsError(Exception):
    """Base of all errors of this package."""


class SpoolUnusable(LogsError):
    """The folder of the spool cannot be written."""


class DeadLettersFull(LogsError):
    """The file of refused records has reached its limit; an operator must examine and remove it."""


class TargetError(LogsError):
    """A target of logs did not accept a request."""


class TargetUnreachable(TargetError):
    """No response, or one that reports a temporary failure. `delay`: the server's Retry-After, in seconds."""

    def __init__(self, message: str, delay: float = 0.0) -> None:
        super().__init__(message)
        self.delay = delay


class TargetBusy(TargetUnreachable):
    """The server asks for fewer requests."""


class RequestTooLarge(TargetError):
    """The request is too large for the server; half of it may be accepted."""


class RequestMalformed(TargetError):
    """The server rejected the whole request, possibly because of one document."""


class TargetRefuses(TargetError):
    """An operator must act: credentials, certificate, address or template are wrong."""
