"""Concurrent, ordered, back-pressured delivery of records to a target.

The names below are for programs of users. Each is loaded when it is first used: a worker needs some modules,
and has no PySpark.
"""

from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from spark_runner.push.batch import Priority as Priority
    from spark_runner.push.errors import Overloaded as Overloaded
    from spark_runner.push.errors import Permanent as Permanent
    from spark_runner.push.errors import PushError as PushError
    from spark_runner.push.errors import Refused as Refused
    from spark_runner.push.errors import Retryable as Retryable
    from spark_runner.push.errors import TargetDown as TargetDown
    from spark_runner.push.errors import TimedOut as TimedOut
    from spark_runner.push.pusher import Pushed as Pushed
    from spark_runner.push.pusher import Pusher as Pusher
    from spark_runner.push.retry import RetryPolicy as RetryPolicy
    from spark_runner.push.settings import LaneLimits as LaneLimits
    from spark_runner.push.settings import Limits as Limits
    from spark_runner.push.settings import Order as Order
    from spark_runner.push.settings import PushSettings as PushSettings

_MODULES = {
    "batch": ("Priority",),
    "errors": ("Overloaded", "Permanent", "PushError", "Refused", "Retryable", "TargetDown", "TimedOut"),
    "pusher": ("Pushed", "Pusher"),
    "retry": ("RetryPolicy",),
    "settings": ("LaneLimits", "Limits", "Order", "PushSettings"),
}
_MODULE_OF = {name: module for module, names in _MODULES.items() for name in names}
__all__ = tuple(sorted(_MODULE_OF))


def __getattr__(name: str) -> object:
    if name not in _MODULE_OF:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    found = globals()[name] = getattr(import_module(f"{__name__}.{_MODULE_OF[name]}"), name)
    return found
