"""Runs a function as another user of this host, in a child process with another uid."""

import json
import os
import sys
from collections.abc import Callable
from typing import Any

from tests.servers.zookeeper import unavailable

STRANGER = 61_234
"""A uid without an entry in any database."""


def as_another_user(act: Callable[[], Any]) -> Any:
    """Run `act` in a forked child as another user; returns its result (as JSON) or the name of its error.

    Its imports must be loaded before: that user may be unable to read this interpreter.
    """
    if os.geteuid() != 0:
        unavailable("only root can be another user")
    here, there = os.pipe()
    child = os.fork()
    if not child:
        code = 1
        try:
            os.close(here)
            os.setgroups([])
            os.setresgid(STRANGER, STRANGER, STRANGER)
            os.setresuid(STRANGER, STRANGER, STRANGER)
            with os.fdopen(there, "w") as pipe:
                try:
                    answer = act()
                except Exception as error:  # noqa: BLE001 - it is the answer
                    answer = type(error).__name__
                json.dump(answer, pipe)
            code = 0
        finally:
            sys.stderr.flush()
            os._exit(code)
    os.close(there)
    with os.fdopen(here) as pipe:
        text = pipe.read()
    _, status = os.waitpid(child, 0)
    assert status == 0, f"the other user's process ended with {status}"
    return json.loads(text)
