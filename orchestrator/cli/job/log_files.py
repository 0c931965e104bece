"""The logs of one attempt, from the files of this host."""

import codecs
import os
import sys
import time
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, suppress
from enum import StrEnum
from threading import Event
from typing import IO

from orchestrator.admin.views import JobDetail
from orchestrator.client.client import Client
from orchestrator.driver_logs.facts import read_secrets
from orchestrator.logs.record.redaction import REDACTOR
from orchestrator.logs.visible import visible
from orchestrator.model.errors import LogsElsewhere, NoSuchAttempt
from spark_runner.protocol.attempt import run_name
from spark_runner.protocol.errors import SparkRunnerError
from spark_runner.protocol.log_limit import OLDER
from spark_runner.protocol.plain_file import open_plain
from spark_runner.runners.base import LogFile, SubmissionPlace
from spark_runner.runners.registry import Runners
from spark_runner.runners.spark_log import readable_lines

_FOLLOW_SECONDS = 0.3
_COPY_SECONDS = 2.0  # the interval of log requests to a cluster
_KEY_BEGINS, _KEY_ENDS = b"-----BEGIN ", b"-----END "
_MAX_KEY_BYTES = 20_000  # the maximum length that the pattern of the redactor matches
_CHUNK_BYTES = 1 << 20


class LogStream(StrEnum):
    """The log streams of an attempt."""

    STDOUT = "stdout"
    STDERR = "stderr"
    SPARK = "spark"


def print_logs(
    client: Client,
    runners: Runners,
    job_id: str,
    number: int | None,
    streams: Sequence[LogStream],
    *,
    follow: bool,
) -> None:
    """Write the logs of an attempt to stdout; with `follow`, until the job has ended, with its retries.

    Raises LogsElsewhere, NoSuchAttempt.
    """
    shown = 0
    while True:
        detail = client.detail(job_id)
        goes_on = follow and not detail.job.is_final
        found = _find(detail, runners, number, streams, patient=goes_on)
        if found is not None and found[0] > shown:
            shown, logs = found
            _print_attempt(client, runners, job_id, shown, logs, streams, follow=follow)
        elif not goes_on:
            return
        if not follow or number is not None:
            return
        Event().wait(_FOLLOW_SECONDS)


def _find(
    detail: JobDetail,
    runners: Runners,
    number: int | None,
    streams: Sequence[LogStream],
    *,
    patient: bool,
) -> tuple[int, list[LogFile]] | None:
    """The number and the logs of the attempt; None if it has none yet and `patient` is set."""
    job, wanted = detail.job, number or detail.job.attempt
    document = next((item for item in detail.attempts if item.get("attempt") == wanted), None)
    if document is None:
        if patient and number is None:
            return None
        have = f"its last attempt is {job.attempt}" if job.attempt else "it has not been started"
        raise NoSuchAttempt(f"job {job.id!r} has no logs{f' of attempt {number}' if number else ''}: {have}")
    place = SubmissionPlace.of(document.get("place"))
    if place is None:
        raise NoSuchAttempt(
            f"job {job.id!r} has no logs of attempt {wanted}: its node does not record where it ran"
        )
    runner, run = runners.at(place.of_files), run_name(detail.run_key, wanted)
    found = [] if runner is None else runner.logs(run)
    if not found and not patient:
        raise LogsElsewhere(f"the logs of {job.id} attempt {wanted} are not on this host: {place}, run {run}")
    # There may be hundreds of executors: their logs are found by record.
    shown = [log for log in found if log.stream in streams and not log.executor]
    return (wanted, shown) if found else None


