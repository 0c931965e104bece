"""A walk over all nodes below one, which looks at their rights and closes those that are open."""

from collections.abc import Callable, Iterator, Sequence

from queues.session import Grant, Rights, Seen, Session
from queues.session.rights import MAX_ASKED

Closing = Callable[[str, Rights], Sequence[Grant] | None]
"""The rights that the node at a path is to have, None where those that it has are right."""


def access_below(session: Session, top: str, closing: Closing | None = None) -> Iterator[tuple[str, Seen]]:
    """Each node from `top` down, with its rights as they were found; it is closed, where `closing` is given.

    The parent comes first, and its children are listed when it is closed: nobody else can make one behind our
    back. Raises what reads raise.
    """
    paths = [top]
    while paths:
        below = list[str]()
        for at in range(0, len(paths), MAX_ASKED):
            part = paths[at : at + MAX_ASKED]
            found = session.access.read(part)
            if closing is not None:
                _close(session, part, found, closing)
            yield from zip(part, found, strict=True)
            for path, names in zip(part, session.access.children(part), strict=True):
                below += [f"{path.rstrip('/')}/{name}" for name in names]
        paths = below


def _close(session: Session, paths: Sequence[str], found: Sequence[Seen], closing: Closing) -> None:
    changes = list[tuple[str, Sequence[Grant], int]]()
    for path, rights in zip(paths, found, strict=True):
        if isinstance(rights, Rights) and (grants := closing(path, rights)) is not None:
            changes.append((path, grants, rights.version))
    if changes:
        session.access.set(changes)
