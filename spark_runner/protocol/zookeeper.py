"""The only import of `queues` inside Spark: all that `spark_runner` uses of ZooKeeper.

Everything that this module imports travels to nodes that have only Java and PySpark.
"""

from queues.model.codec import decode, encode, timestamp
from queues.model.errors import AccessDenied, Conflict, OutcomeUnknown, QueueError
from queues.model.names import LOW_LANE_SUFFIX
from queues.model.operations import (
    PERM_CREATE,
    PERM_DELETE,
    PERM_READ,
    PERM_WRITE,
    Check,
    Create,
    Delete,
    Grant,
    Operation,
    Set,
)
from queues.session import Session, SessionSettings, Stat, Wake, boottime
from queues.session.wire import NodeData
from queues.store.commit import commit

__all__ = [
    "LOW_LANE_SUFFIX",
    "PERM_CREATE",
    "PERM_DELETE",
    "PERM_READ",
    "PERM_WRITE",
    "AccessDenied",
    "Check",
    "Conflict",
    "Create",
    "Delete",
    "Grant",
    "NodeData",
    "Operation",
    "OutcomeUnknown",
    "QueueError",
    "Session",
    "SessionSettings",
    "Set",
    "Stat",
    "Wake",
    "boottime",
    "commit",
    "decode",
    "encode",
    "timestamp",
]
