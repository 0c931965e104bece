"""Workers: their number, a leader among them, their versions and their sessions."""

from collections import defaultdict
from collections.abc import Iterator

from orchestrator.admission.hosts import WorkerAnnouncement
from orchestrator.doctor.findings import Finding, FindingKind
from orchestrator.doctor.snapshot import ClusterSnapshot
from orchestrator.model.states import Queue


def check_workers(snapshot: ClusterSnapshot) -> Iterator[Finding]:
    """No worker while jobs are due, no leader, or workers of several versions."""
    folder = snapshot.nodes.workers
    if not snapshot.workers:
        due = sum(
            token.due <= snapshot.now
            for (queue, _), tokens in snapshot.tokens.items()
            if queue is not Queue.DEAD
            for token in tokens
        )
        if due:
            what = f"there is no worker, and {due:,} jobs are due"
            yield Finding.of(FindingKind.NO_WORKER, folder, what, "start one: `orchestrator worker`")
        return
    if snapshot.leader is not None and not snapshot.leader.owner:
        what = "no session owns the node of the leader: it stays, and no worker can be elected"
        remedy = f"`orchestrator zkcli delete {snapshot.nodes.leader}`"
        yield Finding.of(FindingKind.NO_LEADER, snapshot.nodes.leader, what, remedy)
    if snapshot.leader is None:
        what = f"{len(snapshot.workers)} workers, and none leads: no schedule fires, and no orphan is removed"
        remedy = "check again in some seconds; if it persists, see the logs of the workers"
        yield Finding.of(FindingKind.NO_LEADER, snapshot.nodes.leader, what, remedy)
    versions = dict[str, list[str]]()
    for worker in snapshot.workers:
        versions.setdefault(worker.text("version") or "unknown", []).append(worker.name)
    if len(versions) > 1:
        what = "; ".join(f"{version}: {', '.join(names)}" for version, names in sorted(versions.items()))
        remedy = "finish the update: restart the workers of the older version one by one"
        yield Finding.of(FindingKind.VERSIONS_DIFFER, folder, f"workers of several versions: {what}", remedy)


def check_logs(snapshot: ClusterSnapshot) -> Iterator[Finding]:
    """Workers whose log records are not shipped, with the reason; their jobs are not affected."""
    for worker in snapshot.workers:
        if trouble := worker.text("logs"):
            what = f"log records of {worker.name} are not shipped and wait on its host: {trouble}"
            remedy = (
                "fix the cause, see `orchestrator logs status` on that host; the records are then shipped"
            )
            yield Finding.of(FindingKind.LOGS_NOT_SHIPPED, worker.path, what, remedy)


_NEAR = 0.8  # of what one session may own


# ---------------------------------------------------------------------- twins
def check_twins(snapshot: ClusterSnapshot) -> Iterator[Finding]:
    """Workers that mistake each other's local drivers for their own, or have the same name."""
    processes = defaultdict[tuple[str, str, int], list[WorkerAnnouncement]](list)
    boots = defaultdict[str, dict[str, WorkerAnnouncement]](dict)
    for worker in snapshot.workers:
        host, boot = worker.text("host"), worker.text("boot")
        if host and boot:
            boots[host][boot] = worker
            processes[host, boot, worker.number("pid")].append(worker)
    for (host, _, pid), workers in processes.items():
        if len(workers) > 1:
            what = f"{_names(workers)} announce the same process, {pid} on {host}"
            yield _twins(workers, what, _HOSTS)
    for host, by_boot in boots.items():
        if len(by_boot) > 1:
            workers = list(by_boot.values())
            yield _twins(
                workers, f"{_names(workers)} are on two machines that are both called {host}", _HOSTS
            )
    yield from _namesakes(snapshot)


_HOSTS = "give each machine and container its own host name: workers identify their local drivers by it"


def _namesakes(snapshot: ClusterSnapshot) -> Iterator[Finding]:
    sessions = defaultdict[str, set[int]](set)
    for consumer in (consumer for consumers in snapshot.consumers.values() for consumer in consumers):
        sessions[consumer.name].add(consumer.owner)
    for worker in snapshot.workers:
        if others := sessions[worker.name] - {worker.owner}:
            # A lost session and the next one of the same worker exist together for a moment.
            node = snapshot.session.exists(worker.path)
            if node is not None and node.owner == worker.owner:
                listed = ", ".join(f"{owner:#x}" for owner in sorted(others))
                what = f"several workers are called {worker.name}: session {worker.owner:#x}, and {listed}"
                yield _twins([worker], what, "end all but one; each worker needs its own name")


def _twins(workers: list[WorkerAnnouncement], what: str, remedy: str) -> Finding:
    return Finding.of(FindingKind.TWIN_WORKERS, min(worker.path for worker in workers), what, remedy)


def _names(workers: list[WorkerAnnouncement]) -> str:
    return " and ".join(sorted(worker.name for worker in workers))


# ---------------------------------------------------------------------- sizes
def check_sizes(snapshot: ClusterSnapshot) -> Iterator[Finding]:
    """Sessions whose end would create a transaction that is too large: ZOOKEEPER-4306."""
    leader = [] if snapshot.leader is None else [snapshot.leader]
    serving = [consumer for consumers in snapshot.consumers.values() for consumer in consumers]
    owned = {node.path: (node.owner, node.name) for node in (*snapshot.workers, *leader, *serving)}
    owned |= {lock.path: (lock.owner, lock.worker) for lock in snapshot.locks.values()}
    sizes, names = defaultdict[int, int](int), dict[int, str]()
    for path, (owner, name) in owned.items():
        sizes[owner] += len(path)
        names[owner] = name
    limit, announced = snapshot.session.settings.max_ephemeral_bytes, {w.name for w in snapshot.workers}
    for owner, size in sizes.items():
        name = names[owner]
        if owner and size > _NEAR * limit:
            path = snapshot.nodes.worker(name) if name in announced else f"{snapshot.layout.root}/locks"
            what = (
                f"session {owner:#x} of {name or 'an unnamed program'} owns {size:,} bytes of paths; the end "
                f"of one with more than {limit:,} can end the ensemble (ZOOKEEPER-4306)"
            )
            remedy = "start more workers, then restart this one: its jobs spread over several sessions"
            yield Finding.of(FindingKind.MANY_EPHEMERALS, path, what, remedy)
