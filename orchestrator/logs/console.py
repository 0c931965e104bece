"""Console log on stderr, written by loguru. Records of the standard `logging` module go there too.

Importing loguru takes as long as a short command does, so it is imported with the first record.
"""

import logging
import sys
import threading
from types import FrameType
from typing import TextIO

from orchestrator.logs.visible import visible

_FORMAT = "<dim>{time:HH:mm:ss.SSS}</dim> <level>{level: <7}</level> {message}"
_FORMAT_VERBOSE = "<dim>{time:HH:mm:ss.SSS}</dim> <level>{level: <7}</level> <cyan>{name}</cyan> {message}"


class _Pending:
    """The last requested configuration. `level` is empty once loguru has it."""

    level = ""
    verbose = False


def mask_uncaught() -> None:
    """Mask secrets in the tracebacks of uncaught exceptions, in every thread of this process."""
    sys.excepthook, threading.excepthook = lambda _, error, __: _write_masked(error), _write_of_thread


def _write_masked(error: BaseException) -> None:
    import traceback  # noqa: PLC0415 - rarely needed

    _SafeStream(sys.stderr).write("".join(traceback.format_exception(error)))


def _write_of_thread(arguments: "threading.ExceptHookArgs") -> None:
    if arguments.exc_value is not None and not isinstance(arguments.exc_value, SystemExit):
        _write_masked(arguments.exc_value)


class _Intercept(logging.Handler):
    """Passes records of the standard `logging` module to loguru, with the source location of the call."""

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
    """A stream that masks secrets and escapes terminal control sequences, except loguru's colours.

    Log messages quote jobs and servers, so their text is not trusted.
    """

    def __init__(self, stream: TextIO) -> None:
        self._stream = stream

    def write(self, text: str) -> None:
        """Write the text, masked and escaped."""
        from orchestrator.logs.record.redaction import REDACTOR  # noqa: PLC0415 - with the first text

        self._stream.write(visible(REDACTOR.mask(text), colours=True))

    def flush(self) -> None:
        """Flush the underlying stream."""
        self._stream.flush()

    def isatty(self) -> bool:
        """Whether the underlying stream is a terminal."""
        return self._stream.isatty()


_LEVELS = {"DEBUG", "INFO", "WARNING", "ERROR", "CRITICAL"}


def log_to_stderr(level: str, *, verbose: bool = False) -> None:
    """Log this level and above to stderr; kazoo's messages below ERROR only when `verbose`."""
    _Pending.level, _Pending.verbose = level, verbose
    configure_loguru()
    logging.basicConfig(handlers=[_Intercept()], level=level, force=True)
    logging.getLogger("kazoo").setLevel(level if verbose else logging.ERROR)


def configure_loguru() -> None:
    """Apply the configuration of `log_to_stderr` to loguru, if loguru is imported by now."""
    if not _Pending.level or "loguru" not in sys.modules:
        return
    from loguru import logger  # noqa: PLC0415 - see above

    logger.remove()
    logger.add(
        _SafeStream(sys.stderr),
        level=_Pending.level,
        format=_FORMAT_VERBOSE if _Pending.verbose else _FORMAT,
        backtrace=_Pending.verbose,
        diagnose=False,  # values of variables may be secrets
    )
    _Pending.level = ""
