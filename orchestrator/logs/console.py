"""Words for people on stderr, by loguru; what other libraries log is brought there too.

Loading loguru takes as long as a short command: that waits until somebody needs it.
"""

import logging
import sys
from types import FrameType

_FORMAT = "<dim>{time:HH:mm:ss.SSS}</dim> <level>{level: <7}</level> {message}"
_FORMAT_VERBOSE = "<dim>{time:HH:mm:ss.SSS}</dim> <level>{level: <7}</level> <cyan>{name}</cyan> {message}"


class _Wanted:
    """What was last asked for; no level once loguru goes by it."""

    level = ""
    verbose = False


class _Intercept(logging.Handler):
    """Hands records of the standard logging to loguru, with the place where they were made."""

    def emit(self, record: logging.LogRecord) -> None:
        from loguru import logger  # noqa: PLC0415 - see above

        settle()
        frame: FrameType | None = logging.currentframe()
        depth = 0
        while frame is not None and (depth == 0 or frame.f_code.co_filename == logging.__file__):
            frame, depth = frame.f_back, depth + 1
        level: str | int = record.levelname if record.levelname in _LEVELS else record.levelno
        logger.opt(depth=depth, exception=record.exc_info).log(level, record.getMessage())


_LEVELS = {"DEBUG", "INFO", "WARNING", "ERROR", "CRITICAL"}


def log_to_stderr(level: str, *, verbose: bool = False) -> None:
    """Send this level and above to stderr; kazoo's own chatter only when verbose."""
    _Wanted.level, _Wanted.verbose = level, verbose
    settle()
    logging.basicConfig(handlers=[_Intercept()], level=level, force=True)
    logging.getLogger("kazoo").setLevel(level if verbose else logging.ERROR)


def settle() -> None:
    """Have loguru write what `log_to_stderr` was told, if by now somebody has loaded it."""
    if not _Wanted.level or "loguru" not in sys.modules:
        return
    from loguru import logger  # noqa: PLC0415 - see above

    logger.remove()
    logger.add(
        sys.stderr,
        level=_Wanted.level,
        format=_FORMAT_VERBOSE if _Wanted.verbose else _FORMAT,
        backtrace=_Wanted.verbose,
        diagnose=False,  # values of variables may be secrets
    )
    _Wanted.level = ""
