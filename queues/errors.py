"""Errors of `queues`: one tree, each message fit for a user."""


class QueueError(Exception):
    """Base of every error of this package."""


class Unreachable(QueueError):
    """ZooKeeper did not answer in time."""

    def __init__(self, hosts: str, seconds: float) -> None:
        super().__init__(
            f"ZooKeeper at {hosts} did not answer within {seconds:.0f} s; "
            "check that it runs and that ZOOKEEPER_HOSTS names it"
        )
        self.hosts = hosts


class SessionLost(QueueError):
    """The session ended while the call was under way; what it held is no longer held."""


class OutcomeUnknown(QueueError):
    """The connection broke and stayed broken: the change may or may not have been made."""


class TooLarge(QueueError):
    """A request was larger than ZooKeeper would take; it was not sent."""

    def __init__(self, what: str, size: int, limit: int) -> None:
        super().__init__(f"{what} is {size:,} bytes, the limit is {limit:,}; make it smaller")
        self.size = size
        self.limit = limit


class Conflict(QueueError):
    """A multi was refused as a whole because the state it was made for is gone.

    `index` is the place of the refused operation; `ambiguous` is True when an earlier send of the same
    multi had lost its reply, so that the refusal may be the echo of our own success.
    """

    def __init__(self, index: int, operation: object, reason: str, *, ambiguous: bool) -> None:
        super().__init__(f"operation {index} ({operation}) was refused: {reason}")
        self.index = index
        self.operation = operation
        self.reason = reason
        self.ambiguous = ambiguous


class InvalidName(QueueError):
    """An id or pool name has characters that a node name must not have."""


class IdTaken(QueueError):
    """Another item already has this id."""

    def __init__(self, item_id: str) -> None:
        super().__init__(f"id {item_id!r} is taken; choose another id, or remove the item that has it")
        self.item_id = item_id


class ItemNotFound(QueueError):
    """No item has this id."""

    def __init__(self, item_id: str) -> None:
        super().__init__(f"no item has the id {item_id!r}")
        self.item_id = item_id


class ClaimLost(QueueError):
    """The item is no longer ours: its lock, token or record has changed under us."""

    def __init__(self, item_id: str, reason: str) -> None:
        super().__init__(f"the claim on {item_id!r} is lost: {reason}")
        self.item_id = item_id


class CorruptRecord(QueueError):
    """The bytes of a record cannot be read as a record."""

    def __init__(self, item_id: str, reason: str) -> None:
        super().__init__(f"the record of {item_id!r} cannot be read: {reason}")
        self.item_id = item_id
        self.reason = reason
