"""Errors of `queues`: one tree, each message fit for a user."""

from collections.abc import Mapping, Sequence
from enum import StrEnum
from pathlib import Path


class Error(Exception):
    """Base of QueueError, and of the errors of programs on top of the queues: one `except` gets them all."""


class QueueError(Error):
    """Base of every error of this package."""


class Unreachable(QueueError):
    """ZooKeeper did not answer in time."""

    def __init__(
        self, hosts: str, seconds: float, origin: str = "ZOOKEEPER_HOSTS", servers: Sequence[str] = ()
    ) -> None:
        """An error for these hosts; `servers` has a line about each of them, if someone has looked."""
        words = (
            f"ZooKeeper at {hosts} did not answer within {seconds:.0f} s; "
            f"check that it runs, and its address, which comes from {origin}"
        )
        super().__init__("\n  ".join([words, *servers]))
        self.hosts = hosts
        self.origin = origin  # what names the hosts


class SessionLost(QueueError):
    """The session ended during the call; its claims no longer hold."""


class Refused(QueueError):
    """ZooKeeper understood a request and did not do it: access rights, quota, or an unknown request."""

    def __init__(self, what: str, reason: str) -> None:
        super().__init__(
            f"ZooKeeper refused {what or 'a request'}: {reason}; check the credentials and access rights "
            "of this client, and that the server is 3.6 or newer"
        )
        self.reason = reason


class OutcomeUnknown(QueueError):
    """The connection broke and stayed broken: the change may or may not have been made."""


class TooLarge(QueueError):
    """A request was larger than ZooKeeper would take; it was not sent."""

    def __init__(self, what: str, size: int, limit: int) -> None:
        super().__init__(f"{what} is {size:,} bytes, the limit is {limit:,}; make it smaller")
        self.size = size
        self.limit = limit


class Conflict(QueueError):
    """A multi was refused as a whole because the state that it expected no longer exists.

    `index` is that of the refused operation; `ambiguous` is True if an earlier send of the same
    multi had lost its reply, so that the refusal may be the echo of our own success.
    """

    def __init__(self, index: int, operation: object, reason: str, *, ambiguous: bool) -> None:
        super().__init__(f"operation {index} ({operation}) was refused: {reason}")
        self.index = index
        self.operation = operation
        self.reason = reason
        self.ambiguous = ambiguous


class InvalidName(QueueError):
    """An id or pool name is not a valid node name."""


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
    """The claim is no longer valid: its lock, token or record has changed."""

    def __init__(self, item_id: str, reason: str) -> None:
        super().__init__(f"the claim on {item_id!r} is lost: {reason}")
        self.item_id = item_id


class CorruptRecord(QueueError):
    """The bytes of a record cannot be read as a record."""

    def __init__(self, item_id: str, reason: str) -> None:
        super().__init__(f"the record of {item_id!r} cannot be read: {reason}")
        self.item_id = item_id
        self.reason = reason


class InvalidLimit(QueueError):
    """A limit of a pool was given a value that it cannot have."""

    def __init__(self, name: str, value: object, expected: str) -> None:
        super().__init__(f"{name} = {value!r} is not valid: it must be {expected}")


class QueueFull(QueueError):
    """A pool has reached its bound; put later, wait with `max_wait`, raise the bound, or use another pool."""

    def __init__(self, queue: str, pool: str, bound: int) -> None:
        super().__init__(
            f"queue {queue!r} has {bound:,} items in pool {pool!r}, its bound; "
            "put later, raise the bound of the pool, or use another pool"
        )
        self.queue = queue
        self.pool = pool
        self.bound = bound


class TooManyPools(QueueError):
    """A put named a new pool, but the maximum number of pools already exists."""

    def __init__(self, pool: str, limit: int) -> None:
        super().__init__(
            f"pool {pool!r} would exceed the limit of {limit:,} pools, low lanes included; "
            "use an existing pool, remove unused ones, or raise `max_pools`"
        )
        self.pool = pool
        self.limit = limit


