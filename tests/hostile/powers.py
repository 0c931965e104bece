"""The rights of a session on a node of ZooKeeper."""

from collections.abc import Callable
from typing import Any

from kazoo.exceptions import (
    BadArgumentsError,
    BadVersionError,
    NoAuthError,
    NoChildrenForEphemeralsError,
    NoNodeError,
    NotEmptyError,
    RolledBackError,
)
from kazoo.security import OPEN_ACL_UNSAFE

_NO_SUCH_VERSION = 1_000_000


def powers(client: Any, path: str) -> set[str]:
    """Each operation is refused for missing rights, or counts as a power; nothing is changed.

    ZooKeeper checks rights before versions: an operation with a wrong version tests the right alone.
    """
    acts: dict[str, Callable[[], object]] = {
        "see": lambda: client.exists(path),
        "read": lambda: client.get(path),
        "list": lambda: client.get_children(path),
        "see rights": lambda: client.get_acls(path),
        "write": lambda: client.set(path, b"harm", version=_NO_SUCH_VERSION),
        "create": lambda: _create_in_vain(client, path),
        "open": lambda: client.set_acls(path, OPEN_ACL_UNSAFE, version=_NO_SUCH_VERSION),
        "delete": lambda: client.delete(path, version=_NO_SUCH_VERSION),
    }
    found = set[str]()
    for name, act in acts.items():
        try:
            act()
        except (NoAuthError, NoChildrenForEphemeralsError, NoNodeError, BadArgumentsError):
            continue
        except (BadVersionError, NotEmptyError):
            pass  # allowed, at another version
        found.add(name)
    return found


def _create_in_vain(client: Any, path: str) -> None:
    """Create a node in a multi that a later operation makes fail."""
    multi = client.transaction()
    multi.create(f"{path.rstrip('/')}/harm", b"harm")
    multi.check(path, _NO_SUCH_VERSION)
    answer = multi.commit()[0]
    if not isinstance(answer, RolledBackError):
        raise answer
