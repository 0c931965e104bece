"""Locks and places of our own sessions that belong to no claim: a reply that was lost leaves them."""

from collections.abc import Iterable

from queues.bundle import commit_once
from queues.claimer import Claimer
from queues.operations import Check, Delete
from queues.root import Root


def release_orphan_locks(root: Root, claimer: Claimer, pool: str, locked: Iterable[str]) -> list[str]:
    """Remove them; returns the ids of the items that are free again."""
    session, layout = root.session, root.layout
    unknown = [item_id for item_id in locked if not claimer.holds(item_id)]
    released = []
    for item_id, node in zip(
        unknown, session.get_many([layout.lock(pool, item_id) for item_id in unknown]), strict=True
    ):
        path = layout.lock(pool, item_id)
        if node is None or not claimer.sessions.owns(node[1].owner):
            continue
        # Who claims the item from now on changes its record: that lock stays.
        found = session.get(layout.record(item_id))
        fence = [] if found is None else [Check(layout.record(item_id), found[1].version)]
        stat = session.exists(path)
        if stat is None or not claimer.sessions.owns(stat.owner) or claimer.holds(item_id):
            continue  # not ours any more at that version
        if commit_once(session, [*fence, Delete(path)], root.receipts):  # else it has changed or is gone
            released.append(item_id)
    if root.pools.limits(pool)[0].cap:
        _release_places(root, claimer, pool)
    return released


def _release_places(root: Root, claimer: Claimer, pool: str) -> None:
    session, folder = root.session, root.layout.holds(pool)
    for name in session.children(folder) or ():
        path = f"{folder}/{name}"
        found = session.get(path)
        if found is None or claimer.holds(found[0].decode(errors="replace")):
            continue
        # Only now, when nobody here holds it: a place that was just let go may be another's already.
        stat = session.exists(path)
        if stat is not None and claimer.sessions.owns(stat.owner) and stat.owner == found[1].owner:
            commit_once(session, [Delete(path)], root.receipts)
