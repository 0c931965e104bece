"""Whether there are workers, a leader among them, and all of one version."""

from collections.abc import Iterator

from orchestrator.doctor.findings import Finding, Kind
from orchestrator.doctor.survey import Survey
from orchestrator.states import Queue


def look_at_workers(survey: Survey) -> Iterator[Finding]:
    """No worker while something is due, no leader among workers, workers of several versions."""
    folder = survey.nodes.workers
    if not survey.workers:
        due = sum(
            token.due <= survey.now
            for (queue, _), tokens in survey.tokens.items()
            if queue is not Queue.DEAD
            for token in tokens
        )
        if due:
            what = f"there is no worker; jobs that are due: {due:,}"
            yield Finding.of(Kind.NO_WORKER, folder, what, "start one: `orchestrator worker`")
        return
    if survey.leader is not None and not survey.leader.owner:
        what = "no session owns the node of the leader: it stays, and nobody can be elected"
        remedy = f"`orchestrator zkcli delete {survey.nodes.leader}`"
        yield Finding.of(Kind.NO_LEADER, survey.nodes.leader, what, remedy)
    if survey.leader is None:
        what = (
            f"{len(survey.workers)} workers, and none of them leads: no schedule fires, nothing is tidied up"
        )
        remedy = "look again in some seconds; if it stays so, the logs of the workers say why"
        yield Finding.of(Kind.NO_LEADER, survey.nodes.leader, what, remedy)
    versions = dict[str, list[str]]()
    for worker in survey.workers:
        versions.setdefault(worker.text("version") or "unknown", []).append(worker.name)
    if len(versions) > 1:
        what = "; ".join(f"{version}: {', '.join(names)}" for version, names in sorted(versions.items()))
        remedy = "finish the update: restart the workers of the older version one after the other"
        yield Finding.of(Kind.VERSIONS_DIFFER, folder, f"workers of several versions: {what}", remedy)


def look_at_logs(survey: Survey) -> Iterator[Finding]:
    """Workers whose log records are not shipped, in their own words; their jobs run all the same."""
    for worker in survey.workers:
        if trouble := worker.text("logs"):
            what = f"log records of {worker.name} are not shipped, and wait on its host: {trouble}"
            remedy = (
                "`orchestrator logs status` on that host tells more; mended, they are shipped by themselves"
            )
            yield Finding.of(Kind.LOGS_NOT_SHIPPED, worker.path, what, remedy)
