"""Ends all applications of a run in YARN, waits for their end, and verifies it."""

import time
from collections.abc import Callable

from spark_runner.protocol.errors import BackendUnreachable, KillError
from spark_runner.runners.yarn.api import Container, ResourceManager, YarnApplication

END_SECONDS = 18.0  # YARN needs one or two; whatever remains then is on a node that does not react
_LOOK_SECONDS = 0.3
_AGAIN_SECONDS = 5.0  # a request may be lost with the ResourceManager that accepted it
_MAX_CONTAINERS = 200
"""Containers that are checked one by one; executors beyond the limit follow the driver."""


def kill_applications(
    manager: ResourceManager, tag: str, *, end_submissions: Callable[[], bool] = lambda: False
) -> None:
    """End every application with this tag; raises KillError with those that remain.

    `end_submissions` ends the processes that may still submit one, and returns whether any existed. Their
    last requests take effect a moment later, so a second look follows.
    """
    try:
        _kill(manager, tag, end_submissions)
    except BackendUnreachable as error:
        raise KillError(f"cannot verify that nothing of {tag} is left in YARN: {error}") from error


def _kill(manager: ResourceManager, tag: str, end_submissions: Callable[[], bool]) -> None:
    deadline = time.monotonic() + END_SECONDS
    ordered: dict[str, float] = {}
    containers: set[Container] = set()

    def live_ones() -> list[YarnApplication]:
        live = [found for found in manager.applications([tag]) if not found.has_ended]
        for application in live:
            if time.monotonic() - ordered.get(application.id, 0.0) > _AGAIN_SECONDS:
                if application.id not in ordered:
                    containers.update(manager.containers(application)[:_MAX_CONTAINERS])
                ordered[application.id] = time.monotonic()
                manager.kill(application)
        return live

    try:
        live_ones()
    finally:  # the processes on this host end in any case
        looks_needed = 2 if end_submissions() else 1
    while True:
        live = live_ones()
        running = {container for container in containers if manager.is_running(container)}
        if not live and not running:
            looks_needed -= 1
            if not looks_needed:
                return
        if time.monotonic() > deadline:
            left = [application.id for application in live] + sorted(found.id for found in running)
            raise KillError(f"not ended {END_SECONDS:g} s after the request to YARN: {', '.join(left)}")
        time.sleep(_LOOK_SECONDS)
