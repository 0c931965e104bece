"""Control of an actor's process: it reads commands, writes its session to a file and shifts its clock."""

import json
import os
import threading
import time
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import IO

Command = Callable[[str], None]
"""Receives the argument of a command; called on the thread that reads the commands."""


class ShiftedClock:
    """The wall clock of this process, shifted from the true one.

    The shift applies to `time.time` and `time.time_ns`, called through the module. As after a step by NTP,
    the monotonic clock, which measures sessions and waits, does not change. `datetime.now` is not shifted.
    """

    def __init__(self) -> None:
        self._shift_ns = 0
        self._true_ns = time.time_ns

    def install(self) -> None:
        """Replace the clock of this process by the shifted one."""
        time.time = lambda: self._now_ns() / 1e9
        time.time_ns = self._now_ns

    def set(self, seconds: str) -> None:
        """Command: shift the clock by this many seconds."""
        self._shift_ns = int(float(seconds) * 1e9)

    def _now_ns(self) -> int:
        return self._true_ns() + self._shift_ns


def follow_commands(
    lines: IO[str], commands: Mapping[str, Command], at_end: Callable[[], None]
) -> threading.Thread:
    """Run the commands `name argument` of stdin in a thread; call `at_end` when stdin ends."""

    def follow() -> None:
        for line in lines:
            name, _, argument = line.strip().partition(" ")
            commands[name](argument)
        at_end()

    thread = threading.Thread(target=follow, name="commands", daemon=True)
    thread.start()
    return thread


def write_session(path: Path, session: int, password: bytes) -> None:
    """Write the credentials of the session for the controller, atomically."""
    draft = path.with_suffix(".draft")
    draft.write_text(json.dumps({"session": session, "password": password.hex()}), "utf-8")
    os.replace(draft, path)  # noqa: PTH105 - os.replace is the atomic one by its name
