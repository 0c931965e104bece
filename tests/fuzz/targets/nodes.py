"""Nodes in ZooKeeper with arbitrary data, beside valid jobs."""

import atexit
import contextlib
import io
import tempfile
from collections.abc import Callable
from contextlib import ExitStack
from pathlib import Path

from orchestrator.cli.job.show import show_detail
from orchestrator.cli.options import OutputFormat
from orchestrator.cli.output import show_rows
from orchestrator.config.settings import Settings
from orchestrator.model.errors import OrchestratorError
from orchestrator.model.paths import Nodes
from orchestrator.model.states import Queue
from queues.model.errors import QueueError
from queues.model.operations import Create, Operation, Set
from queues.session import Session
from queues.store.commit import commit
from spark_runner.protocol.attempt import AttemptState, attempt_path
from tests.fuzz.promises import Broken, check_error, check_printable
from tests.jobs_support import Deployment
from tests.operators_support import Stage
from tests.servers.zookeeper import zookeeper_server

# The first byte of an input selects the node, by its lower half, and the reader, by its upper half.
_ASKS_THE_DOCTOR = 5  # the upper half: an examination of 50 ms
_BAD, _WELL = "bad", ("well-1", "well-2", "well-3")


class _Cluster:
    """A real server with valid jobs, and one job of which each input overwrites a node."""

    def __init__(self, folder: Path, hosts: str) -> None:
        settings = Settings(zookeeper_hosts=hosts, root="/fuzz", state_dir=folder, cache_dir=folder)
        self.stage = Stage(Deployment(settings))
        self.client, self.session = self.stage.client, self.stage.session
        nodes, layout = Nodes(settings.root), self.stage.queues.layout
        for job_id in _WELL:
            self.stage.put(Queue.RUNNING, None, AttemptState.STARTED, job_id=job_id)
        run_key = self.stage.put(Queue.RUNNING, None, AttemptState.STARTED, job_id=_BAD)
        record = layout.record(_BAD)
        attempt = attempt_path(record, run_key, 1)
        self.paths = (
            record,
            f"{record}/definition",
            attempt,
            f"{attempt}/alive",
            nodes.config,
            layout.pool("default"),
            nodes.schedule("bad"),
            nodes.worker("bad"),
            nodes.history("bad"),
            layout.stop("default", _BAD),
            layout.lock("default", _BAD),
            nodes.success("bad"),
        )
        self.session.ensure_path(nodes.config)
        for path in self.paths:
            self.session.ensure_path(path.rpartition("/")[0])
        self._whole = dict(zip(self.paths, self.session.get_many(self.paths), strict=True))

    def write(self, path: str, data: bytes) -> None:
        """Set a node, or create it."""
        _write(self.session, path, data)

    def restore(self, path: str) -> None:
        """Restore the data of a node; a created node stays, empty."""
        found = self._whole[path]
        _write(self.session, path, b"" if found is None else found[0])


def _write(session: Session, path: str, data: bytes) -> None:
    there = session.exists(path) is not None
    change: Operation = Set(path, data, -1) if there else Create(path, data)
    commit(session, [change])


def _open() -> _Cluster:
    stack = ExitStack()
    atexit.register(stack.close)
    folder = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="orchestrator-fuzz-")))
    return _Cluster(folder, stack.enter_context(zookeeper_server(folder / "zookeeper")))


_cluster: list[_Cluster] = []


def try_input(data: bytes) -> None:
    """Whatever data one node has, the other jobs are shown, and of this job the readable part."""
    if not _cluster:
        _cluster.append(_open())
    cluster = _cluster[0]
    first = (data[:1] or b"0")[0]
    path = cluster.paths[first % 16 % len(cluster.paths)]
    cluster.write(path, data[1:])
    try:
        shown = io.StringIO()
        with contextlib.redirect_stdout(shown):
            if first >> 4 == _ASKS_THE_DOCTOR:
                _examine(cluster)
            else:
                _look(cluster)
        check_printable(shown.getvalue())
    finally:
        cluster.restore(path)


def _look(cluster: _Cluster) -> None:
    client = cluster.client
    jobs = client.list()
    if not {*_WELL, _BAD} <= {job.id for job in jobs}:
        raise Broken(f"only {[job.id for job in jobs]} are listed")
    rows = [job.model_dump(mode="json") for job in jobs]
    show_rows(rows, {"id": "id", "name": "name", "status": "status"}, OutputFormat.TABLE)
    show_rows(rows, {}, OutputFormat.JSON)
    standing = client.jobs_in_queue(Queue.RUNNING)
    if not set(_WELL) <= {item["id"] for item in standing}:
        raise Broken("a job is missing in its queue")
    show_detail(client.detail(_WELL[0]))
    looks: tuple[Callable[[], object], ...] = (
        lambda: show_detail(client.detail(_BAD)),
        lambda: client.attempt(client.get(_BAD)),
        lambda: client.history("bad"),
        client.config.read,
        lambda: client.schedules.get("bad"),
        client.pools,
    )
    for look in looks:
        try:
            look()
        except (OrchestratorError, QueueError) as error:
            check_error(error)
    client.schedules.list()
    client.queues()


def _examine(cluster: _Cluster) -> None:
    cluster.client.status()
    for finding in cluster.client.doctor.check():
        check_printable(str(finding))
