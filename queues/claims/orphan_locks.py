"""Orphan locks and slots: those of our own sessions without a claim, left by lost replies."""

from collections.abc import Iterable

from queues.claims.claimer import Claimer
from queues.model.operations import Check, Delete
from queues.store.batch import commit_once
from queues.store.root import Root


def release_orphan_locks(root: Root, claimer: Claimer, pool: str, locked: Iterable[str]) -> list[str]:
    """Remove orphan locks and slots; returns the ids of the items that are free again."""
    session, layout = root.session, root.layout
    unknown = [item_id for item_id in locked if not claimer.holds(item_id)]
    released = []
    for item_id, node in zip(
        unknown, session.get_many([layout.lock(pool, item_id) for item_id in unknown]), strict=True
    ):
        path = layout.lock(pool, item_id)
        if node is None or not claimer.sessions.owns(node[1].owner):
            continue
        # A claim from now on changes the record, so its lock is not removed.
        found = session.get(layout.record(item_id))
        fence = [] if found is None else [Check(layout.record(item_id), found[1].version)]
        stat = session.exists(path)
        if stat is None or not claimer.sessions.owns(stat.owner) or claimer.holds(item_id):
            continue  # no longer an orphan of this claimer at that version
        if commit_once(
            session, [*fence, Delete(path)], root.receipts
        ):  # otherwise the lock has changed or is gone
            released.append(item_id)
    if root.pools.limits(pool)[0].cap:
        _release_slots(root, claimer, pool)
    return released


def _release_slots(root: Root, claimer: Claimer, pool: str) -> None:
    session, folder = root.session, root.layout.holds(pool)
    for name in session.children(folder) or ():
        path = f"{folder}/{name}"
        found = session.get(path)
        if found is None or claimer.holds(found[0].decode(errors="replace")):
            continue
        # Checked after `holds`: a slot that was just released may already belong to another claim.
        stat = session.exists(path)
        if stat is not None and claimer.sessions.owns(stat.owner) and stat.owner == found[1].owner:
            commit_once(session, [Delete(path)], root.receipts)
