"""Where a read of a topic begins or ends: texts of users, and Spark's options for them."""

import json
from collections.abc import Mapping
from datetime import UTC, datetime, timedelta
from typing import Any

from spark_runner.connectors.errors import ConnectorError

EARLIEST, LATEST, GROUP = "earliest", "latest", "group-offsets"
TIMESTAMP, SPECIFIC = "timestamp", "specific-offsets"  # modes whose value is in an option of its own
_WORDS = {
    **dict.fromkeys((EARLIEST, "earliest-offset"), EARLIEST),
    **dict.fromkeys((LATEST, "latest-offset"), LATEST),
    GROUP: GROUP,
    TIMESTAMP: TIMESTAMP,
    SPECIFIC: SPECIFIC,
}
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_NUMBERS = {"latest": -1, "earliest": -2}  # as Spark writes them for one partition
FORMS = (
    "write earliest, latest, a time with its zone such as 2026-11-01T00:00:00Z, or offsets such as"
    " partition:0,offset:42;partition:1,offset:7"
)


def position(text: str) -> str:
    """The position in its only form; raises ConnectorError for a text that is none.

    `earliest`, `latest`, `group-offsets`, milliseconds since 1970 as digits, or offsets as JSON by topic and
    partition; the name of the only topic may be empty.
    """
    given = text.strip()
    if (word := _WORDS.get(given.lower())) is not None:
        return word
    if given.startswith("{"):
        return _of_json(given)
    if given.lower().startswith("partition:"):
        return _of_pairs(given)
    try:
        time = datetime.fromisoformat(given)
    except ValueError as error:
        raise ConnectorError(f"it is no position in a topic; {FORMS}") from error
    if time.tzinfo is None:
        raise ConnectorError(f"the time has no zone; {FORMS}")
    return str((time - _EPOCH) // timedelta(milliseconds=1))


def _of_json(text: str) -> str:
    try:
        found = json.loads(text)
        for partitions in found.values():
            for number, offset in partitions.items():
                int(number), int(offset)
    except (ValueError, TypeError, AttributeError, RecursionError) as error:
        raise ConnectorError('offsets as JSON are like {"topic": {"0": 42, "1": -2}}') from error
    return json.dumps(found)


def _of_pairs(text: str) -> str:
    found = {}
    try:
        for pair in text.strip().strip(";").split(";"):
            parts = dict(part.strip().split(":", 1) for part in pair.split(","))
            offset = parts["offset"].strip()
            found[str(int(parts["partition"]))] = _NUMBERS.get(offset) or int(offset)
    except (ValueError, KeyError) as error:
        raise ConnectorError("offsets are like partition:0,offset:42;partition:1,offset:7") from error
    return json.dumps({"": found})


def spark_options(found: str, edge: str, partitions: Mapping[str, list[int]]) -> dict[str, str]:
    """Spark's options for a position; `edge` is "starting" or "ending", `partitions` are those of each topic.

    Raises ConnectorError for offsets that name another topic or partition.
    """
    if found.isdigit():
        options = {f"{edge}Timestamp": found}
        return options | ({"startingOffsetsByTimestampStrategy": "latest"} if edge == "starting" else {})
    if not found.startswith("{"):
        return {f"{edge}Offsets": found}
    return {f"{edge}Offsets": json.dumps(_complete(json.loads(found), edge, partitions))}


def _complete(
    given: Mapping[str, Mapping[str, Any]], edge: str, partitions: Mapping[str, list[int]]
) -> dict[str, dict[str, int]]:
    """The offsets with those of the other partitions, all of which Spark needs."""
    if "" in given and len(partitions) != 1:
        raise ConnectorError(f"the table reads {len(partitions)} topics: give offsets as JSON, by topic")
    named = {topic or next(iter(partitions)): offsets for topic, offsets in given.items()}
    other = _NUMBERS["earliest"] if edge == "starting" else _NUMBERS["latest"]
    for topic, offsets in named.items():
        known = partitions.get(topic, [])
        if unknown := sorted({int(number) for number in offsets} - set(known)):
            raise ConnectorError(
                f"topic '{topic}' has no partition {unknown[0]}; it has {len(known)}, from 0"
                if known
                else f"the offsets name topic '{topic}', which the table does not read"
            )
    return {
        topic: {str(number): int(named.get(topic, {}).get(str(number), other)) for number in numbers}
        for topic, numbers in partitions.items()
    }
