"""What an actor's process does for its controller: hears commands, tells its session, shifts its clock."""

import json
import os
import threading
import time
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import IO

Command = Callable[[str], None]
"""Gets what follows the name of the command; called on the thread that reads the commands."""


class ShiftedClock:
    """The wall clock of this process, so many seconds from the true one.

    Only `time.time` and `time.time_ns` are shifted, for those who call them through the module. The monotonic
    clock, by which sessions and waits go, stays: so it is after a step by NTP. `datetime.now` reads the clock
    beside them and stays right.
    """

    def __init__(self) -> None:
        self._shift_ns = 0
        self._true_ns = time.time_ns

    def install(self) -> None:
        """From now on this process reads the shifted clock."""
        time.time = lambda: self._now_ns() / 1e9
        time.time_ns = self._now_ns

    def set(self, seconds: str) -> None:
        """Be so many seconds ahead: a command."""
        self._shift_ns = int(float(seconds) * 1e9)

    def _now_ns(self) -> int:
        return self._true_ns() + self._shift_ns


def follow_commands(
    lines: IO[str], commands: Mapping[str, Command], at_end: Callable[[], None]
) -> threading.Thread:
    """Carry out `name argument` lines in a thread of their own; `at_end` when the controller is gone."""

    def follow() -> None:
        for line in lines:
            name, _, argument = line.strip().partition(" ")
            commands[name](argument)
        at_end()

    thread = threading.Thread(target=follow, name="commands", daemon=True)
    thread.start()
    return thread


def tell_session(path: Path, session: int, password: bytes) -> None:
    """Leave the credentials of the session where the controller looks; never half of them."""
    draft = path.with_suffix(".draft")
    draft.write_text(json.dumps({"session": session, "password": password.hex()}), "utf-8")
    os.replace(draft, path)  # noqa: PTH105 - the name of what it must be: atomic
