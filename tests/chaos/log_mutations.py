"""Protections of logs that can be taken out of a process, to show that the tests notice."""

import os
from collections.abc import Callable
from enum import StrEnum
from types import SimpleNamespace
from typing import Any, assert_never

from orchestrator.logs.files import FileLock
from orchestrator.logs.shipping import elasticsearch
from orchestrator.logs.shipping.delivery import InFlightBatch, Sender, SpoolStream
from orchestrator.logs.shipping.target import BatchResult
from orchestrator.logs.spool import folder, segments

Replace = Callable[[object, str, object], None]


class Protection(StrEnum):
    """One protection each."""

    ACKNOWLEDGED = "acknowledged"  # the checkpoint does not pass what the target has acknowledged
    CRC = "crc"  # damaged records are not read
    DEAD_LETTER = "dead letter"  # a refused record goes to the dead letters
    RETRY = "retry"  # a record that is not accepted yet is sent again
    LOCK = "lock"  # the folder of a live process is not adopted


def take_out(protection: Protection, put: Replace) -> None:
    """Take it out of this process; `put` replaces an attribute."""
    match protection:
        case Protection.ACKNOWLEDGED:
            put(SpoolStream, "take", _taken_for_done(SpoolStream.take))
        case Protection.CRC:
            put(segments, "zlib", SimpleNamespace(crc32=lambda _: 0))
        case Protection.DEAD_LETTER:
            put(Sender, "_store_dead", lambda *_: None)
        case Protection.RETRY:
            put(elasticsearch, "_verdict", _without_retry(elasticsearch._verdict))  # noqa: SLF001 - the protection
        case Protection.LOCK:
            put(folder, "FileLock", _FileWithoutLock)
        case _:
            assert_never(protection)


def _taken_for_done(take: Callable[..., InFlightBatch | None]) -> Callable[..., InFlightBatch | None]:
    def taken(stream: SpoolStream, *limits: int, partial: bool) -> InFlightBatch | None:
        delivery = take(stream, *limits, partial=partial)
        if delivery is not None:
            stream._done = delivery.content.end  # noqa: SLF001 - acknowledged too early
        return delivery

    return taken


def _without_retry(verdict: Callable[..., BatchResult]) -> Callable[..., BatchResult]:
    def judged(*arguments: Any, **named: Any) -> BatchResult:
        reply = verdict(*arguments, **named)
        return BatchResult(reply.created, reply.duplicates, reply.diverted, (), reply.dead)

    return judged


class _FileWithoutLock(FileLock):
    def acquire(self, *, seconds: float = 0.0) -> bool:  # noqa: ARG002 - it never waits
        self._file = os.open(self.path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        return True
