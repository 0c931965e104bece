"""Jobs: their definitions, the states that they pass, the workers that run them.

The names below are the public API; `docs/python-api.md` shows their use. Every module of the package imports
this one, and start time counts: `job submit` runs as often as a shell script calls it. So the package has one
rule for lazy imports. A module imports at its top what all its users need. What few of them need is imported
inside the function that needs it, with a comment that begins with "lazy:".
"""

from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from orchestrator.client.client import Client as Client
    from orchestrator.client.updates import JobUpdate as JobUpdate
    from orchestrator.model.definition import Definition as Definition
    from orchestrator.model.definition_files import load_definition as load_definition
    from orchestrator.model.definition_parts import Callback as Callback
    from orchestrator.model.definition_parts import CheckpointUse as CheckpointUse
    from orchestrator.model.definition_parts import Retry as Retry
    from orchestrator.model.definition_parts import Timeout as Timeout
    from orchestrator.model.errors import AlreadyEnded as AlreadyEnded
    from orchestrator.model.errors import DefinitionError as DefinitionError
    from orchestrator.model.errors import NotRunning as NotRunning
    from orchestrator.model.errors import OrchestratorError as OrchestratorError
    from orchestrator.model.errors import SettingsError as SettingsError
    from orchestrator.model.errors import StateConflict as StateConflict
    from orchestrator.model.errors import WaitTimeout as WaitTimeout
    from orchestrator.model.job_view import JobView as JobView
    from orchestrator.model.schedule import Schedule as Schedule
    from orchestrator.model.spark import Driver as Driver
    from orchestrator.model.spark import Executor as Executor
    from orchestrator.model.spark import Kubernetes as Kubernetes
    from orchestrator.model.spark import Spark as Spark
    from orchestrator.model.spark import Standalone as Standalone
    from orchestrator.model.spark import Yarn as Yarn
    from orchestrator.model.states import Queue as Queue
    from orchestrator.model.states import Status as Status
    from orchestrator.model.tuning import Tuning as Tuning
    from queues import AccessDenied as AccessDenied
    from queues import Error as Error
    from queues import IdTaken as IdTaken
    from queues import InvalidName as InvalidName
    from queues import ItemNotFound as ItemNotFound
    from queues import OutcomeUnknown as OutcomeUnknown
    from queues import QueueFull as QueueFull
    from queues import Unreachable as Unreachable
    from spark_runner.sql.text.errors import SqlError as SqlError

_NAMES = {
    "orchestrator.client.client": ("Client",),
    "orchestrator.client.updates": ("JobUpdate",),
    "orchestrator.model.definition": ("Definition",),
    "orchestrator.model.definition_parts": ("Callback", "CheckpointUse", "Retry", "Timeout"),
    "orchestrator.model.definition_files": ("load_definition",),
    "orchestrator.model.errors": (
        "AlreadyEnded",
        "DefinitionError",
        "NotRunning",
        "OrchestratorError",
        "SettingsError",
        "StateConflict",
        "WaitTimeout",
    ),
    "orchestrator.model.job_view": ("JobView",),
    "orchestrator.model.schedule": ("Schedule",),
    "orchestrator.model.spark": ("Driver", "Executor", "Kubernetes", "Spark", "Standalone", "Yarn"),
    "orchestrator.model.states": ("Queue", "Status"),
    "orchestrator.model.tuning": ("Tuning",),
    "queues": (
        "AccessDenied",
        "Error",
        "IdTaken",
        "InvalidName",
        "ItemNotFound",
        "OutcomeUnknown",
        "QueueFull",
        "Unreachable",
    ),
    "spark_runner.sql.text.errors": ("SqlError",),
}
_HOMES = {name: module for module, names in _NAMES.items() for name in names}
__all__ = tuple(sorted(_HOMES))


def __getattr__(name: str) -> object:
    if name not in _HOMES:
        message = f"module {__name__!r} has no attribute {name!r}"
        raise AttributeError(message)
    value = getattr(import_module(_HOMES[name]), name)
    globals()[name] = value  # later uses find it without this function
    return value
