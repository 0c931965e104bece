"""Jobs: their definitions, the states that they pass, the workers that run them.

The public API is `Client` and `Definition`. Every module of the package imports this one, and start time
counts: `job submit` runs as often as a shell script calls it. So the package has one rule for lazy imports.
A module imports at its top what all its users need. What few of them need is imported inside the function
that needs it, with a comment that begins with "lazy:".
"""

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from orchestrator.client.client import Client
    from orchestrator.model.definition import Definition

__all__ = ["Client", "Definition"]


def __getattr__(name: str) -> object:
    if name == "Client":
        from orchestrator.client.client import Client  # noqa: PLC0415 - lazy: for users of the library alone

        return Client
    if name == "Definition":
        from orchestrator.model.definition import Definition  # noqa: PLC0415 - lazy: likewise

        return Definition
    message = f"module {__name__!r} has no attribute {name!r}"
    raise AttributeError(message)
