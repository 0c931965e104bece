"""A live line in notebooks: the state of a job, updated in place while a cell waits for its end."""

import sys
from collections.abc import Callable
from html import escape
from importlib import import_module
from typing import Any

from orchestrator.client.updates import JobUpdate
from orchestrator.model.states import Status

_COLOURS = {Status.SUCCESS: "#1a7f37", Status.RUNNING: "#0969da", Status.RUNNING_WARN: "#9a6700"}
_ENDED_COLOUR = "#cf222e"  # without success
_WAITING_COLOUR = "#6e7781"


def live_line() -> Callable[[JobUpdate], None] | None:
    """Shows updates in one line below the current cell; None outside notebooks.

    IPython is no dependency: a notebook has loaded it. Its terminal stays silent, as Python's does.
    """
    ipython = sys.modules.get("IPython")
    shell = ipython.get_ipython() if ipython is not None else None
    if getattr(shell, "kernel", None) is None:
        return None
    display = import_module("IPython.display").display
    handle: Any = None

    def show(update: JobUpdate) -> None:
        nonlocal handle
        if handle is None:
            handle = display(_Line(update), display_id=True)
        else:
            handle.update(_Line(update))

    return show


class _Line:
    """An update as a notebook shows it."""

    def __init__(self, update: JobUpdate) -> None:
        self._update = update

    def __repr__(self) -> str:
        return f"{self._update.job.id}  {self._update}"

    def _repr_html_(self) -> str:
        job = self._update.job
        other = _ENDED_COLOUR if job.is_final else _WAITING_COLOUR
        mark = f'<span style="color:{_COLOURS.get(job.status, other)}">&#9679;</span>'
        return f"{mark} <code>{escape(job.id)}</code> {escape(str(self._update))}"
