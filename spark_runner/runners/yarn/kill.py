"""The end of all applications of a run in YARN: ordered, waited for, verified."""

import time
from collections.abc import Callable

from spark_runner.errors import BackendUnreachable, KillError
from spark_runner.runners.yarn.api import Container, ResourceManager, YarnApplication

END_SECONDS = 18.0  # YARN needs one or two; what is left after this has a node that does not obey
_LOOK_SECONDS = 0.3
_AGAIN_SECONDS = 5.0  # an order may be lost with the ResourceManager that took it
_MAX_CONTAINERS = (
    200  # are looked after one by one; of more, those of the first: the others follow the driver
)


def kill_applications(
    manager: ResourceManager, tag: str, *, end_submissions: Callable[[], bool] = lambda: False
) -> None:
    """End every application with this tag; raises KillError with those that are still there.

    `end_submissions` ends what may still submit one, and tells whether there was something; what it has sent
    on its way shows itself a moment later, so that is looked for once more.
    """
    try:
        _kill(manager, tag, end_submissions)
    except BackendUnreachable as error:
        raise KillError(f"whether anything of {tag} is left in YARN is not known: {error}") from error


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
    finally:  # what is on this host ends in any case
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
            raise KillError(
                f"still there {END_SECONDS:g} s after YARN was told to end them: {', '.join(left)}"
            )
        time.sleep(_LOOK_SECONDS)
