"""Jobs from the logs, which keep the history of jobs longer than ZooKeeper keeps their records."""

from collections.abc import Collection, Sequence
from datetime import datetime

from pydantic import ValidationError

from orchestrator.cli.logs.places import reader_of
from orchestrator.cli.output import stderr_console
from orchestrator.config.settings import load_settings
from orchestrator.history.log_records import REMOVAL, TRANSITION
from orchestrator.logs.reading.query import LogQuery, LogRecord, time_of
from orchestrator.model.fields import explain
from orchestrator.model.job_view import JobView
from orchestrator.model.name_patterns import NameFilter
from orchestrator.model.states import Queue

_MAX_RECORDS = 10_000  # the limit of one search
_ENDED = (Queue.FINISH.value, Queue.DEAD.value)


def archived_jobs(
    *,
    job_id: str = "",
    pools: Collection[str] = (),
    names: Collection[str] = (),
    statuses: Collection[str] = (),
    queues: Collection[str] = (),
    since: datetime | None = None,
    quiet: bool = False,
) -> Sequence[JobView]:
    """The last state of each matching job, newest first; without an id, only of ended jobs.

    One search returns at most 10,000 records; unless `quiet`, stderr says from when on they are.
    """
    named = NameFilter(names)
    query = LogQuery.of(
        event_action=(TRANSITION, REMOVAL),
        job_id=job_id,
        job_pool=list(pools),
        job_name=[] if named.has_patterns else list(named.exact),
        job_status=list(map(str, statuses)),
        job_queue=list(map(str, queues)) or ([] if job_id else _ENDED),
        since="" if since is None else time_of(since),  # each record is later than the creation of its job
    )
    found = dict[tuple[str, str], JobView]()  # the last record of each job wins
    entries = reader_of(load_settings()).last(query, _MAX_RECORDS)
    if len(entries) == _MAX_RECORDS and not quiet:
        narrow = "narrow the search with --pool, --status, --queue or --name without a pattern"
        first = entries[0].timestamp
        message = f"only the last {_MAX_RECORDS:,} records were read, from {first} on: {narrow}"
        stderr_console().print(message, markup=False)
    for entry in entries:
        view = _view(entry)
        if view is not None and named.matches(view.name):
            found[view.id, entry.text("job.run_key")] = view
    return sorted(found.values(), key=lambda view: view.created, reverse=True)


def _view(entry: LogRecord) -> JobView | None:
    state = entry.document.get("job.state")
    if not isinstance(state, dict):
        return None
    usual: dict[str, object] = {"attempt": 0, "started": None, "ended": None, "error": None, "times": {}}
    place = {name: entry.text(f"job.{name}") for name in ("id", "run_key", "pool", "queue")}
    try:
        return JobView.model_validate({**usual, **state, **place})
    except ValidationError as error:  # written by another version
        if place["queue"] not in set(Queue):
            return None
        since, reason = entry.text("@timestamp"), explain(error, JobView, "its state").replace("\n", "; ")
        queue = Queue(place["queue"])
        return JobView.unreadable(place["id"], place["pool"], queue, since=since, reason=reason)
