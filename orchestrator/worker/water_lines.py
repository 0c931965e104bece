"""Follows the water lines of held jobs, and reports those that hold back starts in their pool."""

import math
import time
from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass

from orchestrator.admission.high_water import REFRESH_SECONDS, read_each
from orchestrator.handlers.job_context import JobContext
from orchestrator.loop import Loop
from orchestrator.model.paths import Nodes
from orchestrator.model.water import EMPTY, FALLEN_SHARE, WaterLine, WaterReport, water_line
from queues import (
    LOW_LANE_SUFFIX,
    AccessDenied,
    Conflict,
    Create,
    Delete,
    NodeData,
    Operation,
    Pools,
    QueueError,
    Session,
    SessionState,
    Set,
    commit,
    decode,
    encode,
    timestamp,
)
from spark_runner.protocol.attempt import attempt_path

_LOOK_SECONDS = 2.0  # a driver writes its progress each 2 s at most
_REST = 5  # progress of thousands of jobs takes long to read: at most a sixth of the time
_STALE_SECONDS = 30.0  # a driver that pushes writes its progress each 2 s, so an older one proves nothing
_AT_ONCE = 50  # progress in one reply; usual are some kilobytes, and a megabyte is possible
_STOP_SECONDS = 0.5  # the session removes the reports without an answer


@dataclass(slots=True)
class _JobLine:
    """What this worker has seen of one attempt."""

    write: tuple[int, int]  # that of its progress
    since: float  # monotonic; of the first sight of this write
    high_at: float = 0.0  # the limit that it has reached; 0 = none


@dataclass(frozen=True, slots=True)
class _Written:
    job: str
    high_water: float
    at: float  # monotonic


