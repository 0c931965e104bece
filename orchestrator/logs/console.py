"""Words for people on stderr, by loguru; what other libraries log is brought there too."""

import logging
import sys
from types import FrameType

from loguru import logger

_FORMAT = "<dim>{time:HH:mm:ss.SSS}</dim> <level>{level: <7}</level> {message}"
_FORMAT_VERBOSE = "<dim>{time:HH:mm:ss.SSS}</dim> <level>{level: <7}</level> <cyan>{name}</cyan> {message}"


class _Intercept(logging.Handler):
    """Hands records of the standard logging to loguru, with the place where they were made."""

    def emit(self, record: logging.LogRecord) -> None:
        frame: FrameType | None = logging.currentframe()
        depth = 0
        while frame is not None and (depth == 0 or frame.f_code.co_filename == logging.__file__):
            frame, depth = frame.f_back, depth + 1
        level: str | int = record.levelname if record.levelname in _LEVELS else record.levelno
        logger.opt(depth=depth, exception=record.exc_info).log(level, record.getMessage())


_LEVELS = {"DEBUG", "INFO", "WARNING", "ERROR", "CRITICAL"}


def log_to_stderr(level: str, *, verbose: bool = False) -> None:
    """Send this level and above to stderr; kazoo's own chatter only when verbose."""
    logger.remove()
    logger.add(
        sys.stderr,
        level=level,
        format=_FORMAT_VERBOSE if verbose else _FORMAT,
        backtrace=verbose,
        diagnose=False,  # values of variables may be secrets
    )
    logging.basicConfig(handlers=[_Intercept()], level=level, force=True)
    logging.getLogger("kazoo").setLevel(level if verbose else logging.ERROR)
