"""Topics by the ids of their cluster: the offsets of a topic mean nothing in one that was created anew."""

import json
from collections.abc import Mapping, Sequence

from spark_runner.connectors.errors import ConnectorError


def identity(topic: str, topic_id: str) -> str:
    """The text that identifies a topic; names of topics have no colon."""
    return f"{topic}:{topic_id}"


def topics_of(reached: Sequence[str]) -> set[str]:
    """The topics of the offsets of a micro-batch, which may have those of other sources, too."""
    offsets = map(json.loads, reached)
    return {name for each in offsets if isinstance(each, dict) for name in each}


def check_same_topics(ids: Mapping[str, str], known: Sequence[str], reached: Sequence[str]) -> None:
    """Raise ConnectorError if offsets were reached in a topic that has another id now.

    A topic without a known id may be any: the brokers had none, or the stream began before ids were kept.
    """
    known_topics = {each.partition(":")[0] for each in known} & topics_of(reached)
    for topic, topic_id in ids.items():
        if topic in known_topics and identity(topic, topic_id) not in known:
            raise ConnectorError(
                f"topic '{topic}' was created anew since this stream began, and the offsets of its checkpoint"
                " mean other records now; submit the job with --fresh to read all records of the new topic,"
                " with --from POSITION to begin there, or set the option 'fail_on_data_loss' to false to go"
                " on at the old offsets"
            )
