"""Ctrl-C and TERM as an event that the main thread looks at, never an exception in the middle of a step."""

import signal
import threading
from types import FrameType
from typing import Self

_SIGNALLED = 128  # the exit code of a program ended by signal N is 128 + N


class Interrupt:
    """Remembers the first SIGINT or SIGTERM."""

    def __init__(self) -> None:
        self._event = threading.Event()
        self._signal: int | None = None

    @classmethod
    def install(cls) -> Self:
        """Take over SIGINT and SIGTERM for the rest of this process."""
        interrupt = cls()
        signal.signal(signal.SIGINT, interrupt._on_signal)
        signal.signal(signal.SIGTERM, interrupt._on_signal)
        return interrupt

    def _on_signal(self, number: int, _frame: FrameType | None) -> None:
        if self._signal is None:
            self._signal = number
        self._event.set()

    def is_set(self) -> bool:
        """Whether somebody asked to stop."""
        return self._event.is_set()

    @property
    def is_terminate(self) -> bool:
        """Whether it was TERM: the orderly request of a service manager."""
        return self._signal == signal.SIGTERM

    @property
    def exit_code(self) -> int:
        """130 after Ctrl-C, 143 after TERM."""
        return _SIGNALLED + (self._signal or signal.SIGINT)

    def wait(self, seconds: float) -> bool:
        """Wait for a signal at most so long; True when there was one."""
        return self._event.wait(seconds)