class PoolInUse(QueueError):
    """A pool cannot be removed: it contains items, or a consumer serves it by name."""

    def __init__(self, pool: str, reason: str) -> None:
        super().__init__(f"pool {pool!r} is in use and was not removed: {reason}")
        self.pool = pool
        self.reason = reason


class ItemHeld(QueueError):
    """The item is held; wait until it is released, or use force: the holder then loses its claim."""

    def __init__(self, item_id: str, holder: str) -> None:
        super().__init__(
            f"{item_id!r} is held by {holder or 'an unnamed holder'}; wait until it is released, or use force"
        )
        self.item_id = item_id
        self.holder = holder


class Refusal(StrEnum):
    """The reason why an item was not claimed."""

    MOVED_ON = "it has moved on"
    POOL_CHANGED = "the limits of its pool have changed"
    HELD = "it is held"
    CHANGED = "its record has changed"
    NO_STOP = "the request to stop it is gone"
    FULL = "its pool has reached its cap"


class NotClaimed(QueueError):
    """The item that was to be claimed was not free; read it again."""

    def __init__(self, item_id: str, reason: Refusal) -> None:
        super().__init__(f"{item_id!r} was not claimed: {reason}")
        self.item_id = item_id
        self.reason = reason


class UnknownQueue(QueueError):
    """No queue has this name."""

    def __init__(self, queue: str, known: Sequence[str]) -> None:
        super().__init__(f"there is no queue {queue!r}; there are {', '.join(known)}")
        self.queue = queue


class PutsFailed(QueueError):
    """`put_many` put only some of its items; `errors` has the reasons for the others, by id."""

    def __init__(self, errors: Mapping[str, Exception], total: int) -> None:
        first = next(iter(errors))
        super().__init__(f"{len(errors):,} of {total:,} items were not put; {first!r}: {errors[first]}")
        self.errors = dict(errors)


class InvalidPayload(QueueError):
    """The payload of an item cannot be written as JSON."""

    def __init__(self, item_id: str, error: Exception) -> None:
        super().__init__(f"the payload of {item_id!r} cannot be written as JSON: {error}")
        self.item_id = item_id


class AccessDenied(QueueError):
    """This client and ZooKeeper do not accept each other; the message says what to check."""

    def __init__(self, hosts: str, reason: str) -> None:
        super().__init__(f"no access to ZooKeeper at {hosts}: {reason}")
        self.hosts = hosts
        self.reason = reason


class ServerStartFailed(QueueError):
    """The ZooKeeper server did not start; the message contains the reason and the path of its log."""


class InvalidEnsemble(QueueError):
    """The servers, the certificate or the password of an ensemble cannot be used; the message says why."""


class PortTaken(ServerStartFailed):
    """Another process listens on the port; choose another port or stop that process."""

    def __init__(self, host: str, port: int) -> None:
        super().__init__(f"port {port} on {host} is taken by another process; choose another port or stop it")
        self.host = host
        self.port = port


class ServerEnded(QueueError):
    """The ZooKeeper server that this process runs has ended by itself; its log shows the reason."""

    def __init__(self, server: str, log: Path) -> None:
        super().__init__(f"{server} has ended by itself; its data is kept, and its log is {log}")
        self.log = log


class ServerNotRunning(QueueError):
    """No server of this host serves from the data directory; start one."""

    def __init__(self, path: Path) -> None:
        super().__init__(
            f"no ZooKeeper server runs with the data directory {path}; start one, or name its hosts"
        )
        self.path = path


class DataDirectoryInUse(QueueError):
    """Another live server uses the data directory; use that server, stop it, or choose another directory."""

    def __init__(self, path: Path, address: str | None, pid: int | None, owner: str) -> None:
        if address is None:
            whom = "a server that is just starting or ending"
        else:
            whom = f"the server at {address}, run by process {pid}" + (f" ({owner})" if owner else "")
        super().__init__(f"{path} is in use by {whom}; use it, stop it, or choose another directory")
        self.path = path
        self.address = address
        self.pid = pid
        self.owner = owner
