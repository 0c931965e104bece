"""How many records of topics a streaming query has read, and has yet to, as Spark reports of a trigger."""

import json
from collections.abc import Iterable
from typing import Any

SHOWN = 32  # partitions with the largest lag: a progress is stored in ZooKeeper


def lag_of(sources: Iterable[Any]) -> dict[str, Any]:
    """The part `lag` of a trigger: the number of `records`, and of each partition; empty without topics.

    A partition that is read to its end is left out.
    """
    found, has_topics = dict[str, int](), False
    for source in sources:
        if not str(source.description).startswith("Kafka"):
            continue
        reached, there = _offsets(source.endOffset), _offsets(source.latestOffset)
        if reached is None or there is None:
            continue
        has_topics = True
        for topic, partitions in there.items():
            for number, offset in partitions.items():
                behind = int(offset) - int(reached.get(topic, {}).get(number, 0))
                name = f"{topic}-{number}"
                found[name] = found.get(name, 0) + max(0, behind)
    if not has_topics:
        return {}
    worst = sorted((name for name in found if found[name]), key=lambda name: -found[name])[:SHOWN]
    return {"lag": {"records": sum(found.values()), "partitions": {name: found[name] for name in worst}}}


def lag_of_none() -> dict[str, Any]:
    """The value of `lag` of a query that has read all there is."""
    return {"records": 0, "partitions": {}}


def rows_of(sources: Iterable[Any]) -> int | None:
    """The records of topics that a trigger has read, once each; None if Spark does not say where it began.

    The number of rows that Spark reports counts the reads of a micro-batch, of which a sink may need several.
    """
    total = 0
    for source in sources:
        begun, reached = _offsets(source.startOffset), _offsets(source.endOffset)
        if begun is None or reached is None:
            return None
        for topic, partitions in reached.items():
            for number, offset in partitions.items():
                total += max(0, int(offset) - int(begun.get(topic, {}).get(number, 0)))
    return total


def _offsets(text: str | None) -> dict[str, dict[str, int]] | None:
    try:
        found = json.loads(text or "")
    except ValueError:
        return None
    return found if isinstance(found, dict) else None
