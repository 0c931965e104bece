"""Protections that can be taken out of a process, to show that the suite notices."""

from collections.abc import Callable, Sequence
from enum import StrEnum
from functools import partial
from typing import assert_never

from queues.claims.claim import Transition
from queues.claims.claimer import Claimer
from queues.consumer.pool_views import PoolViews
from queues.model.operations import Check, Delete, Operation, Set
from queues.session import Session
from queues.store import batch, commit

Replace = Callable[[object, str, object], None]


class Protection(StrEnum):
    """One protection each."""

    FENCE = "fence"  # the version of the record and the lock, in each step of a holder
    TOKEN_CHECK = "token-check"  # noqa: S105 - no password: the token is there when the item is claimed
    NONCE = "nonce"  # after a lost reply: whether the change is its own
    RESULTS = "results"  # every result of a multi is checked
    RESCAN = "rescan"  # items that the watches missed are found


def take_out(protection: Protection, put: Replace = setattr) -> None:
    """Take it out of this process; `put` replaces an attribute."""
    replace = partial(_replace, put)
    match protection:
        case Protection.FENCE:
            _rewrite(put, _without_fence)
        case Protection.TOKEN_CHECK:
            replace(Claimer, "_gone", lambda *_: set())
            _rewrite(put, _without_token_check)
        case Protection.NONCE:
            replace(Transition, "_is_done", lambda _step: True)
            replace(Claimer, "_is_mine", lambda *_: True)
        case Protection.RESULTS:
            for module in (commit, batch):
                replace(module, "examine", lambda *_, **__: None)
        case Protection.RESCAN:
            replace(PoolViews, "rescan", lambda _views: None)
        case _:
            assert_never(protection)


def _replace(put: Replace, owner: object, name: str, by: Callable[..., object]) -> None:
    getattr(owner, name)  # fails for a missing name: replacing it would test nothing
    put(owner, name, by)


def _rewrite(put: Replace, change: Callable[[Sequence[Operation]], list[Operation]]) -> None:
    post = Session.post
    _replace(put, Session, "post", lambda session, operations: post(session, change(operations)))


def _without_fence(operations: Sequence[Operation]) -> list[Operation]:
    match operations:
        case [Delete(path, _)] if "/locks/" in path:  # not a step of a holder: the removal of an orphan lock
            return [*operations]
    changed: list[Operation] = []
    for operation in operations:
        match operation:
            case Set(path, data, _) if "/jobs/" in path:
                changed.append(Set(path, data, -1))
            case Check(path, version) if "/jobs/" in path and version >= 0:
                changed.append(Check(path))
            case Delete(path, version) if "/jobs/" in path and version >= 0:
                changed.append(Delete(path))
            case Check(path, _) if "/locks/" in path:
                changed.append(Check("/"))
            case Delete(path, _) if "/locks/" in path:
                changed.append(Check("/"))
            case _:
                changed.append(operation)
    return changed


def _without_token_check(operations: Sequence[Operation]) -> list[Operation]:
    return [
        Check("/") if isinstance(operation, Check) and "/queue-|" in operation.path else operation
        for operation in operations
    ]
