"""Words for people on stderr, by loguru; what other libraries log is brought there too.

Loading loguru takes as long as a short command: that waits until somebody needs it.
"""

import logging
import sys
import threading
from types import FrameType
from typing import TextIO

from orchestrator.logs.visible import visible

_FORMAT = "<dim>{time:HH:mm:ss.SSS}</dim> <level>{level: <7}</level> {message}"
_FORMAT_VERBOSE = "<dim>{time:HH:mm:ss.SSS}</dim> <level>{level: <7}</level> <cyan>{name}</cyan> {message}"


class _Wanted:
    """What was last asked for; no level once loguru goes by it."""

    level = ""
    verbose = False


def mask_uncaught() -> None:
    """Have what no code catches written without secrets, in each thread of this process."""
    sys.excepthook, threading.excepthook = lambda _, error, __: _show_masked(error), _show_of_thread


def _show_masked(error: BaseException) -> None:
    import traceback  # noqa: PLC0415 - seldom

    _SafeStream(sys.stderr).write("".join(traceback.format_exception(error)))


def _show_of_thread(arguments: "threading.ExceptHookArgs") -> None:
    if arguments.exc_value is not None and not isinstance(arguments.exc_value, SystemExit):
        _show_masked(arguments.exc_value)


class _Intercept(logging.Handler):
    """Hands records of the standard logging to loguru, with the place where they were made."""

    def emit(self, record: logging.LogRecord) -> None:
        from loguru import logger  # noqa: PLC0415 - see above

        configure_loguru()
        frame: FrameType | None = logging.currentframe()
        depth = 0
        while frame is not None and (depth == 0 or frame.f_code.co_filename == logging.__file__):
            frame, depth = frame.f_back, depth + 1
        level: str | int = record.levelname if record.levelname in _LEVELS else record.levelno
        logger.opt(depth=depth, exception=record.exc_info).log(level, record.getMessage())


class _SafeStream:
    """Where words go that quote jobs and servers: without secrets, and they command no terminal.

    loguru's colours pass.
    """

    def __init__(self, stream: TextIO) -> None:
        self._stream = stream

    def write(self, words: str) -> None:
        """Write them as they can be read."""
        from orchestrator.logs.record.redaction import REDACTOR  # noqa: PLC0415 - with the first words

        self._stream.write(visible(REDACTOR.mask(words), colours=True))

    def flush(self) -> None:
        """Hand them on."""
        self._stream.flush()

    def isatty(self) -> bool:
        """Whether it takes colours."""
        return self._stream.isatty()


_LEVELS = {"DEBUG", "INFO", "WARNING", "ERROR", "CRITICAL"}


def log_to_stderr(level: str, *, verbose: bool = False) -> None:
    """Send this level and above to stderr; kazoo's own chatter only when verbose."""
    _Wanted.level, _Wanted.verbose = level, verbose
    configure_loguru()
    logging.basicConfig(handlers=[_Intercept()], level=level, force=True)
    logging.getLogger("kazoo").setLevel(level if verbose else logging.ERROR)


def configure_loguru() -> None:
    """Have loguru write what `log_to_stderr` was told, if by now somebody has loaded it."""
    if not _Wanted.level or "loguru" not in sys.modules:
        return
    from loguru import logger  # noqa: PLC0415 - see above

    logger.remove()
    logger.add(
        _SafeStream(sys.stderr),
        level=_Wanted.level,
        format=_FORMAT_VERBOSE if _Wanted.verbose else _FORMAT,
        backtrace=_Wanted.verbose,
        diagnose=False,  # values of variables may be secrets
    )
    _Wanted.level = ""
