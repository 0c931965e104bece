"""Records of jobs, and what proves in a multi that they still are as they were read."""

from collections.abc import Iterable

from queues.errors import CorruptRecord
from queues.operations import Check, Create, Delete, Operation
from queues.queue import QueueSet
from queues.record import Record

Proof = tuple[Operation, ...]


class JobProofs:
    """Reads records of jobs that may be gone."""

    def __init__(self, queue_set: QueueSet) -> None:
        self._root = queue_set.root

    def read(self, ids: Iterable[str], *, prepare: bool = True) -> dict[str, tuple[Record | None, Proof]]:
        """Each job, None for one that is gone, with its proof; those that cannot be read are left out.

        `prepare`: make the folders that a proof needs; without, nothing is written, for who only looks.
        """
        root, found = self._root, dict[str, tuple[Record | None, Proof]]()
        wanted = list(dict.fromkeys(ids))
        paths = [root.layout.record(job_id) for job_id in wanted]
        for job_id, path, node in zip(wanted, paths, root.session.get_many(paths), strict=True):
            if node is None:
                if prepare:
                    root.ensure_bucket(job_id)
                found[job_id] = None, (Create(path), Delete(path))
                continue
            try:
                record = Record.decode(job_id, node[0])
            except CorruptRecord:
                continue
            # Versions begin at 0 again when the id is put anew; the name of a token does not come back.
            token = root.layout.token(record.queue, record.pool, record.token)
            found[job_id] = record, (Check(path, node[1].version), Check(token))
        return found