def _print_attempt(
    client: Client,
    runners: Runners,
    job_id: str,
    number: int,
    logs: Sequence[LogFile],
    streams: Sequence[LogStream],
    *,
    follow: bool,
) -> None:
    with ExitStack() as stack:
        tails = {log.path: Tail(stack, log) for log in logs}
        for folder in {log.path.parent for log in logs}:
            REDACTOR.add(read_secrets(folder))

        def print_new(found: Sequence[LogFile] = ()) -> None:
            # The older part of a restarted log has been printed already. The log of a spark-submit is dropped
            # once its driver has its own log.
            now = {log.path: tails.get(log.path) or Tail(stack, log) for log in found}
            new = {path: tail for path, tail in now.items() if path in tails or path.suffix != OLDER}
            if new:
                tails.clear()
                tails.update(new)
            _print(list(tails.values()), headings=len(tails) > 1)

        print_new()
        asked = time.monotonic()
        while follow and (job := client.get(job_id)).attempt == number and not job.is_final:
            Event().wait(_FOLLOW_SECONDS)
            if time.monotonic() - asked >= _COPY_SECONDS:
                print_new(_logs(client, runners, job_id, number, streams))
                asked = time.monotonic()
            else:
                print_new()
        print_new(_logs(client, runners, job_id, number, streams) if follow else ())
        for tail in tails.values():
            _write(tail, tail.rest(), final=True)


def _logs(
    client: Client, runners: Runners, job_id: str, number: int, streams: Sequence[LogStream]
) -> list[LogFile]:
    """The current logs, copied again for a driver on another host; empty if the copy fails."""
    with suppress(SparkRunnerError, NoSuchAttempt, LogsElsewhere):
        found = _find(client.detail(job_id), runners, number, streams, patient=True)
        return found[1] if found else []
    return []


class Tail:
    """One log file, read from the position of the last read."""

    def __init__(self, stack: ExitStack, log: LogFile) -> None:
        self._stack, self._log = stack, log
        self._file: IO[bytes] | None = None
        self._part = b""
        self.decoder = codecs.getincrementaldecoder("utf-8")("backslashreplace")
        self.heading = f"==> {log.stream} ({log.path}) <==\n"

    def chunks(self) -> Iterator[bytes]:
        """The data that is new since the last call."""
        if self._file is None:
            try:
                file = open_plain(self._log.path)
            except (FileNotFoundError, ValueError):  # ValueError: a pipe or a device in its place
                return
            self._file = self._stack.enter_context(os.fdopen(file, "rb"))
        if os.fstat(self._file.fileno()).st_size < self._file.tell():  # restarted at its size limit
            self._file.seek(0)
            self._part = b""
        while chunk := self._file.read(_CHUNK_BYTES):
            yield self._readable(chunk)

    def rest(self) -> bytes:
        """The incomplete last line, at the end of the log."""
        rest, self._part = self._part, b""
        return _masked(rest)

    def _readable(self, chunk: bytes) -> bytes:
        """Whole lines with secrets masked and Spark's JSON made readable; an incomplete line is kept back."""
        data = self._part + chunk
        end = _open_key(data)
        if end is None:
            end = data.rfind(b"\n") + 1
        lines, self._part = data[:end], data[end:]
        is_sparks = self._log.is_mixed or self._log.stream == LogStream.SPARK
        return _masked(readable_lines(lines) if is_sparks else lines)


def _open_key(data: bytes) -> int | None:
    """The start of the line in which an unfinished private key begins: a key is masked as a whole."""
    begin, whole = data.rfind(_KEY_BEGINS), data.rfind(b"\n")
    if begin < 0 or len(data) - begin > _MAX_KEY_BYTES or data.find(_KEY_ENDS, begin, whole) >= 0:
        return None
    line = data[begin:].partition(b"\n")[0]
    return data.rfind(b"\n", 0, begin) + 1 if b"PRIVATE KEY" in line else None


def _masked(data: bytes) -> bytes:
    text = data.decode("utf-8", "surrogateescape")
    return REDACTOR.mask(text).encode("utf-8", "surrogateescape")


_last_printed: list[Tail] = []


def _print(tails: Sequence[Tail], *, headings: bool) -> None:
    for tail in tails:
        for chunk in tail.chunks():
            if headings and _last_printed != [tail]:
                sys.stdout.write(tail.heading)
                sys.stdout.flush()
                _last_printed[:] = [tail]
            _write(tail, chunk)


def _write(tail: Tail, data: bytes, *, final: bool = False) -> None:
    """Write data to stdout; on a terminal, control sequences are escaped."""
    if sys.stdout.isatty():
        data = visible(tail.decoder.decode(data, final)).encode()
    os.write(sys.stdout.fileno(), data)
