"""The progress of a job in words: one line, or a few characters for a list.

A driver writes its progress, and a job can write what its driver writes: each value may have any type. The
words are bounded, on one line, and command no terminal.
"""

import re
from collections.abc import Iterator, Mapping
from typing import Any, TypeGuard

from orchestrator.logs.record.redaction import REDACTOR
from orchestrator.logs.visible import visible
from orchestrator.model.job_view import JobView
from orchestrator.model.states import Queue, Status
from orchestrator.model.waiting import Reason, Waiting
from spark_runner.protocol.text import shortened

_MAX_CHARACTERS = 300  # of a statement, an error, a reason
_MAX_STAGES = 10  # as many as a driver reports
_MAX_NUMBER = 1e15
_COUNTED = re.compile(r"\(([0-9]{1,4}) of ([0-9]{1,4})\)")  # at the end of the phase of an INSERT
_UNBLOCKED = {Reason.HELD, Reason.STARTING, Reason.TURN}  # it is about to start
_UNITS = ((1e9, "G"), (1e6, "M"), (1e3, "k"))


def describe_job(job: JobView, progress: Mapping[str, Any] | None, waiting: Waiting | None = None) -> str:
    """The state of a job, and what its driver does or what the job waits for, in one line.

    `progress` is that of `Client.progress`, and `waiting` that of `Client.detail`.
    """
    state = str(job.status)
    if job.attempt > 1:
        state += f", attempt {job.attempt}"
    if job.is_final:
        words = "" if job.error is None or job.status is Status.SUCCESS else one_line(job.error.message)
    else:
        words = describe_activity(job, progress, waiting)
    return f"{state}: {words}" if words else state


def describe_activity(
    job: JobView, progress: Mapping[str, Any] | None, waiting: Waiting | None = None
) -> str:
    """What a job that has not ended does now, or what it waits for; empty if it only moves on."""
    if waiting is not None:
        words = one_line(waiting.message)
        return words if waiting.reason in _UNBLOCKED else f"waits: {words}"
    return describe_progress(progress) if job.queue is Queue.RUNNING else ""


def describe_progress(progress: Mapping[str, Any] | None) -> str:
    """The current activity of the driver: its statement, the stages of Spark, the rows."""
    if progress is None:
        return ""
    parts = [one_line(progress.get("phase") or "")]
    if progress.get("stopping") is True:
        parts.append("ends after the current micro-batch")
    parts += [f"stage {number}: {done}/{tasks} tasks" for number, done, tasks in _stages(progress)]
    parts += [f"{rows:,} rows {moved}" for moved, rows in _rows(progress)]
    return " · ".join(part for part in parts if part)


def short_progress(progress: Mapping[str, Any] | None) -> str:
    """The progress in at most about 20 characters: `2/5 stmts 43%`, `1.2M rows`; empty if unknown."""
    if progress is None:
        return ""
    parts, stages = list[str](), list(_stages(progress))
    counted = _COUNTED.search(str(progress.get("phase") or "")[-_MAX_CHARACTERS:])
    if counted is not None and int(counted[2]) > 1:
        parts.append(f"{counted[1]}/{counted[2]} stmts")
    if tasks := sum(tasks for _, _, tasks in stages):
        parts.append(f"{min(100, 100 * sum(done for _, done, _ in stages) // tasks)}%")
    elif rows := dict(_rows(progress)):
        parts.append(f"{_short(rows.get('written') or rows['read'])} rows")
    return " ".join(parts)


def one_line(text: object) -> str:
    """A text of others on one line: masked, bounded, and without control of the terminal."""
    words = " ".join(REDACTOR.mask(str(text)[: 10 * _MAX_CHARACTERS]).split())
    return shortened(visible(words), _MAX_CHARACTERS)


def _stages(progress: Mapping[str, Any]) -> Iterator[tuple[int, int, int]]:
    """Number, done tasks and all tasks of the active stages."""
    stages = progress.get("stages")
    for stage in stages[:_MAX_STAGES] if isinstance(stages, list) else ():
        if isinstance(stage, Mapping):
            number, done, tasks = (stage.get(name) for name in ("stage", "done", "tasks"))
            if _is_count(number) and _is_count(done) and _is_count(tasks):
                yield number, done, tasks


def _rows(progress: Mapping[str, Any]) -> Iterator[tuple[str, int]]:
    for name in ("read", "written"):
        moved = progress.get(name)
        rows = moved.get("rows") if isinstance(moved, Mapping) else None
        if _is_count(rows) and rows:
            yield name, rows


def _is_count(value: object) -> TypeGuard[int]:
    return type(value) is int and 0 <= value <= _MAX_NUMBER


def _short(number: int) -> str:
    for size, unit in _UNITS:
        if number >= size:
            return f"{number / size:.1f}{unit}" if number < 100 * size else f"{number / size:.0f}{unit}"
    return str(number)
