"""Read-only views of jobs."""

import sys
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from itertools import islice
from typing import Any

from orchestrator.model.job import state_of
from orchestrator.model.job_view import JobView
from orchestrator.model.name_patterns import NameFilter
from orchestrator.model.readable_nodes import readable_nodes
from orchestrator.model.states import Queue, Status
from orchestrator.model.waiting import Waiting
from queues import (
    AccessDenied,
    CorruptRecord,
    InvalidLimit,
    NodeData,
    QueueSet,
    Record,
    Token,
    decode,
    id_of,
    is_token,
    seq_of,
)
from spark_runner.protocol.attempt import Attempt, attempt_number, attempt_path

READ_AT_ONCE = 256  # records: a request of about 20 KiB, a reply of some hundred


@dataclass(frozen=True, slots=True)
class JobDetail:
    """Everything that ZooKeeper stores about one job."""

    job: JobView
    run_key: str
    record_path: str
    definition: dict[str, Any]
    attempts: list[dict[str, Any]]
    progress: dict[str, Any] | None  # as the driver reports it while it runs
    held_by: dict[str, Any] | None  # the lock
    due: str | None  # the earliest start, while it waits in accept
    waiting: Waiting | None = None  # why it does not run yet; None when it runs or has ended


@dataclass(frozen=True, slots=True)
class TokenLocation:
    """The queue, the pool and the token of a job."""

    queue: Queue
    pool: str
    token: Token

    def unreadable(self, error: CorruptRecord) -> JobView:
        """The view of a job whose record cannot be read."""
        since = _time(self.token.seq // 1000)
        return JobView.unreadable(self.token.id, self.pool, self.queue, since=since, reason=str(error))


class Views:
    """Reads jobs, many at a time. Safe to use from several threads."""

    def __init__(self, queue_set: QueueSet) -> None:
        self._set = queue_set
        self._session = queue_set.session
        self._layout = queue_set.layout

    # ------------------------------------------------------------------ many jobs
    def jobs(self, queues: Collection[Queue] = tuple(Queue)) -> Iterator[JobView]:
        """All jobs in these queues of all pools, each once, in the order of the queues.

        A job that moves meanwhile is reported from the queue where it was first met. A job whose record
        cannot be read is included as `JobView.unreadable`.
        """
        yield from self._read(self._locations(queues), queues)

    def list(
        self,
        *,
        pools: Collection[str] = (),
        names: Collection[str] = (),
        statuses: Collection[Status] = (),
        queues: Collection[Queue] = (),
        labels: Mapping[str, str] | None = None,
        since: datetime | None = None,
        limit: int | None = None,
    ) -> Sequence[JobView]:
        """The jobs that match, newest first, at most `limit`; an empty filter matches all jobs.

        `names` may have patterns of a shell, such as `daily*`. `labels` must all match, and `since` is the
        earliest time of the submission. A job whose record cannot be read is included as
        `JobView.unreadable`, unless names, statuses or labels are given: it has none.
        Raises InvalidLimit.
        """
        if limit is not None and not 0 <= limit <= sys.maxsize:
            raise InvalidLimit("limit", limit, "a number of jobs")
        wanted = tuple(queues or Queue)
        # The sequence in a token's name is the time of the submission, so the order needs no record.
        locations = sorted(self._locations(wanted, pools), key=lambda found: id_of(found[2]))
        locations.sort(key=lambda found: seq_of(found[2]), reverse=True)
        if since is not None:
            try:
                earliest = f"{max(0, int(since.timestamp() * 1_000_000)):013x}"
            except (OverflowError, ValueError):  # the first and the last days that datetime has
                raise InvalidLimit("since", since, "a time that this host can convert to UTC") from None
            locations = [found for found in locations if seq_of(found[2]) >= earliest]
        accepted, named, asked = tuple(statuses), NameFilter(names), (labels or {}).items()

        def fits(record: Record) -> bool:
            # Before the payload is validated: that takes most of the time.
            name, status = record.payload.get("name"), record.payload.get("status")
            return named.matches(name) and (not accepted or status in accepted)

        fitting = (
            view
            for view in self._read(locations, wanted, fits)
            if (view.is_readable or not (names or statuses or labels))
            and (not pools or view.pool in pools)
            and asked <= view.labels.items()
        )
        return tuple(islice(fitting, limit))

    def _locations(
        self, queues: Collection[Queue], pools: Collection[str] = ()
    ) -> Iterable[tuple[Queue, str, str]]:
        """The queue, the pool and the name of the token of each job, where it was first met."""
        found = dict[str, tuple[Queue, str, str]]()
        listed = dict[tuple[str, str], int]()
        # Jobs move while this lists folder after folder, mostly forward, so that they are met twice. A job
        # that moved into a folder that was empty, or back to accept, would be missed: those are listed again.
        for _ in range(2):
            for (queue, pool), stat in self._set.look.folders().items():
                if stat is None or not stat.children or queue not in queues or (pools and pool not in pools):
                    continue
                seen = listed.get((queue, pool))
                if seen == stat.children_zxid or (seen is not None and queue != Queue.ACCEPT):
                    continue
                names, listed[queue, pool] = self._set.look.listing(queue, pool)
                for name in names:
                    if is_token(name):
                        found.setdefault(id_of(name), (Queue(queue), pool, name))
        return found.values()

    def _read(
        self,
        locations: Iterable[tuple[Queue, str, str]],
        queues: Collection[Queue],
        fits: Callable[[Record], bool] = lambda _record: True,
    ) -> Iterator[JobView]:
        left = (
            TokenLocation(queue, pool, token)
            for queue, pool, name in locations
            if (token := Token.parse(name)) is not None
        )
        while part := list(islice(left, READ_AT_ONCE)):
            found = self._session.get_many([self._layout.record(location.token.id) for location in part])
            for location, node in zip(part, found, strict=True):
                if node is None:
                    continue  # removed meanwhile
                try:
                    record = Record.decode(location.token.id, node[0])
                    view = JobView.of(record) if fits(record) else None
                except CorruptRecord as error:
                    yield location.unreadable(error)
                    continue
                if view is not None and view.queue in queues:
                    yield view

    # ------------------------------------------------------------------ one job
    def detail(self, job_id: str) -> JobDetail:
        """Everything that ZooKeeper stores about one job; raises ItemNotFound, CorruptRecord."""
        from orchestrator.admin.waits import Waits  # noqa: PLC0415 - lazy: a list of jobs needs none

        record = self._set.get(job_id)
        view, path = JobView.of(record), self._layout.record(job_id)
        # From the existing nodes: the number in a damaged record may be anything.
        children = self._session.children(path) or ()
        named = {number: name for name in children if (number := attempt_number(name)) is not None}
        found = self._session.get_many([f"{path}/{named[number]}" for number in sorted(named)])
        lock = self._document(self._layout.lock(record.pool, job_id))
        last = decoded(found[-1]) if found else None
        return JobDetail(
            job=view,
            run_key=record.run_key,
            record_path=path,
            definition=self._document(f"{path}/definition") or {},
            attempts=[document for node in found if (document := decoded(node)) is not None],
            progress=self.progress(view),
            held_by=lock,
            due=_time(record.token.due) if view.queue is Queue.ACCEPT else None,
            waiting=Waits(self._set).of(record, state_of(record), lock=lock, attempt=last),
        )

    def attempt(self, view: JobView) -> Attempt | None:
        """The last attempt of a job; raises CorruptRecord where it cannot be read."""
        if view.attempt == 0:
            return None
        try:
            return Attempt.read(self._session, self._attempt_path(view))
        except ValueError as error:
            raise CorruptRecord(view.id, f"its attempt {view.attempt} is damaged: {error}") from error

    def progress(self, view: JobView) -> dict[str, Any] | None:
        """The progress that the driver reports while it runs; None without a running driver."""
        if view.attempt == 0 or view.is_final:
            return None
        try:
            return self._document(f"{self._attempt_path(view)}/alive")
        except AccessDenied:  # the driver has closed the node to other users
            return None

    def progress_of(self, views: Iterable[JobView]) -> dict[str, dict[str, Any]]:
        """The progress of each of these jobs that has a running driver, by id, in few requests."""
        running = [view for view in views if view.attempt and view.queue is Queue.RUNNING]
        found = readable_nodes(self._session, [f"{self._attempt_path(view)}/alive" for view in running])
        nodes = (None if isinstance(node, AccessDenied) else node for node in found)  # closed by its driver
        progress = zip(running, map(decoded, nodes), strict=True)
        return {view.id: document for view, document in progress if document is not None}

    def _attempt_path(self, view: JobView) -> str:
        return attempt_path(self._layout.record(view.id), view.run_key, view.attempt)

    def _document(self, path: str) -> dict[str, Any] | None:
        return decoded(self._session.get(path))


def _time(epoch_ms: int) -> str:
    return datetime.fromtimestamp(epoch_ms / 1000, UTC).isoformat(timespec="milliseconds")


def decoded(found: NodeData | None) -> dict[str, Any] | None:
    """The document of a node that was read; damaged bytes as text; None without a node or data."""
    if found is None or not found[0]:
        return None
    try:
        return decode(found[0])
    except ValueError:
        return {"unreadable": found[0].decode(errors="replace")}
