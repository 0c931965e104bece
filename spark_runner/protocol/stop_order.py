"""The request to stop in a stop node, as drivers and workers read it."""

import json

GRACEFUL = "graceful"
"""The field of a request after which each streaming query ends with its current micro-batch."""

REASON = "reason"
"""The field of a request that a worker made, or raised, because of a time limit."""


def is_graceful(data: bytes) -> bool:
    """Whether a driver ends its queries after their current micro-batch; else it ends at once.

    A request that cannot be read ends the driver at once, as does a time limit during a graceful stop.
    """
    try:
        document = json.loads(data)
    except (ValueError, RecursionError):
        return False
    return isinstance(document, dict) and document.get(GRACEFUL) is True and REASON not in document
