"""Ctrl-C and TERM as an event that the main thread checks, never an exception in the middle of a step."""

import os
import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType
from typing import ClassVar, Self

_SIGNALLED = 128  # the exit code of a program ended by signal N is 128 + N


class Interrupt:
    """Remembers the first SIGINT or SIGTERM."""

    _installed: ClassVar["Interrupt | None"] = None

    def __init__(self, *, breaks: bool = False) -> None:
        self._event = threading.Event()
        self._signal: int | None = None
        self._breaks = breaks
        self._forces = False

    @classmethod
    def remember(cls) -> None:
        """Let Ctrl-C raise KeyboardInterrupt, as without this, and record it.

        A library may make another error of the exception: pydantic does, while it builds a model.
        """
        if signal.getsignal(signal.SIGINT) is signal.default_int_handler:  # else it is ignored: by nohup
            interrupt = cls(breaks=True)
            interrupt._take_over(signal.SIGINT)

    @classmethod
    def install(cls) -> Self:
        """Take over SIGINT and SIGTERM for the rest of this process."""
        before, interrupt = cls._installed, cls()
        interrupt._take_over(signal.SIGINT, signal.SIGTERM)
        if before is not None and before.is_set():
            interrupt._on_signal(signal.SIGINT, None)
        return interrupt

    def _take_over(self, *signals: signal.Signals) -> None:
        Interrupt._installed = self
        for number in signals:
            signal.signal(number, self._on_signal)

    @classmethod
    def asked(cls) -> int | None:
        """The exit code of the signal that this process was sent; None without one."""
        installed = cls._installed
        return installed.exit_code if installed is not None and installed.is_set() else None

    @contextmanager
    def breaking(self) -> Iterator[None]:
        """Let a signal raise KeyboardInterrupt here: for long waits that leave nothing half done."""
        self._breaks = True
        try:
            if self.is_set():
                raise KeyboardInterrupt
            yield
        finally:
            self._breaks = False

    def _on_signal(self, number: int, _frame: FrameType | None) -> None:
        if self._forces and self._event.is_set():
            os._exit(self.exit_code)  # the second request: held jobs are released with the session
        if self._signal is None:
            self._signal = number
        self._event.set()
        if self._breaks:
            raise KeyboardInterrupt

    def force_when_repeated(self) -> None:
        """From now on, a further signal ends the process at once."""
        self._forces = True

    def is_set(self) -> bool:
        """Whether a stop was requested."""
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
