"""How many commands are sent, or replies asked for, at once."""

from collections.abc import Iterator, Sequence

_MAX_BYTES = 8 * 1024 * 1024  # of one round trip with several rows


def round_trips(sizes: Sequence[int], rows: int) -> Iterator[slice]:
    """The parts of rows with these sizes in bytes: at most `rows` of them, and at most 8 MiB."""
    start = total = 0
    for index, size in enumerate(sizes):
        if index > start and (index - start == rows or total + size > _MAX_BYTES):
            yield slice(start, index)
            start, total = index, 0
        total += size
    if sizes:
        yield slice(start, len(sizes))
