"""What can go wrong with logs; none of it reaches a log call."""


class LogsError(Exception):
    """Base of all errors of this package."""


class SpoolUnusable(LogsError):
    """The folder of the spool cannot be written."""


class DeadLettersFull(LogsError):
    """So many records were refused that somebody has to look before more are put aside."""


class TargetError(LogsError):
    """What a target of logs says no with."""


class TargetUnreachable(TargetError):
    """No answer, or one that says that the server cannot work at present; `delay`: seconds it asks for."""

    def __init__(self, message: str, delay: float = 0.0) -> None:
        super().__init__(message)
        self.delay = delay


class TargetBusy(TargetUnreachable):
    """The server answers and asks for less."""


class RequestTooLarge(TargetError):
    """The request as a whole is too large for the server: half of it may pass."""


class RequestMalformed(TargetError):
    """The request as a whole was refused, maybe for one document in it."""


class TargetRefuses(TargetError):
    """Somebody has to do something: credentials, certificate, address or template are wrong."""
