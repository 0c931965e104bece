"""Sessions of workers: those that are mistaken for each other, and those that own too much."""

from collections import defaultdict
from collections.abc import Iterator

from orchestrator.doctor.findings import Finding, Kind
from orchestrator.doctor.survey import Announced, Survey

_NEAR = 0.8  # of what one session may own


# ---------------------------------------------------------------------- twins
def look_at_twins(survey: Survey) -> Iterator[Finding]:
    """Workers that take each other's local drivers for theirs, or have one name."""
    processes = defaultdict[tuple[str, str, int], list[Announced]](list)
    boots = defaultdict[str, dict[str, Announced]](dict)
    for worker in survey.workers:
        host, boot = worker.text("host"), worker.text("boot")
        if host and boot:
            boots[host][boot] = worker
            processes[host, boot, worker.number("pid")].append(worker)
    for (host, _, pid), workers in processes.items():
        if len(workers) > 1:
            what = f"{_names(workers)} say that they are one process, {pid} on {host}"
            yield _twins(workers, what, _HOSTS)
    for host, by_boot in boots.items():
        if len(by_boot) > 1:
            workers = list(by_boot.values())
            yield _twins(
                workers, f"{_names(workers)} are on two machines that are both called {host}", _HOSTS
            )
    yield from _namesakes(survey)


_HOSTS = (
    "give each machine and container a host name of its own: by that workers know their own local drivers"
)


def _namesakes(survey: Survey) -> Iterator[Finding]:
    sessions = defaultdict[str, set[int]](set)
    for consumer in (consumer for consumers in survey.consumers.values() for consumer in consumers):
        sessions[consumer.name].add(consumer.owner)
    for worker in survey.workers:
        if others := sessions[worker.name] - {worker.owner}:
            # A session that was lost and the next one of the same worker are there together for a moment.
            node = survey.session.exists(worker.path)
            if node is not None and node.owner == worker.owner:
                told = ", ".join(f"{owner:#x}" for owner in sorted(others))
                what = f"two workers are called {worker.name}: session {worker.owner:#x}, and {told}"
                yield _twins([worker], what, "end one of them; each worker needs a name of its own")


def _twins(workers: list[Announced], what: str, remedy: str) -> Finding:
    return Finding.of(Kind.TWIN_WORKERS, min(worker.path for worker in workers), what, remedy)


def _names(workers: list[Announced]) -> str:
    return " and ".join(sorted(worker.name for worker in workers))


# ---------------------------------------------------------------------- sizes
def look_at_sizes(survey: Survey) -> Iterator[Finding]:
    """Sessions whose end would make a transaction that is too large: ZOOKEEPER-4306."""
    leader = [] if survey.leader is None else [survey.leader]
    serving = [consumer for consumers in survey.consumers.values() for consumer in consumers]
    owned = {node.path: (node.owner, node.name) for node in (*survey.workers, *leader, *serving)}
    owned |= {lock.path: (lock.owner, lock.worker) for lock in survey.locks.values()}
    sizes, names = defaultdict[int, int](int), dict[int, str]()
    for path, (owner, name) in owned.items():
        sizes[owner] += len(path)
        names[owner] = name
    limit, announced = survey.session.settings.max_ephemeral_bytes, {w.name for w in survey.workers}
    for owner, size in sizes.items():
        name = names[owner]
        if owner and size > _NEAR * limit:
            path = survey.nodes.worker(name) if name in announced else f"{survey.layout.root}/locks"
            what = (
                f"session {owner:#x} of {name or 'somebody'} owns {size:,} bytes of paths; the end of one "
                f"with more than {limit:,} can end the ensemble (ZOOKEEPER-4306)"
            )
            remedy = "start more workers, then restart this one: its jobs spread over several sessions"
            yield Finding.of(Kind.MANY_EPHEMERALS, path, what, remedy)
