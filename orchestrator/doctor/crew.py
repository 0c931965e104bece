"""Checks of the workers: that some exist, that one leads, and that all have one version."""

from collections.abc import Iterator

from orchestrator.doctor.findings import Finding, FindingKind
from orchestrator.doctor.survey import ClusterSnapshot
from orchestrator.states import Queue


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
