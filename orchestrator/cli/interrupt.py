"""SIGINT and SIGTERM as an event that the main thread polls, not as an exception in mid-operation."""

import os
import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType
from typing import ClassVar, Self

_SIGNALLED = 128  # the exit code of a program ended by signal N is 128 + N


class Interrupt:
    """Records the first SIGINT or SIGTERM."""

    _installed: ClassVar["Interrupt | None"] = None

    def __init__(self, *, breaks: bool = False) -> None:
        self._event = threading.Event()
        self._signal: int | None = None
        self._breaks = breaks
        self._forces = False

    @classmethod
    def record_sigint(cls) -> None:
        """Record SIGINT, and raise KeyboardInterrupt as Python does by default.

        A library may turn the exception into another error: pydantic does so while it builds a model.
        """
        if (
            signal.getsignal(signal.SIGINT) is signal.default_int_handler
        ):  # otherwise SIGINT is ignored, as under nohup
            interrupt = cls(breaks=True)
            interrupt._take_over(signal.SIGINT)

    @classmethod
    def install(cls) -> Self:
        """Handle SIGINT and SIGTERM for the rest of this process."""
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
    def received_exit_code(cls) -> int | None:
        """The exit code of the signal that this process has received; None without one."""
        installed = cls._installed
        return installed.exit_code if installed is not None and installed.is_set() else None

    @contextmanager
    def breaking(self) -> Iterator[None]:
        """Raise KeyboardInterrupt on a signal in this block: for long waits that leave nothing half done."""
        self._breaks = True
        try:
            if self.is_set():
                raise KeyboardInterrupt
            yield
        finally:
            self._breaks = False

    def _on_signal(self, number: int, _frame: FrameType | None) -> None:
        if self._forces and self._event.is_set():
            os._exit(self.exit_code)  # second signal: ZooKeeper releases all claims when the session ends
        if self._signal is None:
            self._signal = number
        self._event.set()
        if self._breaks:
            raise KeyboardInterrupt

    def force_when_repeated(self) -> None:
        """End the process at once on every further signal."""
        self._forces = True

    def is_set(self) -> bool:
        """Whether a signal was received."""
        return self._event.is_set()

    @property
    def is_terminate(self) -> bool:
        """Whether the signal was SIGTERM, the normal stop request of a service manager."""
        return self._signal == signal.SIGTERM

    @property
    def exit_code(self) -> int:
        """130 after SIGINT, 143 after SIGTERM."""
        return _SIGNALLED + (self._signal or signal.SIGINT)

    def wait(self, seconds: float) -> bool:
        """Wait for a signal for at most `seconds`; returns whether one was received."""
        return self._event.wait(seconds)
