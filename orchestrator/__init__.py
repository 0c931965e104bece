"""Jobs: what they are, the states they pass, and who works on them."""

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from orchestrator.client import Client
    from orchestrator.models.definition import Definition

__all__ = ["Client", "Definition"]


def __getattr__(name: str) -> object:
    # Every part of this package imports this file: what only users of the library need waits until then.
    if name == "Client":
        from orchestrator.client import Client  # noqa: PLC0415 - see above

        return Client
    if name == "Definition":
        from orchestrator.models.definition import Definition  # noqa: PLC0415 - see above

        return Definition
    message = f"module {__name__!r} has no attribute {name!r}"
    raise AttributeError(message)
