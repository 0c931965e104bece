"""The logs of one attempt, from the files of this host."""

import os
import sys
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack
from enum import StrEnum
from threading import Event
from typing import IO

from orchestrator.client import Client
from orchestrator.errors import LogsElsewhere, NoSuchAttempt
from spark_runner.attempt import run_name
from spark_runner.runners.base import LogFile, Place, Runner

_FOLLOW_SECONDS = 0.3
_CHUNK_BYTES = 1 << 20


class LogStream(StrEnum):
    """The logs that an attempt has."""

    STDOUT = "stdout"
    STDERR = "stderr"
    SPARK = "spark"


def print_logs(
    client: Client,
    runners: Mapping[str, Runner],
    job_id: str,
    number: int | None,
    streams: Sequence[LogStream],
    *,
    follow: bool,
) -> None:
    """Write the logs to stdout; raises LogsElsewhere, NoSuchAttempt."""
    detail = client.detail(job_id)
    number = number or detail.job.attempt
    document = next((item for item in detail.attempts if item.get("attempt") == number), None)
    if document is None:
        last = detail.job.attempt
        have = f"its last attempt is {last}" if last else "it has not been started"
        raise NoSuchAttempt(f"job {job_id!r} has no logs{f' of attempt {number}' if number else ''}: {have}")
    place = Place(**document["place"])
    runner = runners.get(place.backend)
    run = run_name(detail.run_key, number)
    if runner is None or not (found := runner.logs(run)):
        raise LogsElsewhere(f"the logs of {job_id} attempt {number} are on host {place.host}, as run {run}")
    wanted = [log for log in found if log.stream in streams]
    with ExitStack() as stack:
        tails = [_Tail(stack, log) for log in wanted]
        _print(tails, headings=len(wanted) > 1)
        while follow and not client.get(job_id).is_final:
            Event().wait(_FOLLOW_SECONDS)
            _print(tails, headings=len(wanted) > 1)
        _print(tails, headings=len(wanted) > 1)


class _Tail:
    """One log file, read from where it was left."""

    def __init__(self, stack: ExitStack, log: LogFile) -> None:
        self._stack, self._log = stack, log
        self._file: IO[bytes] | None = None
        self.heading = f"==> {log.stream} ({log.path}) <==\n"

    def chunks(self) -> Iterator[bytes]:
        if self._file is None:
            if not self._log.path.exists():
                return
            self._file = self._stack.enter_context(self._log.path.open("rb"))
        while chunk := self._file.read(_CHUNK_BYTES):
            yield chunk


_last_printed: list[_Tail] = []


def _print(tails: Sequence[_Tail], *, headings: bool) -> None:
    for tail in tails:
        for chunk in tail.chunks():
            if headings and _last_printed != [tail]:
                sys.stdout.write(tail.heading)
                sys.stdout.flush()
                _last_printed[:] = [tail]
            os.write(sys.stdout.fileno(), chunk)
