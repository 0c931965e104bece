"""Records of jobs, each with the preconditions that make a multi fail once the record has changed."""

from collections.abc import Iterable
from typing import NamedTuple

from queues.errors import CorruptRecord
from queues.operations import Check, Create, Delete, Operation
from queues.queue import QueueSet
from queues.record import Record


class CheckedJob(NamedTuple):
    """A record as it was read, None if the job is gone, and the operations that check that it still is so."""

    record: Record | None
    preconditions: tuple[Operation, ...]


class JobPreconditions:
    """Reads records of jobs that may be gone."""

    def __init__(self, queue_set: QueueSet) -> None:
        self._root = queue_set.root

    def read(self, ids: Iterable[str], *, prepare: bool = True) -> dict[str, CheckedJob]:
        """The jobs with these ids; those whose records cannot be read are left out.

        `prepare`: create the folders that the preconditions need. Without it nothing is written, for callers
        that only inspect.
        """
        root, found = self._root, dict[str, CheckedJob]()
        wanted = list(dict.fromkeys(ids))
        paths = [root.layout.record(job_id) for job_id in wanted]
        for job_id, path, node in zip(wanted, paths, root.session.get_many(paths), strict=True):
            if node is None:
                if prepare:
                    root.ensure_bucket(job_id)
                found[job_id] = CheckedJob(None, (Create(path), Delete(path)))
                continue
            try:
                record = Record.decode(job_id, node[0])
            except CorruptRecord:
                continue
            # Versions restart at 0 when the id is put again; the name of a token never comes back.
            token = root.layout.token(record.queue, record.pool, record.token)
            found[job_id] = CheckedJob(record, (Check(path, node[1].version), Check(token)))
        return found
