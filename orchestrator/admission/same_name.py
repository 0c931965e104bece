"""The running jobs of one name, for those who explain what `concurrency` means for a further one."""

from collections.abc import Sequence

from orchestrator.admission.slots import slot_owner
from orchestrator.model.paths import Nodes
from orchestrator.model.states import Queue
from queues import LOW_LANE_SUFFIX, CorruptRecord, Layout, Record, Session, Token, order_of

_NAMED = 3  # jobs in one sentence
_MOST_READ = 200  # jobs of a pool: an explanation is not worth more


def slot_owners(session: Session, nodes: Nodes, name: str) -> list[str]:
    """The ids of the jobs that have a slot of this name, sorted. Raises the errors of reads."""
    folder = nodes.name_slots(name)
    paths = [f"{folder}/{number}" for number in sorted(session.children(folder) or ())[:_MOST_READ]]
    owners = {slot_owner(found[0]) for found in session.get_many(paths) if found is not None}
    return sorted(owners - {""})


def running_beside(session: Session, layout: Layout, pool: str, name: str) -> list[str]:
    """The ids of the jobs of this name among the first 200 that run in a pool. Raises the errors of reads."""
    main = pool.removesuffix(LOW_LANE_SUFFIX)
    folders = [layout.queue(Queue.RUNNING, lane) for lane in (main, main + LOW_LANE_SUFFIX)]
    names = sorted((name for folder in folders for name in session.children(folder) or ()), key=order_of)
    ids = [token.id for token in map(Token.parse, names[:_MOST_READ]) if token is not None]
    found = session.get_many([layout.record(job_id) for job_id in ids])
    return [
        job_id
        for job_id, node in zip(ids, found, strict=True)
        if node is not None and _name_in(job_id, node[0]) == name
    ]


def _name_in(job_id: str, data: bytes) -> object:
    try:
        return Record.decode(job_id, data).payload.get("name")
    except CorruptRecord:
        return None


def rule_applied(
    session: Session, layout: Layout, *, job_id: str, name: str, pool: str, concurrency: int
) -> str:
    """What `concurrency` means for a job that is enqueued while others of its name run; empty if none does.

    Raises the errors of reads.
    """
    nodes, taken = Nodes(layout.root), 0
    if concurrency:
        found = slot_owners(session, nodes, name)
        # Not only those that are read: each slot counts, as for the worker that looks for a free one.
        taken = len(session.children(nodes.name_slots(name)) or ()) - (job_id in found)
    else:
        found = running_beside(session, layout, pool, name)
    others = [other for other in found if other != job_id]
    if not others:
        return ""
    if not concurrency:
        has, them = ("has", "it") if len(others) == 1 else ("have", "them")
        return (
            f"{listed(others)} (also named {name}) {has} not ended: {job_id} may run beside {them}; "
            "`concurrency: 1` in the definition runs one at a time"
        )
    limit, count = f"concurrency is {concurrency} for jobs named {name}", max(taken, len(others))
    if count >= concurrency:
        return f"{job_id} waits: {limit}, and {listed(others, count)} {_run(others)}"
    return f"{job_id} may run beside {listed(others, count)}: {limit}"


def listed(ids: Sequence[str], count: int = 0) -> str:
    """Some ids in a sentence, with the number of the others; `count` if there are more than these."""
    more = max(count, len(ids)) - _NAMED
    return ", ".join(ids[:_NAMED]) + (f" and {more} more" if more > 0 else "")


def _run(ids: Sequence[str]) -> str:
    return "runs" if len(ids) == 1 else "run"