class WaterLines:
    """A loop over the running jobs in pools with `high_water`; each 2 s one read for fifty of them.

    It holds one ephemeral node for each pool in which a job of this worker is at or above the limit.
    """

    def __init__(
        self,
        session: Session,
        nodes: Nodes,
        pools: Pools,
        worker: str,
        running: Callable[[], Sequence[JobContext]],
        *,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._session, self._nodes, self._pools, self._worker = session, nodes, pools, worker
        self._running, self._clock = running, clock
        self._jobs: dict[str, _JobLine] = {}  # by the path of their progress
        self._written: dict[str, _Written] = {}  # by pool
        self.lines: Mapping[str, float] = {}
        """The largest line by pool, of the pools with `high_water`."""
        self._loop = Loop("water-lines", self.step, first=_LOOK_SECONDS)
        self.start, self.trouble = self._loop.start, self._loop.trouble

    def stop(self) -> None:
        """End the loop and remove its reports; never raises."""
        if self._loop.stop(_STOP_SECONDS) and self._session.state is SessionState.CONNECTED:
            for pool in list(self._written):
                try:
                    self._withdraw(pool)
                except QueueError:
                    return

    def step(self) -> float:
        """Look at all jobs once; returns the seconds until the next look."""
        started = self._clock()
        if self._session.state is not SessionState.CONNECTED:
            return _LOOK_SECONDS
        running = self._running()
        limits, paths = self._limits(running), dict[str, JobContext]()
        for job in running if limits else ():
            if _main(job) in limits and (path := _progress_path(job)):
                paths[path] = job
        lines = dict.fromkeys(limits, 0.0)
        high = defaultdict[str, list[tuple[WaterLine, str]]](list)
        before, self._jobs = self._jobs, {}
        for path, found in self._read(list(paths)):
            job = paths[path]
            pool, line = _main(job), self._line(path, found, before.get(path))
            lines[pool] = max(lines[pool], line.line)
            if self._is_high(path, line, before.get(path), limits[pool]):
                high[pool].append((line, job.id))
        self.lines = lines
        failure: AccessDenied | None = None
        for pool in {*high, *self._written}:
            try:
                if pool in high:
                    self._report(pool, *max(high[pool]), limits[pool])
                else:
                    self._withdraw(pool)
            except AccessDenied as error:  # a folder that is closed: the other pools do not depend on it
                failure = error
        if failure is not None:
            raise failure
        return max(_LOOK_SECONDS, _REST * (self._clock() - started))

    def _read(self, paths: Sequence[str]) -> Iterator[tuple[str, NodeData | None]]:
        for start in range(0, len(paths), _AT_ONCE):
            some = paths[start : start + _AT_ONCE]
            yield from zip(some, read_each(self._session, some), strict=True)

    def _limits(self, running: Sequence[JobContext]) -> dict[str, float]:
        """`high_water` of each pool that has one and runs a job here; from memory while none changes."""
        served = {job.claim.record.pool for job in running}
        main = {pool.removesuffix(LOW_LANE_SUFFIX) for pool in served}
        limits = {pool: self._pools.limits(pool)[0].high_water for pool in main}
        return {pool: limit for pool, limit in limits.items() if limit}

    def _line(self, path: str, found: NodeData | None, before: _JobLine | None) -> WaterLine:
        """The line in the progress of a job; zero without a driver, and in progress that is stale."""
        if found is None or not found[1].owner:  # a persistent node outlives its driver
            return EMPTY
        write, now = (found[1].created, found[1].version), self._clock()
        since = before.since if before is not None and before.write == write else now
        self._jobs[path] = _JobLine(write, since)
        if now - since >= _STALE_SECONDS:
            return EMPTY
        try:
            return water_line(decode(found[0])) if found[0] else EMPTY
        except ValueError:  # perhaps written by an operator
            return EMPTY

    def _is_high(self, path: str, line: WaterLine, before: _JobLine | None, limit: float) -> bool:
        was_high = before is not None and before.high_at >= limit  # it may never have reached a raised one
        is_high = line.line >= (FALLEN_SHARE * limit if was_high else limit)
        if path in self._jobs:
            self._jobs[path].high_at = limit if is_high else 0.0
        return is_high

    # ------------------------------------------------------------------ report
    def _report(self, pool: str, line: WaterLine, job: str, limit: float) -> None:
        path, written = self._nodes.water_report(pool, self._worker), self._written.get(pool)
        stat, now = self._session.exists(path), self._clock()
        is_mine = stat is not None and stat.owner == self._session.id
        is_same = written is not None and (written.job, written.high_water) == (job, limit)
        if is_mine and is_same and written is not None and now - written.at < REFRESH_SECONDS:
            return
        report = WaterReport(
            worker=self._worker, job=job, push=line.push, line=line.line, high_water=limit, at=timestamp()
        )
        data = encode(report.model_dump())
        operations: list[Operation] = [Set(path, data, -1)] if is_mine else []
        if not is_mine:
            self._session.ensure_path(self._nodes.water_reports(pool))
            # An earlier session of this worker may own the node until the server ends that.
            operations = [*([] if stat is None else [Delete(path)]), Create(path, data, ephemeral=True)]
        self._written[pool] = _Written(job, limit, -math.inf)  # also if the reply is lost
        try:
            commit(self._session, operations)
        except Conflict:
            return  # the node has changed since: the next look finds it as it is
        self._written[pool] = _Written(job, limit, now)

    def _withdraw(self, pool: str) -> None:
        path = self._nodes.water_report(pool, self._worker)
        if self._session.exists(path) is not None:
            try:
                commit(self._session, [Delete(path)])
            except Conflict:
                return  # the next look finds it as it is
        self._written.pop(pool, None)


def _main(job: JobContext) -> str:
    return job.claim.record.pool.removesuffix(LOW_LANE_SUFFIX)


def _progress_path(job: JobContext) -> str:
    """The node of the progress of a job; empty before its first attempt."""
    try:
        attempt = job.state.attempt
    except ValueError:  # its payload is no job's: its handler reports that
        return ""
    return f"{attempt_path(job.record_path, job.run_key, attempt)}/alive" if attempt else ""
