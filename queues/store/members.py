"""Announcements of consumers: the queues and pools that each consumes."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from queues.model.codec import decode
from queues.model.names import LOW_LANE_SUFFIX, Layout
from queues.session import Session
from queues.session.wire import NodeData


@dataclass(frozen=True, slots=True)
class ConsumerAnnouncement:
    """The queues and pools of one consumer; None means all."""

    queues: frozenset[str] | None
    pools: frozenset[str] | None

    @classmethod
    def of(cls, found: NodeData | None) -> "ConsumerAnnouncement | None":
        """The announcement in a node; None if there is none, or if no session owns the node."""
        if found is None or not found[1].owner:
            return None
        try:
            document = decode(found[0])
        except ValueError:
            document = {}
        return cls(_names(document, "queues"), _names(document, "pools"))

    def takes(self, queue: str, pool: str) -> bool:
        """Whether the consumer takes items of this queue and pool."""
        return (self.queues is None or queue in self.queues) and self.serves(pool)

    def serves(self, pool: str) -> bool:
        """Whether the consumer takes items of this pool. A pool includes its low lane."""
        return self.pools is None or not self.pools.isdisjoint({pool, pool.removesuffix(LOW_LANE_SUFFIX)})


def _names(document: Mapping[str, Any], key: str) -> frozenset[str] | None:
    names = document.get(key)
    return frozenset(map(str, names)) if isinstance(names, list) else None


def read_announcements(
    session: Session, layout: Layout, names: Iterable[str] | None = None
) -> dict[str, ConsumerAnnouncement]:
    """The announcements of the consumers with these names, without missing ones; None means all."""
    wanted = list((session.children(layout.consumers) or ()) if names is None else names)
    found = session.get_many([layout.consumer(name) for name in wanted])
    members = ((name, ConsumerAnnouncement.of(node)) for name, node in zip(wanted, found, strict=True))
    return {name: member for name, member in members if member is not None}
